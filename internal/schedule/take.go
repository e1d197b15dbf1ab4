package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/executionstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/timing"
	"github.com/pawlrun/pawl/internal/when"
)

// step is what follows a claim.
type step struct {
	execute bool
	recover bool // an attempt was begun: who executes it?
	lost    bool // its attempts crashed too often: only what is known of it counts
	waits   bool // it waits for a source
	halted  bool // it would start, and everything is halted
	again   time.Time
}

// take looks at a slot and claims it, in one transaction.
func (a *attempt) take(ctx context.Context, tx *store.Tx, scheduleID string, at time.Time) (step, error) {
	a.question, a.resume = "", nil
	if err := tx.Fence(ctx, a.claim.Fence()); err != nil {
		return step{}, err
	}
	var err error
	if a.schedule, err = holdOrRead(ctx, tx, scheduleID); err != nil {
		return step{}, pawl.IgnoreNotFound(err)
	}
	if a.slot, err = a.holdSlot(ctx, tx, at); err != nil {
		return step{}, pawl.IgnoreNotFound(err)
	}
	a.needs = RulesOf(a.schedule).Needs // those of now: a slot of the past needs what is there, too
	if err := a.pinToSlotRevision(ctx, tx); err != nil {
		return step{}, err
	}
	switch run.SlotStatus(a.slot.Status) {
	case run.SlotPending:
		return a.takePending(ctx, tx)
	case run.SlotRunning:
		return a.takeRunning(ctx, tx)
	default:
		return step{}, nil // it ran, or was passed over
	}
}

// holdSlot holds the row of the slot, which is made if it is not there.
func (a *attempt) holdSlot(ctx context.Context, tx *store.Tx, at time.Time) (schedulestore.Slot, error) {
	slot, err := schedulestore.In(tx).HoldSlot(ctx, a.schedule.ID, at)
	if !errors.Is(err, pawl.ErrNotFound) || !a.schedule.DeletedAt.IsZero() {
		return slot, err
	}
	switch _, covered := schedulestore.In(tx).CoveringSlot(ctx, a.schedule.ID, at); {
	case covered == nil:
		return slot, err // it is over: a row that covers many has it
	case !errors.Is(covered, pawl.ErrNotFound):
		return slot, covered
	}
	if _, err := schedulestore.In(tx).InsertSlots(ctx, schedulestore.NewSlot{ScheduleID: a.schedule.ID, ScheduledFor: at, Revision: a.schedule.Revision, Trigger: triggerSchedule}); err != nil {
		return schedulestore.Slot{}, err
	}
	return schedulestore.In(tx).HoldSlot(ctx, a.schedule.ID, at)
}

// holdOrRead holds the row of a schedule. One that is deleted is only read:
// nothing of it begins, but what runs comes to its end.
func holdOrRead(ctx context.Context, tx *store.Tx, id string) (schedulestore.Schedule, error) {
	sch, err := schedulestore.In(tx).HoldSchedule(ctx, id)
	if errors.Is(err, pawl.ErrNotFound) {
		return schedulestore.In(tx).GetSchedule(ctx, id)
	}
	return sch, err
}

// pinToSlotRevision gives the attempt the graph and the input of the slot's own revision,
// and the grant that it began under: a backfill runs what was in force then,
// and a slot that has begun goes on with what it began with.
func (a *attempt) pinToSlotRevision(ctx context.Context, tx *store.Tx) error {
	if a.slot.GrantID != "" {
		a.schedule.GrantID = a.slot.GrantID
	}
	if a.slot.Revision == a.schedule.Revision {
		return nil
	}
	was, err := schedulestore.In(tx).ScheduleVersion(ctx, a.schedule.ID, a.slot.Revision)
	if err != nil {
		return pawl.IgnoreNotFound(err) // that revision changed neither
	}
	a.schedule.GraphID, a.schedule.Input, a.schedule.Rules = was.GraphID, was.Input, was.Rules
	return nil
}

func skipped(d run.Disposition, code contract.ErrorCode, message string) schedulestore.SlotEnd {
	return schedulestore.SlotEnd{Status: string(run.SlotSkipped), Disposition: string(d), ErrorCode: string(code), ErrorMessage: message}
}

func failed(code contract.ErrorCode, message string) schedulestore.SlotEnd {
	return schedulestore.SlotEnd{Status: string(run.SlotError), Disposition: string(run.DispositionFired), ErrorCode: string(code), ErrorMessage: message}
}

// takePending begins the first attempt of a slot, unless something speaks
// against it.
func (a *attempt) takePending(ctx context.Context, tx *store.Tx) (step, error) {
	own := a.slot.Trigger == triggerSchedule
	times, err := a.timesOf(ctx, tx, a.schedule)
	if err != nil {
		return step{}, err
	}
	start := startOf(times, a.slot)
	switch {
	case !a.schedule.DeletedAt.IsZero():
		return a.pass(ctx, tx, skipped(run.DispositionSkippedDisabled, "", "The schedule was deleted."))
	case own && !a.schedule.Enabled:
		return a.pass(ctx, tx, skipped(run.DispositionSkippedDisabled, "", "The schedule was disabled."))
	case own && a.slot.Revision != a.schedule.Revision:
		return a.pass(ctx, tx, skipped(run.DispositionSuperseded, "", "The schedule was changed."))
	case own && start.After(tx.Now):
		return step{again: start}, nil
	case own && spent(a.schedule):
		return a.pass(ctx, tx, skipped(run.DispositionSkippedDisabled, "", fmt.Sprintf("The schedule has begun %d slots, as many as maxRuns allows.", a.schedule.Begun)))
	}
	if held, err := a.underCap(ctx, tx); err != nil || held {
		return step{}, err
	}
	if s, held, err := a.heldBack(ctx, tx); err != nil || held {
		return s, err
	}
	if a.cfg.Halt().Active() {
		return step{halted: true}, nil
	}
	if missed, err := a.wasHalted(ctx, tx, start); err != nil || missed {
		return step{}, err
	}
	if missed, err := a.wasMissed(ctx, tx, start); err != nil || missed {
		return step{}, err
	}
	if s, busy, err := a.busy(ctx, tx, times); err != nil || busy {
		return s, err
	}
	if refused, err := a.refusedByGrant(ctx, tx); err != nil || refused {
		return step{}, err
	}
	if s, waits, err := a.awaitFresh(ctx, tx, start); err != nil || waits {
		return s, err
	}
	return a.begin(ctx, tx)
}

// refusedByGrant passes over a slot that its grant does not allow.
func (a *attempt) refusedByGrant(ctx context.Context, tx *store.Tx) (bool, error) {
	if work.Is(a.schedule.GraphID) {
		return false, nil
	}
	_, err := grant.Authorize(ctx, tx, a.schedule.GrantID, a.schedule.GraphID)
	if err == nil {
		return false, nil
	}
	code, refused := grant.RefusalCode(err)
	if !refused {
		return false, err
	}
	_, err = a.pass(ctx, tx, skipped(run.DispositionSkippedGrant, code, messageOf(err)))
	return true, err
}

// heldBack keeps a slot of a backfill from beginning that a person paused or
// cancelled.
func (a *attempt) heldBack(ctx context.Context, tx *store.Tx) (step, bool, error) {
	if a.slot.BackfillID == "" {
		return step{}, false, nil
	}
	b, err := schedulestore.In(tx).GetBackfill(ctx, a.slot.BackfillID)
	switch {
	case err != nil:
		return step{}, false, err
	case b.State == BackfillPaused:
		return step{again: tx.Now.Add(whileWaiting)}, true, nil // going on with it wakes this one
	case b.State == BackfillCancelled:
		s, err := a.pass(ctx, tx, skipped(run.DispositionSuperseded, "", "The backfill was cancelled."))
		return s, true, err
	}
	return step{}, false, nil
}

// startOf is when a slot starts: one of the schedule's own by its jitter.
func startOf(times when.Schedule, slot schedulestore.Slot) time.Time {
	if slot.Trigger != triggerSchedule {
		return slot.ScheduledFor
	}
	return times.Start(slot.ScheduledFor)
}

// wasMissed closes a slot that came due in a gap in which no worker was there.
func (a *attempt) wasMissed(ctx context.Context, tx *store.Tx, start time.Time) (bool, error) {
	if a.slot.Trigger != triggerSchedule || tx.Now.Sub(start) <= grace || waitsFresh(a.slot) { // which was seen at its time
		return false, nil
	}
	alive, err := schedulestore.In(tx).AliveAt(ctx) // zero: no worker ever was
	if err != nil || tx.Now.Sub(alive) <= grace || start.Before(alive) {
		return false, err
	}
	return a.missed(ctx, tx, a.schedule, a.slot)
}

// replaceEvery is how often a slot that replaces another one asks for the end
// of that: a run that was about to start may not have heard it.
const replaceEvery = 5 * time.Second

// mostRunning is how many slots that run are looked at together. More of them
// run only where slots were allowed to run beside each other.
const mostRunning = 100

// busy finds out whether another slot of the schedule runs, and does what the
// policy says.
func (a *attempt) busy(ctx context.Context, tx *store.Tx, times when.Schedule) (step, bool, error) {
	policy := pawl.ConcurrencyPolicy(a.schedule.Policy)
	if policy == pawl.PolicyAllow {
		return step{}, false, nil
	}
	running, err := schedulestore.In(tx).RunningSlots(ctx, a.schedule.ID, mostRunning)
	if err != nil {
		return step{}, false, err
	}
	if policy == pawl.PolicyForbid && a.slot.Trigger == triggerSchedule {
		return a.forbidden(ctx, tx, len(running) > 0)
	}
	if policy == pawl.PolicyReplace && a.slot.Trigger != triggerBackfill && a.slot.Trigger != triggerRetry { // what is past replaces nothing
		return a.replace(ctx, tx, running, times)
	}
	return step{again: tx.Now.Add(whileWaiting)}, len(running) > 0, nil // its end wakes this one
}

// forbidden passes over a slot if another one runs, or ran when this one came
// due: its job may have waited for that.
func (a *attempt) forbidden(ctx context.Context, tx *store.Tx, runs bool) (step, bool, error) {
	if !runs {
		last, err := runstore.In(tx).NewestRun(ctx, pawl.KindSchedule, laneOf(a.schedule, a.slot.ScheduledFor))
		if err := pawl.IgnoreNotFound(err); err != nil {
			return step{}, false, err
		}
		runs = last.StartedAt.Before(a.slot.ScheduledFor) && last.EndedAt.After(a.slot.ScheduledFor)
	}
	if !runs {
		return step{}, false, nil
	}
	s, err := a.pass(ctx, tx, skipped(run.DispositionSkippedOverlap, "", "The previous run was still active."))
	return s, true, err
}

// replace ends the slots that run, but for those that it comes behind. One that
// nobody executes, because it waits for a person or its next attempt, ends here;
// the others are waited for.
func (a *attempt) replace(ctx context.Context, tx *store.Tx, running []schedulestore.Slot, times when.Schedule) (step, bool, error) {
	busy := len(running) == mostRunning // others may run besides these
	for _, other := range running {
		if a.comesBehind(other, tx.Now, times) {
			busy = true
			continue
		}
		key := pawl.SlotKey(other.ScheduleID, other.ScheduledFor)
		tx.AfterCommit(func() { a.cancelElsewhere(context.WithoutCancel(ctx), key) })
		ended, err := a.endWaiting(ctx, tx, a.schedule, other, "The slot of "+pawl.FormatTime(a.slot.ScheduledFor)+" replaced it.")
		if err != nil {
			return step{}, false, err
		}
		busy = busy || !ended
	}
	return step{again: tx.Now.Add(replaceEvery)}, busy, nil // their end wakes this one earlier
}

// comesBehind reports whether a slot waits for another one instead of replacing it: that
// one is later, or it was missed and began when this one was due already. What was
// missed runs one after the other, and what is due meanwhile after that.
func (a *attempt) comesBehind(other schedulestore.Slot, now time.Time, times when.Schedule) bool {
	policy, _ := missedPolicy(a.schedule, now)
	late := policy != timing.Skip && other.StartedAt.Sub(startOf(times, other)) > grace
	return other.ScheduledFor.After(a.slot.ScheduledFor) || late && !other.StartedAt.Before(startOf(times, a.slot))
}

// endWaiting ends a slot that has begun but that nobody executes at the moment.
// It reports false for one that somebody does.
func (s *Service) endWaiting(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, slot schedulestore.Slot, why string) (bool, error) {
	r, err := newestOf(ctx, tx, slot)
	if err != nil {
		return false, err
	}
	switch r.Status {
	case pawl.StatusPausedApproval:
		if _, err := s.ledger.Cancel(ctx, tx, r); err != nil {
			return false, err
		}
	case pawl.StatusPausedTransient:
		if r.ErrorCode == notAnswered { // it was given back and goes on at its executor
			return false, nil
		}
	default:
		return false, nil
	}
	return true, s.close(ctx, tx, sch, slot, failed(contract.Aborted, why))
}

// newestOf is the latest attempt of a slot that has begun. Its lane is that of
// the first attempt, whatever the policy of the schedule has become.
func newestOf(ctx context.Context, tx *store.Tx, slot schedulestore.Slot) (runstore.Run, error) {
	first, err := runstore.In(tx).GetRun(ctx, slot.RunID)
	if err != nil {
		return runstore.Run{}, err
	}
	r, err := runstore.In(tx).NewestRun(ctx, first.Kind, first.Lane)
	if err == nil && !r.ScheduledFor.Equal(slot.ScheduledFor) {
		err = &pawl.Error{Code: pawl.CodeInternal, Op: "run slot", Msg: "the newest run of the lane is not that of its running slot"}
	}
	return r, err
}

// cancelElsewhere asks the execution service to stop a run. That it did is seen
// by the end of the run.
func (s *Service) cancelElsewhere(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := s.cfg.Executions.Cancel(ctx, key); err != nil {
		s.log.Warn("a run could not be cancelled", "key", key, "err", err)
	}
}

// pass closes a slot without a run and goes on with the schedule.
func (a *attempt) pass(ctx context.Context, tx *store.Tx, end schedulestore.SlotEnd) (step, error) {
	return step{}, a.close(ctx, tx, a.schedule, a.slot, end)
}

// begin starts the first attempt: the run, the slot and the following instant
// in one transaction (C-57, X-54).
func (a *attempt) begin(ctx context.Context, tx *store.Tx) (step, error) {
	var err error
	a.run, err = a.ledger.Begin(ctx, tx, a.claim.Fence(), ledger.Spec{
		Kind: pawl.KindSchedule, Lane: laneOf(a.schedule, a.slot.ScheduledFor), Handler: a.schedule.Name, HandlerType: pawl.HandlerSchedule,
		Trigger: a.slot.Trigger, ScheduledFor: a.slot.ScheduledFor, Validated: true,
	})
	if err != nil {
		return step{}, err
	}
	if err := a.announce(ctx, tx); err != nil {
		return step{}, err
	}
	return a.started(ctx, tx, false)
}

// announce notes that a run starts now, and the instant after its slot. Where
// slots run beside each other it also inserts the slot that follows.
func (a *attempt) announce(ctx context.Context, tx *store.Tx) error {
	switch {
	case a.slot.Trigger != triggerSchedule:
		return schedulestore.In(tx).SetLastRun(ctx, a.schedule.ID, false)
	case mayOverlap(a.schedule):
		begins := a.schedule
		begins.Begun++
		if err := a.chain(ctx, tx, begins, a.slot.ScheduledFor, false); err != nil {
			return err
		}
		return schedulestore.In(tx).SetLastRun(ctx, a.schedule.ID, true)
	}
	schedule, err := a.timesOf(ctx, tx, a.schedule)
	if err != nil {
		return err
	}
	next := nextOwn(a.schedule, schedule, a.slot.ScheduledFor)
	if !next.After(tx.Now) && a.schedule.NextRunAt.After(tx.Now) {
		next = a.schedule.NextRunAt // it was missed and runs late: what comes is known
	}
	return schedulestore.In(tx).SetTurn(ctx, schedulestore.Turn{ScheduleID: a.schedule.ID, Next: next})
}

// takeRunning goes on with a slot that has begun: after a crash, for another
// attempt, or with the answer of a person.
func (a *attempt) takeRunning(ctx context.Context, tx *store.Tx) (step, error) {
	var err error
	if a.run, err = newestOf(ctx, tx, a.slot); err != nil {
		return step{}, err
	}
	switch a.run.Status {
	case pawl.StatusActive:
		if !a.recovered { // somebody began it, who may be gone
			return step{recover: true}, nil
		}
		if err := a.findAnswer(ctx, tx); err != nil {
			return step{}, err
		}
		if a.run, err = a.ledger.Start(ctx, tx, a.run); err != nil {
			return step{}, err
		}
		return a.started(ctx, tx, true)
	case pawl.StatusPausedApproval:
		return a.answered(ctx, tx)
	case pawl.StatusPausedTransient:
		return a.again(ctx, tx)
	case pawl.StatusCrashed:
		return step{lost: true}, a.settleLane(ctx, tx, a.schedule.ID)
	default:
		return a.pass(ctx, tx, failed(contract.Aborted, "The run was cancelled."))
	}
}

// notAnswered is the error code of an attempt that was given back before there
// was an answer: the next one goes on with it.
const notAnswered = "not_answered"

// again begins another attempt once its time has come.
func (a *attempt) again(ctx context.Context, tx *store.Tx) (step, error) {
	if !a.schedule.DeletedAt.IsZero() && a.run.ErrorCode != notAnswered {
		return a.pass(ctx, tx, failed(contract.Aborted, "The schedule was deleted."))
	}
	retry, err := runstore.In(tx).GetRetry(ctx, pawl.KindSchedule, a.run.Lane)
	if err != nil && !errors.Is(err, pawl.ErrNotFound) {
		return step{}, err
	}
	if retry.NextAt.After(tx.Now) {
		return step{again: retry.NextAt}, nil
	}
	goesOn := a.run.ErrorCode == notAnswered
	if !goesOn && a.cfg.Halt().Active() {
		return step{halted: true}, nil
	}
	if a.run, err = a.ledger.Retry(ctx, tx, a.claim.Fence(), a.run, "", true); err != nil {
		return step{}, err
	}
	if err := a.findAnswer(ctx, tx); err != nil {
		return step{}, err
	}
	return a.started(ctx, tx, goesOn)
}

// findAnswer finds the answer of a person that the attempts before this one were
// to pass on and of which nobody knows whether it arrived.
func (a *attempt) findAnswer(ctx context.Context, tx *store.Tx) error {
	for r := a.run; r.RetryOf != ""; {
		before, err := runstore.In(tx).GetRun(ctx, r.RetryOf)
		if err != nil || before.Status != pawl.StatusCrashed && before.ErrorCode != notAnswered {
			return pawl.IgnoreNotFound(err)
		}
		q, err := executionstore.In(tx).GetQuestion(ctx, before.ID)
		if err == nil {
			a.question, a.resume = q.ID, q.Answer
			return nil
		}
		if !errors.Is(err, pawl.ErrNotFound) {
			return err
		}
		r = before
	}
	return nil
}

// started brings the run to its execution, and counts the attempt unless it
// goes on with the one before it.
func (a *attempt) started(ctx context.Context, tx *store.Tx, goesOn bool) (step, error) {
	var err error
	if a.slot, err = schedulestore.In(tx).StartSlot(ctx, a.slot.ID, schedulestore.SlotStart{RunID: a.run.ID, GrantID: a.schedule.GrantID, Again: goesOn}); err != nil {
		return step{}, err
	}
	if a.run.Phase == pawl.PhaseValidating {
		if a.run, err = a.ledger.Advance(ctx, tx, a.run, ledger.Checkpoint{}, pawl.PhaseExecuting); err != nil {
			return step{}, err
		}
	}
	a.emitSlot(tx, a.schedule, a.slot)
	return step{execute: true}, nil
}
