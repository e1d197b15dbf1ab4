package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// The task of a slot, and the workers that run it (C-73).
const (
	TaskName = "execute_scheduled_run"
	PoolName = "graph"
)

// Tasks implements lane.Kind.
func (s *Service) Tasks() map[string]queue.Task {
	return map[string]queue.Task{
		TaskName:      {Run: s.run, Check: checkPayload, Pool: PoolName, Internal: true, Backoff: lane.Backoff},
		ReconcileName: s.reconcileTask(),
		BackfillName:  s.backfillTask(),
		ContinueName:  lane.ContinueTask(s.proceed),
	}
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
	claim    lane.Claim
	schedule schedulestore.Schedule
	slot     schedulestore.Slot
	run      runstore.Run
	resume   json.RawMessage // the answer of a person; nil for an attempt
	question string          // which question it answers

	together bool              // it began together with others
	flight   *execution.Flight // that was claimed and has not left; nil: there is none
	ended    bool              // it ended together with others

	needs []client.Need // the sources that must be fresh before it begins

	recovered bool // an attempt that nobody executes was ended
}

// whileWaiting is how long a slot sleeps that somebody else will wake: the end
// of the run before it, or the answer of a person. It is only a safety net.
const whileWaiting = 10 * time.Minute

// work does what a slot needs now. It returns when to look again, zero if the
// slot is closed or waits for a person.
func (s *Service) work(ctx context.Context, c lane.Claim, scheduleID string, at time.Time) (time.Time, error) {
	a := &attempt{Service: s, claim: c}
	next, err := a.claimSlot(ctx, scheduleID, at)
	if err == nil && next.recover {
		if err := s.recover(ctx, c, scheduleID, at); err != nil {
			return time.Time{}, err
		}
		a.recovered = true
		next, err = a.claimSlot(ctx, scheduleID, at)
	}
	switch {
	case errors.Is(err, pawl.ErrConflict) && !errors.Is(err, pawl.ErrLeaseLost):
		return time.Now().Add(time.Second), nil // something changed at this moment
	case err != nil:
		a.leave(err) // it may have begun
		return time.Time{}, err
	case next.halted:
		return time.Time{}, queue.ErrHalted
	case next.lost:
		return a.closeWithKnownOutcome(ctx)
	case next.waits:
		return next.again, s.cfg.fault("waits")
	case !next.execute:
		return next.again, nil
	}
	if err := s.cfg.fault("claimed"); err != nil {
		return time.Time{}, err
	}
	until, err := a.execute(ctx)
	if err != nil {
		a.leave(err)
	}
	return until, err
}

// leave leaves a run to whoever looks at the slot next. If that is this process,
// nothing crashed: the database was away, or the lane for a while.
func (a *attempt) leave(err error) {
	if !errors.Is(err, pawl.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, queue.ErrLeaseLost) && !errors.Is(err, pawl.ErrLeaseLost) {
		return
	}
	a.ledger.GaveUp(a.run.ID, ledger.Failure{Class: pawl.ClassTransient, Code: notAnswered, Message: "The database was unavailable.", Deferred: true})
}

func (a *attempt) claimSlot(ctx context.Context, scheduleID string, at time.Time) (next step, err error) {
	if !a.recovered { // else it is known to have begun
		if begun, err := a.beginTogether(ctx, scheduleID, at); begun || err != nil {
			return step{execute: begun}, err
		}
	}
	err = a.db.WriteShared(ctx, scheduleID, func(ctx context.Context, tx *store.Tx) error {
		next, err = a.take(ctx, tx, scheduleID, at)
		return err
	})
	return next, err
}

// recover ends an attempt of this slot that nobody executes.
func (s *Service) recover(ctx context.Context, c lane.Claim, scheduleID string, at time.Time) error {
	var lane string
	err := s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		slot, err := schedulestore.In(tx).GetSlot(ctx, scheduleID, at)
		if err != nil || run.SlotStatus(slot.Status) != run.SlotRunning {
			return pawl.IgnoreNotFound(err)
		}
		r, err := newestOf(ctx, tx, slot)
		if r.Status == pawl.StatusActive { // else the lane may be another slot's in a moment
			lane = r.Lane
		}
		return err
	})
	if err != nil || lane == "" {
		return err
	}
	o, err := s.ledger.RecoverLane(ctx, s.db, c.Fence(), pawl.KindSchedule, lane)
	if err == nil && o.Run.ID != "" {
		s.log.Warn("a run of a schedule was found unfinished", "schedule", scheduleID, "slot", pawl.FormatTime(at), "run", o.Run.ID, "exhausted", o.Exhausted)
	}
	return err
}
