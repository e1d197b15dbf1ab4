package runstore

import (
	"cmp"
	"context"
	"errors"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// RunAtOrBefore reads the newest run of a lane that was made at the instant or
// before, or fails with pawl.ErrNotFound.
func (tx Tx) RunAtOrBefore(ctx context.Context, kind pawl.Kind, lane string, at time.Time) (Run, error) {
	r, err := scanRun(tx.QueryRow(ctx, `select `+runColumns+` from runs where kind = $1 and lane = $2 and created_at <= $3
		order by created_at desc, id desc limit 1`, kind, lane, store.Millis(at)))
	if kind == pawl.KindWorkflow {
		return tx.orOfPart(ctx, r, noRun(err, "run before"), func(of, than Run) bool { return of.CreatedAt.After(than.CreatedAt) },
			`created_at <= $2 order by created_at desc, id desc limit 1`, lane, at)
	}
	return r, noRun(err, "run before")
}

// orOfPart is a run of a workflow, or one of its partitions that is better.
func (tx Tx) orOfPart(ctx context.Context, own Run, why error, better func(of, than Run) bool, which, lane string, at time.Time) (Run, error) {
	if why != nil && !errors.Is(why, pawl.ErrNotFound) {
		return own, why
	}
	of, err := scanRuns(tx.Query(ctx, `select `+runColumns+` from runs where `+isPart+` and `+baseOfPart+` = $1 and `+which, lane, store.Millis(at)))
	if err != nil || len(of) == 0 || why == nil && !better(of[0], own) {
		return own, cmp.Or(err, why)
	}
	return of[0], nil
}

// FoldedAt reads the newest run of a lane that stands for runs on both sides of the
// instant, or fails with pawl.ErrNotFound.
func (tx Tx) FoldedAt(ctx context.Context, kind pawl.Kind, lane string, at time.Time) (Run, error) {
	r, err := scanRun(tx.QueryRow(ctx, `select `+runColumns+` from runs where kind = $1 and lane = $2 and folded_at is not null
		and created_at > $4 and created_at <= $3 and through_at >= $3 and run_count > 1 order by created_at desc, id desc limit 1`, kind, lane, store.Millis(at), store.Millis(at.Add(-LongestStretch))))
	return r, noRun(err, "run that stands for that time")
}

// RunAfter reads the first run of a lane that was made after the instant, or
// fails with pawl.ErrNotFound.
func (tx Tx) RunAfter(ctx context.Context, kind pawl.Kind, lane string, at time.Time) (Run, error) {
	r, err := scanRun(tx.QueryRow(ctx, `select `+runColumns+` from runs where kind = $1 and lane = $2 and created_at > $3
		order by created_at, id limit 1`, kind, lane, store.Millis(at)))
	if kind == pawl.KindWorkflow {
		return tx.orOfPart(ctx, r, noRun(err, "run after"), func(of, than Run) bool { return of.CreatedAt.Before(than.CreatedAt) },
			`created_at > $2 order by created_at, id limit 1`, lane, at)
	}
	return r, noRun(err, "run after")
}

// StandingAfter reads up to limit runs of a handler that stand for a time, not one
// before from, and were made at the instant or after, the oldest first. Slots tell
// it of schedules. Runs stand for later and later times, so few are passed over.
func (tx Tx) StandingAfter(ctx context.Context, kind pawl.Kind, lane, handler string, at, from time.Time, limit int) ([]Run, error) {
	rows, err := tx.Query(ctx, `select `+runColumns+` from runs where kind = $1 and lane = $2 and handler = $3 and scheduled_for is not null and kind <> 'schedule'
		and created_at >= $4 and scheduled_for >= $6 order by created_at, id limit $5`, kind, lane, handler, store.Millis(at), limit, store.Millis(from))
	return store.ScanAll(rows, err, "read runs after", scanRun)
}

// StandingBefore reads the newest run of a handler that stands for a time and was
// made before the instant, or fails with pawl.ErrNotFound.
func (tx Tx) StandingBefore(ctx context.Context, kind pawl.Kind, lane, handler string, at time.Time) (Run, error) {
	r, err := scanRun(tx.QueryRow(ctx, `select `+runColumns+` from runs where kind = $1 and lane = $2 and handler = $3 and scheduled_for is not null and kind <> 'schedule'
		and created_at < $4 order by created_at desc, id desc limit 1`, kind, lane, handler, store.Millis(at)))
	return r, noRun(err, "run before")
}
