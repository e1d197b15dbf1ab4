package schedulestore

import (
	"context"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// SlotMark is what a timeline shows of a slot.
type SlotMark struct {
	RunID        string
	ScheduledFor time.Time
	StartedAt    time.Time
	CompletedAt  time.Time
	Status       string
	Disposition  string
	Through      time.Time // the last of the instants that the row covers; zero: it is one slot
	Count        int64     // how many it covers; zero: one
}

const markColumns = `run_id, scheduled_for, started_at, completed_at, status, disposition, through_at, instants`

func scanSlotMark(row store.Scanner) (m SlotMark, err error) {
	var at int64
	var started, completed, through, count *int64
	var disposition *string
	err = row.Scan(&m.RunID, &at, &started, &completed, &m.Status, &disposition, &through, &count)
	m.ScheduledFor, m.StartedAt, m.CompletedAt = store.FromMillis(at), store.FromNullMillis(started), store.FromNullMillis(completed)
	m.Disposition, m.Through, m.Count = store.FromNullText(disposition), store.FromNullMillis(through), fromNull(count)
	return m, err
}

// SlotMarks reads up to limit slots of a schedule that are for a time in [from, to), the
// newest first, and then the one before them if it covers instants on both sides of from.
func SlotMarks(ctx context.Context, tx *store.Tx, scheduleID string, from, to time.Time, limit int) ([]SlotMark, error) {
	rows, err := tx.Query(ctx, `select `+markColumns+` from schedule_runs where schedule_id = $1 and scheduled_for >= $2 and scheduled_for < $3
		order by scheduled_for desc limit $4`, scheduleID, store.Millis(from), store.Millis(to), limit)
	list, err := store.ScanAll(rows, err, "read slots of a timeline", scanSlotMark)
	if err != nil || len(list) == limit {
		return list, err
	}
	rows, err = tx.Query(ctx, `select `+markColumns+` from (select * from schedule_runs where schedule_id = $1 and scheduled_for < $2
		order by scheduled_for desc limit 1) as before where through_at >= $2`, scheduleID, store.Millis(from))
	before, err := store.ScanAll(rows, err, "read slots before a timeline", scanSlotMark)
	return append(list, before...), err
}
