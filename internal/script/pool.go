package script

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/budget"
)

// Config is what a pool is made of.
type Config struct {
	// Workers is the most processes at once, and so the most phases at once
	// (default 8). Idle ones end, so a pool that is not used costs nothing.
	Workers int
	// Idle is how long a worker waits for work before it ends (default 1 min).
	Idle time.Duration
	// RunsPerWorker is how many phases a process serves (default 10,000).
	RunsPerWorker int
	// Heap is the most that Limits.Heap may ask for (default 128 MiB). The
	// kernel lets a worker have a few times as much.
	Heap int64
	// Background lets the workers have only the processor time that others
	// leave, where the system can tell them apart (Linux).
	Background bool
	// Bytes is what the calls of all phases may hold in this process at once
	// (default 256 MiB), of answers and, once more, of half as much, of
	// arguments. Who needs more waits.
	Bytes int64

	Log *slog.Logger
}

// Pool runs scripts in worker processes of its own program. See the package
// comment for what it promises.
type Pool struct {
	cfg                Config
	threads            *starter
	answers, arguments *budget.Pool    // of all phases
	ctx                context.Context // ends with the pool
	cancel             context.CancelCauseFunc

	mu      sync.Mutex
	idle    []*worker        // the one used last is last
	busy    map[*worker]bool // those with a phase
	count   int              // slots taken: workers that live or start
	waiting []*waiter
	reaper  *time.Timer
	said    bool // the log knows how workers are confined
	closed  bool

	patience time.Duration // see patience; tests have others
	enough   int           // workers, to keep all processors busy

	phases  sync.WaitGroup
	workers sync.WaitGroup // processes not yet reaped
}

// errClosed is a pool that was closed.
var errClosed = &pawl.Error{Code: pawl.CodeUnavailable, Op: "run a script", Msg: "the script workers are shutting down"}

// NewPool makes a pool; it starts no process until there is work. main must
// have called WorkerMain.
func NewPool(cfg Config) (*Pool, error) {
	if isWorker() {
		return nil, errTooEarly
	}
	cfg.Workers = orDefault(cfg.Workers, 8)
	cfg.Idle = orDefault(cfg.Idle, time.Minute)
	cfg.RunsPerWorker = orDefault(cfg.RunsPerWorker, 10_000)
	cfg.Heap = orDefault(cfg.Heap, DefaultLimits().Heap)
	cfg.Bytes = orDefault(cfg.Bytes, 256<<20)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Workers < 1 || cfg.Idle < 0 || cfg.RunsPerWorker < 1 || cfg.Heap < leastHeap || cfg.Bytes < leastHeap {
		return nil, &pawl.Error{Code: pawl.CodeInvalid, Op: "make a pool of script workers", Msg: "a setting is too small"}
	}
	p := &Pool{cfg: cfg, threads: newStarter(cfg.Background), patience: patience, enough: runtime.GOMAXPROCS(0), busy: map[*worker]bool{}, answers: budget.New(cfg.Bytes), arguments: budget.New(cfg.Bytes / 2)}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	return p, nil
}

// Close ends all phases and all processes, and waits for them.
func (p *Pool) Close() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.closed = true
	p.cancel(errClosed)
	for _, waiter := range p.waiting {
		close(waiter.turn)
	}
	idle := p.idle
	p.idle, p.waiting = nil, nil
	if p.reaper != nil {
		p.reaper.Stop()
	}
	p.mu.Unlock()
	for _, w := range idle {
		w.kill()
	}
	p.phases.Wait()
	p.workers.Wait()
	p.threads.stop()
}

// enter counts a user of the pool, until leave, and ties its context to the
// pool's life.
func (p *Pool) enter(ctx context.Context) (tied context.Context, leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, errClosed
	}
	p.phases.Add(1)
	tied, cancel := context.WithCancelCause(ctx)
	untie := context.AfterFunc(p.ctx, func() { cancel(errClosed) })
	return tied, func() {
		untie()
		cancel(nil)
		p.phases.Done()
	}, nil
}

// start starts a worker for a program, in a slot that is already counted.
func (p *Pool) start(ctx context.Context, program string) (*worker, error) {
	w, err := startWorker(ctx, p.cfg.Heap, p.threads)
	if err != nil {
		p.freeSlot()
		return nil, err
	}
	p.workers.Go(func() { <-w.gone })
	p.mu.Lock()
	p.occupy(w, program)
	first := !p.said
	p.said = true
	p.mu.Unlock()
	if first && w.hello.Confined {
		p.cfg.Log.Info("scripts run in workers", "protection", w.hello.Protection, "engine", w.hello.Engine)
	} else if first {
		p.cfg.Log.Warn("scripts run in workers that are not fully confined", "protection", w.hello.Protection, "engine", w.hello.Engine)
	}
	return w, nil
}

// release gives a worker back after a phase that ended cleanly.
func (p *Pool) release(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, w)
	if p.closed || w.runs >= p.cfg.RunsPerWorker || !w.alive() {
		w.kill()
		p.freeSlotLocked()
		return
	}
	w.idleSince = time.Now()
	p.idle = append(p.idle, w)
	p.serve()
	p.setReaper()
}

// discard ends a worker that must not be used again.
func (p *Pool) discard(w *worker) {
	w.kill()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, w)
	p.freeSlotLocked()
}

func (p *Pool) freeSlot() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.freeSlotLocked()
}

func (p *Pool) freeSlotLocked() {
	p.count--
	p.serve()
}

// setReaper makes sure that the longest idle worker ends in time.
func (p *Pool) setReaper() {
	if p.reaper == nil && len(p.idle) > 0 {
		p.reaper = time.AfterFunc(p.cfg.Idle, p.reapIdle)
	}
}

// reapIdle ends workers that have been idle for too long.
func (p *Pool) reapIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaper = nil
	if p.closed {
		return
	}
	for len(p.idle) > 0 { // the longest idle is first
		left := p.cfg.Idle - time.Since(p.idle[0].idleSince)
		if left > 0 {
			p.reaper = time.AfterFunc(left, p.reapIdle)
			return
		}
		p.idle[0].kill()
		p.idle = p.idle[1:]
		p.count--
	}
}
