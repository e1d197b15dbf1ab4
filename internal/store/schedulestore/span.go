package schedulestore

import (
	"context"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// Very many instants in a row of which the same became are one row: it begins with
// the first and names the last. No other row of the schedule is between the two, so
// that the row which covers an instant is the last one that does not begin after it.

// Last is the last instant that the row covers.
func (s Slot) Last() time.Time {
	if s.Through.IsZero() {
		return s.ScheduledFor
	}
	return s.Through
}

// Covers reports whether the row is that of an instant of its schedule.
func (s Slot) Covers(at time.Time) bool { return !at.Before(s.ScheduledFor) && !at.After(s.Last()) }

// CoveringSlot reads the row that covers an instant, by itself or among many, or
// fails with pawl.ErrNotFound.
func (tx Tx) CoveringSlot(ctx context.Context, scheduleID string, at time.Time) (Slot, error) {
	s, err := scanSlot(tx.QueryRow(ctx, `select `+slotColumns+` from schedule_runs where schedule_id = $1 and scheduled_for <= $2
		order by scheduled_for desc limit 1`, scheduleID, store.Millis(at)))
	if err == nil && !s.Covers(at) {
		err = store.ErrNoRow
	}
	return s, noSlot(err, scheduleID, at)
}

// Stretch is from which to which instant a row reaches.
type Stretch struct {
	First, Last time.Time
	Count       int64
}

// CoveredBetween reads what rows of a schedule reach into [from, to], the oldest
// first.
func (tx Tx) CoveredBetween(ctx context.Context, scheduleID string, from, to time.Time) ([]Stretch, error) {
	rows, err := tx.Query(ctx, `select scheduled_for, coalesce(through_at, scheduled_for) from schedule_runs where schedule_id = $1 and scheduled_for <= $3
		and scheduled_for >= coalesce((select max(p.scheduled_for) from schedule_runs p where p.schedule_id = $1 and p.scheduled_for < $2), $2)
		order by scheduled_for`, scheduleID, store.Millis(from), store.Millis(to))
	return store.ScanAll(rows, err, "read covered instants", func(row store.Scanner) (s Stretch, err error) {
		var first, last int64
		err = row.Scan(&first, &last)
		s.First, s.Last = store.FromMillis(first), store.FromMillis(last)
		return s, err
	})
}
