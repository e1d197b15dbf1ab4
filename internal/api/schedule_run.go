package api

import (
	"context"
	"errors"
	"fmt"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/store"
)

// visibleRun reads a run that the caller may know of. One of somebody else's
// schedule looks as if it were not there.
func (a *API) visibleRun(ctx context.Context, tx *store.Tx, id string) (store.Run, error) {
	r, err := tx.GetRun(ctx, id)
	if err != nil || r.Kind != pawl.KindSchedule {
		return r, err
	}
	owner := access.Reach(callOf(ctx).token, schedulesResource)
	s, err := tx.GetSchedule(ctx, schedule.ScheduleOfRun(&r))
	if errors.Is(err, pawl.ErrNotFound) || err == nil && owner != "" && s.OwnerUserID != owner {
		return store.Run{}, &pawl.Error{Code: pawl.CodeNotFound, Op: "read run", Msg: "there is no run " + id}
	}
	return r, err
}

// scheduleRunDetail reads what only runs of schedules have.
func scheduleRunDetail(ctx context.Context, tx *store.Tx, r *store.Run) (out client.ScheduleRunDetail, err error) {
	if r.Kind != pawl.KindSchedule {
		return out, nil
	}
	out.Output = r.OutputState
	slot, err := tx.GetSlot(ctx, schedule.ScheduleOfRun(r), r.ScheduledFor)
	if errors.Is(err, pawl.ErrNotFound) {
		return out, nil
	}
	told := slotOf(slot)
	out.Slot = &told
	return out, err
}

// scheduleAnswers reads what a graph asks and what can be done about its run.
func scheduleAnswers(ctx context.Context, tx *store.Tx, r *store.Run) (out client.RunAnswers, err error) {
	out.Actions = []client.RunAction{}
	q, err := tx.GetQuestion(ctx, r.ID)
	switch {
	case err == nil:
		out.Question = &client.RunQuestion{Question: q.Question, Answer: q.Answer, AnsweredBy: client.NullString(userOf(q.AnsweredBy)), AskedAt: client.At(q.CreatedAt), AnsweredAt: client.At(q.AnsweredAt)}
	case !errors.Is(err, pawl.ErrNotFound):
		return out, err
	}
	slot, err := tx.GetSlot(ctx, schedule.ScheduleOfRun(r), r.ScheduledFor)
	if err != nil || contract.SlotStatus(slot.Status) != run.SlotRunning {
		return out, unlessNotFound(err)
	}
	newest, err := tx.NewestRun(ctx, r.Kind, r.Lane)
	if err != nil || newest.ID != r.ID {
		return out, err
	}
	out.Actions = scheduleActions(r.Status, q.Answer != nil)
	return out, nil
}

// scheduleActions are what schedule.Service would accept for the newest run of a
// slot that is open.
func scheduleActions(status pawl.Status, answered bool) []client.RunAction {
	switch {
	case status == pawl.StatusPausedApproval && answered:
		return []client.RunAction{{Name: "reject"}, {Name: "cancel"}}
	case status == pawl.StatusPausedApproval:
		return []client.RunAction{{Name: "approve"}, {Name: "reject"}, {Name: "cancel"}}
	case status == pawl.StatusActive, status == pawl.StatusPausedTransient:
		return []client.RunAction{{Name: "cancel"}}
	}
	return []client.RunAction{}
}

func unlessNotFound(err error) error {
	if errors.Is(err, pawl.ErrNotFound) {
		return nil
	}
	return err
}

// approve lets a run go on, by its kind: one of a workflow makes the call that
// it asks for, one of a schedule gets the answer.
func (a *API) approve(ctx context.Context, tx *store.Tx, r *store.Run, body *client.ApproveRequest, by string) error {
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
func (a *API) reject(ctx context.Context, tx *store.Tx, r *store.Run, by string) error {
	if r.Kind == pawl.KindSchedule {
		return a.schedules.Reject(ctx, tx, *r, by)
	}
	_, err := a.workflows.Reject(ctx, tx, r.ID, by)
	return err
}

// cancelScheduleRun asks for the end of a run of a schedule and tells it as it
// is then: one that is executed ends when its executor has stopped it.
func (a *API) cancelScheduleRun(ctx context.Context, tx *store.Tx, r store.Run, by string) (store.Run, error) {
	if err := a.schedules.CancelRun(ctx, tx, r, by); err != nil {
		return store.Run{}, err
	}
	return tx.GetRun(ctx, r.ID)
}

// ofWorkflowOnly refuses what only runs of workflows know.
func ofWorkflowOnly(r *store.Run, op string) error {
	if r.Kind == pawl.KindWorkflow {
		return nil
	}
	return &pawl.Error{
		Code: pawl.CodeConflict, Op: op, Msg: fmt.Sprintf("run %s is one of the %s %q; this is for runs of workflows", r.ID, r.Kind, laneName(r)),
		Hint: fmt.Sprintf("pawl why %s %s tells what it waits for.", r.Kind, laneName(r)),
	}
}

// scheduleFilter picks the runs of a schedule that the caller names by its id
// or its name; of one that is not there, none.
func (a *API) scheduleFilter(ctx context.Context, tx *store.Tx, filter store.RunFilter) (store.RunFilter, bool, error) {
	if a.schedules == nil {
		return filter, false, nil
	}
	s, err := a.findSchedule(ctx, tx, filter.Lane)
	if err != nil {
		return filter, false, unlessNotFound(err)
	}
	filter.Kind, filter.Lane, filter.Schedule = pawl.KindSchedule, "", s.ID
	return filter, true, nil
}
