package runstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// LaneRetry is the retry state of one lane. It is there from the registration
// of the lane on, or from its first failure.
type LaneRetry struct {
	Kind        pawl.Kind
	Lane        string
	Count       int // failures
	Crashes     int // crashed attempts in a row
	PeriodStart time.Time
	NextAt      time.Time // zero: not backing off
	UpdatedAt   time.Time
}

const retryColumns = `kind, lane, retry_count, crash_count, period_start, next_retry_at, updated_at`

func scanRetry(row store.Row) (LaneRetry, error) {
	var r LaneRetry
	var start, updated int64
	var next *int64
	if err := row.Scan(&r.Kind, &r.Lane, &r.Count, &r.Crashes, &start, &next, &updated); err != nil {
		return LaneRetry{}, err
	}
	r.PeriodStart, r.NextAt, r.UpdatedAt = store.FromMillis(start), store.FromNullMillis(next), store.FromMillis(updated)
	return r, nil
}

// GetRetry reads the retry state of a lane, or fails with pawl.ErrNotFound.
func (tx Tx) GetRetry(ctx context.Context, kind pawl.Kind, lane string) (LaneRetry, error) {
	r, err := scanRetry(tx.QueryRow(ctx, `select `+retryColumns+` from retries where kind = $1 and lane = $2`, kind, lane))
	if errors.Is(err, store.ErrNoRow) {
		return LaneRetry{}, &pawl.Error{Code: pawl.CodeNotFound, Op: "read retry state", Msg: fmt.Sprintf("%s %s has no retry state", kind, lane)}
	}
	return r, err
}

// HoldRetry reads the retry state of a lane and keeps others from changing it
// until the transaction ends. A lane without one gets it, with a period that
// begins now; so it also registers a lane.
func (tx Tx) HoldRetry(ctx context.Context, kind pawl.Kind, lane string) (LaneRetry, error) {
	r, err := scanRetry(tx.QueryRow(ctx, `insert into retries as r (`+retryColumns+`) values ($1, $2, 0, 0, $3, null, $3)
		on conflict (kind, lane) do update set updated_at = r.updated_at returning `+retryColumns, kind, lane, store.Millis(tx.Now)))
	if err != nil {
		return LaneRetry{}, fmt.Errorf("hold retry state: %w", err)
	}
	return r, nil
}

// SetRetry writes the retry state of a lane that was held.
func (tx Tx) SetRetry(ctx context.Context, r LaneRetry) error {
	err := tx.Post(ctx, `update retries set retry_count = $3, crash_count = $4, period_start = $5, next_retry_at = $6, updated_at = $7
		where kind = $1 and lane = $2`, r.Kind, r.Lane, r.Count, r.Crashes, store.Millis(r.PeriodStart), store.NullMillis(r.NextAt), store.Millis(tx.Now))
	if err != nil {
		return fmt.Errorf("set retry state: %w", err)
	}
	return nil
}

// ClearRetry forgets the failures and crashes of a lane, but not its period.
// It is one statement, which changes nothing if there is nothing to forget,
// because every commit of a run does it.
func (tx Tx) ClearRetry(ctx context.Context, kind pawl.Kind, lane string) error {
	err := tx.Post(ctx, `update retries set retry_count = 0, crash_count = 0, next_retry_at = null, updated_at = $3
		where kind = $1 and lane = $2 and (retry_count <> 0 or crash_count <> 0 or next_retry_at is not null)`, kind, lane, store.Millis(tx.Now))
	if err != nil {
		return fmt.Errorf("clear retry state: %w", err)
	}
	return nil
}
