package schedulestore

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// SlotSucceeded reports whether a slot of a time in [from, to) succeeded.
func (tx Tx) SlotSucceeded(ctx context.Context, scheduleID string, from, to time.Time) (bool, error) {
	rows, err := tx.Query(ctx, `select 1 from schedule_runs where schedule_id = $1 and scheduled_for >= $2 and scheduled_for < $3 and status = 'success' limit 1`,
		scheduleID, store.Millis(from), store.Millis(to))
	found, err := store.ScanAll(rows, err, "read slots of a day", func(row store.Scanner) (n int, err error) { return n, row.Scan(&n) })
	return len(found) > 0, err
}

// CountStarts counts the last slots, up to limit, of the instant or after that began
// by their schedule, and those of them that began later than their time by more than
// late. Slots that were passed over began never.
func CountStarts(ctx context.Context, tx *store.Tx, scheduleID string, since time.Time, limit int, late time.Duration) (starts, behind int, err error) {
	err = tx.QueryRow(ctx, `select count(started_at), coalesce(sum(case when started_at - scheduled_for > $4 then 1 else 0 end), 0) from (
		select started_at, scheduled_for from schedule_runs where schedule_id = $1 and scheduled_for >= $2 and trigger = 'schedule'
		order by scheduled_for desc limit $3) as latest`, scheduleID, store.Millis(since), limit, late.Milliseconds()).Scan(&starts, &behind)
	if err != nil {
		return 0, 0, fmt.Errorf("count starts: %w", err)
	}
	return starts, behind, nil
}
