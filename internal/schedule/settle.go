package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/billing"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/executionstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/visible"
)

// settle writes what became of an attempt, in one transaction. It returns when
// to try again, zero if the slot is closed or waits for a person.
func (a *attempt) settle(ctx context.Context, answer contract.RunAnswerV1, failure error) (again time.Time, err error) {
	if a.ended {
		return time.Time{}, nil
	}
	if failure == nil {
		if err := a.endTogether(answer, nil); err == nil || !apart(err) {
			return time.Time{}, err
		}
	}
	err = a.db.WriteShared(ctx, a.schedule.ID, func(ctx context.Context, tx *store.Tx) error {
		again, err = a.record(ctx, tx, answer, failure)
		return err
	})
	if errors.Is(err, pawl.ErrConflict) { // a person was faster; look again
		return time.Now(), nil
	}
	return again, err
}

func (a *attempt) record(ctx context.Context, tx *store.Tx, answer contract.RunAnswerV1, failure error) (time.Time, error) {
	sch, err := holdOrRead(ctx, tx, a.schedule.ID) // deleted while it ran: what it did is recorded all the same
	if err != nil {
		return time.Time{}, err
	}
	if failure != nil {
		return time.Time{}, a.recordRefusal(ctx, tx, sch, failure)
	}
	switch {
	case answer.OK:
		if _, err := a.ledger.Commit(ctx, tx, a.run, outputOf(a.schedule, answer)); err != nil {
			return time.Time{}, err
		}
		return time.Time{}, a.closeClear(ctx, tx, sch, a.slot, endOf(sch, answer))
	case len(answer.Interrupt) > 0:
		return time.Time{}, a.interrupted(ctx, tx, sch, answer)
	}
	return a.recordFailure(ctx, tx, sch, answer)
}

// outputOf is what the run keeps of an outcome. What a plain run has written is
// long, and stays where it is shown while it runs.
func outputOf(sch schedulestore.Schedule, answer contract.RunAnswerV1) json.RawMessage {
	if work.Is(sch.GraphID) {
		return nil
	}
	return answer.Output
}

// endOf is how an outcome ends a slot.
func endOf(sch schedulestore.Schedule, answer contract.RunAnswerV1) schedulestore.SlotEnd {
	end := schedulestore.SlotEnd{Status: string(run.SlotSuccess), Disposition: string(run.DispositionFired)}
	if !answer.OK {
		code := answer.ErrorCode
		if !code.Valid() {
			code = contract.Internal
		}
		end = failed(code, answer.ErrorMessage)
		if answer.Unknown {
			end.ErrorMessage = "It is unknown whether it ran: " + answer.ErrorMessage
			end.Doubt = code != contract.Aborted // a person stopped it, and knows
		}
	}
	end.TraceID, end.Cost, end.Brought = answer.TraceID, costOf(answer), rowsOf(sch, answer)
	return end
}

func costOf(answer contract.RunAnswerV1) int64 {
	if answer.CostUSD == nil {
		return 0
	}
	return int64(*answer.CostUSD)
}

// recordFailure ends an attempt that failed, and the slot with it unless
// another attempt may help, which the execution service says.
func (a *attempt) recordFailure(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, answer contract.RunAnswerV1) (time.Time, error) {
	end := endOf(sch, answer)
	why := ledger.Failure{Class: classOf(contract.ErrorCode(end.ErrorCode)), Code: end.ErrorCode, Message: end.ErrorMessage, Slot: budgetOf(a.schedule, a.slot)}
	retry := answer.Retry && !answer.Unknown && sch.DeletedAt.IsZero() && why.Slot.Attempts != 1
	if retry {
		why.Class, why.RetryAfter = pawl.ClassTransient, time.Duration(answer.RetryAfterMS)*time.Millisecond
	}
	if answer.Unknown {
		why.Class = pawl.ClassInternal
	}
	o, err := a.ledger.Stop(ctx, tx, a.run, why)
	if err != nil {
		return time.Time{}, err
	}
	if retry && !o.Exhausted {
		if err := schedulestore.In(tx).SetSlotCost(ctx, a.slot.ID, costOf(answer)); err != nil {
			return time.Time{}, err
		}
		return o.Retry.NextAt, a.settleLane(ctx, tx, sch.ID)
	}
	return time.Time{}, a.close(ctx, tx, sch, a.slot, end)
}

// classOf is the class of a failure that no further attempt can help.
func classOf(code contract.ErrorCode) pawl.Class {
	switch {
	case code.IsGrant():
		return pawl.ClassPermission
	case code == contract.InsufficientCredits:
		return pawl.ClassPrecondition
	case code == contract.Internal, code == contract.Timeout, code == contract.RateLimit:
		return pawl.ClassInternal
	}
	return pawl.ClassLogic
}

func capped(err error) bool {
	_, ok := errors.AsType[*billing.CapError](err)
	return ok || contract.CodeOf(err) == contract.InsufficientCredits
}

// recordRefusal ends a slot whose attempt the execution service did not begin.
// One of which an earlier attempt ran has failed; it was not skipped.
func (a *attempt) recordRefusal(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, failure error) error {
	code, overBudget := contract.CodeOf(failure), capped(failure)
	if overBudget {
		code = contract.InsufficientCredits
	}
	end := failed(code, messageOf(failure))
	switch {
	case a.resume != nil: // it ran until it asked
		end.ErrorMessage = "It could not continue with the answer of a person: " + end.ErrorMessage
		key := a.key()
		tx.AfterCommit(func() { go a.cancelElsewhere(context.WithoutCancel(ctx), key) })
	case a.slot.Attempts > 1:
	case code.IsGrant():
		end = skipped(run.DispositionSkippedGrant, code, messageOf(failure))
	case overBudget:
		end = skipped(run.DispositionSkippedBudget, code, messageOf(failure))
	}
	if _, err := a.ledger.Stop(ctx, tx, a.run, ledger.Failure{Class: classOf(code), Code: string(code), Message: messageOf(failure)}); err != nil {
		return err
	}
	until := dayOver(failure)
	switch {
	case !overBudget:
	case until.After(tx.Now):
		if err := a.hold(ctx, tx, &sch, until, messageOf(failure)); err != nil {
			return err
		}
	default:
		if err := a.switchOff(ctx, tx, sch, messageOf(failure)); err != nil {
			return err
		}
		sch.Enabled = false // nothing follows
	}
	return a.close(ctx, tx, sch, a.slot, end)
}

// switchOff disables a schedule because a cap was reached, and pauses the
// backfill that reached it: a person decides whether it goes on.
func (a *attempt) switchOff(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, why string) error {
	if err := a.pauseBackfill(ctx, tx); err != nil || !sch.DeletedAt.IsZero() {
		return err
	}
	if err := a.supersede(ctx, tx, sch, run.DispositionSkippedDisabled, "The schedule was disabled: "+why); err != nil {
		return err
	}
	return schedulestore.In(tx).SwitchOffSchedule(ctx, sch.ID, why)
}

// pauseBackfill pauses the backfill that a slot is of, if it is of one.
func (a *attempt) pauseBackfill(ctx context.Context, tx *store.Tx) error {
	if a.slot.BackfillID == "" {
		return nil
	}
	b, err := schedulestore.In(tx).HoldBackfill(ctx, a.slot.BackfillID)
	if err == nil && b.State == BackfillRunning {
		_, err = schedulestore.In(tx).MoveBackfill(ctx, b.ID, BackfillPaused, "")
	}
	return err
}

func messageOf(err error) string {
	if e, ok := errors.AsType[*pawl.Error](err); ok {
		return e.Msg
	}
	return err.Error()
}

// close ends a slot and goes on with the schedule, in one transaction.
func (s *Service) close(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, slot schedulestore.Slot, end schedulestore.SlotEnd) error {
	if slot.RunID != "" { // the failures of a slot that began are its own
		first, err := runstore.In(tx).GetRun(ctx, slot.RunID)
		if err != nil {
			return err
		}
		if err := runstore.In(tx).ClearRetry(ctx, first.Kind, first.Lane); err != nil {
			return err
		}
	}
	return s.closeClear(ctx, tx, sch, slot, end)
}

// closeClear is close for a slot whose failures are forgotten, or that never
// began.
func (s *Service) closeClear(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, slot schedulestore.Slot, end schedulestore.SlotEnd) error {
	closed, err := schedulestore.In(tx).CloseSlot(ctx, slot.ID, end)
	if err != nil {
		return err
	}
	s.emitSlot(tx, sch, closed)
	if err := s.noteSlot(ctx, tx, sch, closed); err != nil {
		return err
	}
	if waitsFresh(slot) { // the row of the lane says that it waits
		if err := s.settleLane(ctx, tx, sch.ID); err != nil {
			return err
		}
	}
	return s.armNext(ctx, tx, sch)
}

// mostOpen is how many slots that wait or run are looked at.
const mostOpen = 100

// armNext wakes slots that wait for the end of another one, and makes sure that
// there is a next one.
func (s *Service) armNext(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule) error {
	open, err := schedulestore.In(tx).OpenSlots(ctx, sch.ID, mostOpen)
	if err != nil {
		return err
	}
	there := false
	for _, slot := range open {
		there = there || leadsOn(sch, slot)
		if run.SlotStatus(slot.Status) != run.SlotPending || slot.ScheduledFor.After(tx.Now) {
			continue
		}
		if err := s.arm(ctx, tx, sch, slot.ScheduledFor, tx.Now); err != nil {
			return err
		}
	}
	if !sch.Enabled || !sch.DeletedAt.IsZero() {
		return nil
	}
	if !there && len(open) == mostOpen {
		there, err = planned(ctx, tx, sch)
	}
	if err != nil || there {
		return err
	}
	after, err := lastSlot(ctx, tx, sch)
	if err != nil {
		return err
	}
	return s.chain(ctx, tx, sch, after, false)
}

// interrupted makes the run wait for a person, with what the graph asks.
func (a *attempt) interrupted(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, answer contract.RunAnswerV1) error {
	if _, err := a.ledger.Pause(ctx, tx, a.run); err != nil {
		return err
	}
	if err := schedulestore.In(tx).SetSlotCost(ctx, a.slot.ID, costOf(answer)); err != nil {
		return err
	}
	if err := executionstore.In(tx).StoreQuestion(ctx, a.run.ID, sch.ID, answer.QuestionID, answer.Interrupt); err != nil {
		return err
	}
	return a.notifyQuestion(ctx, tx, sch, answer.Interrupt)
}

// notifyQuestion tells people that a graph asks them something.
func (a *attempt) notifyQuestion(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, question json.RawMessage) error {
	return a.noteIssue(ctx, tx, sch, run.IssueApproval, a.run.ID, a.run.ID, "The graph asks: "+visible.Truncate(string(question), 300))
}
