package graph

import (
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/graph/contract"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/when"
)

// maxRecorded bounds how many slots that will not run are recorded one by one;
// of more than that only the latest are.
const maxRecorded = 1000

// following is what comes after a slot: those that will not run, with the
// reason, and the one that will.
type following struct {
	passed      []time.Time
	disposition run.Disposition
	next        time.Time // zero: the schedule has no further instant
}

// follow decides by policy what becomes of the instants after the given one. It
// is pure. late says that what is past was missed, because nobody was there.
func follow(policy contract.ConcurrencyPolicy, schedule when.Schedule, after, now time.Time, late bool) following {
	due, next := dueBetween(schedule, after, now)
	switch {
	case len(due) == 0:
		return following{next: next}
	case late:
		return following{due, run.DispositionSkippedMissed, next}
	case policy == contract.Forbid:
		return following{due, run.DispositionSkippedOverlap, next}
	case policy == contract.Replace:
		last := len(due) - 1
		return following{due[:last], run.DispositionCoalesced, due[last]}
	case policy == contract.Allow:
		return following{next: due[0]} // each runs; the claim of one inserts the next
	}
	return following{due[1:], run.DispositionCoalesced, due[0]}
}

// dueBetween lists the instants in (after, now], the latest of them if they are
// many, and the first one after now.
func dueBetween(schedule when.Schedule, after, now time.Time) (due []time.Time, next time.Time) {
	for at := after; ; {
		n, ok := schedule.Next(at)
		if !ok {
			return due, time.Time{}
		}
		if n.After(now) {
			return due, n
		}
		if due = append(due, n); len(due) > 2*maxRecorded {
			due = append(due[:0], due[maxRecorded:]...)
		}
		at = n
	}
}

// chain makes sure that the schedule has its next slot, in the caller's
// transaction, which holds the schedule's row. after is the instant that the
// last known slot stands for.
func (s *Service) chain(ctx context.Context, tx *store.Tx, sch store.Schedule, after time.Time, late bool) error {
	if !sch.Enabled || !sch.DeletedAt.IsZero() {
		return tx.SetScheduleTimes(ctx, sch.ID, time.Time{}, time.Time{})
	}
	schedule, err := scheduleOf(sch.Cron, sch.Timezone)
	if err != nil {
		return err
	}
	f := follow(contract.ConcurrencyPolicy(sch.Policy), schedule, after, tx.Now, late)
	slots := make([]store.NewSlot, 0, len(f.passed)+1)
	for _, at := range f.passed {
		slots = append(slots, store.NewSlot{
			ScheduleID: sch.ID, ScheduledFor: at, Revision: sch.Revision, Trigger: triggerSchedule,
			Status: string(run.SlotSkipped), Disposition: string(f.disposition), Into: into(f), Message: passedWords(f),
		})
	}
	if len(f.passed) == maxRecorded {
		s.log.Warn("more slots passed than are recorded one by one", "schedule", sch.Name, "recorded", maxRecorded, "why", f.disposition)
	}
	if !f.next.IsZero() {
		slots = append(slots, store.NewSlot{ScheduleID: sch.ID, ScheduledFor: f.next, Revision: sch.Revision, Trigger: triggerSchedule})
	}
	if _, err := tx.InsertSlots(ctx, slots...); err != nil {
		return err
	}
	if !f.next.IsZero() {
		if err := s.arm(ctx, tx, sch, f.next, f.next); err != nil {
			return err
		}
	}
	return tx.SetScheduleTimes(ctx, sch.ID, f.next, time.Time{})
}

func into(f following) time.Time {
	if f.disposition == run.DispositionCoalesced {
		return f.next
	}
	return time.Time{}
}

func passedWords(f following) string {
	switch f.disposition {
	case run.DispositionSkippedMissed:
		return "No worker was there at this time."
	case run.DispositionSkippedOverlap:
		return "The run before it was still under way."
	default:
		return "The slot of " + pawl.FormatTime(f.next) + " stands for it."
	}
}

// The triggers of slots.
const (
	triggerSchedule = "schedule"
	triggerManual   = "manual"
	triggerBackfill = "backfill"
)

// lastSlot is the instant after which the schedule goes on: that of its latest
// slot, or when it was last changed if it has none since.
func lastSlot(ctx context.Context, tx *store.Tx, sch store.Schedule) (time.Time, error) {
	list, err := tx.ListSlots(ctx, store.SlotFilter{ScheduleID: sch.ID, Trigger: triggerSchedule}, time.Time{}, "", 20)
	if err != nil {
		return time.Time{}, err
	}
	for _, slot := range list {
		if slot.Revision == sch.Revision {
			return slot.ScheduledFor, nil
		}
	}
	return sch.UpdatedAt, nil
}
