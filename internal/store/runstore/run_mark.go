package runstore

import (
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// RunMark is what a timeline shows of a run.
type RunMark struct {
	ID        string
	Status    pawl.Status
	CreatedAt time.Time
	EndedAt   time.Time // zero: it has not ended
}

// RunMarks reads up to limit runs of a lane that began in [from, to), the newest
// first.
func (tx Tx) RunMarks(ctx context.Context, kind pawl.Kind, lane string, from, to time.Time, limit int) ([]RunMark, error) {
	rows, err := tx.Query(ctx, `select id, status, created_at, ended_at from runs where kind = $1 and lane = $2
		and created_at >= $3 and created_at < $4 order by created_at desc, id desc limit $5`, kind, lane, store.Millis(from), store.Millis(to), limit)
	return store.ScanAll(rows, err, "read runs of a lane", func(row store.Scanner) (m RunMark, err error) {
		var status string
		var created int64
		var ended *int64
		err = row.Scan(&m.ID, &status, &created, &ended)
		m.Status, m.CreatedAt, m.EndedAt = pawl.Status(status), store.FromMillis(created), store.FromNullMillis(ended)
		return m, err
	})
}
