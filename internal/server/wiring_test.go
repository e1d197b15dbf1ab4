package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// running is a server of a test.
type running struct {
	t    testing.TB
	cfg  Config
	url  string
	auth string
	stop func()
}

func configOf(t testing.TB, url string) Config {
	cfg := Default()
	cfg.Addr, cfg.Data, cfg.Logs = "127.0.0.1:0", t.TempDir(), io.Discard
	cfg.Database, cfg.AllowPrivate, cfg.Drain = url, []string{"127.0.0.1/32"}, 100*time.Millisecond
	return cfg
}

// launch starts a server, which ends with the test or by stop.
func launch(t testing.TB, cfg Config) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	started, done := make(chan Started, 1), make(chan error, 1)
	go func() { done <- Run(ctx, cfg, func(s Started) { started <- s }) }()
	r := &running{t: t, cfg: cfg}
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(r.stop)
	select {
	case s := <-started:
		token, err := os.ReadFile(s.AdminTokenPath)
		if err != nil {
			t.Fatal(err)
		}
		r.url, r.auth = s.URL, "Bearer "+strings.TrimSpace(string(token))
	case err := <-done:
		done <- nil
		t.Fatalf("it did not start: %v", err)
	}
	return r
}

func (r *running) call(method, path string, body any) {
	r.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		r.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, bytes.NewReader(raw))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", r.auth)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // a test
	if said, _ := io.ReadAll(resp.Body); resp.StatusCode >= 300 {
		r.t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, said)
	}
}

func (r *running) source(name, url string) {
	r.t.Helper()
	r.call("PUT", "/api/v1/sources/"+name, map[string]any{
		"kind": "source", "name": name, "url": url, "table": "items", "write": map[string]any{"key": []string{"id"}},
		"response": map[string]any{"dataPath": "items", "fields": []any{map[string]any{"source": "id", "target": "id"}}},
	})
}

func (r *running) schedule(name, cron string) {
	r.t.Helper()
	r.call("POST", "/api/v1/schedules", map[string]any{"name": name, "graphId": "workflow:poet", "input": map[string]any{}, "cron": cron, "timezone": "UTC"})
}

// with opens the database of a server that does not run, or that shares it.
func (r *running) with(fn store.Func) {
	r.t.Helper()
	db, err := store.Open(r.t.Context(), r.cfg.Database, store.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // a test
	if err := db.Write(r.t.Context(), fn); err != nil {
		r.t.Fatal(err)
	}
}

func (r *running) change(statements ...string) {
	r.t.Helper()
	r.with(func(ctx context.Context, tx *store.Tx) error {
		for _, sql := range statements {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return fmt.Errorf("%s: %w", sql, err)
			}
		}
		return nil
	})
}

// count asks a server that has been stopped.
func (r *running) count(sql string) (n int) {
	r.t.Helper()
	r.with(func(ctx context.Context, tx *store.Tx) error { return tx.QueryRow(ctx, sql).Scan(&n) })
	return n
}

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	limit, tick := time.After(60*time.Second), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-limit:
			t.Fatalf("it does not come to be that %s", what)
		case <-tick.C:
		}
	}
}

// C-12, C-14, X-30, X-32, X-65: what a start repairs. Somebody lost the job of a
// source and the slot of a schedule; another slot came due while nobody was
// there, and its job is late; the process before this one died with a run of a
// graph in hand.
func TestAStartRepairsWhatIsMissing(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		calls := make(chan struct{}, 100)
		upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			calls <- struct{}{}
			_, _ = io.WriteString(w, `{"items":[{"id":"a"}]}`)
		}))
		t.Cleanup(upstream.Close)
		cfg := configOf(t, url)
		r := launch(t, cfg)
		r.source("prices", upstream.URL+"/prices")
		<-calls
		r.schedule("lost", "0 0 1 1 *")
		r.schedule("missed", "0 * * * *")
		r.stop()
		node, err := os.ReadFile(filepath.Join(cfg.Data, "node.id"))
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now().UnixMilli()
		hourAgo, soon := now-int64(time.Hour/time.Millisecond), now+int64(time.Hour/time.Millisecond)
		missed := `(select id from schedules where name = 'missed')`
		r.change(
			`delete from jobs where task = 'pawl.source'`,
			`update source_state set last_success_at = 1`,
			`delete from jobs where task = 'execute_scheduled_run' and lane <> `+missed,
			`delete from schedule_runs where schedule_id <> `+missed,
			`update schedules set next_run_at = null where name = 'lost'`,
			fmt.Sprintf(`update jobs set run_at = %d, key = lane || ':%s' where task = 'execute_scheduled_run'`, soon, pawl.FormatTime(time.UnixMilli(hourAgo))),
			fmt.Sprintf(`update schedule_runs set scheduled_for = %d where schedule_id = %s`, hourAgo, missed),
			fmt.Sprintf(`update schedules set next_run_at = %d where name = 'missed'`, hourAgo),
			`delete from worker_clock`,
			fmt.Sprintf(`insert into worker_clock (id, alive_at) values (1, %d)`, hourAgo-1000),
			fmt.Sprintf(`insert into execution_requests (idempotency_key, request_hash, run_id, graph_id, grant_id, owner, lease_until, created_at, updated_at)
				values ('k', 'h', 'r', 'workflow:poet', 'g', '%s/1', %d, 1, 1)`, strings.TrimSpace(string(node)), soon),
		)
		r = launch(t, cfg)
		select {
		case <-calls:
		case <-time.After(60 * time.Second):
			t.Error("the source without a job was not found")
		}
		lanes := func() string {
			req, _ := http.NewRequestWithContext(t.Context(), "GET", r.url+"/api/v1/schedules", nil)
			req.Header.Set("Authorization", r.auth)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close() //nolint:errcheck // a test
			body, _ := io.ReadAll(resp.Body)
			return string(body)
		}
		eventually(t, "the schedule has a next instant again", func() bool { return !strings.Contains(lanes(), `"nextRunAt":null`) })
		r.stop()
		if n := r.count(`select count(*) from schedule_runs where disposition = 'skipped_missed'`); n == 0 {
			t.Error("what came due while nobody was there was not closed before anything was claimed")
		}
		if n := r.count(`select count(*) from execution_requests where owner is not null`); n != 0 {
			t.Error("the claim of the process before this one is waited for")
		}
	})
}

// a worker notes that it is at work, also for schedules that were made
// after its start.
func TestAServerKeepsTheClockOfWorkers(t *testing.T) {
	t.Parallel()
	r := launch(t, configOf(t, pgtest.URL(t)))
	r.schedule("s", "0 0 1 1 *")
	db, err := store.Open(t.Context(), r.cfg.Database, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // a test
	eventually(t, "the clock of workers goes", func() bool {
		var alive time.Time
		err := db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
			alive, err = schedulestore.In(tx).AliveAt(ctx)
			return err
		})
		return err == nil && !alive.IsZero()
	})
}

// B-24, B-26, surface 1: --workers bounds how many sources are fetched at once,
// and --source-queue how many have a place.
func TestWorkersAndPlacesAreThoseOfTheSettings(t *testing.T) {
	for name, test := range map[string]struct{ workers, places, want int }{"workers": {2, 6, 2}, "places": {6, 3, 3}} {
		t.Run(name, func(t *testing.T) {
			pgtest.Both(t, func(t *testing.T, url string) {
				var mu sync.Mutex
				now, most, done := 0, 0, 0
				gate := make(chan struct{})
				upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					now++
					most = max(most, now)
					mu.Unlock()
					select {
					case <-gate:
					case <-r.Context().Done():
					}
					mu.Lock()
					now--
					done++
					mu.Unlock()
					_, _ = io.WriteString(w, `{"items":[{"id":"a"}]}`)
				}))
				t.Cleanup(upstream.Close)
				cfg := configOf(t, url)
				cfg.Workers, cfg.SourceQueue = test.workers, test.places
				r := launch(t, cfg)
				const all = 8
				for i := range all {
					r.source(fmt.Sprint("s", i), fmt.Sprint(upstream.URL, "/", i))
				}
				reads := func(n *int) int { mu.Lock(); defer mu.Unlock(); return *n }
				eventually(t, "they are at work", func() bool { return reads(&now) >= test.want })
				for range all {
					gate <- struct{}{}
				}
				eventually(t, "all were fetched", func() bool { return reads(&done) == all })
				if got := reads(&most); got != test.want {
					t.Errorf("%d at once, want %d", got, test.want)
				}
				r.stop()
			})
		})
	}
}
