package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// claim answers a key with a body, unless it was answered.
func claim(t testing.TB, db *store.DB, owner, key, body string) (given userstore.Answer, claimed bool) {
	t.Helper()
	err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		if given, claimed, err = userstore.In(tx).ClaimIdempotencyKey(ctx, owner, key, "request of "+body); err != nil || !claimed {
			return err
		}
		return userstore.In(tx).SaveAnswer(ctx, owner, key, 201, body)
	})
	if err != nil {
		t.Errorf("claim: %v", err)
	}
	return given, claimed
}

func TestIdempotencyKeyIsAnsweredOnce(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		if _, claimed := claim(t, db, "ada", "k", "one"); !claimed {
			t.Error("not claimed")
		}
		if given, claimed := claim(t, db, "ada", "k", "two"); claimed || given != (userstore.Answer{Request: "request of one", Status: 201, Body: "one"}) {
			t.Errorf("second time %+v %v", given, claimed)
		}
		for _, other := range [][2]string{{"bob", "k"}, {"ada", "l"}} {
			if _, claimed := claim(t, db, other[0], other[1], "three"); !claimed {
				t.Errorf("%v is another key", other)
			}
		}
	})
}

// Rivals wait for the one that was first, and get its answer.
func TestIdempotencyRivalsGetOneAnswer(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		claims := 0
		answers := map[string]bool{}
		for i := range 20 {
			wg.Go(func() {
				given, claimed := claim(t, db, "ada", "k", fmt.Sprint(i))
				mu.Lock()
				defer mu.Unlock()
				if claimed {
					claims++
					given.Body = fmt.Sprint(i)
				}
				answers[given.Body] = true
			})
		}
		wg.Wait()
		if claims != 1 || len(answers) != 1 {
			t.Errorf("%d claims, answers %v", claims, answers)
		}
	})
}

func TestIdempotencyKeyOfAFailedTransactionIsFree(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		undo := errors.New("undo")
		err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			if _, claimed, err := userstore.In(tx).ClaimIdempotencyKey(ctx, "ada", "k", "r"); err != nil || !claimed {
				t.Errorf("claim: %v %v", claimed, err)
			}
			return undo
		})
		if !errors.Is(err, undo) {
			t.Fatal(err)
		}
		if _, claimed := claim(t, db, "ada", "k", "one"); !claimed {
			t.Error("the key is taken by what did not happen")
		}
	})
}

func TestDeleteOldIdempotencyKeys(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		for i := range 5 {
			claim(t, db, "ada", fmt.Sprint(i), "x")
		}
		now := time.Now()
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `update idempotency_keys set created_at = $1 where key <> '4'`, store.Millis(now.Add(-25*time.Hour)))
			return err
		})
		for i, want := range []int64{3, 1, 0} {
			if n, err := userstore.On(db).DeleteOldIdempotencyKeys(t.Context(), now.Add(-userstore.IdempotencyKept), 3); err != nil || n != want {
				t.Errorf("round %d: %d %v, want %d", i, n, err, want)
			}
		}
		if _, claimed := claim(t, db, "ada", "4", "y"); claimed {
			t.Error("a fresh key was deleted")
		}
	})
}

// A key past its time counts as absent even if nobody swept it.
func TestOldIdempotencyKeyIsFree(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		claim(t, db, "ada", "k", "one")
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `update idempotency_keys set created_at = $1`, store.Millis(time.Now().Add(-userstore.IdempotencyKept-time.Minute)))
			return err
		})
		if _, claimed := claim(t, db, "ada", "k", "two"); !claimed {
			t.Error("an old answer was given")
		}
	})
}
