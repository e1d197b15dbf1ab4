package queue

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

func openDB(t testing.TB, url string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// startQueue runs a queue until the test ends, or until stop is called.
func startQueue(t testing.TB, db *store.DB, cfg Config) (q *Queue, stop func()) {
	t.Helper()
	cfg.DB = db
	if cfg.Node.ID == "" {
		cfg.Node.ID = store.NewID()
	}
	cfg.Node.Share = true
	if cfg.Workers == 0 {
		cfg.Workers = 8
	}
	cfg.Log = slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelInfo}))
	q, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := q.Run(ctx); err != nil {
			t.Errorf("run: %v", err)
		}
	}()
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); <-done }) }
	t.Cleanup(stop)
	return q, stop
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(string(p[:len(p)-1]))
	return len(p), nil
}

// recorder is a task that remembers what ran.
type recorder struct {
	mu   sync.Mutex
	runs []Job
	ch   chan Job
}

func newRecorder() *recorder { return &recorder{ch: make(chan Job, 100000)} }

func (r *recorder) task() Task {
	return Task{Run: func(_ context.Context, j *Job) error {
		r.mu.Lock()
		r.runs = append(r.runs, *j)
		r.mu.Unlock()
		r.ch <- *j
		return nil
	}}
}

func (r *recorder) wait(t testing.TB) Job {
	t.Helper()
	select {
	case j := <-r.ch:
		return j
	case <-time.After(90 * time.Second):
		t.Fatal("no job ran")
		return Job{}
	}
}

// eventually waits for a condition that another goroutine brings about.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(90 * time.Second)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("did not happen: %s", what)
		}
	}
}

// holdBuckets keeps buckets locked, as an open transaction of their owner does,
// until it is told to let go.
func holdBuckets(t testing.TB, db *store.DB, buckets ...int) (held <-chan struct{}, letGo func()) {
	t.Helper()
	inside, leave, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_ = db.Write(context.Background(), func(ctx context.Context, tx *store.Tx) error {
			for _, b := range buckets {
				if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock_shared(7295001, $1::int)`, b); err != nil {
					return err
				}
			}
			close(inside)
			for { // not idle, or the database would end it
				select {
				case <-leave:
					return nil
				case <-time.After(time.Second):
				}
				if _, err := tx.Exec(ctx, `select 1`); err != nil {
					return err
				}
			}
		})
	}()
	letGo = sync.OnceFunc(func() { close(leave); <-done })
	t.Cleanup(letGo)
	return inside, letGo
}

func countJobs(t testing.TB, db *store.DB) int {
	t.Helper()
	var n int
	err := db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.QueryRow(ctx, `select count(*) from jobs`).Scan(&n)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
