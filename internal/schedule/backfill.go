package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// BackfillName is the task that starts the slots of a backfill, at its pace.
const BackfillName = "pawl.backfill"

const (
	// maxBackfill is how many slots one backfill may have.
	maxBackfill = 10_000
	// defaultPace is how many slots of a backfill start in a minute.
	defaultPace = 10
	maxPace     = 600
	// backfillLook is how often a backfill looks whether its slots have ended.
	backfillLook = time.Second
)

// The states of a backfill.
const (
	BackfillPlanned   = "planned"
	BackfillRunning   = "running"
	BackfillPaused    = "paused"
	BackfillCancelled = "cancelled"
	BackfillDone      = "done"
)

// BackfillAsk asks for a plan.
type BackfillAsk struct {
	From, To  time.Time
	PerMinute int    // zero is the default
	GrantID   string // of the owner of the schedule; empty is the schedule's own
	Failed    bool   // those that failed, too
}

// PlanBackfill makes a plan for the instants in [from, to), in the caller's
// transaction. Nothing runs until a person confirms its hash.
func (s *Service) PlanBackfill(ctx context.Context, tx *store.Tx, ownerID, id string, ask BackfillAsk, by string) (schedulestore.Backfill, error) {
	sch, err := s.Owned(ctx, tx, ownerID, id)
	if err != nil {
		return schedulestore.Backfill{}, err
	}
	if err := lane.RefuseHalted(ctx, tx, "plan backfill"); err != nil {
		return schedulestore.Backfill{}, err
	}
	if ask.PerMinute == 0 {
		ask.PerMinute = defaultPace
	}
	if err := ask.check(tx.Now); err != nil {
		return schedulestore.Backfill{}, err
	}
	plan, err := s.plan(ctx, tx, sch, ask)
	if err != nil {
		return schedulestore.Backfill{}, err
	}
	if err := s.findUncovered(ctx, tx, sch, &plan); err != nil {
		return schedulestore.Backfill{}, err
	}
	raw, err := plan.encode()
	if err != nil {
		return schedulestore.Backfill{}, err
	}
	hash, err := hashPlan(id, ask.PerMinute, raw)
	if err != nil {
		return schedulestore.Backfill{}, err
	}
	b := schedulestore.Backfill{
		ScheduleID: id, From: ask.From, To: ask.To, Plan: raw, Hash: hash, State: BackfillPlanned, PerMinute: ask.PerMinute,
		Total: len(plan.Slots), CreatedBy: by,
	}
	if b.Estimate, err = estimate(ctx, tx, id, plan); err != nil {
		return schedulestore.Backfill{}, err
	}
	if b, err = schedulestore.In(tx).InsertBackfill(ctx, b); err != nil {
		return schedulestore.Backfill{}, err
	}
	return b, tx.Audit(ctx, by, "backfill.plan", "backfill:"+b.ID, map[string]any{"schedule": id, "hash": hash, "slots": b.Total})
}

// estimate is what the slots of a plan that can run will cost if they cost what
// the latest ones did; nil: nothing is known. Commands, URLs and jobs cost nothing.
func estimate(ctx context.Context, tx *store.Tx, scheduleID string, plan Plan) (*int64, error) {
	if !slices.ContainsFunc(plan.Slots, func(slot PlannedSlot) bool { return !work.Is(slot.GraphID) }) {
		return new(int64), nil
	}
	each, known, err := schedulestore.In(tx).AverageSlotCost(ctx, scheduleID, 20)
	if err != nil || !known {
		return nil, err
	}
	cost := each * int64(len(plan.Slots)-plan.lost())
	return &cost, nil
}

// Confirm lets a backfill begin, in the caller's transaction. The hash is that
// of the plan that the person saw.
func (s *Service) Confirm(ctx context.Context, tx *store.Tx, ownerID, id, hash, by string) (schedulestore.Backfill, error) {
	b, err := s.ownedBackfill(ctx, tx, ownerID, id)
	if err != nil {
		return schedulestore.Backfill{}, err
	}
	switch {
	case b.Hash != hash:
		return schedulestore.Backfill{}, lane.Refuse("confirm backfill", "plan_changed", "this is not the plan that was shown", "Look at the plan again, and confirm its hash.")
	case b.State == BackfillRunning:
		return b, nil
	case b.State != BackfillPlanned:
		return schedulestore.Backfill{}, lane.Refuse("confirm backfill", "not_planned", "the backfill is "+b.State, "Plan a new one.")
	}
	if err := lane.RefuseHalted(ctx, tx, "confirm backfill"); err != nil {
		return schedulestore.Backfill{}, err
	}
	if b, err = schedulestore.In(tx).MoveBackfill(ctx, id, BackfillRunning, by); err != nil {
		return schedulestore.Backfill{}, err
	}
	return b, s.backfillChanged(ctx, tx, b, "backfill.confirm", by)
}

// Move pauses, resumes or cancels a backfill, in the caller's transaction. Slots
// that have begun go on.
func (s *Service) Move(ctx context.Context, tx *store.Tx, ownerID, id, to, by string) (schedulestore.Backfill, error) {
	b, err := s.ownedBackfill(ctx, tx, ownerID, id)
	if err != nil || b.State == to {
		return b, err
	}
	allowed := map[string][]string{
		BackfillPaused:    {BackfillRunning},
		BackfillRunning:   {BackfillPaused},
		BackfillCancelled: {BackfillPlanned, BackfillRunning, BackfillPaused},
	}
	for _, from := range allowed[to] {
		if b.State != from {
			continue
		}
		if to == BackfillRunning {
			if err := lane.RefuseHalted(ctx, tx, "resume backfill"); err != nil {
				return schedulestore.Backfill{}, err
			}
		}
		if b, err = schedulestore.In(tx).MoveBackfill(ctx, id, to, ""); err != nil {
			return schedulestore.Backfill{}, err
		}
		return b, s.backfillChanged(ctx, tx, b, "backfill."+to, by)
	}
	return schedulestore.Backfill{}, lane.Refuse("change backfill", "wrong_state", "the backfill is "+b.State, "")
}

func (s *Service) backfillChanged(ctx context.Context, tx *store.Tx, b schedulestore.Backfill, action, by string) error {
	if err := tx.Audit(ctx, by, action, "backfill:"+b.ID, map[string]string{"schedule": b.ScheduleID, "hash": b.Hash}); err != nil {
		return err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(b.ScheduleID, ""), What: "backfill", Detail: SlotDetail{Status: b.State}})
	switch b.State {
	case BackfillRunning, BackfillCancelled:
		return s.wakeBackfill(ctx, tx, b)
	}
	return nil
}

// wakeBackfill lets a backfill go on, and its slots that wait look at what it
// has become.
func (s *Service) wakeBackfill(ctx context.Context, tx *store.Tx, b schedulestore.Backfill) error {
	sch, err := schedulestore.In(tx).GetSchedule(ctx, b.ScheduleID)
	if err != nil {
		return err
	}
	waiting, err := schedulestore.In(tx).ListSlots(ctx, schedulestore.SlotFilter{BackfillID: b.ID, Status: string(run.SlotPending)}, time.Time{}, "", 1000)
	if err != nil {
		return err
	}
	for _, slot := range waiting {
		if err := s.arm(ctx, tx, sch, slot.ScheduledFor, tx.Now); err != nil {
			return err
		}
	}
	return s.armBackfill(ctx, tx, b.ID, tx.Now)
}

// ownedBackfill reads a backfill of the owner's schedule and holds it.
func (s *Service) ownedBackfill(ctx context.Context, tx *store.Tx, ownerID, id string) (schedulestore.Backfill, error) {
	b, err := schedulestore.In(tx).HoldBackfill(ctx, id)
	if err != nil {
		return schedulestore.Backfill{}, err
	}
	return s.asOwner(ctx, tx, ownerID, b)
}

// Backfill reads a backfill of the owner's schedule, with its plan and what
// became of its slots, by status. An empty owner is everybody.
func (s *Service) Backfill(ctx context.Context, tx *store.Tx, ownerID, id string) (b schedulestore.Backfill, plan Plan, counts map[string]int, err error) {
	if b, err = schedulestore.In(tx).GetBackfill(ctx, id); err != nil {
		return b, plan, nil, err
	}
	if b, err = s.asOwner(ctx, tx, ownerID, b); err != nil {
		return b, plan, nil, err
	}
	if plan, err = decodePlan(b.Plan); err != nil {
		return b, plan, nil, err
	}
	counts, err = schedulestore.In(tx).BackfillProgress(ctx, id)
	return b, plan, counts, err
}

// asOwner lets a backfill be seen by the owner of its schedule.
func (s *Service) asOwner(ctx context.Context, tx *store.Tx, ownerID string, b schedulestore.Backfill) (schedulestore.Backfill, error) {
	_, err := s.Owned(ctx, tx, ownerID, b.ScheduleID)
	if errors.Is(err, pawl.ErrNotFound) {
		err = &pawl.Error{Code: pawl.CodeNotFound, Op: "read backfill", Msg: fmt.Sprintf("there is no backfill %q", b.ID)}
	}
	return b, err
}
