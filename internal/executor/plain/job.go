package plain

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/executor/runner"
)

// watchJob is how often a job is looked at.
const watchJob = 250 * time.Millisecond

// jobMemory is what is remembered of a run that is a job.
type jobMemory struct {
	Attempt int   `json:"attempt"`
	Job     int64 `json:"job"`
}

// job enqueues a job and waits for its end. What was enqueued is found again after
// a crash, by the run and the attempt.
func (p *Provider) job(ctx context.Context, what client.PlainRun, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
	if p.env.Jobs == nil {
		return runner.Final(runner.CodeNotFound, "there is no queue here"), nil
	}
	ctx, end := p.going.Begin(ctx, r)
	defer end()
	ctx, cancel := runner.Within(ctx, r, work.Timeout(what))
	defer cancel()
	var m jobMemory
	if len(r.Remote) > 0 {
		if err := json.Unmarshal(r.Remote, &m); err != nil {
			return runner.Result{}, err
		}
	}
	if m.Job == 0 || m.Attempt != r.Attempt {
		id, err := p.env.Jobs.Enqueue(ctx, JobOf{r.RunID, r.Attempt, r.ScheduleID}, *what.Job)
		if e, ok := errors.AsType[*pawl.Error](err); ok && (e.Code == pawl.CodeInvalid || e.Code == pawl.CodeNotFound || e.Code == pawl.CodeTooLarge) {
			return runner.Final(runner.CodeInvalidRequest, "the job could not be enqueued: "+e.Msg), nil
		}
		if err != nil {
			return runner.Result{}, err
		}
		m = jobMemory{r.Attempt, id}
		raw, _ := json.Marshal(m) // two numbers
		if err := emit(runner.Event{Kind: runner.KindRemote, Remote: raw}); err != nil {
			return runner.Result{}, err
		}
	}
	return p.followJob(ctx, m.Job)
}

func (p *Provider) followJob(ctx context.Context, id int64) (runner.Result, error) {
	out := client.PlainOutput{JobID: strconv.FormatInt(id, 10)}
	tick := time.NewTicker(watchJob)
	defer tick.Stop()
	for {
		o, done, err := p.env.Jobs.Outcome(ctx, id)
		switch {
		case err != nil && ctx.Err() == nil:
			return runner.Result{}, err
		case done && o.Lost: // it was deleted, or is older than what is kept
			return withOutput(runner.Unknown("the job "+out.JobID+" left no record"), out), nil
		case done && o.OK:
			out.Result = o.Result
			return withOutput(runner.Result{OK: true}, out), nil
		case done:
			return withOutput(again(runner.CodeInternal, "the job "+out.JobID+" failed: "+runner.Excerpt(o.Message)), out), nil
		}
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
		}
		result, _, err := runner.Ended(ctx)
		if err != nil {
			return runner.Result{}, err
		}
		if err := p.env.Jobs.Cancel(context.WithoutCancel(ctx), id); err != nil {
			result.Message += "; its job " + out.JobID + " goes on"
		}
		result.Retry = false
		return withOutput(result, out), nil
	}
}
