package schedule

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/executionstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// answered goes on with a run that asked a person, once there is an answer.
func (a *attempt) answered(ctx context.Context, tx *store.Tx) (step, error) {
	q, err := executionstore.In(tx).GetQuestion(ctx, a.run.ID)
	if err != nil || q.Answer == nil {
		return step{}, pawl.IgnoreNotFound(err)
	}
	if a.cfg.Halt().Active() {
		return step{halted: true}, nil
	}
	if a.run, err = a.ledger.Resume(ctx, tx, a.claim.Fence(), a.run); err != nil {
		return step{}, err
	}
	a.question, a.resume = q.ID, q.Answer
	return step{execute: true}, a.settleLane(ctx, tx, a.schedule.ID)
}

// Approve answers what a run of a schedule asks, in the caller's transaction,
// and lets it go on. An absent answer is true.
func (s *Service) Approve(ctx context.Context, tx *store.Tx, r runstore.Run, answer json.RawMessage, by string) error {
	sch, slot, err := s.waiting(ctx, tx, r, "approve run")
	if err != nil {
		return err
	}
	if len(answer) == 0 {
		answer = json.RawMessage("true")
	}
	if !json.Valid(answer) {
		return &pawl.Error{Code: pawl.CodeInvalid, Op: "approve run", Msg: "the answer is not JSON", Fields: []pawl.Field{{Pointer: "/answer", Message: "must be JSON"}}}
	}
	open, err := executionstore.In(tx).AnswerQuestion(ctx, r.ID, answer, by)
	if err != nil {
		return err
	}
	if !open {
		return lane.Refuse("approve run", "not_waiting", "the run has already been answered", "")
	}
	if err := tx.Audit(ctx, by, "run.approve", "run:"+r.ID, map[string]string{"schedule": sch.Name}); err != nil {
		return err
	}
	return s.arm(ctx, tx, sch, slot.ScheduledFor, tx.Now)
}

// Seen refuses a decision that is made about another question than the one that
// the run asks now, in the caller's transaction: asked is when the one was asked
// that was shown. A graph can ask several in a row.
func (s *Service) Seen(ctx context.Context, tx *store.Tx, r runstore.Run, asked time.Time) error {
	same, err := executionstore.In(tx).HoldQuestion(ctx, r.ID, asked)
	if err == nil && !same {
		return lane.Refuse("decide about run", "changed", "the question is not the one you saw", "Review it again.")
	}
	return err
}

// Reject ends a run that asks a person for good, in the caller's transaction.
func (s *Service) Reject(ctx context.Context, tx *store.Tx, r runstore.Run, by string) error {
	sch, slot, err := s.waiting(ctx, tx, r, "reject run")
	if err != nil {
		return err
	}
	if _, err := s.ledger.Cancel(ctx, tx, r); err != nil {
		return err
	}
	if err := tx.Audit(ctx, by, "run.reject", "run:"+r.ID, map[string]string{"schedule": sch.Name}); err != nil {
		return err
	}
	key := pawl.SlotKey(sch.ID, slot.ScheduledFor)
	tx.AfterCommit(func() { go s.cancelElsewhere(context.WithoutCancel(ctx), key) })
	return s.close(ctx, tx, sch, slot, failed(contract.Aborted, "A person rejected it."))
}

// waiting finds the slot of a run that asks a person.
func (s *Service) waiting(ctx context.Context, tx *store.Tx, r runstore.Run, op string) (schedulestore.Schedule, schedulestore.Slot, error) {
	if r.Status != pawl.StatusPausedApproval {
		return schedulestore.Schedule{}, schedulestore.Slot{}, lane.Refuse(op, "not_waiting", "the run does not wait for an answer: it is "+string(r.Status), "")
	}
	return s.slotOf(ctx, tx, r)
}

// slotOf finds the slot of any attempt.
func (s *Service) slotOf(ctx context.Context, tx *store.Tx, r runstore.Run) (schedulestore.Schedule, schedulestore.Slot, error) {
	id := scheduleOfLane(r.Lane)
	sch, err := schedulestore.In(tx).GetSchedule(ctx, id)
	if err != nil {
		return schedulestore.Schedule{}, schedulestore.Slot{}, err
	}
	slot, err := schedulestore.In(tx).GetSlot(ctx, id, r.ScheduledFor)
	return sch, slot, err
}

// scheduleOfLane is the schedule that a lane belongs to.
func scheduleOfLane(lane string) string {
	id, _, _ := strings.Cut(lane, ":")
	return id
}

// CancelRun implements lane.Kind: it asks for the end of a run and tells the run as
// it is then. One that is executed ends by itself when its executor has stopped
// it; one that waits for a person ends at once.
func (s *Service) CancelRun(ctx context.Context, tx *store.Tx, r runstore.Run, by string) (runstore.Run, error) {
	if err := s.cancelRun(ctx, tx, r, by); err != nil {
		return runstore.Run{}, err
	}
	return runstore.In(tx).GetRun(ctx, r.ID)
}

func (s *Service) cancelRun(ctx context.Context, tx *store.Tx, r runstore.Run, by string) error {
	if r.Status == pawl.StatusPausedApproval {
		return s.Reject(ctx, tx, r, by)
	}
	if r.Status != pawl.StatusActive && r.Status != pawl.StatusPausedTransient {
		return lane.Refuse("cancel run", "not_running", "the run is over: it is "+string(r.Status), "")
	}
	sch, slot, err := s.slotOf(ctx, tx, r)
	if err != nil {
		return err
	}
	if err := tx.Audit(ctx, by, "run.cancel", "run:"+r.ID, map[string]string{"schedule": sch.Name}); err != nil {
		return err
	}
	if r.Status == pawl.StatusPausedTransient && r.ErrorCode != notAnswered { // it waits for its next attempt, which it will not have
		if run.SlotStatus(slot.Status).Closed() {
			return lane.Refuse("cancel run", "not_running", "the slot of the run is already closed", "")
		}
		newest, err := newestOf(ctx, tx, slot)
		if err != nil {
			return err
		}
		if newest.ID != r.ID {
			return lane.Refuse("cancel run", "not_running", "a later attempt follows the run", "Cancel that one: "+newest.ID)
		}
		return s.close(ctx, tx, sch, slot, failed(contract.Aborted, "A person cancelled it."))
	}
	key := pawl.SlotKey(sch.ID, slot.ScheduledFor)
	tx.AfterCommit(func() { go s.cancelElsewhere(context.WithoutCancel(ctx), key) })
	return nil
}

// Actions implements lane.Kind: what is accepted for the newest run of a slot that
// is open.
func (s *Service) Actions(ctx context.Context, tx *store.Tx, r *runstore.Run) ([]lane.Action, error) {
	slot, err := schedulestore.In(tx).GetSlot(ctx, scheduleOfLane(r.Lane), r.ScheduledFor)
	if err != nil || run.SlotStatus(slot.Status) != run.SlotRunning {
		return nil, pawl.IgnoreNotFound(err)
	}
	newest, err := runstore.In(tx).NewestRun(ctx, r.Kind, r.Lane)
	if err != nil || newest.ID != r.ID {
		return nil, err
	}
	switch r.Status {
	case pawl.StatusPausedApproval:
		q, err := executionstore.In(tx).GetQuestion(ctx, r.ID)
		if err := pawl.IgnoreNotFound(err); err != nil {
			return nil, err
		}
		if q.Answer != nil {
			return []lane.Action{{Name: "reject"}, {Name: "cancel"}}, nil
		}
		return []lane.Action{{Name: "approve"}, {Name: "reject"}, {Name: "cancel"}}, nil
	case pawl.StatusActive, pawl.StatusPausedTransient:
		return []lane.Action{{Name: "cancel"}}, nil
	default:
		return nil, nil
	}
}
