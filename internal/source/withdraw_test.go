package source

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// told are the changes of a source that were made known, as "paused".
func (k *kit) told(name string) (list []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.changes {
		if c.Ref.Name == name && c.What != "" {
			list = append(list, c.What)
		}
	}
	return list
}

// wantTold fails unless a change was made known and is in the audit log. What
// becomes of a run is made known by the ledger.
func (k *kit) wantTold(name, what, action string) {
	k.t.Helper()
	if got := k.told(name); what != "" && !slices.Contains(got, what) {
		k.t.Errorf("%v were made known of %s, want %s", got, name, what)
	}
	if n := len(k.column(`select id from audit_log where action = $1`, action)); n != 1 {
		k.t.Errorf("%s is in the audit log %d times, want once", action, n)
	}
}

// duringTheCall does something while the upstream answers the first call, which
// must then be cut off: nobody waits for what will not be used.
func (k *kit) duringTheCall(do func()) {
	k.api.on(func(n int, _ http.ResponseWriter, r *http.Request) bool {
		if n > 1 {
			return false
		}
		do()
		select {
		case <-r.Context().Done():
		case <-time.After(20 * time.Second):
			k.t.Error("the call went on")
		}
		return true
	})
}

// whoever pauses, cancels or deletes does not wait for the call that
// is under way: it is cut off at once, and the run is cancelled, not failed.
func TestWhatIsWithdrawnIsCutOff(t *testing.T) {
	newest := func(ctx context.Context, tx *store.Tx) (runstore.Run, error) {
		return runstore.In(tx).NewestRun(ctx, pawl.KindSource, "s")
	}
	for name, c := range map[string]struct {
		what, action string
		do           func(k *kit) error
	}{
		"pause": {"paused", "source.pause", func(k *kit) error {
			return k.db.Write(context.Background(), func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.Pause(ctx, tx, "s", "me", lane.PauseTerms{})
				return err
			})
		}},
		"cancel": {"", "run.cancel", func(k *kit) error {
			return k.db.Write(context.Background(), func(ctx context.Context, tx *store.Tx) error {
				r, err := newest(ctx, tx)
				if err != nil {
					return err
				}
				_, err = k.s.CancelRun(ctx, tx, r, "me")
				return err
			})
		}},
		"delete": {"deleted", "source.delete", func(k *kit) error {
			_, err := k.s.Delete(context.Background(), "s", false, "", "me")
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, k *kit) {
				src := k.apply(definition("s", "/pages", byPage))
				armed := len(k.armed.jobs)
				done := make(chan error, 1)
				k.duringTheCall(func() { done <- c.do(k) })
				k.work(src)
				if err := <-done; err != nil {
					t.Error(err)
				}
				if got := k.column(`select status from runs where kind = 'source'`); !slices.Equal(got, []string{string(pawl.StatusCancelled)}) {
					t.Errorf("the runs are %v", got)
				}
				if n := len(k.items("s")); n != 0 || k.api.asked() != 1 {
					t.Errorf("%d rows were written by %d calls", n, k.api.asked())
				}
				k.wantTold("s", c.what, c.action)
				if again := len(k.armed.jobs) > armed; again != (name == "cancel") {
					t.Errorf("it looks again: %v", again)
				}
			})
		})
	}
}

// only the newest run can be cancelled, and one that nobody executes
// any more is recovered first; each refusal has its reason.
func TestARunThatIsOverIsNotCancelled(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		src := k.apply(definition("s", "/pages", byPage))
		k.work(src)
		first := k.look("s").row
		k.change(`update source_state set last_success_at = 1`)
		k.fault = func(place string) error {
			if place == "page" {
				return errFault
			}
			return nil
		}
		if _, err := k.s.work(t.Context(), k, src.ID); err != nil && !errors.Is(err, errFault) {
			t.Fatal(err)
		}
		k.fault = nil
		k.start("n2")
		crashed := k.wantStatus("s", pawl.StatusActive).row
		for reason, r := range map[string]runstore.Run{"history": first, "recovering": crashed} {
			err := k.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error { _, err := k.s.CancelRun(ctx, tx, r, "me"); return err })
			if reasonOf(err) != reason {
				t.Errorf("%v, want %s", err, reason)
			}
		}
		k.wantStatus("s", pawl.StatusActive)
	})
}

const byMark = "cursorPagination: {cursorParam: cursor, nextCursorPath: cursor}\nincremental: {param: since, cursorPath: id, initial: \"0\"}\n"

// B-43, X-44: a reset gives the source its budget back, and its next fetch begins
// at the first page, at once. It goes on from its mark; with all, that is
// forgotten as well.
func TestAResetBeginsAtTheFirstPage(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		src := k.apply(definition("s", "/cursor", byMark))
		k.work(src)
		if v := k.wantStatus("s", pawl.StatusCommitted); len(v.state.Mark) == 0 {
			t.Fatal("it has no mark")
		}
		reset := func(all bool) string {
			t.Helper()
			k.change(`update source_state set last_success_at = 1`)
			k.api.on(func(_ int, w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Query().Get("cursor") != "c6" {
					return false
				}
				http.Error(w, "down", http.StatusBadGateway)
				return true
			})
			k.work(src)
			if v := k.wantStatus("s", pawl.StatusPausedTransient); v.retry.Count != 1 || len(v.state.Position) == 0 {
				t.Fatalf("%d failures, position %s", v.retry.Count, v.state.Position)
			}
			k.api.on(nil)
			k.api.forget()
			armed := len(k.armed.jobs)
			k.write(func(ctx context.Context, tx *store.Tx) error { return k.s.Reset(ctx, tx, "s", all, "me") })
			if v := k.look("s"); v.retry.Count != 0 || len(v.state.Position) != 0 || (len(v.state.Mark) == 0) != all || len(k.armed.jobs) != armed+1 {
				t.Errorf("after a reset (all: %v): %d failures, position %q, mark %q, %d jobs", all, v.retry.Count, v.state.Position, v.state.Mark, len(k.armed.jobs)-armed)
			}
			k.work(src)
			k.wantStatus("s", pawl.StatusCommitted)
			return k.api.requests[0]
		}
		if first := reset(false); strings.Contains(first, "cursor=") || !strings.Contains(first, "since=i009") {
			t.Errorf("after a reset it asked %s", first)
		}
		k.wantTold("s", "reset", "source.reset")
		if first := reset(true); strings.Contains(first, "cursor=") || !strings.Contains(first, "since=0") {
			t.Errorf("after a reset of everything it asked %s", first)
		}
	})
}

// Rows in another database are deleted there. If that cannot be reached, the
// source stays, and deleting it can be repeated.
func TestDeletingRemovesRowsElsewhere(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		k := newKit(t, "sqlite:"+t.TempDir()+"/own.db", "")
		db, err := store.Open(t.Context(), url, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		away := errors.New("the warehouse cannot be reached")
		reach := error(nil)
		k.s.cfg.Database = func(string) (Database, error) {
			if reach != nil {
				return nil, reach
			}
			return elsewhere{db}, nil
		}
		d := k.define(definition("s", "/pages", byPage))
		d.Write.Connection = "warehouse"
		k.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.Apply(ctx, tx, d, "tester")
			return err
		})
		src := k.look("s").source
		k.work(src)
		there := &kit{t: t, db: db}
		if n := len(there.items("s")); n != 10 {
			t.Fatalf("the other database holds %d rows", n)
		}
		reach = away
		if _, err := k.s.Delete(t.Context(), "s", false, "", "me"); !errors.Is(err, away) {
			t.Errorf("%v, want that it cannot be reached", err)
		}
		if len(there.items("s")) != 10 || len(k.column(`select id from source_definitions`)) != 1 {
			t.Error("the source is gone, and its rows are not")
		}
		if n := len(k.column(`select id from audit_log where action = 'source.delete'`)); n != 1 {
			t.Errorf("that somebody deletes it is in the audit log %d times, want at once", n)
		}
		reach = nil
		rows, err := k.s.Delete(t.Context(), "s", false, "", "me")
		if left := there.items("s"); err != nil || rows != 10 || len(left) != 0 {
			t.Errorf("%d rows were deleted (%v) and %v are left", rows, err, left)
		}
		k.wantTold("s", "deleted", "source.delete")
	})
}
