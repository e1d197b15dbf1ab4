package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// run0 is an active run of a lane.
func run0(lane string) runstore.Run {
	return runstore.Run{
		ID: store.NewID(), Kind: pawl.KindWorkflow, Lane: lane, Handler: "mail", HandlerType: pawl.HandlerConsumer, Trigger: "event",
		Phase: pawl.PhasePreparing, Status: pawl.StatusActive, Attempt: 1, Owner: store.Fence{Bucket: 3, Node: "n1", Epoch: 7},
	}
}

func insertRun(t testing.TB, db *store.DB, r runstore.Run) runstore.Run {
	t.Helper()
	var out runstore.Run
	store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
		out, err = runstore.In(tx).InsertRun(ctx, r)
		return err
	})
	return out
}

func changeRun(t testing.TB, db *store.DB, fn func(ctx context.Context, tx *store.Tx) (runstore.Run, error)) (r runstore.Run, err error) {
	t.Helper()
	err = db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		r, err = fn(ctx, tx)
		return err
	})
	return r, err
}

// every field comes back as it was stored, and absent ones as absent.
func TestRunComesBackAsItWasStored(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		full := run0("full")
		full.ScheduledFor, full.ScriptVersion = store.AtForTest(5), "v1"
		full.PrepareResult, full.MutationResult, full.OutputState = json.RawMessage(`{"a":1}`), json.RawMessage(`null`), json.RawMessage(`"ü"`)
		full.ErrorCode, full.ErrorClass, full.ErrorMessage = "timeout", pawl.ClassTransient, "too slow"
		bare := run0("bare")
		bare.Owner = store.Fence{}
		bare.Status = pawl.StatusPausedReconciliation
		for _, want := range []runstore.Run{full, bare} {
			stored := insertRun(t, db, want)
			got, err := runstore.On(db).GetRun(t.Context(), want.ID)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(stored, got); diff != "" {
				t.Errorf("%s read differs from what the insert returned:\n%s", want.Lane, diff)
			}
			if got.CreatedAt.IsZero() || got.CreatedAt != got.UpdatedAt || got.CreatedAt.Location() != time.UTC {
				t.Errorf("created %v, updated %v", got.CreatedAt, got.UpdatedAt)
			}
			want.CreatedAt, want.UpdatedAt = got.CreatedAt, got.UpdatedAt
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-stored +read):\n%s", want.Lane, diff)
			}
		}
		if _, err := runstore.On(db).GetRun(t.Context(), "nobody"); !errors.Is(err, pawl.ErrNotFound) || err.Error() != "read run: there is no run nobody" {
			t.Errorf("a run that is not there: %v", err)
		}
	})
}

// the indexes refuse a second active run and a second successor,
// and the transaction that met them can go on.
func TestIndexesRefuseSecondActiveRunAndSecondSuccessor(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		first := insertRun(t, db, run0("lane"))
		refused := func(r runstore.Run, want string) {
			t.Helper()
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				if _, err := runstore.In(tx).InsertRun(ctx, r); !errors.Is(err, pawl.ErrConflict) || err.Error() != want {
					t.Errorf("got %v, want %s", err, want)
				}
				_, err := runstore.In(tx).GetRun(ctx, first.ID)
				return err
			})
		}
		refused(run0("lane"), "insert run: run_active: a run of workflow lane is active")

		next := run0("lane")
		next.RetryOf, next.Status, next.Attempt = first.ID, pawl.StatusPausedReconciliation, 2
		second := insertRun(t, db, next)
		rival := next
		rival.ID = store.NewID()
		refused(rival, "insert run: run "+first.ID+" has a successor already, run "+second.ID)

		if _, err := changeRun(t, db, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
			return runstore.In(tx).ActivateRun(ctx, second, store.Fence{1, "n2", 2})
		}); !errors.Is(err, pawl.ErrConflict) {
			t.Errorf("two active runs by activation: %v", err)
		}
		insertRun(t, db, run0("other lane"))
		source := run0("lane")
		source.Kind = pawl.KindSource
		insertRun(t, db, source)
	})
}

// A change meets the row as it was seen, or fails and changes nothing.
func TestRunsAreComparedAndSet(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		r := insertRun(t, db, run0("lane"))
		seen := r
		r, err := changeRun(t, db, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
			return runstore.In(tx).AdvanceRun(ctx, seen, pawl.PhasePrepared, runstore.RunResults{Prepare: json.RawMessage(`[1]`)})
		})
		if err != nil || r.Phase != pawl.PhasePrepared || string(r.PrepareResult) != `[1]` || r.StartedAt.IsZero() {
			t.Fatalf("%+v, %v", r, err)
		}
		wrongStatus := r
		wrongStatus.Status = pawl.StatusPausedApproval
		for name, change := range map[string]func(ctx context.Context, tx *store.Tx, r runstore.Run) (runstore.Run, error){
			"advance": func(ctx context.Context, tx *store.Tx, r runstore.Run) (runstore.Run, error) {
				return runstore.In(tx).AdvanceRun(ctx, r, pawl.PhaseMutating, runstore.RunResults{})
			},
			"start": func(ctx context.Context, tx *store.Tx, r runstore.Run) (runstore.Run, error) {
				return runstore.In(tx).StartRun(ctx, r)
			},
			"commit": func(ctx context.Context, tx *store.Tx, r runstore.Run) (runstore.Run, error) {
				return runstore.In(tx).CommitRun(ctx, r, nil)
			},
			"stop": func(ctx context.Context, tx *store.Tx, r runstore.Run) (runstore.Run, error) {
				return runstore.In(tx).StopRun(ctx, r, pawl.StatusCrashed, true, nil)
			},
			"activate": func(ctx context.Context, tx *store.Tx, r runstore.Run) (runstore.Run, error) {
				return runstore.In(tx).ActivateRun(ctx, r, store.Fence{1, "n2", 2})
			},
		} {
			for _, stale := range []runstore.Run{seen, wrongStatus} {
				_, err := changeRun(t, db, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) { return change(ctx, tx, stale) })
				if !errors.Is(err, pawl.ErrConflict) {
					t.Errorf("%s of a run that is not %s at %s: %v", name, stale.Status, stale.Phase, err)
				}
			}
			if got, err := runstore.On(db).GetRun(t.Context(), r.ID); err != nil || cmp.Diff(r, got) != "" {
				t.Fatalf("%s changed the row: %+v, %v", name, got, err)
			}
		}
	})
}

func TestStopKeepsThePhaseAndActivateForgetsTheReason(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		r := insertRun(t, db, run0("lane"))
		paused, err := changeRun(t, db, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
			return runstore.In(tx).StopRun(ctx, r, pawl.StatusPausedApproval, false, &runstore.RunFailure{Code: "signed_out", Class: pawl.ClassAuth, Message: "sign in again"})
		})
		if err != nil || paused.Phase != r.Phase || paused.ErrorClass != pawl.ClassAuth || !paused.EndedAt.IsZero() {
			t.Fatalf("%+v, %v", paused, err)
		}
		owner := store.Fence{9, "n2", 4}
		active, err := changeRun(t, db, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
			return runstore.In(tx).ActivateRun(ctx, paused, owner)
		})
		if err != nil || active.Owner != owner || active.ErrorCode+string(active.ErrorClass)+active.ErrorMessage != "" || active.Phase != r.Phase {
			t.Fatalf("%+v, %v", active, err)
		}
		done, err := changeRun(t, db, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
			return runstore.In(tx).CommitRun(ctx, active, json.RawMessage(`{}`))
		})
		if err != nil || done.Phase != pawl.PhaseCommitted || done.Status != pawl.StatusCommitted || done.EndedAt.IsZero() || string(done.OutputState) != `{}` {
			t.Errorf("%+v, %v", done, err)
		}
	})
}

// The newest run of a lane is the one inserted last, also within one
// millisecond and when the clock of another node was ahead.
func TestNewestRunIsTheOneInsertedLast(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		if _, err := runstore.On(db).NewestRun(t.Context(), pawl.KindWorkflow, "lane"); !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("a lane that never ran: %v", err)
		}
		var last runstore.Run
		for range 5 {
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
				for range 3 {
					r := run0("lane")
					r.Status = pawl.StatusCommitted
					if last, err = runstore.In(tx).InsertRun(ctx, r); err != nil {
						return err
					}
				}
				return nil
			})
			if newest, err := runstore.On(db).NewestRun(t.Context(), pawl.KindWorkflow, "lane"); err != nil || newest.ID != last.ID {
				t.Fatalf("newest %s, inserted last %s, %v", newest.ID, last.ID, err)
			}
		}
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `update runs set created_at = $2 where id = $1`, last.ID, store.Millis(store.AtForTest(0)))
			return err
		})
		late := insertRun(t, db, run0("lane"))
		if newest, err := runstore.On(db).NewestRun(t.Context(), pawl.KindWorkflow, "lane"); err != nil || newest.ID != late.ID {
			t.Errorf("newest %s, inserted last %s, %v", newest.ID, late.ID, err)
		}
	})
}

// A list is read page by page without gaps and doubles, whatever it is
// filtered by.
func TestRunsAreListedPageByPage(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		var all []runstore.Run
		for i := range 24 {
			r := run0([]string{"a", "b"}[i%2])
			r.Kind = []pawl.Kind{pawl.KindWorkflow, pawl.KindSource, pawl.KindSchedule}[i%3]
			r.Status = []pawl.Status{pawl.StatusCommitted, pawl.StatusCrashed}[i/12]
			all = append(all, insertRun(t, db, r))
		}
		slices.SortFunc(all, func(a, b runstore.Run) int {
			if c := b.CreatedAt.Compare(a.CreatedAt); c != 0 {
				return c
			}
			return strings.Compare(b.ID, a.ID)
		})
		for _, f := range []runstore.RunFilter{
			{}, {Kind: pawl.KindSource}, {Lane: "a"}, {Status: pawl.StatusCrashed}, {Kind: pawl.KindWorkflow, Lane: "b"},
			{Kind: pawl.KindWorkflow, Lane: "b", Status: pawl.StatusCommitted}, {Lane: "nobody"},
		} {
			var want, got []string
			for _, r := range all {
				if (f.Kind == "" || f.Kind == r.Kind) && (f.Lane == "" || f.Lane == r.Lane) && (f.Status == "" || f.Status == r.Status) {
					want = append(want, r.ID)
				}
			}
			for cursor, pages := (store.Place{}), 0; ; pages++ {
				page, next, err := runstore.On(db).ListRuns(t.Context(), f, cursor, 5)
				if err != nil || pages > 5 {
					t.Fatalf("page %d: %v", pages, err)
				}
				for _, r := range page {
					got = append(got, r.ID)
				}
				if next == (store.Place{}) {
					break
				}
				cursor = next
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%+v (-want +got):\n%s", f, diff)
			}
		}
	})
}

// from any attempt the whole chain is found, newest first, and nothing
// of another chain.
func TestChainIsFoundFromAnyAttempt(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		var want []string
		var last string
		for i := range 6 {
			r := run0("lane")
			r.Status, r.RetryOf, r.Attempt = pawl.StatusCrashed, last, i+1
			last = insertRun(t, db, r).ID
			want = append([]string{last}, want...)
		}
		other := run0("lane")
		insertRun(t, db, other)
		for _, id := range want {
			chain, err := runstore.On(db).RunChain(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range chain {
				got = append(got, r.ID)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("from %s (-want +got):\n%s", id, diff)
			}
		}
		if _, err := runstore.On(db).RunChain(t.Context(), "nobody"); !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("the chain of a run that is not there: %v", err)
		}
	})
}

// a lane has one retry state, which survives being asked for.
func TestLaneHasOneRetryState(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		const kind, lane = pawl.KindSource, "prices"
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			if _, err := runstore.In(tx).GetRetry(ctx, kind, lane); !errors.Is(err, pawl.ErrNotFound) {
				t.Errorf("before: %v", err)
			}
			r, err := runstore.In(tx).HoldRetry(ctx, kind, lane)
			if diff := cmp.Diff(runstore.LaneRetry{Kind: kind, Lane: lane, PeriodStart: tx.Now, UpdatedAt: tx.Now}, r); diff != "" || err != nil {
				t.Errorf("registered: %s %v", diff, err)
			}
			r.Count, r.Crashes, r.PeriodStart, r.NextAt = 3, 2, store.AtForTest(1), store.AtForTest(9)
			return runstore.In(tx).SetRetry(ctx, r)
		})
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			r, err := runstore.In(tx).HoldRetry(ctx, kind, lane)
			if err != nil || r.Count != 3 || r.Crashes != 2 || r.PeriodStart != store.AtForTest(1) || r.NextAt != store.AtForTest(9) {
				t.Errorf("held again: %+v, %v", r, err)
			}
			if err := runstore.In(tx).ClearRetry(ctx, kind, "other"); err != nil {
				return err
			}
			return runstore.In(tx).ClearRetry(ctx, kind, lane)
		})
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			r, err := runstore.In(tx).GetRetry(ctx, kind, lane)
			r.UpdatedAt = time.Time{}
			if diff := cmp.Diff(runstore.LaneRetry{Kind: kind, Lane: lane, PeriodStart: store.AtForTest(1)}, r); diff != "" {
				t.Errorf("cleared (-want +got):\n%s", diff)
			}
			return err
		})
		if n := store.CountForTest(t, db, `select count(*) from retries`); n != 1 {
			t.Errorf("%d rows", n)
		}
	})
}
