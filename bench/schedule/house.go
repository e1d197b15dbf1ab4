package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlrun/pawl/bench/measure"
	"github.com/pawlrun/pawl/internal/execution"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

const probeTask = "bench.probe"

// house is a server without its HTTP, on one database that outlives its
// processes.
type house struct {
	place measure.Place
	at    string // URL of the database
	clean func()
	owner string // of the schedules

	db     *store.DB
	graphs *schedule.Service
	runs   *execution.Service
	queue  *queue.Queue
	stop   func()

	noop       noop
	closed     atomic.Int64 // slots
	failed     atomic.Int64
	statements atomic.Int64
	probed     chan struct{}
}

// open makes a house on a new database, and starts it.
func open(ctx context.Context, p measure.Place) (h *house, err error) {
	h = &house{place: p, probed: make(chan struct{}, 1), clean: func() {}}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	if h.at, h.clean, err = p.Database(ctx); err != nil {
		h.clean = func() {}
		return h, err
	}
	if err := h.start(ctx); err != nil {
		return h, err
	}
	return h, h.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		u, err := userstore.In(tx).EnsureUser(ctx, "ada", userstore.RoleOperator)
		h.owner = u.ID
		return err
	})
}

// start is the start of a process, up to its first claims.
func (h *house) start(ctx context.Context) (err error) {
	if h.db, err = store.Open(ctx, h.at, store.Options{Trace: func(string, []any) { h.statements.Add(1) }}); err != nil {
		return err
	}
	log, node := slog.New(slog.DiscardHandler), store.NewID()
	if h.runs, err = execution.New(execution.Config{DB: h.db, Graphs: &h.noop, Node: node, Log: log}); err != nil {
		return err
	}
	h.graphs, err = schedule.New(schedule.Options{
		DB: h.db, Ledger: ledger.New(ledger.Config{}), Executions: h.runs, Grants: grant.Service{}, Log: log, Host: lane.Host{Observe: h.observe},
	})
	if err != nil {
		return err
	}
	h.queue, err = queue.New(queue.Config{
		DB: h.db, Node: store.Node{ID: node, Name: "bench", Share: true}, Workers: 8, Pools: map[string]int{schedule.PoolName: 256},
		Tasks: map[string]queue.Task{schedule.TaskName: h.graphs.Tasks()[schedule.TaskName], probeTask: {Run: func(context.Context, *queue.Job) error {
			h.probed <- struct{}{}
			return nil
		}}},
	})
	if err != nil {
		return err
	}
	h.graphs.Attach(h.queue)
	if err := h.graphs.Start(ctx); err != nil {
		return err
	}
	work, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { h.graphs.Beat(work) })
	wg.Go(func() { _ = h.queue.Run(work) })
	h.stop = func() { cancel(); wg.Wait() }
	return nil
}

func (h *house) observe(c lane.Change) {
	slot, _ := c.Detail.(schedule.SlotDetail)
	switch {
	case c.What != "slot" || slot.Status == "running" || slot.Status == "pending":
	case slot.Status == "success":
		h.closed.Add(1)
	default:
		h.failed.Add(1)
	}
}

// shut ends the process and keeps the database.
func (h *house) shut() error {
	if h.stop != nil {
		h.stop()
		h.stop = nil
	}
	if h.runs != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := h.runs.Close(ctx); err != nil {
			return err
		}
		h.runs = nil
	}
	if h.db != nil {
		err := h.db.Close()
		h.db = nil
		return err
	}
	return nil
}

func (h *house) close() {
	_ = h.shut()
	h.clean()
}

// probe waits until a job runs that is asked for now.
func (h *house) probe(ctx context.Context) error {
	if _, err := h.queue.Enqueue(ctx, store.JobSpec{Task: probeTask}); err != nil {
		return err
	}
	select {
	case <-h.probed:
		return nil
	case <-time.After(time.Minute):
		return fmt.Errorf("no job ran in a minute")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// noop is the executor: it notes when it is asked, and has nothing to do.
type noop struct {
	mu   sync.Mutex
	late []time.Duration // guarded by mu

	commands *stamped // runs commands for real; nil: nothing does
}

// Lookup finds itself, or what runs commands.
func (n *noop) Lookup(graphID string) (runner.Executor, string, error) {
	if n.isCommand(graphID) {
		return n.commands, "command", nil
	}
	return n, "noop", nil
}

// Run does nothing.
func (n *noop) Run(_ context.Context, r runner.Run, _ func(runner.Event) error) (runner.Result, error) {
	now := time.Now()
	n.mu.Lock()
	n.late = append(n.late, now.Sub(r.ScheduledFor))
	n.mu.Unlock()
	return runner.Result{OK: true, Output: json.RawMessage(`{}`)}, nil
}

// Cancel has nothing to end.
func (n *noop) Cancel(context.Context, runner.Run) error { return nil }

// take returns what was noted since it was last asked.
func (n *noop) take() []time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	late := n.late
	n.late = nil
	return late
}
