package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/when"
)

// PlannedSlot is one instant that a backfill would run, with what the schedule
// was then.
type PlannedSlot struct {
	At       client.Instant
	Revision int64
	GraphID  string
	Input    json.RawMessage
	Was      string // what became of it before; empty: nothing is known
}

// Plan is what a backfill will do. It is frozen: its hash is what a person
// confirms.
type Plan struct {
	GrantID   string        // that its slots run under; empty: that of the schedule
	Slots     []PlannedSlot // the oldest first
	Skipped   int           // slots of the time that ran already
	Before    int           // how many of Slots lie before the schedule was made; they run it as it was at first
	Uncovered []Uncovered   // which of Slots the grant does not allow
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
func (s *Service) plan(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, ask BackfillAsk) (Plan, error) {
	versions, err := schedulestore.In(tx).ScheduleVersions(ctx, sch.ID, 1000)
	if err != nil {
		return Plan{}, err
	}
	known, err := schedulestore.In(tx).SlotsBetween(ctx, sch.ID, ask.From, ask.To, 100_000)
	if err != nil {
		return Plan{}, err
	}
	first, err := schedulestore.In(tx).CoveringSlot(ctx, sch.ID, ask.From)
	switch {
	case err == nil && first.ScheduledFor.Before(ask.From): // it began earlier
		known = append([]schedulestore.Slot{first}, known...)
	case err != nil && !errors.Is(err, pawl.ErrNotFound):
		return Plan{}, err
	}
	plan := Plan{GrantID: ask.GrantID, Slots: []PlannedSlot{}}
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
		schedule, err := s.times(ctx, tx, sch.ID, v.Cron, v.Timezone, v.Timing)
		if err != nil {
			return Plan{}, err
		}
		if err := plan.add(schedule, v, from, to, known, ask.Failed); err != nil {
			return Plan{}, err
		}
	}
	for _, slot := range plan.Slots {
		if slot.At.Before(sch.CreatedAt) {
			plan.Before++
		}
	}
	return plan, nil
}

// add puts the instants of one version into the plan. The known slots are the
// oldest first.
func (p *Plan) add(schedule when.Schedule, v schedulestore.ScheduleVersion, from, to time.Time, known []schedulestore.Slot, failed bool) error {
	for at := from.Add(-time.Millisecond); ; {
		next, ok := schedule.Next(at)
		if !ok || !next.Before(to) {
			return nil
		}
		at = next
		for len(known) > 0 && known[0].Last().Before(next) {
			known = known[1:]
		}
		slot, there := schedulestore.Slot{}, len(known) > 0 && known[0].Covers(next)
		if there {
			slot = known[0]
		}
		was := slot.Disposition
		again := failed && run.SlotStatus(slot.Status) == run.SlotError && !slot.Doubt
		if again {
			was = wasError
		}
		if there && !reopens(slot) && !again {
			p.Skipped++
			continue
		}
		if len(p.Slots) == maxBackfill {
			return &pawl.Error{Code: pawl.CodeInvalid, Reason: "too_many", Op: "plan backfill", Msg: fmt.Sprintf("the backfill has more than %d slots", maxBackfill), Hint: "Ask for a shorter time."}
		}
		p.Slots = append(p.Slots, PlannedSlot{At: client.At(next), Revision: v.Revision, GraphID: v.GraphID, Input: v.Input, Was: was})
	}
}

// wasError is what became of a slot that failed.
const wasError = string(run.SlotError)

// reopens: a slot that was passed over and never began may run by consent.
func reopens(slot schedulestore.Slot) bool {
	return run.SlotStatus(slot.Status) == run.SlotSkipped && slot.StartedAt.IsZero()
}
