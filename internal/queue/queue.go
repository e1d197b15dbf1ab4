package queue

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// Config is what a queue is made of.
type Config struct {
	DB *store.DB

	// Node is this process. One that is dead may have had its id: its buckets
	// are taken over at once. If a living one has it, this process draws another
	// id; Renamed is told.
	Node    store.Node
	Renamed func(id string)

	Tasks map[string]Task
	Log   *slog.Logger

	// Workers is how many jobs run at once. With none the process only
	// enqueues.
	Workers int

	// Pools are workers of their own, by name, for the tasks that name the
	// pool: what waits long for others does not keep the rest waiting.
	Pools map[string]int

	// Lease is how long a silent node keeps its buckets (default 4.5 s).
	Lease time.Duration

	// Drain is how long running jobs may go on when the process stops
	// (default 30 s).
	Drain time.Duration

	// Observe is told what happens to jobs; it must not block.
	Observe func(Event)

	// Served is told that a task which programs of users serve may have something
	// for them; nil is not. It must not block.
	Served func(task string, c Chance)

	// Metrics counts; nil does not.
	Metrics *Metrics

	// Clock is by what leases are measured, for tests; nil is the time since the
	// machine was started, suspended or not.
	Clock func() time.Duration

	// Canary makes a node with workers prove every minute that jobs run; see
	// Queue.Canary.
	Canary bool

	limits limits // for tests
}

// defaultLease is so short that the lanes of a dead node run again within six
// seconds: it is seen to be dead a lease after the last look at which it lived,
// which is up to a heartbeat after the node's own last one.
const defaultLease = 4500 * time.Millisecond

// Event is something that happened to a job.
type Event struct {
	What string // enqueued, started, succeeded, failed, retried, snoozed, cancelled
	Job  store.Job
	At   time.Time
	Err  string
}

// Queue is the queue as one process sees it.
type Queue struct {
	cfg   Config
	db    *store.DB
	log   *slog.Logger
	board *board
	enq   *enqueuer
	hints *hints
	// keeper looks at the door for applications while they come often
	keeper  *doorkeeper
	rumours *rumours

	node     atomic.Pointer[store.Node] // who this process is; see rename
	link     atomic.Pointer[store.Link]
	halt     atomic.Pointer[store.HaltMark] // that of the board, for whoever does not hold its lock
	nudges   chan struct{}                  // something changed in the cluster
	flushing store.Turn                     // one batch at a time, so that a lane's jobs end in order
	// finishing bounds the batches; guarded by flushing
	finishing patience
	health    health
	canary    canary
}

// New makes a queue; Run starts it. Enqueue works before and without Run.
func New(cfg Config) (*Queue, error) {
	if cfg.DB == nil || cfg.Node.ID == "" {
		return nil, errors.New("queue: a database and a node are needed")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Lease == 0 {
		cfg.Lease = defaultLease
	}
	if cfg.Drain == 0 {
		cfg.Drain = 30 * time.Second
	}
	if cfg.Observe == nil {
		cfg.Observe = func(Event) {}
	}
	if cfg.Served == nil {
		cfg.Served = func(string, Chance) {}
	}
	if cfg.Renamed == nil {
		cfg.Renamed = func(string) {}
	}
	if cfg.limits == (limits{}) {
		cfg.limits = defaultLimits()
	}
	if cfg.limits.answer == 0 {
		cfg.limits.answer = defaultLimits().answer
	}
	if cfg.limits.door == (doorLimits{}) {
		cfg.limits.door = defaultDoorLimits()
	}
	cfg.Tasks = maps.Clone(cfg.Tasks)
	if cfg.Tasks == nil {
		cfg.Tasks = map[string]Task{}
	}
	q := &Queue{cfg: cfg, db: cfg.DB, log: cfg.Log, board: newBoard(cfg.limits, cfg.DB.Shared()), nudges: make(chan struct{}, 1)}
	if cfg.Clock != nil {
		q.board.clock = cfg.Clock
	}
	q.finishing.q = q
	q.setNode(cfg.Node.ID)
	q.halt.Store(&store.HaltMark{})
	q.health.starting, q.health.failed, q.health.since = true, map[string]error{}, map[string]time.Time{}
	if err := q.makePools(); err != nil {
		return nil, err
	}
	if cfg.Canary && cfg.Workers > 0 {
		q.addCanary()
	}
	q.enq = newEnqueuer(q)
	q.hints = newHints(q)
	q.keeper = newDoorkeeper(q)
	q.rumours = newRumours()
	q.board.lost = q.hints.lost
	if cfg.Metrics != nil {
		cfg.Metrics.attach(q)
		if q.canary.on {
			cfg.Metrics.attachCanary(q)
		}
	}
	return q, nil
}

// Tasks gives the registered tasks by name.
func (q *Queue) Tasks() map[string]Task { return q.cfg.Tasks }

// Node is the identity under which this process works.
func (q *Queue) Node() store.Node { return *q.node.Load() }

// Run works until the context ends, then drains: it starts nothing more, lets
// running jobs finish for a while, tells the rest to stop, writes how they
// ended, and gives its buckets back.
func (q *Queue) Run(ctx context.Context) error {
	loops, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { q.enq.run(loops) })
	wg.Go(func() { q.hints.run(loops) })
	if q.cfg.Workers == 0 {
		q.health.started()
		<-ctx.Done()
		stop()
		wg.Wait()
		return nil
	}
	b := q.board
	b.mu.Lock()
	b.timer = time.AfterFunc(time.Hour, q.onTimer)
	b.timer.Stop()
	b.mu.Unlock()
	leasing, stopLeasing := context.WithCancel(loops)
	leased, kept := make(chan struct{}), make(chan struct{})
	wg.Go(func() {
		defer close(leased)
		q.claim(leasing)
		if leasing.Err() == nil {
			wg.Go(func() { q.listen(loops) })
			wg.Go(func() { q.checkRumours(loops) })
		}
		if q.db.HasDoor() {
			wg.Go(func() { defer close(kept); q.keeper.run(leasing) })
		} else {
			close(kept)
		}
		q.keepLease(leasing)
	})
	wg.Go(func() { q.fetchLoop(loops) })
	wg.Go(func() { q.finishLoop(loops) })
	wg.Go(func() { q.markLoop(loops) })
	if q.canary.on {
		wg.Go(func() { q.keepCanary(leasing) })
	}
	var workers sync.WaitGroup
	for _, p := range b.pools {
		for range p.workers {
			workers.Go(func() { q.work(loops, p) })
		}
	}
	<-ctx.Done()
	q.drain(loops, &workers)
	// Who has left does not look for its place any more: it would take it for lost,
	// and join again.
	stopLeasing()
	<-leased
	<-kept // before this node is gone, or another one would have to inherit
	q.leave(loops)
	stop()
	b.mu.Lock()
	b.closed = true
	b.timer.Stop()
	b.broadcast()
	b.mu.Unlock()
	wg.Wait()
	return nil
}

func (b *board) broadcast() {
	for _, p := range b.pools {
		p.cond.Broadcast()
	}
	b.fetchCond.Broadcast()
	b.finishCond.Broadcast()
	b.markCond.Broadcast()
}

// drain is the graceful end; see Run.
func (q *Queue) drain(ctx context.Context, workers *sync.WaitGroup) {
	b := q.board
	b.mu.Lock()
	b.stopping = true
	b.broadcast()
	n := len(b.running)
	b.mu.Unlock()
	if n > 0 {
		q.log.Info("waiting for running jobs", "jobs", n, "atMost", q.cfg.Drain)
	}
	done := make(chan struct{})
	go func() { workers.Wait(); close(done) }()
	if !waitFor(done, q.cfg.Drain) {
		b.mu.Lock()
		for _, e := range b.running {
			if e.cancel != nil {
				e.cancel(ErrShutdown)
			}
		}
		b.mu.Unlock()
		if !waitFor(done, 5*time.Second) {
			q.log.Warn("jobs did not stop in time; they will run again")
		}
	}
	q.flushAll(ctx)
}

// leave gives the buckets back and removes this node.
func (q *Queue) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := q.db.Leave(ctx, q.Node()); err != nil {
		q.log.Warn("leave the cluster", "err", err)
		return
	}
	// So that others do not wait for their next heartbeat.
	if err := q.db.Notify(ctx, channel, msgChanged); err != nil {
		q.log.Warn("tell others of the end", "err", err)
	}
}

func waitFor(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

func (q *Queue) onTimer() {
	q.board.mu.Lock()
	defer q.board.mu.Unlock()
	if !q.board.closed {
		q.board.fire(time.Now())
	}
}

// Running tells how many jobs run in this process.
func (q *Queue) Running() int {
	q.board.mu.Lock()
	defer q.board.mu.Unlock()
	return len(q.board.running)
}

// IsRunning tells whether this process runs the job.
func (q *Queue) IsRunning(id int64) bool {
	q.board.mu.Lock()
	defer q.board.mu.Unlock()
	return q.board.running[id] != nil
}
