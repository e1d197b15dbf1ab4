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
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/store"
)

func reasonOf(err error) string {
	if e, ok := errors.AsType[*pawl.Error](err); ok {
		return e.Reason
	}
	return ""
}

// a run now is refused with a reason of its own, and then nothing
// happens.
func TestRunNowIsRefusedWithItsReason(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		src := k.apply(definition("s", "/whole", ""))
		k.work(src)
		ask := func() error {
			return k.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error { return k.s.RunNow(ctx, tx, "s", "me") })
		}
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		asked := k.api.asked()
		if k.work(src); k.api.asked() != asked+1 {
			t.Error("it did not run although somebody asked")
		}
		k.change(`update retries set retry_count = 1, next_retry_at = $1`, time.Now().Add(time.Hour).UnixMilli())
		if err := ask(); reasonOf(err) != ReasonBackingOff {
			t.Errorf("while it backs off: %v", err)
		}
		k.write(func(ctx context.Context, tx *store.Tx) error { return k.s.Reset(ctx, tx, "s", false, "me") })
		if err := ask(); err != nil {
			t.Errorf("after a reset: %v", err)
		}
		k.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.Pause(ctx, tx, "s", "me", lane.PauseTerms{})
			return err
		})
		if err := ask(); reasonOf(err) != ReasonPaused {
			t.Errorf("while it is paused: %v", err)
		}
		asked = k.api.asked()
		if at := k.work(src); k.api.asked() != asked || !at.IsZero() {
			t.Error("a paused source ran, or looks again by itself")
		}
		k.write(func(ctx context.Context, tx *store.Tx) error { _, err := k.s.Resume(ctx, tx, "s", "me"); return err })
		if k.work(src); k.api.asked() != asked+1 {
			t.Error("a resumed source did not do what it was asked for before")
		}
	})
}

// B-01: only active sources run.
func TestOnlyActiveSourcesRun(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		src := k.apply(definition("s", "/whole", "status: draft\n"))
		if at := k.work(src); !at.IsZero() || k.api.asked() != 0 {
			t.Errorf("a draft made %d calls and looks again at %s", k.api.asked(), at)
		}
	})
}

// a run keeps the definition that it began with; the edit is that of the
// next run. Applying the same again changes nothing.
func TestAnEditIsForTheNextRun(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		src := k.apply(definition("s", "/pages", byPage))
		edited := definition("s", "/pages", byPage+"description: edited\n")
		k.api.on(func(n int, _ http.ResponseWriter, _ *http.Request) bool {
			if n == 2 {
				k.apply(edited)
			}
			return false
		})
		k.work(src)
		v := k.wantStatus("s", pawl.StatusCommitted)
		if v.row.ScriptVersion == v.source.Version || v.source.Number != 2 {
			t.Errorf("the run has the version %.8s and the source %.8s (%d)", v.row.ScriptVersion, v.source.Version, v.source.Number)
		}
		var what string
		k.write(func(ctx context.Context, tx *store.Tx) error {
			out, err := k.s.Apply(ctx, tx, k.define(edited), "me")
			what = out.What
			return err
		})
		if what != Unchanged {
			t.Errorf("the same definition was %s", what)
		}
	})
}

// Deleting cancels a fetch that is under way, and nothing that it had in hand
// is written afterwards; rows, state and definition go, those of others stay.
func TestDeletingCancelsAndRemoves(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.work(k.apply(definition("other", "/whole", "")))
		src := k.apply(definition("s", "/pages", byPage))
		deleted := make(chan int64, 1)
		k.api.on(func(_ int, _ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("page") != "3" {
				return false
			}
			rows, err := k.s.Delete(context.Background(), "s", false, "", "me")
			if err != nil {
				t.Error(err)
			}
			deleted <- rows
			return false
		})
		if at := k.work(src); !at.IsZero() {
			t.Errorf("a deleted source looks again at %s", at)
		}
		rows := <-deleted
		k.api.on(nil)
		if got := k.items("s"); len(got) != 0 || rows == 0 {
			t.Errorf("%d rows were deleted and %v are left", rows, got)
		}
		if got := k.items("other"); !slices.Equal(got, k.api.all()) {
			t.Errorf("the other source holds %v", got)
		}
		for _, table := range []string{"source_definitions where name = 's'", "retries where lane = 's'", "source_state where source_id = '" + src.ID + "'"} {
			if left := k.column("select 'x' from " + table); len(left) != 0 {
				t.Errorf("%d rows are left in %s", len(left), table)
			}
		}
		again := k.apply(definition("s", "/pages", byPage))
		if k.work(again); !slices.Equal(k.items("s"), k.api.all()) {
			t.Error("a source of the same name does not begin anew")
		}
	})
}

// New rows become events in the transaction of their page, changed rows other
// events, and rows that are the same none.
func TestNewAndChangedRowsBecomeEvents(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		text := strings.Replace(definition("s", "/whole", "publish: {workflow: w, topic: t}\n"), "write: {key: [id]}", "write: {mode: upsert, key: [id]}", 1)
		src := k.apply(text)
		k.work(src)
		if len(k.published) != 10 {
			t.Fatalf("%d rows were published, want 10", len(k.published))
		}
		first := k.published[0].MessageID
		k.published = nil
		k.change(`update items set close = 7 where id = 'i003'`)
		k.change(`update source_state set last_success_at = 1`)
		k.work(src)
		if len(k.published) != 1 || !strings.Contains(k.published[0].Key, "i003") || k.published[0].MessageID == first {
			t.Errorf("published were %v, want the row that changed", k.published)
		}
		k.s.cfg.Publish = func(context.Context, *store.Tx, string, string, string, []Row) error {
			return &pawl.Error{Code: pawl.CodeNotFound, Msg: "there is no workflow"}
		}
		k.api.fill(12)
		k.change(`update source_state set last_success_at = 1`)
		k.work(src)
		v := k.wantStatus("s", pawl.StatusFailedLogic)
		if len(k.items("s")) != 10 || !strings.Contains(v.row.ErrorMessage, "workflow") {
			t.Errorf("%d rows are there after %q, want none that was not published", len(k.items("s")), v.row.ErrorMessage)
		}
	})
}

// A server that stops puts a fetch off at the next page; it goes on after the
// start, and nothing of that is a failure.
func TestAStopPutsTheFetchOff(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		src := k.apply(definition("s", "/pages", byPage))
		k.api.on(func(n int, _ http.ResponseWriter, _ *http.Request) bool {
			k.stopping.Store(n >= 2)
			return false
		})
		k.work(src)
		v := k.wantStatus("s", pawl.StatusPausedTransient)
		if v.row.ErrorCode != codeInterrupted || v.row.ErrorMessage != "The server stopped; it continues after a restart." || v.retry.Count != 0 {
			t.Fatalf("it stopped with %s (%s) and %d failures", v.row.ErrorCode, v.row.ErrorMessage, v.retry.Count)
		}
		k.api.on(nil)
		k.stopping.Store(false)
		k.start("n2")
		k.work(src)
		k.wantStatus("s", pawl.StatusCommitted)
		if got := k.items("s"); !slices.Equal(got, k.api.all()) {
			t.Errorf("the table holds %v", got)
		}
	})
}

// B-03, B-04, B-06, B-09, B-24, B-26, B-27, B-30, B-31: with the real queue, more sources are due than there
// are places; each is fetched exactly once, and no more at a time than workers.
func TestABoundedQueueLosesNobody(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		var most, now int
		k.api.on(func(int, http.ResponseWriter, *http.Request) bool {
			k.api.mu.Lock()
			now++
			most = max(most, now)
			k.api.mu.Unlock()
			k.api.mu.Lock()
			now--
			k.api.mu.Unlock()
			return false
		})
		k.s.places = make(chan struct{}, 1)
		q, err := queue.New(queue.Config{
			DB: k.db, Node: store.Node{ID: store.NewID(), Share: true}, Workers: 2, Pools: map[string]int{PoolName: 5},
			Tasks: k.s.Tasks(),
		})
		if err != nil {
			t.Fatal(err)
		}
		k.s.Attach(q)
		for i := range 20 {
			k.apply(definition("s"+string(rune('a'+i)), "/whole", ""))
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { _ = q.Run(ctx); close(done) }()
		deadline := time.After(60 * time.Second)
		for k.api.asked() < 20 {
			select {
			case <-deadline:
				t.Fatalf("only %d of 20 sources were fetched", k.api.asked())
			case <-time.After(5 * time.Millisecond):
			}
		}
		stop()
		<-done
		if most != 1 || k.api.asked() != 20 {
			t.Errorf("%d calls were made, at most %d at a time; want 20 and 1", k.api.asked(), most)
		}
	})
}

// docs/sources.md, promote: a column never changes its type. SQLite cannot see
// that by the table, and refuses like PostgreSQL, with the same words: else the
// rows of both types would be there, and promote would stop at them.
func TestATypeIsNotChangedOnEitherDatabase(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		with := func(name, id, n string) spec.Definition {
			text := strings.Replace(definition(name, "/pages", byPage), "{source: id, target: id}", "{source: id, target: id, type: "+id+"}", 1)
			return k.define(strings.Replace(text, "{source: n, target: n, type: integer}", n, 1))
		}
		apply := func(d spec.Definition) error {
			return k.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.Apply(ctx, tx, d, "tester")
				return err
			})
		}
		refused := func(d spec.Definition, want string) {
			t.Helper()
			err := apply(d)
			e, ok := errors.AsType[*pawl.Error](err)
			if !ok || e.Reason != "table_mismatch" || e.Msg != "table items does not match source "+d.Name+": "+want || e.Hint == "" {
				t.Errorf("%v, want %s", err, want)
			}
		}
		number := "{source: n, target: n, type: integer}"
		for _, d := range []spec.Definition{with("s", "text", number), with("s", "text", "{source: m, target: m, type: date}"), with("other", "text", number)} {
			if err := apply(d); err != nil {
				t.Fatal(err)
			}
		}
		refused(with("s", "date", number), "column id: wanted date, found text")
		refused(with("s", "json", "{source: n, target: n, type: boolean}"), "column id: wanted jsonb, found text; column n: wanted boolean, found bigint")
		refused(with("s", "text", "{source: m, target: m, type: text}"), "column m: wanted text, found date") // of the version before
		refused(with("third", "timestamp", number), "column id: wanted timestamp with time zone, found text") // of the others
		if err := apply(with("s", "text", number)); err != nil {
			t.Errorf("back to what it was: %v", err)
		}
	})
}
