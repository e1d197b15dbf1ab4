package graph

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/graph/contract"
	"github.com/pawlrun/pawl/internal/graph/execution"
	"github.com/pawlrun/pawl/internal/graph/grant"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
)

// The task of a slot, and the workers that run it (C-73).
const (
	TaskName = "execute_scheduled_run"
	PoolName = "graph"
)

// claim is the right to work on a slot, as *queue.Job gives it.
type claim interface {
	Fence() store.Fence
	Stopping() bool
}

// Task is the code behind TaskName.
func (s *Service) Task() queue.Task {
	return queue.Task{Run: s.run, Check: checkPayload, Pool: PoolName, Internal: true, Backoff: func(_ int64, attempt int) time.Duration {
		// It fails only when the store does, so it is tried again soon.
		return min(time.Second<<min(attempt-1, 5), 30*time.Second)
	}}
}

func checkPayload(raw json.RawMessage) error {
	_, err := parsePayload(raw)
	return err
}

func parsePayload(raw json.RawMessage) (slotPayload, error) {
	var p slotPayload
	if err := json.Unmarshal(raw, &p); err != nil || p.ScheduleID == "" || p.ScheduledFor.IsZero() {
		return p, &pawl.Error{Code: pawl.CodeInvalid, Op: "run slot", Msg: "the job names no slot", Hint: "It has scheduleId and scheduledFor.", Err: err}
	}
	return p, nil
}

// run is the task: one claim of a slot.
func (s *Service) run(ctx context.Context, j *queue.Job) error {
	p, err := parsePayload(j.Payload)
	if err != nil {
		return queue.Permanent(err)
	}
	until, err := s.work(ctx, j, p.ScheduleID, p.ScheduledFor.Time)
	if err != nil || until.IsZero() {
		return err
	}
	return queue.Snooze(until)
}

// attempt is one attempt of a slot.
type attempt struct {
	*Service
	claim    claim
	schedule store.Schedule
	slot     store.Slot
	run      store.Run
	resume   json.RawMessage // the answer of a person; nil for an attempt
}

// whileWaiting is how long a slot sleeps that somebody else will wake: the end
// of the run before it, or the answer of a person. It is only a safety net.
const whileWaiting = 10 * time.Minute

// work does what a slot needs now. It returns when to look again, zero if the
// slot is closed or waits for a person.
func (s *Service) work(ctx context.Context, c claim, scheduleID string, at time.Time) (time.Time, error) {
	if err := s.recover(ctx, c, scheduleID, at); err != nil {
		return time.Time{}, err
	}
	a := &attempt{Service: s, claim: c}
	var next step
	err := s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		next, err = a.take(ctx, tx, scheduleID, at)
		return err
	})
	switch {
	case errors.Is(err, pawl.ErrConflict) && !errors.Is(err, pawl.ErrLeaseLost):
		return time.Now().Add(time.Second), nil // something changed at this moment
	case err != nil:
		return time.Time{}, err
	case !next.execute:
		return next.again, nil
	}
	if err := s.cfg.fault("claimed"); err != nil {
		return time.Time{}, err
	}
	return a.execute(ctx)
}

// recover ends an attempt of this slot that nobody executes.
func (s *Service) recover(ctx context.Context, c claim, scheduleID string, at time.Time) error {
	var lane string
	err := s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		sch, err := tx.GetSchedule(ctx, scheduleID)
		if err != nil {
			return err
		}
		r, err := tx.ActiveRun(ctx, pawl.KindSchedule, laneOf(sch, at))
		if err == nil && r.ScheduledFor.Equal(at) { // else it is that of another slot, which somebody else looks after
			lane = r.Lane
		}
		return err
	})
	if errors.Is(err, pawl.ErrNotFound) || lane == "" && err == nil {
		return nil
	}
	if err != nil {
		return err
	}
	o, err := s.ledger.RecoverLane(ctx, s.db, c.Fence(), pawl.KindSchedule, lane)
	if err == nil && o.Run.ID != "" {
		s.log.Warn("a run of a schedule was found unfinished", "schedule", scheduleID, "slot", pawl.FormatTime(at), "run", o.Run.ID, "exhausted", o.Exhausted)
	}
	return err
}

// step is what follows a claim.
type step struct {
	execute bool
	again   time.Time
}

// take looks at a slot and claims it, in one transaction.
func (a *attempt) take(ctx context.Context, tx *store.Tx, scheduleID string, at time.Time) (step, error) {
	if err := tx.Fence(ctx, a.claim.Fence()); err != nil {
		return step{}, err
	}
	var err error
	if a.schedule, err = tx.HoldSchedule(ctx, scheduleID); errors.Is(err, pawl.ErrNotFound) {
		return a.orphaned(ctx, tx, scheduleID, at)
	}
	if err != nil {
		return step{}, err
	}
	if _, err := tx.InsertSlots(ctx, store.NewSlot{ScheduleID: scheduleID, ScheduledFor: at, Revision: a.schedule.Revision, Trigger: triggerSchedule}); err != nil {
		return step{}, err
	}
	if a.slot, err = tx.HoldSlot(ctx, scheduleID, at); err != nil {
		return step{}, err
	}
	if err := a.asItWas(ctx, tx); err != nil {
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

// asItWas gives the attempt the graph and the input of the slot's own revision:
// a backfill runs what was in force then, and a slot that has begun goes on with
// what it began with.
func (a *attempt) asItWas(ctx context.Context, tx *store.Tx) error {
	if a.slot.Revision == a.schedule.Revision {
		return nil
	}
	was, err := tx.ScheduleVersion(ctx, a.schedule.ID, a.slot.Revision)
	if err != nil {
		return unlessGone(err) // that revision changed neither
	}
	a.schedule.GraphID, a.schedule.Input = was.GraphID, was.Input
	return nil
}

// orphaned closes a slot whose schedule was deleted.
func (a *attempt) orphaned(ctx context.Context, tx *store.Tx, scheduleID string, at time.Time) (step, error) {
	slot, err := tx.HoldSlot(ctx, scheduleID, at)
	if err != nil || run.SlotStatus(slot.Status) != run.SlotPending {
		return step{}, unlessGone(err)
	}
	_, err = tx.CloseSlot(ctx, slot.ID, skipped(run.DispositionSkippedDisabled, "", "The schedule was deleted."))
	return step{}, err
}

func unlessGone(err error) error {
	if errors.Is(err, pawl.ErrNotFound) {
		return nil
	}
	return err
}

func skipped(d run.Disposition, code contract.ErrorCode, message string) store.SlotEnd {
	return store.SlotEnd{Status: string(run.SlotSkipped), Disposition: string(d), ErrorCode: string(code), ErrorMessage: message}
}

// takePending begins the first attempt of a slot, unless something speaks
// against it.
func (a *attempt) takePending(ctx context.Context, tx *store.Tx) (step, error) {
	own := a.slot.Trigger == triggerSchedule
	switch {
	case own && !a.schedule.Enabled:
		return a.pass(ctx, tx, skipped(run.DispositionSkippedDisabled, "", "The schedule was switched off."))
	case own && a.slot.Revision != a.schedule.Revision:
		return a.pass(ctx, tx, skipped(run.DispositionSuperseded, "", "The schedule was changed."))
	case own && a.slot.ScheduledFor.After(tx.Now):
		return step{again: a.slot.ScheduledFor}, nil
	}
	if missed, err := a.wasMissed(ctx, tx); err != nil || missed {
		return step{}, err
	}
	if s, busy, err := a.busy(ctx, tx); err != nil || busy {
		return s, err
	}
	if _, err := grant.Authorize(ctx, tx, a.schedule.GrantID, a.schedule.GraphID); err != nil {
		code, refused := grant.RefusalCode(err)
		if !refused {
			return step{}, err
		}
		return a.pass(ctx, tx, skipped(run.DispositionSkippedGrant, code, messageOf(err)))
	}
	return a.begin(ctx, tx)
}

// wasMissed closes a slot that came due in a gap in which no worker was there.
func (a *attempt) wasMissed(ctx context.Context, tx *store.Tx) (bool, error) {
	if a.slot.Trigger != triggerSchedule || tx.Now.Sub(a.slot.ScheduledFor) <= grace {
		return false, nil
	}
	alive, err := tx.AliveAt(ctx)
	if err != nil || alive.IsZero() || tx.Now.Sub(alive) <= grace || a.slot.ScheduledFor.Before(alive) {
		return false, err
	}
	return true, a.missed(ctx, tx, a.schedule, a.slot)
}

// busy finds out whether another slot of the schedule runs, and does what the
// policy says.
func (a *attempt) busy(ctx context.Context, tx *store.Tx) (step, bool, error) {
	policy := contract.ConcurrencyPolicy(a.schedule.Policy)
	if policy == contract.Allow {
		return step{}, false, nil
	}
	open, err := tx.OpenSlots(ctx, a.schedule.ID, 10)
	if err != nil {
		return step{}, false, err
	}
	for _, other := range open {
		if other.ID == a.slot.ID || run.SlotStatus(other.Status) != run.SlotRunning {
			continue
		}
		switch {
		case policy == contract.Forbid && a.slot.Trigger == triggerSchedule:
			s, err := a.pass(ctx, tx, skipped(run.DispositionSkippedOverlap, "", "The run before it was still under way."))
			return s, true, err
		case policy == contract.Replace:
			key := pawl.SlotKey(other.ScheduleID, other.ScheduledFor)
			tx.AfterCommit(func() { a.cancelElsewhere(context.WithoutCancel(ctx), key) })
		}
		return step{again: tx.Now.Add(whileWaiting)}, true, nil // its end wakes this one
	}
	return step{}, false, nil
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
func (a *attempt) pass(ctx context.Context, tx *store.Tx, end store.SlotEnd) (step, error) {
	return step{}, a.close(ctx, tx, a.schedule, a.slot, end)
}

// begin starts the first attempt: the run, the slot and the following instant
// in one transaction (C-57, X-54).
func (a *attempt) begin(ctx context.Context, tx *store.Tx) (step, error) {
	var err error
	a.run, err = a.ledger.Begin(ctx, tx, a.claim.Fence(), ledger.Spec{
		Kind: pawl.KindSchedule, Lane: laneOf(a.schedule, a.slot.ScheduledFor), Handler: a.schedule.Name, HandlerType: pawl.HandlerSchedule,
		Trigger: a.slot.Trigger, ScheduledFor: a.slot.ScheduledFor,
	})
	if err != nil {
		return step{}, err
	}
	if a.slot.Trigger != triggerSchedule {
		return a.started(ctx, tx)
	}
	if err := a.announceNext(ctx, tx); err != nil {
		return step{}, err
	}
	return a.started(ctx, tx)
}

// announceNext notes the instant after this slot. Where slots run beside each
// other it also inserts the slot.
func (a *attempt) announceNext(ctx context.Context, tx *store.Tx) error {
	if beside(a.schedule) {
		return a.chain(ctx, tx, a.schedule, a.slot.ScheduledFor, false)
	}
	schedule, err := scheduleOf(a.schedule.Cron, a.schedule.Timezone)
	if err != nil {
		return err
	}
	next, _ := schedule.Next(a.slot.ScheduledFor)
	return tx.SetScheduleTimes(ctx, a.schedule.ID, next, time.Time{})
}

// takeRunning goes on with a slot that has begun: after a crash, for another
// attempt, or with the answer of a person.
func (a *attempt) takeRunning(ctx context.Context, tx *store.Tx) (step, error) {
	newest, err := tx.NewestRun(ctx, pawl.KindSchedule, laneOf(a.schedule, a.slot.ScheduledFor))
	if err != nil {
		return step{}, err
	}
	if !newest.ScheduledFor.Equal(a.slot.ScheduledFor) {
		return step{}, &pawl.Error{Code: pawl.CodeInternal, Op: "run slot", Msg: "the newest run of the schedule is not that of its running slot"}
	}
	a.run = newest
	switch newest.Status {
	case pawl.StatusActive:
		if a.run, err = a.ledger.Start(ctx, tx, newest); err != nil {
			return step{}, err
		}
	case pawl.StatusPausedApproval:
		return a.answered(ctx, tx)
	case pawl.StatusPausedTransient:
		return a.again(ctx, tx)
	default:
		return a.abandon(ctx, tx)
	}
	return a.started(ctx, tx)
}

// again begins another attempt once its time has come.
func (a *attempt) again(ctx context.Context, tx *store.Tx) (step, error) {
	retry, err := tx.GetRetry(ctx, pawl.KindSchedule, a.run.Lane)
	if err != nil && !errors.Is(err, pawl.ErrNotFound) {
		return step{}, err
	}
	if retry.NextAt.After(tx.Now) {
		return step{again: retry.NextAt}, nil
	}
	if a.run, err = a.ledger.Retry(ctx, tx, a.claim.Fence(), a.run, "", true); err != nil {
		return step{}, err
	}
	return a.started(ctx, tx)
}

// abandon closes a slot whose last attempt is over although the slot is not:
// somebody cancelled it, or it crashed too often.
func (a *attempt) abandon(ctx context.Context, tx *store.Tx) (step, error) {
	end := store.SlotEnd{Status: string(run.SlotError), Disposition: string(run.DispositionFired), ErrorCode: string(contract.Aborted), ErrorMessage: "The run was cancelled."}
	if a.run.Status == pawl.StatusCrashed {
		end.ErrorCode, end.ErrorMessage = string(contract.Internal), "The server stopped during every attempt."
	}
	return a.pass(ctx, tx, end)
}

// started counts the attempt and brings the run to its execution.
func (a *attempt) started(ctx context.Context, tx *store.Tx) (step, error) {
	var err error
	first := a.run.ID
	if a.slot.RunID != "" {
		first = a.slot.RunID
	}
	if a.slot, err = tx.StartSlot(ctx, a.slot.ID, first); err != nil {
		return step{}, err
	}
	if a.run.Phase == pawl.PhaseValidating {
		if a.run, err = a.ledger.Advance(ctx, tx, a.run, pawl.PhaseExecuting, ledger.Checkpoint{}); err != nil {
			return step{}, err
		}
	}
	if a.slot.Attempts == 1 {
		if err := setLastRun(ctx, tx, a.schedule.ID); err != nil {
			return step{}, err
		}
	}
	a.tell(tx, Change{What: "slot", Schedule: a.schedule.ID, Name: a.schedule.Name, Slot: a.slot.ScheduledFor, Status: a.slot.Status})
	return step{execute: true}, nil
}

// setLastRun notes that a run starts now and leaves the next instant as it is.
func setLastRun(ctx context.Context, tx *store.Tx, id string) error {
	now, err := tx.GetSchedule(ctx, id)
	if err != nil {
		return err
	}
	return tx.SetScheduleTimes(ctx, id, now.NextRunAt, tx.Now)
}

// key is the idempotency key of the slot.
func (a *attempt) key() string { return pawl.SlotKey(a.slot.ScheduleID, a.slot.ScheduledFor) }

// lookAgain is how long to wait for an execution that another node has.
const lookAgain = time.Second

// execute asks the execution service and writes what became of it.
func (a *attempt) execute(ctx context.Context) (time.Time, error) {
	for {
		answer, err := a.ask(ctx)
		if _, busy := errors.AsType[*execution.InProgressError](err); busy {
			select {
			case <-time.After(lookAgain):
				continue
			case <-ctx.Done():
				return time.Time{}, context.Cause(ctx)
			}
		}
		if ctx.Err() != nil { // the process stops, or the lane has another owner: the next one goes on
			return time.Time{}, context.Cause(ctx)
		}
		if err := a.cfg.fault("answered"); err != nil {
			return time.Time{}, err
		}
		return a.settle(ctx, answer, err)
	}
}

func (a *attempt) ask(ctx context.Context) (contract.RunAnswerV1, error) {
	if a.resume != nil {
		return a.cfg.Executions.Resume(ctx, a.key(), a.resume)
	}
	return a.cfg.Executions.Run(ctx, a.key(), a.schedule.GraphID, contract.RunRequestV1{
		ExecutionGrantID: a.schedule.GrantID, Input: a.input(), RunID: a.slot.RunID, Attempt: a.slot.Attempts,
		ScheduleID: a.schedule.ID, ScheduledFor: &contract.Instant{Time: a.slot.ScheduledFor},
	})
}

func (a *attempt) input() json.RawMessage {
	if len(a.schedule.Input) == 0 {
		return json.RawMessage("{}")
	}
	return a.schedule.Input
}
