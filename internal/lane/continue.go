package lane

import (
	"context"
	"encoding/json"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
)

// A lane that is held back until an instant has a job for that instant, which lets it
// continue on whichever node. Pauses of people and the holds of daily caps share it: one
// that comes while something else still holds the lane back waits for that.

// ContinuePrefix begins the name of the task that lets lanes of a kind continue.
const ContinuePrefix = "continue_"

type continuePayload struct {
	Lane string `json:"lane"`
}

// ArmContinue makes sure that a lane is looked at at an instant, in the transaction that
// holds it back.
func ArmContinue(ctx context.Context, tx *store.Tx, jobs Jobs, kind pawl.Kind, lane string, at time.Time) error {
	payload, err := json.Marshal(continuePayload{lane})
	if err != nil {
		return err
	}
	task := ContinuePrefix + string(kind)
	key := task + ":" + lane
	_, err = jobs.EnqueueTx(ctx, tx, store.JobSpec{Task: task, Payload: payload, RunAt: at, Key: key, KeyMode: store.Earliest, Lane: key})
	return err
}

// ContinueTask is the code of that task. What it is given ends what is over, and
// tells when to look again; zero if nothing holds the lane back any more.
func ContinueTask(proceed func(ctx context.Context, lane string) (again time.Time, err error)) queue.Task {
	return queue.Task{Internal: true, Backoff: Backoff, Run: func(ctx context.Context, j *queue.Job) error {
		var p continuePayload
		if err := json.Unmarshal(j.Payload, &p); err != nil || p.Lane == "" {
			return queue.Permanent(&pawl.Error{Code: pawl.CodeInvalid, Op: "continue lane", Msg: "the job names no lane", Err: err})
		}
		again, err := proceed(ctx, p.Lane)
		if err != nil || again.IsZero() {
			return err
		}
		return queue.Snooze(again)
	}}
}
