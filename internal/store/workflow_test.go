package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// deployed adds a workflow with topics.
func deployed(t testing.TB, db *store.DB, name string, topics ...string) workflowstore.Workflow {
	t.Helper()
	var w workflowstore.Workflow
	store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
		if w, err = workflowstore.In(tx).InsertWorkflow(ctx, name, "v1"); err != nil {
			return err
		}
		return eventstore.In(tx).EnsureTopics(ctx, w.ID, topics)
	})
	return w
}

// mustRead returns what fn reads in a transaction of its own.
func mustRead[T any](t testing.TB, db *store.DB, fn func(ctx context.Context, tx *store.Tx) (T, error)) T {
	t.Helper()
	var v T
	err := db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		v, err = fn(ctx, tx)
		return err
	})
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return v
}

// waitsForLock returns once a transaction of this PostgreSQL database waits
// for a lock, or fails if done is closed before that.
func waitsForLock(t testing.TB, db *store.DB, done <-chan struct{}) {
	t.Helper()
	for store.CountForTest(t, db, `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) == 0 {
		select {
		case <-done:
			t.Fatal("the second transaction did not wait for the first")
		default:
		}
	}
}

// during runs second while first, which has made its statements, is not yet
// committed and second waits for it. It is for PostgreSQL: SQLite has one
// writer.
func during(t testing.TB, db *store.DB, first, second store.Func) {
	t.Helper()
	made, commit := make(chan struct{}), make(chan struct{})
	done1, done2 := make(chan struct{}), make(chan struct{})
	write := func(done chan struct{}, fn store.Func) {
		defer close(done)
		if err := db.Write(t.Context(), fn); err != nil {
			t.Errorf("write: %v", err)
		}
	}
	go write(done1, func(ctx context.Context, tx *store.Tx) error {
		defer func() { close(made); <-commit }()
		return first(ctx, tx)
	})
	<-made
	go write(done2, second)
	defer func() { close(commit); <-done1; <-done2 }()
	waitsForLock(t, db, done2)
}

func TestWorkflowComesBackAsItWasStored(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w := deployed(t, db, "mail")
		want := workflowstore.Workflow{
			ID: w.ID, Name: "mail", Lane: "mail", Desired: "active", Version: "v1",
			CreatedAt: w.CreatedAt, UpdatedAt: w.CreatedAt, DeployedAt: w.CreatedAt,
		}
		if diff := cmp.Diff(want, w); diff != "" || w.CreatedAt.IsZero() {
			t.Errorf("inserted at %v (-want +got):\n%s", w.CreatedAt, diff)
		}
		for name, get := range map[string]func(ctx context.Context, tx *store.Tx) (workflowstore.Workflow, error){
			"by name": func(ctx context.Context, tx *store.Tx) (workflowstore.Workflow, error) {
				return workflowstore.In(tx).WorkflowByName(ctx, "mail")
			},
			"by id": func(ctx context.Context, tx *store.Tx) (workflowstore.Workflow, error) {
				return workflowstore.In(tx).GetWorkflow(ctx, w.ID)
			},
			"by lane": func(ctx context.Context, tx *store.Tx) (workflowstore.Workflow, error) {
				return workflowstore.In(tx).WorkflowByLane(ctx, "mail")
			},
			"shared": func(ctx context.Context, tx *store.Tx) (workflowstore.Workflow, error) {
				return workflowstore.In(tx).ShareWorkflow(ctx, w.ID)
			},
			"held": func(ctx context.Context, tx *store.Tx) (workflowstore.Workflow, error) {
				return workflowstore.In(tx).HoldWorkflow(ctx, "mail")
			},
		} {
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				got, err := get(ctx, tx)
				if diff := cmp.Diff(w, got); diff != "" {
					t.Errorf("%s (-inserted +read):\n%s", name, diff)
				}
				return err
			})
		}
	})
}

func TestWorkflowThatIsNotThereIsNotFound(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			_, byName := workflowstore.In(tx).WorkflowByName(ctx, "nobody")
			_, byID := workflowstore.In(tx).GetWorkflow(ctx, "nobody")
			_, byLane := workflowstore.In(tx).WorkflowByLane(ctx, "nobody")
			_, shared := workflowstore.In(tx).ShareWorkflow(ctx, "nobody")
			_, held := workflowstore.In(tx).HoldWorkflow(ctx, "nobody")
			for name, err := range map[string]error{"by name": byName, "by id": byID, "by lane": byLane, "shared": shared, "held": held} {
				if !errors.Is(err, pawl.ErrNotFound) || err.Error() != `read workflow: there is no workflow "nobody"` {
					t.Errorf("%s: %v", name, err)
				}
			}
			if _, err := workflowstore.In(tx).GetWorkflowVersion(ctx, "nobody", "v1"); !errors.Is(err, pawl.ErrNotFound) {
				t.Errorf("version: %v", err)
			}
			return nil
		})
	})
}

// Each change sets its own columns and no others, and raises the revision.
func TestWorkflowChangesOneThingAtATime(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		other := deployed(t, db, "other")
		want := deployed(t, db, "mail")
		change := func(name string, fn store.Func, expect func(w *workflowstore.Workflow, tx *store.Tx)) {
			t.Helper()
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				tx.Now = store.AtForTest(len(name)) // an instant that is not that of the insert
				if err := fn(ctx, tx); err != nil {
					return err
				}
				want.UpdatedAt, want.Revision = tx.Now, want.Revision+1
				expect(&want, tx)
				got, err := workflowstore.In(tx).GetWorkflow(ctx, want.ID)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
				return err
			})
		}
		change("version", func(ctx context.Context, tx *store.Tx) error {
			return workflowstore.In(tx).SetWorkflowVersion(ctx, want.ID, "v2")
		},
			func(w *workflowstore.Workflow, tx *store.Tx) { w.Version, w.DeployedAt = "v2", tx.Now })
		change("desired", func(ctx context.Context, tx *store.Tx) error {
			return workflowstore.In(tx).SetWorkflowDesired(ctx, want.ID, "paused")
		},
			func(w *workflowstore.Workflow, _ *store.Tx) { w.Desired = "paused" })
		change("cleared", func(ctx context.Context, tx *store.Tx) error {
			return workflowstore.In(tx).SetWorkflowCleared(ctx, want.ID, "run")
		},
			func(w *workflowstore.Workflow, _ *store.Tx) { w.ClearedRun = "run" })
		change("forgotten", func(ctx context.Context, tx *store.Tx) error {
			return workflowstore.In(tx).SetWorkflowCleared(ctx, want.ID, "")
		},
			func(w *workflowstore.Workflow, _ *store.Tx) { w.ClearedRun = "" })
		change("touched", func(ctx context.Context, tx *store.Tx) error { return workflowstore.In(tx).TouchWorkflow(ctx, want.ID) }, func(*workflowstore.Workflow, *store.Tx) {})
		change("deleted", func(ctx context.Context, tx *store.Tx) error {
			return workflowstore.In(tx).DeleteWorkflow(ctx, want)
		},
			func(w *workflowstore.Workflow, tx *store.Tx) { w.DeletedAt, w.Desired = tx.Now, "archived" })
		got := mustRead(t, db, func(ctx context.Context, tx *store.Tx) (workflowstore.Workflow, error) {
			return workflowstore.In(tx).GetWorkflow(ctx, other.ID)
		})
		if diff := cmp.Diff(other, got); diff != "" {
			t.Errorf("another workflow was changed:\n%s", diff)
		}
	})
}

// What a deleted workflow did is not the past of the next one of its name.
func TestNameOfADeletedWorkflowIsFreeAndItsLaneIsNot(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		var lanes []string
		for range 3 {
			w := deployed(t, db, "mail")
			lanes = append(lanes, w.Lane)
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error { return workflowstore.In(tx).DeleteWorkflow(ctx, w) })
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				if _, err := workflowstore.In(tx).WorkflowByName(ctx, "mail"); !errors.Is(err, pawl.ErrNotFound) {
					t.Errorf("a deleted workflow was found by its name: %v", err)
				}
				if _, err := workflowstore.In(tx).HoldWorkflow(ctx, "mail"); !errors.Is(err, pawl.ErrNotFound) {
					t.Errorf("a deleted workflow was held: %v", err)
				}
				got, err := workflowstore.In(tx).WorkflowByLane(ctx, w.Lane)
				if got.ID != w.ID {
					t.Errorf("lane %s is of %s, want the deleted %s", w.Lane, got.ID, w.ID)
				}
				return err
			})
		}
		if diff := cmp.Diff([]string{"mail", "mail#2", "mail#3"}, lanes); diff != "" {
			t.Errorf("lanes (-want +got):\n%s", diff)
		}
		if w := deployed(t, db, "mails"); w.Lane != "mails" {
			t.Errorf("another name got lane %s", w.Lane)
		}
	})
}

// Of many who deploy one name at the same time one succeeds, and the others
// are told what happened.
func TestConcurrentInsertsOfOneNameHaveOneWinner(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Go(func() {
				errs[i] = db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
					_, err := workflowstore.In(tx).InsertWorkflow(ctx, "mail", fmt.Sprint("v", i))
					return err
				})
			})
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			switch {
			case err == nil:
				won++
			case !errors.Is(err, pawl.ErrConflict) || !strings.Contains(err.Error(), `workflow "mail" was deployed by someone else`):
				t.Errorf("a rival got %v", err)
			}
		}
		if n := store.CountForTest(t, db, `select count(*) from workflows`); won != 1 || n != 1 {
			t.Errorf("%d won, %d rows", won, n)
		}
	})
}

// Whoever begins work on what they read about a workflow has committed before
// a pause does. PostgreSQL only: SQLite has one writer.
func TestShareMakesChangesWait(t *testing.T) {
	for name, change := range map[string]func(ctx context.Context, tx *store.Tx, w workflowstore.Workflow) error{
		"pause": func(ctx context.Context, tx *store.Tx, w workflowstore.Workflow) error {
			return workflowstore.In(tx).SetWorkflowDesired(ctx, w.ID, "paused")
		},
		"delete": func(ctx context.Context, tx *store.Tx, w workflowstore.Workflow) error {
			return workflowstore.In(tx).DeleteWorkflow(ctx, w)
		},
		"hold": func(ctx context.Context, tx *store.Tx, w workflowstore.Workflow) error {
			_, err := workflowstore.In(tx).HoldWorkflow(ctx, w.Name)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := store.OpenForTest(t, pgtest.URL(t))
			w := deployed(t, db, "mail")
			began := false
			during(t, db,
				func(ctx context.Context, tx *store.Tx) error {
					got, err := workflowstore.In(tx).ShareWorkflow(ctx, w.ID)
					if err != nil || got.Desired != "active" {
						return fmt.Errorf("shared %+v: %w", got, err)
					}
					_, err = runstore.In(tx).InsertRun(ctx, run0(w.Lane))
					return err
				},
				func(ctx context.Context, tx *store.Tx) error {
					if err := change(ctx, tx, w); err != nil {
						return err
					}
					_, err := runstore.In(tx).ActiveRun(ctx, pawl.KindWorkflow, w.Lane)
					began = err == nil
					return err
				})
			if !began {
				t.Error("the change did not see what began before it")
			}
		})
	}
}

// Many begin work at the same time: sharers do not wait for each other.
func TestShareLetsOthersShare(t *testing.T) {
	db := store.OpenForTest(t, pgtest.URL(t))
	w := deployed(t, db, "mail")
	share := func(ctx context.Context, tx *store.Tx) error {
		_, err := workflowstore.In(tx).ShareWorkflow(ctx, w.ID)
		return err
	}
	store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
		if err := share(ctx, tx); err != nil {
			return err
		}
		store.MustWriteForTest(t, db, share)
		return nil
	})
}

func TestHoldMakesSharersSeeTheChange(t *testing.T) {
	db := store.OpenForTest(t, pgtest.URL(t))
	w := deployed(t, db, "mail")
	var seen string
	during(t, db,
		func(ctx context.Context, tx *store.Tx) error {
			if _, err := workflowstore.In(tx).HoldWorkflow(ctx, "mail"); err != nil {
				return err
			}
			return workflowstore.In(tx).SetWorkflowDesired(ctx, w.ID, "paused")
		},
		func(ctx context.Context, tx *store.Tx) error {
			got, err := workflowstore.In(tx).ShareWorkflow(ctx, w.ID)
			seen = got.Desired
			return err
		})
	if seen != "paused" {
		t.Errorf("a sharer that waited saw %q", seen)
	}
}

func TestWorkflowsAreListedPageByPage(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		var want []string
		for i := range 7 {
			want = append(want, deployed(t, db, fmt.Sprint("w", i)).Name)
		}
		gone := deployed(t, db, "w2x")
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			return workflowstore.In(tx).DeleteWorkflow(ctx, gone)
		})
		var got []string
		for after := ""; ; {
			page := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]workflowstore.Workflow, error) {
				return workflowstore.In(tx).ListWorkflows(ctx, after, 3)
			})
			for _, w := range page {
				got = append(got, w.Name)
			}
			if len(page) < 3 {
				break
			}
			after = page[2].Name
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A workflow is unarmed if it is meant to run, could run by itself, and has no
// job that waits for it.
func TestUnarmedWorkflowsAreFound(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		scheduled := func(name string) workflowstore.Workflow {
			w := deployed(t, db, name)
			putSchedules(t, db, store.AtForTest(0), workflowstore.ProducerSchedule{WorkflowID: w.ID, Producer: "p", Type: "interval", Value: "5m"})
			return w
		}
		scheduled("a scheduled")
		setWake(t, db, deployed(t, db, "b wakes").ID, "h", store.AtForTest(0))
		insertRun(t, db, run0(deployed(t, db, "c runs").Lane))
		store.EnqueueForTest(t, db, store.JobSpec{Task: "t", Key: "workflow:" + scheduled("d armed").Lane, RunAt: store.AtForTest(0), MaxAttempts: 1})
		paused, deleted := scheduled("e paused"), scheduled("f deleted")
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(workflowstore.In(tx).SetWorkflowDesired(ctx, paused.ID, "paused"), workflowstore.In(tx).DeleteWorkflow(ctx, deleted))
		})
		setState(t, db, deployed(t, db, "g waits for events").ID, "h", `1`)
		for _, page := range []struct {
			after string
			limit int
			want  string
		}{{"", 9, "a scheduled, b wakes, c runs"}, {"", 1, "a scheduled"}, {"a scheduled", 9, "b wakes, c runs"}, {"c runs", 9, ""}} {
			list := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]workflowstore.Workflow, error) {
				return workflowstore.In(tx).UnarmedWorkflows(ctx, "t", page.after, page.limit)
			})
			var names []string
			for _, w := range list {
				names = append(names, w.Name)
			}
			if got := strings.Join(names, ", "); got != page.want {
				t.Errorf("after %q, limit %d: %q, want %q", page.after, page.limit, got, page.want)
			}
		}
	})
}

// A version is its content: it is kept once, and numbered in the order of
// arrival.
func TestVersionsAreKeptOnceAndNumbered(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w, other := deployed(t, db, "mail"), deployed(t, db, "other")
		add := func(v workflowstore.WorkflowVersion) {
			t.Helper()
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error { return workflowstore.In(tx).AddWorkflowVersion(ctx, v) })
		}
		first := workflowstore.WorkflowVersion{WorkflowID: w.ID, Version: "a", Filename: "mail.ts", Source: "export default {} // ü", Config: json.RawMessage(`{"a":1}`), CreatedBy: "ann"}
		add(first)
		add(workflowstore.WorkflowVersion{WorkflowID: w.ID, Version: "b", Filename: "mail.ts", Config: json.RawMessage(`{}`)})
		add(workflowstore.WorkflowVersion{WorkflowID: w.ID, Version: "a", Filename: "renamed.ts", Source: "else", Config: json.RawMessage(`{}`), CreatedBy: "bob"})
		add(workflowstore.WorkflowVersion{WorkflowID: w.ID, Version: "c", Filename: "mail.ts", Config: json.RawMessage(`{}`)})
		add(workflowstore.WorkflowVersion{WorkflowID: other.ID, Version: "a", Filename: "other.ts", Config: json.RawMessage(`{}`)})

		got := mustRead(t, db, func(ctx context.Context, tx *store.Tx) (workflowstore.WorkflowVersion, error) {
			return workflowstore.In(tx).GetWorkflowVersion(ctx, w.ID, "a")
		})
		first.Number, first.CreatedAt = 1, got.CreatedAt
		if diff := cmp.Diff(first, got); diff != "" || got.CreatedAt.IsZero() {
			t.Errorf("kept at %v (-want +got):\n%s", got.CreatedAt, diff)
		}
		for _, page := range []struct {
			before int64
			limit  int
			want   string
		}{{0, 9, "c3 b2 a1"}, {0, 2, "c3 b2"}, {2, 2, "a1"}, {1, 2, ""}} {
			list := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]workflowstore.WorkflowVersion, error) {
				return workflowstore.In(tx).ListWorkflowVersions(ctx, w.ID, page.before, page.limit)
			})
			var names []string
			for _, v := range list {
				names = append(names, fmt.Sprint(v.Version, v.Number))
			}
			if got := strings.Join(names, " "); got != page.want {
				t.Errorf("before %d, limit %d: %q, want %q", page.before, page.limit, got, page.want)
			}
		}
	})
}
