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

// Brought is how many rows a slot told of.
type Brought struct {
	EndedAt time.Time
	Rows    int64
	Told    bool
}

// broughtLooked is how many slots are looked at for each that is wanted.
const broughtLooked = 10

// LatestBrought reads what the last slots of a schedule told of that succeeded and were
// for a time before an instant, the newest first; no slots of backfills.
func LatestBrought(ctx context.Context, tx *store.Tx, scheduleID string, before time.Time, limit int) ([]Brought, error) {
	rows, err := tx.Query(ctx, `select completed_at, brought from (select status, trigger, completed_at, brought, scheduled_for from schedule_runs
		where schedule_id = $1 and scheduled_for < $2 order by scheduled_for desc limit $3) as latest
		where status = 'success' and trigger <> 'backfill' and completed_at is not null order by scheduled_for desc limit $4`,
		scheduleID, store.Millis(before), limit*broughtLooked, limit)
	return store.ScanAll(rows, err, "read what slots told of", func(row store.Scanner) (b Brought, err error) {
		var at int64
		var n *int64
		err = row.Scan(&at, &n)
		b.EndedAt, b.Rows, b.Told = store.FromMillis(at), fromNull(n), n != nil
		return b, err
	})
}
