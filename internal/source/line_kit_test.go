package source

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
)

// line is a kit with the real queue. The upstream holds every call until the
// test lets that source go, so a worker is busy for as long as a test wants.
type line struct {
	*kit
	q     *queue.Queue
	began chan string // sources whose call came, in that order

	mu     sync.Mutex
	gates  map[string]chan struct{} // by source; guarded by mu
	queued []string                 // lanes that workers were told of; guarded by mu
}

// newLine makes a line with so many workers, and as many places.
func newLine(k *kit, workers int) *line {
	k.t.Helper()
	l := &line{kit: k, began: make(chan string, 100), gates: map[string]chan struct{}{}}
	k.api.on(func(_ int, _ http.ResponseWriter, r *http.Request) bool {
		name := strings.TrimPrefix(r.URL.Path, "/")
		gate := l.gate(name)
		l.began <- name
		select {
		case <-gate:
		case <-r.Context().Done():
		}
		return false
	})
	k.s.places = make(chan struct{}, workers)
	var err error
	l.q, err = queue.New(queue.Config{
		DB: k.db, Node: store.Node{ID: store.NewID(), Share: true}, Workers: 2, Pools: map[string]int{PoolName: workers}, Drain: time.Millisecond,
		Tasks: k.s.Tasks(), Observe: l.observe,
	})
	if err != nil {
		k.t.Fatal(err)
	}
	k.s.Attach(l.q)
	return l
}

func (l *line) observe(e queue.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.What == "enqueued" {
		l.queued = append(l.queued, e.Job.Lane)
	}
}

// run lets the workers work until the test ends.
func (l *line) run() {
	l.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { _ = l.q.Run(ctx); close(done) }()
	l.t.Cleanup(func() { stop(); <-done })
}

func (l *line) gate(name string) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gates[name] == nil {
		l.gates[name] = make(chan struct{})
	}
	return l.gates[name]
}

// release lets the call of a source that is at work end.
func (l *line) release(name string) { l.gate(name) <- struct{}{} }

// wantBegun waits for the next call and fails unless the source made it.
func (l *line) wantBegun(name string) {
	l.t.Helper()
	select {
	case got := <-l.began:
		if got != name {
			l.t.Fatalf("a worker took %q, want %q", got, name)
		}
	case <-time.After(20 * time.Second):
		l.t.Fatalf("no worker took %q", name)
	}
}

func (l *line) add(name string) sourcestore.Source {
	l.t.Helper()
	return l.apply(definition(name, "/"+name, "schedule: interval:30s\n"))
}

// passInterval moves the last success of a source back by its interval: so much
// time went by.
func (l *line) passInterval(src sourcestore.Source) {
	l.t.Helper()
	l.change(`update source_state set last_success_at = last_success_at - 30000 where source_id = $1`, src.ID)
}

// evaluate makes the scheduler look at everything, in each way there is.
func (l *line) evaluate(list ...sourcestore.Source) {
	l.t.Helper()
	for _, src := range list {
		l.write(func(ctx context.Context, tx *store.Tx) error { return l.s.arm(ctx, tx, &src, tx.Now) })
	}
	if err := l.s.sweep(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
}

// entries are the jobs of a source, told apart by whether they are due.
func (l *line) entries(src sourcestore.Source) (due, all int) {
	l.t.Helper()
	now := time.Now().UnixMilli()
	for _, at := range l.column(`select case when run_at <= $1 then 'due' else 'later' end from jobs where task = $2 and lane = $3`, now, TaskName, jobKey(src.ID)) {
		all++
		if at == "due" {
			due++
		}
	}
	return due, all
}

// wantOneEntry fails unless the source is in flight, with one entry.
func (l *line) wantOneEntry(when string, src sourcestore.Source) {
	l.t.Helper()
	if due, all := l.entries(src); due != 1 || all != 1 {
		l.t.Errorf("%s: source %s has %d entries, %d of them due; want one that is due", when, src.Name, all, due)
	}
}

// waitOut waits until a source is not in flight any more.
func (l *line) waitOut(src sourcestore.Source) {
	l.t.Helper()
	l.waitUntil("source "+src.Name+" is not in flight", func() bool {
		due, all := l.entries(src)
		return due == 0 && all == 1 && l.q.Running() == 0
	})
}

func (l *line) waitUntil(what string, cond func() bool) {
	l.t.Helper()
	deadline := time.After(20 * time.Second)
	for !cond() {
		select {
		case <-deadline:
			l.t.Fatalf("did not happen: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (l *line) wantAsked(when string, n int) {
	l.t.Helper()
	if got := l.api.asked(); got != n {
		l.t.Errorf("%s: %d calls were made, want %d", when, got, n)
	}
}

// wantNoMoreEntriesThanSources holds B-07.
func (l *line) wantNoMoreEntriesThanSources(when string) {
	l.t.Helper()
	jobs, sources := l.column(`select id from jobs where task = $1`, TaskName), l.column(`select id from source_definitions`)
	if len(jobs) > len(sources) {
		l.t.Errorf("%s: there are %d entries of %d sources", when, len(jobs), len(sources))
	}
}
