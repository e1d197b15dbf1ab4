package sourcestore

import (
	"context"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// Fetched is what one attempt of a fetch brought.
type Fetched struct {
	RunID   string
	RetryOf string // the attempt before it; empty: it is the first
	Whole   bool   // it ended well
	Rows    int64
	EndedAt time.Time
}

// LatestFetched reads the last attempts, up to limit, that began before an instant,
// the newest first.
func (tx Tx) LatestFetched(ctx context.Context, sourceID string, before time.Time, limit int) ([]Fetched, error) {
	rows, err := tx.Query(ctx, `select r.id, r.retry_of, r.status, s.rows_read - s.rejects, r.ended_at from source_runs s join runs r on r.id = s.run_id
		where s.source_id = $1 and s.started_at < $2 order by s.started_at desc limit $3`, sourceID, store.Millis(before), limit)
	return store.ScanAll(rows, err, "read what fetches brought", func(row store.Scanner) (f Fetched, err error) {
		var of *string
		var status string
		var ended *int64
		err = row.Scan(&f.RunID, &of, &status, &f.Rows, &ended)
		f.RetryOf, f.Whole, f.EndedAt = store.FromNullText(of), status == "committed", store.FromNullMillis(ended)
		return f, err
	})
}
