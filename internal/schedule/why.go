package schedule

import (
	"context"
	"fmt"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/billing"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// Why implements lane.Kind. With an instant it tells what became of the slot of
// that time, or of the one before it.
func (s *Service) Why(ctx context.Context, v lane.Viewer, name string, at time.Time) (y lane.Why, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		sch, err := s.named(ctx, tx, v, name)
		if err != nil {
			return err
		}
		there, err := s.cfg.Workforce(ctx, tx)
		if err != nil {
			return err
		}
		d, err := s.details(ctx, tx, sch, recentSlots, there)
		if err != nil {
			return err
		}
		y = lane.Why{Lane: d.Lane, At: tx.Now, Gates: d.gates(tx.Now), Next: d.nextWords(tx.Now)}
		if len(d.Recent) > 0 {
			words, err := unpriced(ctx, tx, d.Recent[0])
			if err != nil {
				return err
			}
			if words != "" {
				y.Gates = append(y.Gates, lane.Gate{Name: "price", Open: true, Text: "The slot of " + pawl.FormatTime(d.Recent[0].ScheduledFor) + " ran. " + words})
			}
		}
		if !at.IsZero() {
			if err := s.whyAt(ctx, tx, &y, d, at); err != nil {
				return err
			}
		}
		y.Recent, _, err = runstore.In(tx).ListRuns(ctx, runstore.RunFilter{Schedule: sch.ID}, store.Place{}, recentSlots)
		return err
	})
	return y, err
}

// whyAt adds what was at an instant.
func (s *Service) whyAt(ctx context.Context, tx *store.Tx, y *lane.Why, d Details, at time.Time) (err error) {
	y.At = at
	if y.Around, err = lane.ReadAround(ctx, tx, pawl.KindSchedule, y.Key, at); err != nil {
		return err
	}
	around, err := schedulestore.In(tx).ListSlots(ctx, schedulestore.SlotFilter{ScheduleID: y.Key}, at.Add(time.Millisecond), "", 1)
	if err != nil {
		return err
	}
	if why, would := d.times.ExcludedAt(at); would && (len(around) == 0 || !around[0].Covers(at)) {
		y.Around.Text = "Nothing runs at " + pawl.FormatTime(at) + ": " + why + "."
		return y.Around.TellHalt(ctx, tx)
	}
	if at.After(tx.Now) {
		y.Around.Text += d.fromThenOn(at)
	}
	if len(around) == 0 {
		return y.Around.TellHalt(ctx, tx)
	}
	slot := SlotOf(around[0])
	y.Slot = &slot
	if !at.After(tx.Now) || around[0].Covers(at) {
		words, err := unpriced(ctx, tx, around[0])
		if err != nil {
			return err
		}
		y.Around.Text = strings.TrimSpace(slotSentence(&around[0]) + " " + words)
	}
	if p := d.known.Pause; !d.Row.Enabled && !p.At.IsZero() && !at.Before(p.At) && !at.After(tx.Now) && !around[0].Covers(at) {
		y.Around.Text = lane.PausedThen(p, time.Time{}) // its instants have rows once it is over
	}
	return y.Around.TellHalt(ctx, tx)
}

// fromThenOn says which slot is the first from an instant to come on; empty if none is
// foreseen.
func (d Details) fromThenOn(at time.Time) string {
	next, more := d.times.Next(at.Add(-time.Millisecond))
	switch {
	case !more || !d.Row.Enabled || spent(d.Row):
		return ""
	case next.Equal(at):
		return " Its slot is to come."
	}
	return " The next slot from then on is that of " + pawl.FormatTime(next) + "."
}

// unpriced says that nobody knows what a slot cost; empty if it is known.
func unpriced(ctx context.Context, tx *store.Tx, slot schedulestore.Slot) (string, error) {
	if slot.RunID == "" {
		return "", nil
	}
	model, found, err := billing.Unpriced(ctx, tx, slot.RunID)
	switch {
	case err != nil || !found:
		return "", err
	case model == "":
		return "Its whole cost is not known: the graph reported tokens without a model and without a cost.", nil
	}
	return fmt.Sprintf("Its whole cost is not known: the model %s has no price.", pawl.Quote(model)), nil
}

// slotSentence says what was at an instant, by the slot of that time or the one
// before it.
func slotSentence(s *schedulestore.Slot) string {
	slot := "The slot of " + pawl.FormatTime(s.ScheduledFor)
	if s.Count > 1 {
		return fmt.Sprintf("The %d slots from %s to %s were skipped (%s): %s", s.Count, pawl.FormatTime(s.ScheduledFor), pawl.FormatTime(s.Through), s.Disposition, s.ErrorMessage)
	}
	switch run.SlotStatus(s.Status) {
	case run.SlotPending:
		if s.ErrorMessage != "" {
			return slot + " waits: " + s.ErrorMessage
		}
		return slot + " waits."
	case run.SlotRunning:
		return slot + " runs since " + pawl.FormatTime(s.StartedAt) + "."
	case run.SlotSuccess:
		return slot + " ran, and ended at " + pawl.FormatTime(s.CompletedAt) + "."
	case run.SlotError:
		return slot + " failed (" + s.ErrorCode + "): " + s.ErrorMessage
	case run.SlotSkipped:
	}
	return slot + " was skipped (" + s.Disposition + "): " + s.ErrorMessage
}
