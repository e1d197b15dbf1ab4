package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/internal/budget"
)

// exchange is one phase as the server sees it: the frames between it and a
// worker, from the start to the ending.
//
//	run -> [need -> program] -> { call -> answer | tell | log } -> done or failed
//	            at any time: abort -> dropped, or SIGKILL
//
// One goroutine reads; each call of the script has a goroutine of its own.
type exchange struct {
	program *Program
	host    Host // nil when the script must not call
	limits  Limits
	w       *worker
	id      uint32
	start   time.Time

	result   Result
	failure  error // how the script itself failed
	logged   int   // bytes of log lines
	asked    bool  // the worker asked for the program
	reusable bool  // the worker is between two phases

	answers, arguments []*budget.Pool // of the phase and of the process

	calls      sync.WaitGroup
	hostCtx    context.Context
	cancelHost context.CancelFunc
	// reading ends when the phase must end, so that the reader does not wait
	// for room.
	reading     context.Context
	stopReading context.CancelFunc

	mu       sync.Mutex
	inFlight map[uint32]struct{}
	cause    error    // why the phase must end; the first counts
	refused  *Aborted // the first call that the host ended the phase for
	closing  bool     // the reader is not to be woken any more
	guard    *time.Timer
}

const (
	dropTime  = 100 * time.Millisecond // for a worker to drop a phase before it is killed
	guardTime = time.Second            // processor time over the limit before a worker is killed
)

// converse runs the phase and returns how it ended. Afterwards the worker is
// reusable, or must go. Calls may still be with the host.
func (x *exchange) converse(ctx context.Context, payload []byte) error {
	x.start = time.Now()
	x.id = x.w.begin()
	wall := x.start.Add(x.limits.Wall)
	x.hostCtx, x.cancelHost = context.WithDeadline(ctx, wall)
	x.reading, x.stopReading = context.WithCancel(x.hostCtx)
	defer x.stopReading()
	defer context.AfterFunc(ctx, func() { x.stop(fmt.Errorf("run a script: %w", context.Cause(ctx))) })()
	x.startGuard()
	defer x.stopGuard()

	err := x.w.setDeadlines(wall, time.Time{})
	if err == nil {
		err = x.w.write(x.id, frame{kind: toRun, id: x.id, payload: payload})
	}
	for done := false; err == nil; {
		if err = x.stopCause(); err == nil {
			done, err = x.step() //nolint:contextcheck // an exchange has its own, which ends with the phase
		}
		if done {
			x.close()
			x.w.end()
			if x.failure != nil && !time.Now().Before(wall) {
				return x.over(LimitWall) // what failed was a call that had no time left
			}
			return x.failure
		}
	}
	err = x.breakOff(err)
	x.w.end()
	return err
}

// breakOff ends a phase from outside: the script does not run on.
func (x *exchange) breakOff(err error) error {
	x.cancelHost()
	x.close()
	cause := x.stopCause()
	if cause == nil && errors.Is(err, os.ErrDeadlineExceeded) {
		cause = x.over(LimitWall)
	}
	if cause == nil {
		return x.autopsy(err)
	}
	x.reusable = !errors.Is(err, errTorn) && x.drop()
	return cause
}

// drop asks the worker to give the phase up. It answers at once unless the
// script keeps it busy.
func (x *exchange) drop() bool {
	soon := time.Now().Add(dropTime)
	if x.w.setDeadlines(soon, soon) != nil || x.w.write(x.id, frame{kind: toAbort, id: x.id}) != nil {
		return false
	}
	for {
		f, err := readFrame(x.w.reader, x.mostBytes)
		switch {
		case err != nil:
			return false
		case f.id != x.id:
		case f.kind == fromDropped || f.kind == fromDone:
			return true
		case f.kind == fromFailed:
			return false // it may want to be replaced
		}
	}
}

// autopsy finds out why a worker is gone or talks nonsense.
func (x *exchange) autopsy(err error) error {
	x.w.kill()
	<-x.w.gone
	said := x.w.said.String()
	switch {
	case x.w.cmd.ProcessState.ExitCode() == exitCPU:
		return x.over(LimitCPU)
	case strings.Contains(said, "out of memory") || strings.Contains(said, "cannot allocate memory"):
		return x.over(LimitHeap)
	case strings.Contains(said, "fatal error: stack overflow"):
		return x.over(LimitStack)
	case errors.Is(err, errProtocol):
		return fmt.Errorf("%w: %w", ErrWorkerCrashed, err)
	case errors.Is(err, io.EOF) || errors.Is(err, errTorn):
		return fmt.Errorf("%w: %s", ErrWorkerCrashed, x.w.epitaph())
	}
	return fmt.Errorf("%w: %s: %w", ErrWorkerCrashed, x.w.epitaph(), err)
}

// over makes the error of a limit.
func (x *exchange) over(limit Limit) *LimitError {
	return &LimitError{Limit: limit, Allowed: x.limits.allowed(limit)}
}

// stop makes the phase end with an error, unless it already has a reason to.
func (x *exchange) stop(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cause == nil {
		x.cause = err
	}
	x.stopReading()
	if !x.closing {
		x.w.wake()
	}
}

func (x *exchange) stopCause() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.cause
}

// close lets no goroutine wake the reader any more.
func (x *exchange) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closing = true
}

// verdict is the outcome once all calls have returned. A call that the host
// ended the phase for wins, also when the script did not wait for it.
func (x *exchange) verdict(err error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.refused != nil {
		return x.refused
	}
	return err
}

// startGuard kills a worker that goes on long after its limit of processor
// time. Workers watch themselves; this is for one that was taken over.
func (x *exchange) startGuard() {
	pid := x.w.cmd.Process.Pid
	begin, known := processorTimeOf(pid)
	if !known {
		return
	}
	limit := x.limits.CPU + guardTime
	x.mu.Lock()
	defer x.mu.Unlock()
	x.guard = time.AfterFunc(limit, func() {
		now, known := processorTimeOf(pid)
		if used := now - begin; known && used >= limit {
			x.stop(x.over(LimitCPU))
		} else if known {
			x.mu.Lock()
			x.guard.Reset(max(limit-used, 10*time.Millisecond))
			x.mu.Unlock()
		}
	})
}

func (x *exchange) stopGuard() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.guard != nil {
		x.guard.Stop()
	}
}
