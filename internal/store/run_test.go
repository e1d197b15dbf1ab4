package store

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
)

// run0 is an active run of a lane.
func run0(lane string) Run {
	return Run{
		ID: NewID(), Kind: pawl.KindWorkflow, Lane: lane, Handler: "mail", HandlerType: pawl.HandlerConsumer, Trigger: "event",
		Phase: pawl.PhasePreparing, Status: pawl.StatusActive, Attempt: 1, Owner: Fence{Bucket: 3, Node: "n1", Epoch: 7},
	}
}

func insertRun(t testing.TB, db *DB, r Run) Run {
	t.Helper()
	var out Run
	mustWrite(t, db, func(ctx context.Context, tx *Tx) (err error) {
		out, err = tx.InsertRun(ctx, r)
		return err
	})
	return out
}

func changeRun(t testing.TB, db *DB, fn func(ctx context.Context, tx *Tx) (Run, error)) (r Run, err error) {
	t.Helper()
	err = db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
		r, err = fn(ctx, tx)
		return err
	})
	return r, err
}

// every field comes back as it was stored, and absent ones as absent.
func TestRunComesBackAsItWasStored(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		full := run0("full")
		full.ScheduledFor, full.ScriptVersion = at(5), "v1"
		full.PrepareResult, full.MutationResult, full.OutputState = json.RawMessage(`{"a":1}`), json.RawMessage(`null`), json.RawMessage(`"ü"`)
		full.ErrorCode, full.ErrorClass, full.ErrorMessage = "timeout", pawl.ClassTransient, "too slow"
		bare := run0("bare")
		bare.Owner = Fence{}
		bare.Status = pawl.StatusPausedReconciliation
		for _, want := range []Run{full, bare} {
			stored := insertRun(t, db, want)
			got, err := db.GetRun(t.Context(), want.ID)
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
		if _, err := db.GetRun(t.Context(), "nobody"); !errors.Is(err, pawl.ErrNotFound) || err.Error() != "read run: there is no run nobody" {
			t.Errorf("a run that is not there: %v", err)
		}
	})
}

// the indexes refuse a second active run and a second successor,
// and the transaction that met them can go on.
func TestIndexesRefuseSecondActiveRunAndSecondSuccessor(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		first := insertRun(t, db, run0("lane"))
		refused := func(r Run, want string) {
			t.Helper()
			mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
				if _, err := tx.InsertRun(ctx, r); !errors.Is(err, pawl.ErrConflict) || err.Error() != want {
					t.Errorf("got %v, want %s", err, want)
				}
				_, err := tx.GetRun(ctx, first.ID)
				return err
			})
		}
		refused(run0("lane"), "insert run: run_active: a run of workflow lane is active")

		next := run0("lane")
		next.RetryOf, next.Status, next.Attempt = first.ID, pawl.StatusPausedReconciliation, 2
		second := insertRun(t, db, next)
		rival := next
		rival.ID = NewID()
		refused(rival, "insert run: run "+first.ID+" has a successor already, run "+second.ID)

		if _, err := changeRun(t, db, func(ctx context.Context, tx *Tx) (Run, error) {
			return tx.ActivateRun(ctx, second, Fence{1, "n2", 2})
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
	both(t, func(t *testing.T, db *DB) {
		r := insertRun(t, db, run0("lane"))
		seen := r
		r, err := changeRun(t, db, func(ctx context.Context, tx *Tx) (Run, error) {
			return tx.AdvanceRun(ctx, seen, pawl.PhasePrepared, RunResults{Prepare: json.RawMessage(`[1]`)})
		})
		if err != nil || r.Phase != pawl.PhasePrepared || string(r.PrepareResult) != `[1]` || r.StartedAt.IsZero() {
			t.Fatalf("%+v, %v", r, err)
		}
		wrongStatus := r
		wrongStatus.Status = pawl.StatusPausedApproval
		for name, change := range map[string]func(ctx context.Context, tx *Tx, r Run) (Run, error){
			"advance": func(ctx context.Context, tx *Tx, r Run) (Run, error) {
				return tx.AdvanceRun(ctx, r, pawl.PhaseMutating, RunResults{})
			},
			"start":  func(ctx context.Context, tx *Tx, r Run) (Run, error) { return tx.StartRun(ctx, r) },
			"commit": func(ctx context.Context, tx *Tx, r Run) (Run, error) { return tx.CommitRun(ctx, r, nil) },
			"stop": func(ctx context.Context, tx *Tx, r Run) (Run, error) {
				return tx.StopRun(ctx, r, pawl.StatusCrashed, true, nil)
			},
			"activate": func(ctx context.Context, tx *Tx, r Run) (Run, error) {
				return tx.ActivateRun(ctx, r, Fence{1, "n2", 2})
			},
		} {
			for _, stale := range []Run{seen, wrongStatus} {
				_, err := changeRun(t, db, func(ctx context.Context, tx *Tx) (Run, error) { return change(ctx, tx, stale) })
				if !errors.Is(err, pawl.ErrConflict) {
					t.Errorf("%s of a run that is not %s at %s: %v", name, stale.Status, stale.Phase, err)
				}
			}
			if got, err := db.GetRun(t.Context(), r.ID); err != nil || cmp.Diff(r, got) != "" {
				t.Fatalf("%s changed the row: %+v, %v", name, got, err)
			}
		}
	})
}

func TestStopKeepsThePhaseAndActivateForgetsTheReason(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		r := insertRun(t, db, run0("lane"))
		paused, err := changeRun(t, db, func(ctx context.Context, tx *Tx) (Run, error) {
			return tx.StopRun(ctx, r, pawl.StatusPausedApproval, false, &RunFailure{"signed_out", pawl.ClassAuth, "sign in again"})
		})
		if err != nil || paused.Phase != r.Phase || paused.ErrorClass != pawl.ClassAuth || !paused.EndedAt.IsZero() {
			t.Fatalf("%+v, %v", paused, err)
		}
		owner := Fence{9, "n2", 4}
		active, err := changeRun(t, db, func(ctx context.Context, tx *Tx) (Run, error) { return tx.ActivateRun(ctx, paused, owner) })
		if err != nil || active.Owner != owner || active.ErrorCode+string(active.ErrorClass)+active.ErrorMessage != "" || active.Phase != r.Phase {
			t.Fatalf("%+v, %v", active, err)
		}
		done, err := changeRun(t, db, func(ctx context.Context, tx *Tx) (Run, error) {
			return tx.CommitRun(ctx, active, json.RawMessage(`{}`))
		})
		if err != nil || done.Phase != pawl.PhaseCommitted || done.Status != pawl.StatusCommitted || done.EndedAt.IsZero() || string(done.OutputState) != `{}` {
			t.Errorf("%+v, %v", done, err)
		}
	})
}

// The newest run of a lane is the one inserted last, also within one
// millisecond and when the clock of another node was ahead.
func TestNewestRunIsTheOneInsertedLast(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		if _, err := db.NewestRun(t.Context(), pawl.KindWorkflow, "lane"); !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("a lane that never ran: %v", err)
		}
		var last Run
		for range 5 {
			mustWrite(t, db, func(ctx context.Context, tx *Tx) (err error) {
				for range 3 {
					r := run0("lane")
					r.Status = pawl.StatusCommitted
					if last, err = tx.InsertRun(ctx, r); err != nil {
						return err
					}
				}
				return nil
			})
			if newest, err := db.NewestRun(t.Context(), pawl.KindWorkflow, "lane"); err != nil || newest.ID != last.ID {
				t.Fatalf("newest %s, inserted last %s, %v", newest.ID, last.ID, err)
			}
		}
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			_, err := tx.Exec(ctx, `update runs set created_at = $2 where id = $1`, last.ID, Millis(at(0)))
			return err
		})
		late := insertRun(t, db, run0("lane"))
		if newest, err := db.NewestRun(t.Context(), pawl.KindWorkflow, "lane"); err != nil || newest.ID != late.ID {
			t.Errorf("newest %s, inserted last %s, %v", newest.ID, late.ID, err)
		}
	})
}

// A list is read page by page without gaps and doubles, whatever it is
// filtered by.
func TestRunsAreListedPageByPage(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		var all []Run
		for i := range 24 {
			r := run0([]string{"a", "b"}[i%2])
			r.Kind = []pawl.Kind{pawl.KindWorkflow, pawl.KindSource, pawl.KindSchedule}[i%3]
			r.Status = []pawl.Status{pawl.StatusCommitted, pawl.StatusCrashed}[i/12]
			all = append(all, insertRun(t, db, r))
		}
		slices.SortFunc(all, func(a, b Run) int {
			if c := b.CreatedAt.Compare(a.CreatedAt); c != 0 {
				return c
			}
			return strings.Compare(b.ID, a.ID)
		})
		for _, f := range []RunFilter{
			{}, {Kind: pawl.KindSource}, {Lane: "a"}, {Status: pawl.StatusCrashed}, {Kind: pawl.KindWorkflow, Lane: "b"},
			{Kind: pawl.KindWorkflow, Lane: "b", Status: pawl.StatusCommitted}, {Lane: "nobody"},
		} {
			var want, got []string
			for _, r := range all {
				if (f.Kind == "" || f.Kind == r.Kind) && (f.Lane == "" || f.Lane == r.Lane) && (f.Status == "" || f.Status == r.Status) {
					want = append(want, r.ID)
				}
			}
			for cursor, pages := (Place{}), 0; ; pages++ {
				page, next, err := db.ListRuns(t.Context(), f, cursor, 5)
				if err != nil || pages > 5 {
					t.Fatalf("page %d: %v", pages, err)
				}
				for _, r := range page {
					got = append(got, r.ID)
				}
				if next == (Place{}) {
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
	both(t, func(t *testing.T, db *DB) {
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
			chain, err := db.RunChain(t.Context(), id)
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
		if _, err := db.RunChain(t.Context(), "nobody"); !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("the chain of a run that is not there: %v", err)
		}
	})
}

func TestOrphansAreActiveRunsOfAnotherFence(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		me := Fence{Bucket: 3, Node: "n2", Epoch: 8}
		add := func(f Fence, s pawl.Status) string {
			r := run0(NewID())
			r.Owner, r.Status = f, s
			return insertRun(t, db, r).ID
		}
		want := []string{add(Fence{3, "n1", 7}, pawl.StatusActive), add(Fence{3, "n2", 6}, pawl.StatusActive), add(Fence{3, "n1", 5}, pawl.StatusActive)}
		add(me, pawl.StatusActive)
		add(Fence{4, "n1", 7}, pawl.StatusActive)
		add(Fence{3, "n1", 7}, pawl.StatusCrashed)
		for limit := 1; limit <= 4; limit++ {
			var got []string
			mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
				orphans, err := tx.OrphanRuns(ctx, me, limit)
				got = nil
				for _, r := range orphans {
					got = append(got, r.ID)
				}
				return err
			})
			if diff := cmp.Diff(want[:min(limit, 3)], got); diff != "" {
				t.Errorf("limit %d (-want +got):\n%s", limit, diff)
			}
		}
	})
}

// a lane has one retry state, which survives being asked for.
func TestLaneHasOneRetryState(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		const kind, lane = pawl.KindSource, "prices"
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			if _, err := tx.GetRetry(ctx, kind, lane); !errors.Is(err, pawl.ErrNotFound) {
				t.Errorf("before: %v", err)
			}
			r, err := tx.HoldRetry(ctx, kind, lane)
			if diff := cmp.Diff(LaneRetry{Kind: kind, Lane: lane, PeriodStart: tx.Now, UpdatedAt: tx.Now}, r); diff != "" || err != nil {
				t.Errorf("registered: %s %v", diff, err)
			}
			r.Count, r.Crashes, r.PeriodStart, r.NextAt = 3, 2, at(1), at(9)
			return tx.SetRetry(ctx, r)
		})
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			r, err := tx.HoldRetry(ctx, kind, lane)
			if err != nil || r.Count != 3 || r.Crashes != 2 || r.PeriodStart != at(1) || r.NextAt != at(9) {
				t.Errorf("held again: %+v, %v", r, err)
			}
			if err := tx.ClearRetry(ctx, kind, "other"); err != nil {
				return err
			}
			return tx.ClearRetry(ctx, kind, lane)
		})
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			r, err := tx.GetRetry(ctx, kind, lane)
			r.UpdatedAt = time.Time{}
			if diff := cmp.Diff(LaneRetry{Kind: kind, Lane: lane, PeriodStart: at(1)}, r); diff != "" {
				t.Errorf("cleared (-want +got):\n%s", diff)
			}
			return err
		})
		if n := count(t, db, `select count(*) from retries`); n != 1 {
			t.Errorf("%d rows", n)
		}
	})
}
