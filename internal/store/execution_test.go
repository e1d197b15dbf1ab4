package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
)

func claimed(t testing.TB, db *DB, key, owner string) (e Execution) {
	t.Helper()
	mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
		e = Execution{Key: key, Hash: "h", RunID: "run-" + key, Attempt: 1, GraphID: "a:b", GrantID: "g", Owner: owner, LeaseUntil: tx.Now.Add(30 * time.Second)}
		ok, err := tx.ClaimExecution(ctx, e)
		if err == nil && !ok {
			t.Errorf("%s was not claimed", key)
		}
		return err
	})
	return execution(t, db, key)
}

func execution(t testing.TB, db *DB, key string) Execution {
	t.Helper()
	return mustRead(t, db, func(ctx context.Context, tx *Tx) (Execution, error) { return tx.ExecutionByKey(ctx, key) })
}

// Context 3.17.5: the claim is an insert, so of many one wins.
func TestOneOfManyClaimsAnExecution(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		var won atomic.Int32
		var all sync.WaitGroup
		for i := range 12 {
			all.Go(func() {
				err := db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
					ok, err := tx.ClaimExecution(ctx, Execution{Key: "k", RunID: "r", Attempt: 1, Owner: fmt.Sprint(i), LeaseUntil: at(0)})
					if ok {
						tx.AfterCommit(func() { won.Add(1) })
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			t.Errorf("%d won", won.Load())
		}
	})
}

// a dead claim is taken over by compare-and-set, so of two that saw the
// same row one wins, and the old owner writes nothing any more.
func TestTakeoverFencesTheOldOwner(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		seen := claimed(t, db, "k", "one")
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			for _, rival := range []struct {
				owner string
				want  bool
			}{{"two", true}, {"three", false}} {
				next := seen
				next.Owner, next.LeaseUntil = rival.owner, at(60)
				if taken, err := tx.TakeExecution(ctx, seen, next); taken != rival.want || err != nil {
					t.Errorf("%s: %v %v", rival.owner, taken, err)
				}
			}
			return nil
		})
		writes := map[string]Func{
			"beat": func(ctx context.Context, tx *Tx) error {
				_, err := tx.BeatExecution(ctx, "k", "one", at(1))
				return err
			},
			"remember": func(ctx context.Context, tx *Tx) error { return tx.RememberExecution(ctx, "k", "one", nil) },
			"finish": func(ctx context.Context, tx *Tx) error {
				return tx.FinishExecution(ctx, "k", "one", Outcome{OK: true}, nil, 0)
			},
			"interrupt": func(ctx context.Context, tx *Tx) error {
				return tx.InterruptExecution(ctx, "k", "one", "", json.RawMessage(`1`), nil, 0)
			},
			"release": func(ctx context.Context, tx *Tx) error { return tx.ReleaseExecution(ctx, "k", "one") },
		}
		for name, write := range writes {
			if err := db.Write(t.Context(), write); !errors.Is(err, pawl.ErrLeaseLost) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if e := execution(t, db, "k"); e.Owner != "two" || e.Finished || e.Interrupt != nil {
			t.Errorf("%+v", e)
		}
	})
}

func TestExecutionKeepsItsOutcome(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		e := claimed(t, db, "k", "one")
		if !e.Alive(time.Now()) || e.Alive(time.Now().Add(31*time.Second)) {
			t.Errorf("alive until %v", e.LeaseUntil)
		}
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			if err := tx.RememberExecution(ctx, "k", "one", json.RawMessage(`{"thread":1}`)); err != nil {
				return err
			}
			if asked, err := tx.AskCancelExecution(ctx, "k"); !asked || err != nil {
				t.Errorf("cancel: %v %v", asked, err)
			}
			cancelAt, err := tx.BeatExecution(ctx, "k", "one", at(9))
			if !cancelAt.Equal(tx.Now) {
				t.Errorf("cancel at %v", cancelAt)
			}
			return err
		})
		if e := execution(t, db, "k"); string(e.Remote) != `{"thread":1}` || !e.LeaseUntil.Equal(at(9)) {
			t.Errorf("%+v", e)
		}
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			return tx.FinishExecution(ctx, "k", "one", Outcome{TraceID: "t", ErrorCode: "timeout", ErrorMessage: "slow\x00", Output: json.RawMessage(`[1]`)}, json.RawMessage(`{}`), 7)
		})
		e = execution(t, db, "k")
		if !e.Finished || e.Outcome.OK || e.Outcome.ErrorCode != "timeout" || e.Outcome.TraceID != "t" || e.Cost != 7 || e.Owner != "" || !e.LeaseUntil.IsZero() || e.FinishedAt.IsZero() {
			t.Errorf("%+v", e)
		}
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			if asked, err := tx.AskCancelExecution(ctx, "k"); asked || err != nil {
				t.Errorf("cancel of what is over: %v %v", asked, err)
			}
			_, err := tx.ExecutionByKey(ctx, "other")
			if !errors.Is(err, pawl.ErrNotFound) {
				t.Errorf("unknown: %v", err)
			}
			return nil
		})
	})
}

func TestAbandonedExecutionsAreThoseWithAnOldLease(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		for i, key := range []string{"old", "older", "alive", "asks", "over"} {
			claimed(t, db, key, "o")
			mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
				lease := at(100 - i)
				if key == "alive" {
					lease = at(1000)
				}
				if _, err := tx.BeatExecution(ctx, key, "o", lease); err != nil {
					return err
				}
				switch key {
				case "asks":
					return tx.InterruptExecution(ctx, key, "o", "", json.RawMessage(`"?"`), nil, 0)
				case "over":
					return tx.FinishExecution(ctx, key, "o", Outcome{OK: true}, nil, 0)
				}
				return nil
			})
		}
		left := mustRead(t, db, func(ctx context.Context, tx *Tx) ([]Execution, error) { return tx.AbandonedExecutions(ctx, at(200), 9) })
		if len(left) != 2 || left[0].Key != "older" || left[1].Key != "old" {
			t.Errorf("%+v", left)
		}
	})
}
