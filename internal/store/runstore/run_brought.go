package runstore

import (
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// Brought is how many events a run published.
type Brought struct {
	EndedAt time.Time
	Rows    int64
}

// broughtLooked is how many runs are looked at for each that is wanted.
const broughtLooked = 10

// LatestBrought reads what the last runs of a handler brought that succeeded and were
// made before an instant, the newest first. Runs of which nobody counted it are left
// out.
func (tx Tx) LatestBrought(ctx context.Context, kind pawl.Kind, lane, handler string, before time.Time, limit int) ([]Brought, error) {
	rows, err := tx.Query(ctx, `select ended_at, brought from (select handler, status, ended_at, brought, created_at, id from runs
		where kind = $1 and lane = $2 and created_at < $4 order by created_at desc, id desc limit $5) as latest
		where handler = $3 and status = 'committed' and brought is not null order by created_at desc, id desc limit $6`,
		kind, lane, handler, store.Millis(before), limit*broughtLooked, limit)
	return store.ScanAll(rows, err, "read what runs brought", func(row store.Scanner) (b Brought, err error) {
		var at int64
		err = row.Scan(&at, &b.Rows)
		b.EndedAt = store.FromMillis(at)
		return b, err
	})
}
