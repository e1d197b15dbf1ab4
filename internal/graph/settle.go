package graph

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/graph/billing"
	"github.com/pawlrun/pawl/internal/graph/contract"
	"github.com/pawlrun/pawl/internal/graph/grant"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
)

// settle writes what became of an attempt, in one transaction. It returns when
// to try again, zero if the slot is closed or waits for a person.
func (a *attempt) settle(ctx context.Context, answer contract.RunAnswerV1, failure error) (again time.Time, err error) {
	err = a.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		again, err = a.record(ctx, tx, answer, failure)
		return err
	})
	if errors.Is(err, pawl.ErrConflict) { // a person was faster; look again
		return time.Now(), nil
	}
	return again, err
}

func (a *attempt) record(ctx context.Context, tx *store.Tx, answer contract.RunAnswerV1, failure error) (time.Time, error) {
	sch, err := tx.HoldSchedule(ctx, a.schedule.ID)
	if errors.Is(err, pawl.ErrNotFound) { // deleted while it ran; what it did is recorded all the same
		sch, err = tx.GetSchedule(ctx, a.schedule.ID)
	}
	if err != nil {
		return time.Time{}, err
	}
	if failure != nil {
		return a.recordRefusal(ctx, tx, sch, failure)
	}
	switch {
	case answer.OK:
		if _, err := a.ledger.Commit(ctx, tx, a.run, answer.Output); err != nil {
			return time.Time{}, err
		}
		return time.Time{}, a.close(ctx, tx, sch, a.slot, store.SlotEnd{Status: string(run.SlotSuccess), Disposition: string(run.DispositionFired), TraceID: answer.TraceID, Cost: costOf(answer)})
	case len(answer.Interrupt) > 0:
		return time.Time{}, a.interrupted(ctx, tx, sch, answer)
	}
	return a.recordFailure(ctx, tx, sch, answer)
}

func costOf(answer contract.RunAnswerV1) int64 {
	if answer.CostUSD == nil {
		return 0
	}
	return int64(*answer.CostUSD)
}

// recordFailure ends an attempt that failed, and the slot with it unless
// another attempt may help.
func (a *attempt) recordFailure(ctx context.Context, tx *store.Tx, sch store.Schedule, answer contract.RunAnswerV1) (time.Time, error) {
	code := answer.ErrorCode
	if !code.Valid() {
		code = contract.Internal
	}
	why := ledger.Failure{Class: classOf(code), Code: string(code), Message: answer.ErrorMessage}
	if answer.Retry && !answer.Unknown {
		why.Class, why.RetryAfter = pawl.ClassTransient, time.Duration(answer.RetryAfterMS)*time.Millisecond
	}
	if answer.Unknown {
		why.Class = pawl.ClassInternal
		why.Message = "It is unknown whether the graph ran: " + answer.ErrorMessage
	}
	o, err := a.ledger.Stop(ctx, tx, a.run, why)
	if err != nil {
		return time.Time{}, err
	}
	if why.Class == pawl.ClassTransient && !o.Exhausted {
		return o.Retry.NextAt, tx.SetSlotCost(ctx, a.slot.ID, costOf(answer))
	}
	return time.Time{}, a.close(ctx, tx, sch, a.slot, store.SlotEnd{
		Status: string(run.SlotError), Disposition: string(run.DispositionFired), TraceID: answer.TraceID,
		ErrorCode: string(code), ErrorMessage: why.Message, Cost: costOf(answer),
	})
}

// classOf is the class of a failure that no further attempt can help.
func classOf(code contract.ErrorCode) pawl.Class {
	switch {
	case code.IsGrant():
		return pawl.ClassPermission
	case code == contract.InsufficientCredits:
		return pawl.ClassPrecondition
	case code == contract.Internal, code == contract.Timeout, code == contract.RateLimit:
		return pawl.ClassTransient
	}
	return pawl.ClassLogic
}

// recordRefusal ends an attempt that the execution service did not begin. What
// says nothing about the run is an error of the infrastructure: the attempt
// stays as it is and is gone on with (lesson 58).
func (a *attempt) recordRefusal(ctx context.Context, tx *store.Tx, sch store.Schedule, failure error) (time.Time, error) {
	code, end := contract.CodeOf(failure), store.SlotEnd{}
	_, capped := errors.AsType[*billing.CapError](failure)
	switch _, refused := grant.RefusalCode(failure); {
	case refused:
		end = skipped(run.DispositionSkippedGrant, code, messageOf(failure))
	case capped, code == contract.InsufficientCredits:
		end = skipped(run.DispositionSkippedBudget, contract.InsufficientCredits, messageOf(failure))
	case code == contract.NotFound, code == contract.InvalidRequest:
		end = store.SlotEnd{Status: string(run.SlotError), Disposition: string(run.DispositionFired), ErrorCode: string(code), ErrorMessage: messageOf(failure)}
	default:
		return a.unanswered(ctx, tx, sch, failure)
	}
	if _, err := a.ledger.Stop(ctx, tx, a.run, ledger.Failure{Class: classOf(code), Code: string(code), Message: messageOf(failure)}); err != nil {
		return time.Time{}, err
	}
	if err := a.close(ctx, tx, sch, a.slot, end); err != nil {
		return time.Time{}, err
	}
	if end.Disposition == string(run.DispositionSkippedBudget) {
		return time.Time{}, a.switchOff(ctx, tx, sch, messageOf(failure))
	}
	return time.Time{}, nil
}

// unanswered is an attempt of which the execution service could not say
// anything.
func (a *attempt) unanswered(ctx context.Context, tx *store.Tx, sch store.Schedule, failure error) (time.Time, error) {
	a.log.Warn("the execution service did not answer", "schedule", sch.Name, "slot", pawl.FormatTime(a.slot.ScheduledFor), "err", failure)
	o, err := a.ledger.Stop(ctx, tx, a.run, ledger.Failure{Class: pawl.ClassTransient, Code: string(contract.Internal), Message: messageOf(failure)})
	if err != nil {
		return time.Time{}, err
	}
	if !o.Exhausted {
		return o.Retry.NextAt, nil
	}
	return time.Time{}, a.close(ctx, tx, sch, a.slot, store.SlotEnd{
		Status: string(run.SlotError), Disposition: string(run.DispositionFired), ErrorCode: string(contract.Internal), ErrorMessage: messageOf(failure),
	})
}

// switchOff disables a schedule because a cap was reached: a person decides
// whether it goes on.
func (a *attempt) switchOff(ctx context.Context, tx *store.Tx, sch store.Schedule, why string) error {
	if err := a.supersede(ctx, tx, sch.ID, "The schedule was switched off: "+why); err != nil {
		return err
	}
	return tx.SwitchOffSchedule(ctx, sch.ID, why)
}

func messageOf(err error) string {
	if e, ok := errors.AsType[*pawl.Error](err); ok {
		return e.Msg
	}
	return err.Error()
}

// close ends a slot and goes on with the schedule, in one transaction.
func (s *Service) close(ctx context.Context, tx *store.Tx, sch store.Schedule, slot store.Slot, end store.SlotEnd) error {
	closed, err := tx.CloseSlot(ctx, slot.ID, end)
	if err != nil {
		return err
	}
	if err := tx.ClearRetry(ctx, pawl.KindSchedule, laneOf(sch, slot.ScheduledFor)); err != nil {
		return err
	}
	s.tell(tx, Change{What: "slot", Schedule: sch.ID, Name: sch.Name, Slot: slot.ScheduledFor, Status: closed.Status})
	if err := s.attend(ctx, tx, sch, closed); err != nil {
		return err
	}
	return s.goOn(ctx, tx, sch)
}

// goOn wakes slots that wait for the end of another one, and makes sure that
// there is a next one.
func (s *Service) goOn(ctx context.Context, tx *store.Tx, sch store.Schedule) error {
	open, err := tx.OpenSlots(ctx, sch.ID, 100)
	if err != nil {
		return err
	}
	planned := false
	for _, slot := range open {
		planned = planned || slot.Trigger == triggerSchedule && slot.Revision == sch.Revision && (run.SlotStatus(slot.Status) == run.SlotPending || !beside(sch))
		if run.SlotStatus(slot.Status) != run.SlotPending {
			continue
		}
		at := slot.ScheduledFor
		if at.Before(tx.Now) {
			at = tx.Now
		}
		if err := s.arm(ctx, tx, sch, slot.ScheduledFor, at); err != nil {
			return err
		}
	}
	if planned || !sch.Enabled || !sch.DeletedAt.IsZero() {
		return nil
	}
	after, err := lastSlot(ctx, tx, sch)
	if err != nil {
		return err
	}
	return s.chain(ctx, tx, sch, after, false)
}

// interrupted makes the run wait for a person, with what the graph asks.
func (a *attempt) interrupted(ctx context.Context, tx *store.Tx, sch store.Schedule, answer contract.RunAnswerV1) error {
	if _, err := a.ledger.Pause(ctx, tx, a.run); err != nil {
		return err
	}
	if err := tx.SetSlotCost(ctx, a.slot.ID, costOf(answer)); err != nil {
		return err
	}
	if err := tx.AskPerson(ctx, a.run.ID, sch.ID, answer.Interrupt); err != nil {
		return err
	}
	return a.askPeople(ctx, tx, sch, answer.Interrupt)
}

// askPeople tells people that a graph asks them something.
func (a *attempt) askPeople(ctx context.Context, tx *store.Tx, sch store.Schedule, question json.RawMessage) error {
	text := "The graph asks: " + clip(string(question))
	return a.attention(ctx, tx, sch, run.IssueApproval, a.run.ID, text)
}

func clip(text string) string {
	const most = 300
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}
