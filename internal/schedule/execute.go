package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/telemetry"
)

// key is the idempotency key of the slot.
func (a *attempt) key() string { return pawl.SlotKey(a.slot.ScheduleID, a.slot.ScheduledFor) }

const (
	// lookAgain is how long to wait for an execution that another node has.
	lookAgain = time.Second
	// longestSilence bounds the wait between questions to an execution service
	// that does not answer. It begins with lookAgain and doubles.
	longestSilence = time.Minute
)

// execute asks the execution service and writes what became of it. What says
// nothing about the run, because the service cannot be reached, is neither a
// failure nor a reason to pass over the slot: the same is asked again until
// there is an answer (lessons 56 and 58).
func (a *attempt) execute(ctx context.Context) (time.Time, error) {
	for silence := lookAgain; ; {
		answer, err := a.ask(telemetry.InRun(ctx, a.run.ID))
		if ctx.Err() != nil { // the process stops, or the lane has another owner: the next one goes on
			return time.Time{}, a.giveBack(ctx, context.Cause(ctx))
		}
		wait := lookAgain
		switch _, busy := errors.AsType[*execution.InProgressError](err); {
		case busy:
		case err != nil && !isRefusal(err):
			a.log.Warn("the execution service did not answer", "schedule", a.schedule.Name, "slot", pawl.FormatTime(a.slot.ScheduledFor), "err", err)
			wait, silence = silence, min(2*silence, longestSilence)
		default:
			if err := a.cfg.fault("answered"); err != nil {
				return time.Time{}, err
			}
			return a.settle(ctx, answer, err)
		}
		cause := a.wait(ctx, wait)
		if cause == nil {
			continue
		}
		err = a.giveBack(ctx, cause)
		if ctx.Err() == nil { // the next owner goes on
			return time.Now(), nil
		}
		return time.Time{}, err
	}
}

// wait waits between two questions. It ends early, and tells why, when the
// process is to stop: another one can ask as well.
func (a *attempt) wait(ctx context.Context, long time.Duration) error {
	for end := time.Now().Add(long); ; {
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		select {
		case <-time.After(min(left, lookAgain)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if a.claim.Stopping() {
			return queue.ErrShutdown
		}
	}
}

// says reports whether an error of the execution service tells what became of
// the run: it was refused.
func isRefusal(err error) bool {
	if _, refused := grant.RefusalCode(err); refused || capped(err) {
		return true
	}
	if slices.Contains([]contract.ErrorCode{contract.InsufficientCredits, contract.NotFound, contract.InvalidRequest}, contract.CodeOf(err)) {
		return true
	}
	e, ok := errors.AsType[*pawl.Error](err)
	return ok && e.Reason == execution.ReasonNotInterrupted
}

func (a *attempt) ask(ctx context.Context) (answer contract.RunAnswerV1, err error) {
	switch flight := a.flight; {
	case flight != nil:
		a.flight = nil // from now on it is known by its key
		answer, a.ended, err = a.local.Fly(ctx, flight, func(answer contract.RunAnswerV1, success execution.Success) error {
			return a.endTogether(answer, &success)
		})
		return answer, err
	case a.resume != nil:
		return a.cfg.Executions.Resume(ctx, a.key(), a.question, a.resume)
	}
	return a.cfg.Executions.Run(ctx, a.key(), a.schedule.GraphID, requestOf(a.schedule, a.slot))
}

// requestOf is what the execution service is asked for a slot that has begun.
func requestOf(sch schedulestore.Schedule, slot schedulestore.Slot) contract.RunRequestV1 {
	input := sch.Input
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	rules := RulesOf(sch)
	req := contract.RunRequestV1{
		ExecutionGrantID: sch.GrantID, Input: input, RunID: slot.RunID, Attempt: slot.Attempts,
		ScheduleID: sch.ID, ScheduledFor: client.At(slot.ScheduledFor), Schedule: sch.Name, Timezone: sch.Timezone,
		Idempotent: rules.Idempotent, Retries: rules.Retry != nil, Asked: slot.Trigger == triggerRetry || slot.Trigger == triggerBackfill,
	}
	if work.Is(sch.GraphID) {
		req.ExecutionGrantID = "" // that which the schedule may have had
	}
	return req
}

// giveBack ends an attempt because the process stops, so that it does not count
// as a crash: however often a server is restarted while a graph runs, the slot
// gets its outcome. It returns the cause.
func (a *attempt) giveBack(ctx context.Context, cause error) error {
	if !errors.Is(cause, queue.ErrShutdown) {
		return cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	err := a.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := a.ledger.Stop(ctx, tx, a.run, ledger.Failure{Class: pawl.ClassTransient, Code: notAnswered, Message: "The server stopped.", Deferred: true})
		if err != nil {
			return err
		}
		return a.settleLane(ctx, tx, a.schedule.ID)
	})
	if err != nil {
		a.log.Warn("a run could not be given back; the next owner finds it", "run", a.run.ID, "err", err)
	}
	return cause
}

// closeWithKnownOutcome closes a slot whose attempts crashed too often, with the outcome
// that the execution service has, once it has one.
func (a *attempt) closeWithKnownOutcome(ctx context.Context) (time.Time, error) {
	answer, failure := a.cfg.Executions.Outcome(ctx, a.key())
	if ctx.Err() != nil {
		return time.Time{}, context.Cause(ctx)
	}
	if e, ok := errors.AsType[*pawl.Error](failure); ok && e.Reason == execution.ReasonAbandoned {
		a.cancelElsewhere(ctx, a.key()) // it may still go on at its executor; its end is told then
		return time.Now().Add(replaceEvery), nil
	}
	if failure != nil && !isRefusal(failure) { // it goes on, or nobody can tell
		return time.Now().Add(longestSilence), nil
	}
	end := endOf(a.schedule, answer)
	if asks := len(answer.Interrupt) > 0; asks || failure != nil || answer.ErrorCode == contract.Aborted {
		a.log.Warn("a slot is given up: the server stopped during every attempt", "schedule", a.schedule.Name, "slot", pawl.FormatTime(a.slot.ScheduledFor), "outcome", failure)
		end = failed(contract.Internal, "The server stopped during every attempt.")
		if work.Is(a.schedule.GraphID) { // it may have been started, and keeps no word
			end.ErrorMessage, end.Doubt = "It is unknown whether it ran: the server stopped during every attempt.", true
		}
		if asks {
			a.cancelElsewhere(ctx, a.key())
		}
	}
	return time.Time{}, a.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Fence(ctx, a.claim.Fence()); err != nil {
			return err
		}
		sch, err := holdOrRead(ctx, tx, a.schedule.ID)
		if err != nil {
			return err
		}
		return a.close(ctx, tx, sch, a.slot, end)
	})
}
