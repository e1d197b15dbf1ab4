package store_test

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
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/executionstore"
)

func claimed(t testing.TB, db *store.DB, key, owner string) (e executionstore.Execution) {
	t.Helper()
	store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
		e = executionstore.Execution{Key: key, Hash: "h", RunID: "run-" + key, Attempt: 1, GraphID: "a:b", GrantID: "g", Owner: owner, LeaseUntil: tx.Now.Add(30 * time.Second)}
		ok, err := executionstore.In(tx).ClaimExecution(ctx, e)
		if err == nil && !ok {
			t.Errorf("%s was not claimed", key)
		}
		return err
	})
	return execution(t, db, key)
}

func execution(t testing.TB, db *store.DB, key string) executionstore.Execution {
	t.Helper()
	return mustRead(t, db, func(ctx context.Context, tx *store.Tx) (executionstore.Execution, error) {
		return executionstore.In(tx).ExecutionByKey(ctx, key)
	})
}

// Context 3.17.5: the claim is an insert, so of many one wins.
func TestOneOfManyClaimsAnExecution(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		var won atomic.Int32
		var all sync.WaitGroup
		for i := range 12 {
			all.Go(func() {
				err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
					ok, err := executionstore.In(tx).ClaimExecution(ctx, executionstore.Execution{Key: "k", RunID: "r", Attempt: 1, Owner: fmt.Sprint(i), LeaseUntil: store.AtForTest(0)})
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
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		seen := claimed(t, db, "k", "one")
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			for _, rival := range []struct {
				owner string
				want  bool
			}{{"two", true}, {"three", false}} {
				next := seen
				next.Owner, next.LeaseUntil = rival.owner, store.AtForTest(60)
				if taken, err := executionstore.In(tx).TakeExecution(ctx, seen, next); taken != rival.want || err != nil {
					t.Errorf("%s: %v %v", rival.owner, taken, err)
				}
			}
			return nil
		})
		writes := map[string]store.Func{
			"beat": func(ctx context.Context, tx *store.Tx) error {
				_, err := executionstore.In(tx).BeatExecution(ctx, "k", "one", store.AtForTest(1))
				return err
			},
			"remember": func(ctx context.Context, tx *store.Tx) error {
				return executionstore.In(tx).RememberExecution(ctx, "k", "one", nil)
			},
			"finish": func(ctx context.Context, tx *store.Tx) error {
				return executionstore.In(tx).FinishExecution(ctx, "k", "one", executionstore.Outcome{OK: true}, nil, 0)
			},
			"interrupt": func(ctx context.Context, tx *store.Tx) error {
				return executionstore.In(tx).InterruptExecution(ctx, "k", "one", "", json.RawMessage(`1`), nil, 0)
			},
			"release": func(ctx context.Context, tx *store.Tx) error {
				return executionstore.In(tx).ReleaseExecution(ctx, "k", "one")
			},
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
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		e := claimed(t, db, "k", "one")
		if !e.Alive(time.Now()) || e.Alive(time.Now().Add(31*time.Second)) {
			t.Errorf("alive until %v", e.LeaseUntil)
		}
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			if err := executionstore.In(tx).RememberExecution(ctx, "k", "one", json.RawMessage(`{"thread":1}`)); err != nil {
				return err
			}
			if asked, err := executionstore.In(tx).AskCancelExecution(ctx, "k"); !asked || err != nil {
				t.Errorf("cancel: %v %v", asked, err)
			}
			cancelAt, err := executionstore.In(tx).BeatExecution(ctx, "k", "one", store.AtForTest(9))
			if !cancelAt.Equal(tx.Now) {
				t.Errorf("cancel at %v", cancelAt)
			}
			return err
		})
		if e := execution(t, db, "k"); string(e.Remote) != `{"thread":1}` || !e.LeaseUntil.Equal(store.AtForTest(9)) {
			t.Errorf("%+v", e)
		}
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			return executionstore.In(tx).FinishExecution(ctx, "k", "one", executionstore.Outcome{TraceID: "t", ErrorCode: "timeout", ErrorMessage: "slow\x00", Output: json.RawMessage(`[1]`)}, json.RawMessage(`{}`), 7)
		})
		e = execution(t, db, "k")
		if !e.Finished || e.Outcome.OK || e.Outcome.ErrorCode != "timeout" || e.Outcome.TraceID != "t" || e.Cost != 7 || e.Owner != "" || !e.LeaseUntil.IsZero() || e.FinishedAt.IsZero() {
			t.Errorf("%+v", e)
		}
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			if asked, err := executionstore.In(tx).AskCancelExecution(ctx, "k"); asked || err != nil {
				t.Errorf("cancel of what is over: %v %v", asked, err)
			}
			_, err := executionstore.In(tx).ExecutionByKey(ctx, "other")
			if !errors.Is(err, pawl.ErrNotFound) {
				t.Errorf("unknown: %v", err)
			}
			return nil
		})
	})
}

func TestAbandonedExecutionsAreThoseWithAnOldLease(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		for i, key := range []string{"old", "older", "alive", "asks", "over"} {
			claimed(t, db, key, "o")
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				lease := store.AtForTest(100 - i)
				if key == "alive" {
					lease = store.AtForTest(1000)
				}
				if _, err := executionstore.In(tx).BeatExecution(ctx, key, "o", lease); err != nil {
					return err
				}
				switch key {
				case "asks":
					return executionstore.In(tx).InterruptExecution(ctx, key, "o", "", json.RawMessage(`"?"`), nil, 0)
				case "over":
					return executionstore.In(tx).FinishExecution(ctx, key, "o", executionstore.Outcome{OK: true}, nil, 0)
				}
				return nil
			})
		}
		left := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]executionstore.Execution, error) {
			return executionstore.In(tx).AbandonedExecutions(ctx, store.AtForTest(200), 9)
		})
		if len(left) != 2 || left[0].Key != "older" || left[1].Key != "old" {
			t.Errorf("%+v", left)
		}
	})
}
