package userstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// IdempotencyKept is how long an answer is kept for its idempotency key.
const IdempotencyKept = 24 * time.Hour

// Answer is what a request with an idempotency key was told.
type Answer struct {
	Request string // hash of what was asked
	Status  int
	Body    string
}

// ClaimIdempotencyKey makes this transaction the one that answers the key of
// the owner, or returns the answer that another one gave. A rival that is under
// way is waited for: if it commits, its answer is returned; if it fails, the
// key is ours. Whoever claims a key must call SaveAnswer in the same
// transaction.
func (tx Tx) ClaimIdempotencyKey(ctx context.Context, owner, key, request string) (given Answer, claimed bool, err error) {
	// Keys past their time count as absent, whether or not they were swept.
	if _, err := tx.Exec(ctx, `delete from idempotency_keys where owner = $1 and key = $2 and created_at < $3`,
		owner, key, store.Millis(tx.Now.Add(-IdempotencyKept))); err != nil {
		return given, false, fmt.Errorf("claim idempotency key: %w", err)
	}
	for range 3 {
		n, err := tx.Exec(ctx, `insert into idempotency_keys (owner, key, request, status, answer, created_at)
			values ($1, $2, $3, 0, '', $4) on conflict (owner, key) do nothing`, owner, key, request, store.Millis(tx.Now))
		if err != nil {
			return given, false, fmt.Errorf("claim idempotency key: %w", err)
		}
		if n == 1 {
			return given, true, nil
		}
		err = tx.QueryRow(ctx, `select request, status, answer from idempotency_keys where owner = $1 and key = $2`, owner, key).
			Scan(&given.Request, &given.Status, &given.Body)
		if !errors.Is(err, store.ErrNoRow) { // else it was swept between the two statements
			return given, false, err
		}
	}
	return given, false, errors.New("claim idempotency key: it comes and goes")
}

// FindAnswer is the answer that was given to the key of the owner, if there is
// one.
func (tx Tx) FindAnswer(ctx context.Context, owner, key string) (given Answer, found bool, err error) {
	err = tx.QueryRow(ctx, `select request, status, answer from idempotency_keys where owner = $1 and key = $2 and created_at >= $3`,
		owner, key, store.Millis(tx.Now.Add(-IdempotencyKept))).Scan(&given.Request, &given.Status, &given.Body)
	if errors.Is(err, store.ErrNoRow) {
		return given, false, nil
	}
	if err != nil {
		return given, false, fmt.Errorf("find answer: %w", err)
	}
	return given, true, nil
}

// SaveAnswer keeps what the request with this key is told.
func (tx Tx) SaveAnswer(ctx context.Context, owner, key string, status int, body string) error {
	_, err := tx.Exec(ctx, `update idempotency_keys set status = $3, answer = $4 where owner = $1 and key = $2`, owner, key, status, body)
	if err != nil {
		return fmt.Errorf("save answer: %w", err)
	}
	return nil
}

// DeleteOldIdempotencyKeys forgets up to limit keys that were made before the
// instant, the oldest first, and tells how many.
func (db DB) DeleteOldIdempotencyKeys(ctx context.Context, before time.Time, limit int) (n int64, err error) {
	err = db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		n, err = tx.Exec(ctx, `delete from idempotency_keys where (owner, key) in (
			select owner, key from idempotency_keys where created_at < $1 order by created_at limit $2)`, store.Millis(before), limit)
		return err
	})
	return n, err
}
