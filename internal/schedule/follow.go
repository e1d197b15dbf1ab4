package schedule

import (
	"context"
	"errors"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/when"
)

// following is what comes after a slot: those that will not run, with the
// reason, and the one that will.
type following struct {
	passed      []span
	disposition run.Disposition
	next        time.Time // zero: the schedule has no further instant
	words       string    // the reason, if the disposition alone does not tell it
}

// follow decides by policy what becomes of the instants that came due after a
// slot, and which one is next; future is the first that is not due yet. It is
// pure. What was missed, because nobody was there, is left out before.
func follow(policy pawl.ConcurrencyPolicy, due []span, future time.Time) following {
	switch {
	case len(due) == 0:
		return following{next: future}
	case policy == pawl.PolicyForbid:
		return following{passed: due, disposition: run.DispositionSkippedOverlap, next: future}
	case policy == pawl.PolicyReplace:
		last := len(due) - 1
		return following{passed: due[:last], disposition: run.DispositionCoalesced, next: due[last].first}
	case policy == pawl.PolicyAllow:
		return following{next: due[0].first} // each runs; the claim of one inserts the next
	}
	return following{passed: due[1:], disposition: run.DispositionCoalesced, next: due[0].first}
}

// chain makes sure that the schedule has its next slot, in the caller's
// transaction, which holds the schedule's row. after is the instant that the
// last known slot stands for.
func (s *Service) chain(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, after time.Time, late bool) error {
	if !sch.Enabled || !sch.DeletedAt.IsZero() {
		return schedulestore.In(tx).SetScheduleTimes(ctx, sch.ID, time.Time{})
	}
	schedule, err := s.timesOf(ctx, tx, sch)
	if err != nil {
		return err
	}
	f := following{}
	if !spent(sch) {
		var halts stretches
		if late {
			if halts, err = tx.HaltsSince(ctx, after); err != nil {
				return err
			}
		}
		due, future, err := s.dueSince(ctx, tx, sch.ID, schedule, after, tx.Now, halts)
		if err != nil {
			return err
		}
		if f = follow(pawl.ConcurrencyPolicy(sch.Policy), due, future); late {
			if f, err = s.chainLate(ctx, tx, sch, schedule, due, future, halts); err != nil {
				return err
			}
		}
	}
	if f.next, err = s.setNext(ctx, tx, sch, schedule, f.next); err != nil {
		return err
	}
	if err := s.passOver(ctx, tx, sch, f); err != nil {
		return err
	}
	if f.next.IsZero() {
		if err := schedulestore.In(tx).EndSchedule(ctx, sch.ID); err != nil {
			return err
		}
	}
	if f.next.Equal(sch.NextRunAt) {
		return nil
	}
	return schedulestore.In(tx).SetScheduleTimes(ctx, sch.ID, f.next)
}

// setNext makes the slot of an instant wait for its time, or that of the first one
// after it whose slot is not over. Such a slot is there if the clock went back.
func (s *Service) setNext(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, schedule when.Schedule, at time.Time) (time.Time, error) {
	for !at.IsZero() {
		waits, err := schedulestore.In(tx).PlanSlot(ctx, sch.ID, at, sch.Revision)
		if err != nil {
			return time.Time{}, err
		}
		if waits {
			return at, s.arm(ctx, tx, sch, at, schedule.Start(at))
		}
		row, err := schedulestore.In(tx).CoveringSlot(ctx, sch.ID, at)
		if err != nil {
			return time.Time{}, err
		}
		at, _ = schedule.Next(row.Last()) // zero at the end
	}
	return time.Time{}, nil
}

// passOver records the slots that will not run.
func (s *Service) passOver(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, f following) error {
	list := fold(nil, f.passed, s.cfg.record)
	slots := make([]schedulestore.NewSlot, len(list))
	for i, d := range list {
		slots[i] = schedulestore.NewSlot{
			ScheduleID: sch.ID, ScheduledFor: d.first, Revision: sch.Revision, Trigger: triggerSchedule,
			Status: string(run.SlotSkipped), Disposition: string(f.disposition), Into: into(f), Message: passedWords(f),
		}
		if d.count > 1 {
			slots[i].Through, slots[i].Count = d.last, d.count
		}
	}
	_, err := schedulestore.In(tx).InsertSlots(ctx, slots...)
	return err
}

func into(f following) time.Time {
	if f.disposition == run.DispositionCoalesced {
		return f.next
	}
	return time.Time{}
}

func passedWords(f following) string {
	if f.words != "" {
		return f.words
	}
	switch f.disposition {
	case run.DispositionSkippedMissed:
		return "No worker was running at this time."
	case run.DispositionSkippedOverlap:
		return "The previous run was still active."
	default:
		return "The slot of " + pawl.FormatTime(f.next) + " covers it."
	}
}

// The triggers of slots.
const (
	triggerSchedule = "schedule"
	triggerManual   = "manual"
	triggerBackfill = "backfill"
	triggerRetry    = "retry" // a person asked for it once more
)

// lastSlot is the instant after which the schedule goes on: the last of its latest
// slot, or when it was last changed if it has none since.
func lastSlot(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule) (time.Time, error) {
	slot, err := schedulestore.In(tx).LatestSlot(ctx, sch.ID, sch.Revision)
	if errors.Is(err, pawl.ErrNotFound) {
		return sch.UpdatedAt, nil
	}
	return slot.Last(), err
}

// planned reports whether a schedule has a slot from which it goes on by
// itself: one that waits, or one whose end makes the next.
func planned(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule) (bool, error) {
	open, err := schedulestore.In(tx).ListSlots(ctx, schedulestore.SlotFilter{ScheduleID: sch.ID, Trigger: triggerSchedule, Open: true}, time.Time{}, "", mostOpen)
	return slices.ContainsFunc(open, func(slot schedulestore.Slot) bool { return leadsOn(sch, slot) }), err
}

// leadsOn reports whether a schedule goes on from this slot, which is not
// closed: it waits, or its end makes the next.
func leadsOn(sch schedulestore.Schedule, slot schedulestore.Slot) bool {
	switch {
	case slot.Trigger != triggerSchedule:
		return false
	case run.SlotStatus(slot.Status) == run.SlotPending:
		return slot.Revision == sch.Revision
	}
	return !mayOverlap(sch)
}
