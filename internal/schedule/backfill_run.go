package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

type backfillPayload struct {
	Backfill string `json:"backfill"`
}

func (s *Service) armBackfill(ctx context.Context, tx *store.Tx, id string, at time.Time) error {
	payload, err := json.Marshal(backfillPayload{id})
	if err != nil {
		return err
	}
	_, err = s.jobs.EnqueueTx(ctx, tx, store.JobSpec{Task: BackfillName, Payload: payload, RunAt: at, Key: BackfillName + ":" + id, KeyMode: store.Earliest, Lane: BackfillName + ":" + id})
	return err
}

// backfillTask is the code behind BackfillName.
func (s *Service) backfillTask() queue.Task {
	return queue.Task{Internal: true, Run: func(ctx context.Context, j *queue.Job) error {
		var p backfillPayload
		if err := json.Unmarshal(j.Payload, &p); err != nil || p.Backfill == "" {
			return queue.Permanent(&pawl.Error{Code: pawl.CodeInvalid, Op: "run backfill", Msg: "the job names no backfill", Err: err})
		}
		var again time.Time
		err := s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			again, err = s.startNext(ctx, tx, p.Backfill)
			return err
		})
		if err != nil || again.IsZero() {
			return err
		}
		return queue.Snooze(again)
	}}
}

// startNext makes the next slot of a backfill due, and says when to go on.
func (s *Service) startNext(ctx context.Context, tx *store.Tx, id string) (time.Time, error) {
	b, err := schedulestore.In(tx).HoldBackfill(ctx, id)
	if err != nil || b.State != BackfillRunning {
		return time.Time{}, pawl.IgnoreNotFound(err)
	}
	if s.cfg.Halt().Active() {
		return time.Time{}, queue.ErrHalted
	}
	sch, err := schedulestore.In(tx).HoldSchedule(ctx, b.ScheduleID)
	if errors.Is(err, pawl.ErrNotFound) {
		_, err = schedulestore.In(tx).MoveBackfill(ctx, id, BackfillCancelled, "")
		return time.Time{}, err
	}
	if err != nil {
		return time.Time{}, err
	}
	plan, err := decodePlan(b.Plan)
	if err != nil {
		return time.Time{}, err
	}
	if waits, err := s.crowded(ctx, tx, sch, b); err != nil || waits {
		return tx.Now.Add(backfillLook), err
	}
	if b.Begun < len(plan.Slots) {
		due, err := nextStart(ctx, tx, b)
		if err != nil || due.After(tx.Now) {
			return due, err
		}
	}
	for n := b.Begun; n < len(plan.Slots); n++ {
		begun, err := s.startPlanned(ctx, tx, sch, b, plan.GrantID, plan.Slots[n])
		if err != nil {
			return time.Time{}, err
		}
		if err := schedulestore.In(tx).SetBackfillBegun(ctx, id, n+1); err != nil {
			return time.Time{}, err
		}
		if begun {
			return tx.Now.Add(interval(b)), nil
		}
	}
	left, err := schedulestore.In(tx).ListSlots(ctx, schedulestore.SlotFilter{BackfillID: id, Open: true}, time.Time{}, "", 1)
	if err != nil || len(left) > 0 {
		return tx.Now.Add(backfillLook), err // the last ones still run
	}
	b, err = schedulestore.In(tx).MoveBackfill(ctx, id, BackfillDone, "")
	if err == nil {
		s.cfg.Emit(tx, lane.Change{Ref: refOf(b.ScheduleID, ""), What: "backfill", Detail: SlotDetail{Status: b.State}})
	}
	return time.Time{}, err
}

// interval is the time between two starts of slots of a backfill.
func interval(b schedulestore.Backfill) time.Duration {
	return time.Minute / time.Duration(b.PerMinute)
}

// nextStart is when the next slot of a backfill may start. It is told by its
// slots and not by when its job was to run: whoever goes on with a backfill after
// a pause wakes the job at once, and so does a server that takes it over from one
// that died.
func nextStart(ctx context.Context, tx *store.Tx, b schedulestore.Backfill) (time.Time, error) {
	last, err := schedulestore.In(tx).LastBackfillStart(ctx, b.ID)
	if err != nil || last.IsZero() {
		return time.Time{}, err
	}
	return last.Add(interval(b)), nil
}

// crowded reports whether a slot of the backfill still waits for its turn: then
// another one would only wait behind it, before those of the schedule itself.
func (s *Service) crowded(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, b schedulestore.Backfill) (bool, error) {
	if pawl.ConcurrencyPolicy(sch.Policy) == pawl.PolicyAllow {
		return false, nil
	}
	waiting, err := schedulestore.In(tx).ListSlots(ctx, schedulestore.SlotFilter{BackfillID: b.ID, Status: string(run.SlotPending)}, time.Time{}, "", 1)
	return len(waiting) > 0, err
}

// startPlanned makes one slot of a plan due. It reports false when the slot has
// run meanwhile, so that it is never repeated.
func (s *Service) startPlanned(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, b schedulestore.Backfill, grantID string, p PlannedSlot) (bool, error) {
	if err := s.setApart(ctx, tx, sch.ID, p.At.Time); err != nil {
		return false, err
	}
	made, err := schedulestore.In(tx).InsertSlots(ctx, schedulestore.NewSlot{ScheduleID: sch.ID, ScheduledFor: p.At.Time, Revision: p.Revision, Trigger: triggerBackfill, BackfillID: b.ID})
	if err != nil {
		return false, err
	}
	if made == 0 && p.Was == wasError {
		slot, err := schedulestore.In(tx).HoldSlot(ctx, sch.ID, p.At.Time)
		if err != nil || run.SlotStatus(slot.Status) != run.SlotError {
			return false, err
		}
		if err := s.reopen(ctx, tx, sch, slot, schedulestore.Again{Trigger: triggerBackfill, BackfillID: b.ID, Revision: p.Revision}); err != nil {
			return false, err
		}
	} else if made == 0 {
		reopened, err := schedulestore.In(tx).ReopenSlot(ctx, sch.ID, p.At.Time, b.ID, p.Revision)
		if err != nil || !reopened {
			return false, err
		}
	}
	if err := schedulestore.In(tx).SetBackfillGrant(ctx, b.ID, sch.ID, p.At.Time, grantID); err != nil {
		return false, err
	}
	return true, s.arm(ctx, tx, sch, p.At.Time, tx.Now)
}
