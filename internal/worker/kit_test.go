package worker

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
)

const alice = "alice"

// rig is a service on a database of its own, with a queue that runs nothing.
type rig struct {
	t  *testing.T
	db *store.DB
	*Service
	mu     sync.Mutex
	events []queue.Event     // guarded by mu: what happened to jobs, here
	onEach func(queue.Event) // guarded by mu
}

func both(t *testing.T, test func(r *rig)) {
	t.Helper()
	bothWith(t, limits{}, test)
}

// deaf is a service whose claims look only when they are told to, or when they know
// that something comes due.
func deaf() limits {
	l := defaultLimits()
	l.poll, l.sweep, l.known = time.Hour, time.Hour, time.Hour
	return l
}

func bothWith(t *testing.T, l limits, test func(r *rig)) {
	t.Helper()
	pgtest.Both(t, func(t *testing.T, url string) {
		db, err := store.Open(t.Context(), url, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		test(newRig(t, db, "node-1", l))
	})
}

// newRig is another node on a database.
func newRig(t *testing.T, db *store.DB, node string, l limits) *rig {
	t.Helper()
	return newNode(t, db, node, l, 0)
}

// newNode is newRig with workers of its own: only who has some hears of other nodes.
func newNode(t *testing.T, db *store.DB, node string, l limits, workers int) *rig {
	t.Helper()
	r := &rig{t: t, db: db, Service: New(Config{DB: db, limits: l})}
	q, err := queue.New(queue.Config{DB: db, Node: store.Node{ID: node}, Workers: workers, Log: slog.New(slog.DiscardHandler), Served: r.Wake, Observe: r.observe,
		Tasks: map[string]queue.Task{"own": {Run: func(context.Context, *queue.Job) error { return nil }}}})
	if err != nil {
		t.Fatal(err)
	}
	r.Attach(q)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { _ = q.Run(ctx); close(done) }()
	t.Cleanup(func() { r.Close(); cancel(); <-done })
	return r
}

func (r *rig) observe(e queue.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	if r.onEach != nil {
		r.onEach(e)
	}
}

// happened tells what happened to a job, in order.
func (r *rig) happened(id int64) (what []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Job.ID == id {
			what = append(what, e.What)
		}
	}
	return what
}

func (r *rig) write(fn store.Func) {
	r.t.Helper()
	if err := r.db.Write(r.t.Context(), fn); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) declare(name string, change func(*Definition)) {
	r.t.Helper()
	d := Usual()
	if change != nil {
		change(&d)
	}
	r.write(func(ctx context.Context, tx *store.Tx) error {
		_, _, err := r.Declare(ctx, tx, name, d, alice, nil, alice)
		return err
	})
}

// claim asks for jobs of a task, and waits for none.
func (r *rig) claim(task string, limit int) []store.Claimed {
	r.t.Helper()
	return r.ask(Request{Task: task, Worker: "w", Limit: limit})
}

func (r *rig) ask(q Request) []store.Claimed {
	r.t.Helper()
	got, err := r.Claim(r.t.Context(), q)
	if err != nil {
		r.t.Fatal(err)
	}
	return got
}

// patience is how long claims wait in tests that have them answered earlier.
const patience = 15 * time.Second

// waiting begins a claim, and returns when it waits.
func (r *rig) waiting(q Request) <-chan []store.Claimed {
	r.t.Helper()
	out := make(chan []store.Claimed, 1)
	was := r.inLine()
	go func() {
		got, err := r.Claim(r.t.Context(), q)
		if err != nil && r.t.Context().Err() == nil {
			r.t.Error(err)
		}
		out <- got
	}()
	r.eventually("the claim is in line", func() bool { return r.inLine() > was })
	return out
}

func (r *rig) inLine() int {
	r.Service.mu.Lock()
	defer r.Service.mu.Unlock()
	return r.Service.waiting
}

// eventually looks until something is so.
func (r *rig) eventually(what string, so func() bool) {
	r.t.Helper()
	for until := time.Now().Add(patience); !so(); runtime.Gosched() {
		if time.Now().After(until) {
			r.t.Fatal("never: " + what)
		}
	}
}

// end says how a job ended.
func (r *rig) end(task string, list ...store.Ending) (out []store.Ended) {
	r.t.Helper()
	r.write(func(ctx context.Context, tx *store.Tx) (err error) {
		out, err = r.End(ctx, tx, task, nil, list)
		return err
	})
	return out
}

func ending(j store.Claimed, v store.Verdict) store.Ending {
	return store.Ending{ID: j.ID, Token: j.Token, Verdict: v}
}

func ids(list []store.Claimed) (out []int64) {
	for _, j := range list {
		out = append(out, j.ID)
	}
	return out
}

func (r *rig) enqueue(specs ...store.JobSpec) (jobs []store.Job) {
	r.t.Helper()
	for i := range specs {
		if specs[i].Owner == "" {
			specs[i].Owner = alice
		}
		if served, err := r.Fill(r.t.Context(), &specs[i]); err != nil || !served {
			r.t.Fatal(served, err)
		}
	}
	jobs, err := r.queue.Enqueue(r.t.Context(), specs...)
	if err != nil {
		r.t.Fatal(err)
	}
	return jobs
}

func (r *rig) count(sql string, args ...any) (n int) {
	r.t.Helper()
	err := r.db.Read(r.t.Context(), func(ctx context.Context, tx *store.Tx) error { return tx.QueryRow(ctx, sql, args...).Scan(&n) })
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}
