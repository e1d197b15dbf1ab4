package graph

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/graph/contract"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/when"
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

// PlannedSlot is one instant that a backfill would run, with what the schedule
// was then.
type PlannedSlot struct {
	At       contract.Instant `json:"at"`
	Revision int64            `json:"revision"`
	GraphID  string           `json:"graphId"`
	Input    json.RawMessage  `json:"input"`
	Was      string           `json:"was,omitempty"` // what became of it before; empty: nothing is known
}

// Plan is what a backfill will do. It is frozen: its hash is what a person
// confirms.
type Plan struct {
	Slots   []PlannedSlot `json:"slots"`
	Skipped int           `json:"skipped"` // slots of the time that ran already
	Missing int           `json:"missing"` // instants before the schedule was there
}

// hash names a plan and its pace.
func (p Plan) hash(scheduleID string, pace int) (string, error) {
	raw, err := json.Marshal(struct {
		Schedule string
		Pace     int
		Plan     Plan
	}{scheduleID, pace, p})
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), err
}

// BackfillAsk asks for a plan.
type BackfillAsk struct {
	From, To  time.Time
	PerMinute int // zero is the default
}

// PlanBackfill makes a plan for the instants in [from, to), in the caller's
// transaction. Nothing runs until a person confirms its hash.
func (s *Service) PlanBackfill(ctx context.Context, tx *store.Tx, ownerID, id string, ask BackfillAsk, by string) (store.Backfill, error) {
	sch, err := s.Owned(ctx, tx, ownerID, id)
	if err != nil {
		return store.Backfill{}, err
	}
	if ask.PerMinute == 0 {
		ask.PerMinute = defaultPace
	}
	if err := ask.check(tx.Now); err != nil {
		return store.Backfill{}, err
	}
	plan, err := s.plan(ctx, tx, sch, ask)
	if err != nil {
		return store.Backfill{}, err
	}
	raw, err := json.Marshal(plan)
	if err != nil {
		return store.Backfill{}, err
	}
	hash, err := plan.hash(id, ask.PerMinute)
	if err != nil {
		return store.Backfill{}, err
	}
	estimate, known, err := tx.AverageSlotCost(ctx, id, 20)
	if err != nil {
		return store.Backfill{}, err
	}
	b := store.Backfill{
		ScheduleID: id, From: ask.From, To: ask.To, Plan: raw, Hash: hash, State: BackfillPlanned, PerMinute: ask.PerMinute,
		Total: len(plan.Slots), CreatedBy: by,
	}
	if known {
		cost := estimate * int64(len(plan.Slots))
		b.Estimate = &cost
	}
	return tx.InsertBackfill(ctx, b)
}

func (a BackfillAsk) check(now time.Time) error {
	var faults []pawl.Field
	if a.From.IsZero() || a.To.IsZero() || !a.From.Before(a.To) {
		faults = append(faults, pawl.Field{Pointer: "/from", Message: "must be an instant before /to"})
	}
	if a.To.After(now) {
		faults = append(faults, pawl.Field{Pointer: "/to", Message: "must not be in the future: the schedule itself sees to that"})
	}
	if a.PerMinute < 1 || a.PerMinute > maxPace {
		faults = append(faults, pawl.Field{Pointer: "/perMinute", Message: fmt.Sprintf("must be 1 to %d", maxPace)})
	}
	if len(faults) > 0 {
		return &pawl.Error{Code: pawl.CodeInvalid, Op: "plan backfill", Msg: "the backfill is not valid", Fields: faults}
	}
	return nil
}

// plan lists the instants that would run: those of the schedule as it was at
// each time, without those that ran already.
func (s *Service) plan(ctx context.Context, tx *store.Tx, sch store.Schedule, ask BackfillAsk) (Plan, error) {
	versions, err := tx.ScheduleVersions(ctx, sch.ID, 1000)
	if err != nil {
		return Plan{}, err
	}
	known, err := tx.SlotsBetween(ctx, sch.ID, ask.From, ask.To, 100_000)
	if err != nil {
		return Plan{}, err
	}
	byInstant := make(map[int64]store.Slot, len(known))
	for _, slot := range known {
		byInstant[slot.ScheduledFor.UnixMilli()] = slot
	}
	plan := Plan{Slots: []PlannedSlot{}}
	for i, v := range versions {
		from, to := v.CreatedAt, ask.To
		if i == 0 {
			from = ask.From // what was before the schedule was made, as it was at first
		}
		if i+1 < len(versions) && versions[i+1].CreatedAt.Before(to) {
			to = versions[i+1].CreatedAt
		}
		if from.Before(ask.From) {
			from = ask.From
		}
		schedule, err := scheduleOf(v.Cron, v.Timezone)
		if err != nil {
			return Plan{}, err
		}
		if err := plan.add(schedule, v, from, to, byInstant); err != nil {
			return Plan{}, err
		}
	}
	return plan, nil
}

// add puts the instants of one version into the plan.
func (p *Plan) add(schedule when.Schedule, v store.ScheduleVersion, from, to time.Time, known map[int64]store.Slot) error {
	for at := from.Add(-time.Millisecond); ; {
		next, ok := schedule.Next(at)
		if !ok || !next.Before(to) {
			return nil
		}
		at = next
		slot, there := known[next.UnixMilli()]
		if there && !reopens(slot) {
			p.Skipped++
			continue
		}
		if len(p.Slots) == maxBackfill {
			return &pawl.Error{Code: pawl.CodeInvalid, Reason: "too_many", Op: "plan backfill", Msg: fmt.Sprintf("the backfill has more than %d slots", maxBackfill), Hint: "Ask for a shorter time."}
		}
		p.Slots = append(p.Slots, PlannedSlot{At: contract.Instant{Time: next}, Revision: v.Revision, GraphID: v.GraphID, Input: v.Input, Was: slot.Disposition})
	}
}

// reopens: a slot that was passed over and never began may run by consent.
func reopens(slot store.Slot) bool {
	return run.SlotStatus(slot.Status) == run.SlotSkipped && slot.StartedAt.IsZero()
}

// Confirm lets a backfill begin, in the caller's transaction. The hash is that
// of the plan that the person saw.
func (s *Service) Confirm(ctx context.Context, tx *store.Tx, ownerID, id, hash, by string) (store.Backfill, error) {
	b, err := s.ownedBackfill(ctx, tx, ownerID, id)
	if err != nil {
		return store.Backfill{}, err
	}
	switch {
	case b.Hash != hash:
		return store.Backfill{}, refuse("confirm backfill", "plan_changed", "this is not the plan that was shown", "Look at the plan again, and confirm its hash.")
	case b.State == BackfillRunning:
		return b, nil
	case b.State != BackfillPlanned:
		return store.Backfill{}, refuse("confirm backfill", "not_planned", "the backfill is "+b.State, "Plan a new one.")
	}
	if b, err = tx.MoveBackfill(ctx, id, BackfillRunning, by); err != nil {
		return store.Backfill{}, err
	}
	return b, s.backfillChanged(ctx, tx, b, "backfill.confirm", by)
}

// Move pauses, resumes or cancels a backfill, in the caller's transaction. Slots
// that have begun go on.
func (s *Service) Move(ctx context.Context, tx *store.Tx, ownerID, id, to, by string) (store.Backfill, error) {
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
		if b, err = tx.MoveBackfill(ctx, id, to, ""); err != nil {
			return store.Backfill{}, err
		}
		return b, s.backfillChanged(ctx, tx, b, "backfill."+to, by)
	}
	return store.Backfill{}, refuse("change backfill", "wrong_state", "the backfill is "+b.State, "")
}

func (s *Service) backfillChanged(ctx context.Context, tx *store.Tx, b store.Backfill, action, by string) error {
	if err := tx.Audit(ctx, by, action, "backfill:"+b.ID, map[string]string{"schedule": b.ScheduleID, "hash": b.Hash}); err != nil {
		return err
	}
	s.tell(tx, Change{What: "backfill", Schedule: b.ScheduleID, Status: b.State})
	switch b.State {
	case BackfillRunning, BackfillCancelled:
		return s.wakeBackfill(ctx, tx, b)
	}
	return nil
}

// wakeBackfill lets a backfill go on, and its slots that wait look at what it
// has become.
func (s *Service) wakeBackfill(ctx context.Context, tx *store.Tx, b store.Backfill) error {
	sch, err := tx.GetSchedule(ctx, b.ScheduleID)
	if err != nil {
		return err
	}
	waiting, err := tx.ListSlots(ctx, store.SlotFilter{BackfillID: b.ID, Status: string(run.SlotPending)}, time.Time{}, "", 1000)
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
func (s *Service) ownedBackfill(ctx context.Context, tx *store.Tx, ownerID, id string) (store.Backfill, error) {
	b, err := tx.HoldBackfill(ctx, id)
	if err != nil {
		return store.Backfill{}, err
	}
	return s.asOwner(ctx, tx, ownerID, b)
}

// Backfill reads a backfill of the owner's schedule, with its plan and what
// became of its slots, by status. An empty owner is everybody.
func (s *Service) Backfill(ctx context.Context, tx *store.Tx, ownerID, id string) (b store.Backfill, plan Plan, counts map[string]int, err error) {
	if b, err = tx.GetBackfill(ctx, id); err != nil {
		return b, plan, nil, err
	}
	if b, err = s.asOwner(ctx, tx, ownerID, b); err != nil {
		return b, plan, nil, err
	}
	if err = json.Unmarshal(b.Plan, &plan); err != nil {
		return b, plan, nil, fmt.Errorf("read plan: %w", err)
	}
	counts, err = tx.BackfillProgress(ctx, id)
	return b, plan, counts, err
}

// asOwner lets a backfill be seen by the owner of its schedule.
func (s *Service) asOwner(ctx context.Context, tx *store.Tx, ownerID string, b store.Backfill) (store.Backfill, error) {
	_, err := s.Owned(ctx, tx, ownerID, b.ScheduleID)
	if errors.Is(err, pawl.ErrNotFound) {
		err = &pawl.Error{Code: pawl.CodeNotFound, Op: "read backfill", Msg: fmt.Sprintf("there is no backfill %q", b.ID)}
	}
	return b, err
}

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

// BackfillTask is the code behind BackfillName.
func (s *Service) BackfillTask() queue.Task {
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
	b, err := tx.HoldBackfill(ctx, id)
	if err != nil || b.State != BackfillRunning {
		return time.Time{}, unlessGone(err)
	}
	sch, err := tx.HoldSchedule(ctx, b.ScheduleID)
	if errors.Is(err, pawl.ErrNotFound) {
		_, err = tx.MoveBackfill(ctx, id, BackfillCancelled, "")
		return time.Time{}, err
	}
	if err != nil {
		return time.Time{}, err
	}
	var plan Plan
	if err := json.Unmarshal(b.Plan, &plan); err != nil {
		return time.Time{}, err
	}
	if waits, err := s.crowded(ctx, tx, sch, b); err != nil || waits {
		return tx.Now.Add(backfillLook), err
	}
	for n := b.Begun; n < len(plan.Slots); n++ {
		begun, err := s.startPlanned(ctx, tx, sch, b, plan.Slots[n])
		if err != nil {
			return time.Time{}, err
		}
		if err := tx.SetBackfillBegun(ctx, id, n+1); err != nil {
			return time.Time{}, err
		}
		if begun {
			return tx.Now.Add(time.Minute / time.Duration(b.PerMinute)), nil
		}
	}
	left, err := tx.ListSlots(ctx, store.SlotFilter{BackfillID: id, Open: true}, time.Time{}, "", 1)
	if err != nil || len(left) > 0 {
		return tx.Now.Add(backfillLook), err // the last ones still run
	}
	b, err = tx.MoveBackfill(ctx, id, BackfillDone, "")
	if err == nil {
		s.tell(tx, Change{What: "backfill", Schedule: b.ScheduleID, Status: b.State})
	}
	return time.Time{}, err
}

// crowded reports whether a slot of the backfill still waits for its turn: then
// another one would only wait behind it, before those of the schedule itself.
func (s *Service) crowded(ctx context.Context, tx *store.Tx, sch store.Schedule, b store.Backfill) (bool, error) {
	if contract.ConcurrencyPolicy(sch.Policy) == contract.Allow {
		return false, nil
	}
	waiting, err := tx.ListSlots(ctx, store.SlotFilter{BackfillID: b.ID, Status: string(run.SlotPending)}, time.Time{}, "", 1)
	return len(waiting) > 0, err
}

// startPlanned makes one slot of a plan due. It reports false when the slot has
// run meanwhile, so that it is never repeated.
func (s *Service) startPlanned(ctx context.Context, tx *store.Tx, sch store.Schedule, b store.Backfill, p PlannedSlot) (bool, error) {
	made, err := tx.InsertSlots(ctx, store.NewSlot{ScheduleID: sch.ID, ScheduledFor: p.At.Time, Revision: p.Revision, Trigger: triggerBackfill, BackfillID: b.ID})
	if err != nil {
		return false, err
	}
	if made == 0 {
		reopened, err := tx.ReopenSlot(ctx, sch.ID, p.At.Time, b.ID, p.Revision)
		if err != nil || !reopened {
			return false, err
		}
	}
	return true, s.arm(ctx, tx, sch, p.At.Time, tx.Now)
}
