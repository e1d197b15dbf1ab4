package runstore

import (
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// RunAtOrBefore reads the newest run of a lane that was made at the instant or
// before, or fails with pawl.ErrNotFound.
func (tx Tx) RunAtOrBefore(ctx context.Context, kind pawl.Kind, lane string, at time.Time) (Run, error) {
	r, err := scanRun(tx.QueryRow(ctx, `select `+runColumns+` from runs where kind = $1 and lane = $2 and created_at <= $3
		order by created_at desc, id desc limit 1`, kind, lane, store.Millis(at)))
	return r, noRun(err, "run before")
}

// RunAfter reads the first run of a lane that was made after the instant, or
// fails with pawl.ErrNotFound.
func (tx Tx) RunAfter(ctx context.Context, kind pawl.Kind, lane string, at time.Time) (Run, error) {
	r, err := scanRun(tx.QueryRow(ctx, `select `+runColumns+` from runs where kind = $1 and lane = $2 and created_at > $3
		order by created_at, id limit 1`, kind, lane, store.Millis(at)))
	return r, noRun(err, "run after")
}
