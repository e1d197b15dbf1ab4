package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/workflow"
)

// scheduleRunDetail reads what only runs of schedules have.
func (a *API) scheduleRunDetail(ctx context.Context, tx *store.Tx, r *runstore.Run) (out client.ScheduleRunDetail, err error) {
	if r.Kind != pawl.KindSchedule {
		return out, nil
	}
	out.Output = r.OutputState
	slot, err := schedulestore.In(tx).GetSlot(ctx, a.kinds.LaneOf(r).Key, r.ScheduledFor)
	if errors.Is(err, pawl.ErrNotFound) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	told := []client.Slot{schedule.SlotOf(slot)}
	if err := addOutputs(ctx, tx, told, 0); err != nil {
		return out, err
	}
	if told[0].Output != nil && len(out.Output) == 0 {
		out.Output, err = json.Marshal(told[0].Output)
	}
	out.Slot = &told[0]
	return out, err
}

// approve lets a run go on, by its kind: one of a workflow makes the call that
// it asks for, one of a schedule gets the answer.
func (a *API) approve(ctx context.Context, tx *store.Tx, r *runstore.Run, body *client.ApproveRequest, by string) error {
	if r.Kind == pawl.KindSchedule {
		var f faults
		if body.Hash != "" {
			f.add("/hash", "is for runs of workflows only", "A graph gets an answer.")
		}
		if body.Always {
			f.add("/always", "is for runs of workflows only", "A graph gets an answer.")
		}
		if err := f.problem(); err != nil {
			return err
		}
		return a.schedules.Approve(ctx, tx, *r, body.Answer, by)
	}
	if len(body.Answer) > 0 {
		return invalid("Leave it out.", client.Fault{Pointer: "/answer", Message: "is for runs of schedules only"})
	}
	return a.workflows.Approve(ctx, tx, r.ID, body.Hash, body.Always, by)
}

// reject ends a run that asks, by its kind.
func (a *API) reject(ctx context.Context, tx *store.Tx, r *runstore.Run, by string) error {
	if r.Kind == pawl.KindSchedule {
		return a.schedules.Reject(ctx, tx, *r, by)
	}
	_, err := a.workflows.Reject(ctx, tx, r.ID, by)
	return err
}

// resolve says what became of something of which nobody knows it, by the kind of the
// run: a call of a workflow, or a slot of a schedule.
func (a *API) resolve(ctx context.Context, tx *store.Tx, r *runstore.Run, outcome workflow.Outcome, result json.RawMessage, by string) error {
	if r.Kind == pawl.KindSchedule {
		return a.resolveSlot(ctx, tx, r, string(outcome), by)
	}
	if err := a.ofWorkflowOnly(r, "resolve run"); err != nil {
		return err
	}
	return a.workflows.Resolve(ctx, tx, r.ID, outcome, result, by)
}

// ofWorkflowOnly refuses what only runs of workflows know.
func (a *API) ofWorkflowOnly(r *runstore.Run, op string) error {
	if r.Kind == pawl.KindWorkflow {
		return nil
	}
	name := a.kinds.LaneOf(r).Name
	return &pawl.Error{
		Code: pawl.CodeConflict, Op: op, Msg: fmt.Sprintf("run %s is one of the %s %q; this is for runs of workflows", r.ID, r.Kind, name),
		Hint: fmt.Sprintf("pawl why %s %s shows what it is waiting for.", r.Kind, name),
	}
}

// seenQuestion refuses a decision about another question than the one that a
// graph asks.
func (a *API) seenQuestion(ctx context.Context, tx *store.Tx, r *runstore.Run, asked string) error {
	at, err := time.Parse(time.RFC3339, asked)
	if err != nil {
		return invalid("Send askedAt as you received it.", client.Fault{Pointer: "/seen", Message: "is not a time"})
	}
	return a.schedules.Seen(ctx, tx, *r, at)
}

// seen refuses a decision about another question than the one that is asked.
func (a *API) seen(ctx context.Context, tx *store.Tx, r *runstore.Run, asked string) error {
	switch {
	case asked == "":
		return nil
	case r.Kind == pawl.KindSchedule:
		return a.seenQuestion(ctx, tx, r, asked)
	}
	return a.workflows.Seen(ctx, tx, r.ID, asked)
}
