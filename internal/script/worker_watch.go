package script

import (
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// watch interrupts a script that has used up its processor time, and ends the
// worker when the script is in a built-in function that does not notice.
type watch struct {
	limit     time.Duration
	begin     time.Duration // processor time at the start
	interrupt func()

	over atomic.Bool

	mu     sync.Mutex
	timer  *time.Timer // nil once stopped
	overAt time.Duration
}

const (
	watchAgain = 10 * time.Millisecond  // an interrupt between two entries is lost, so it is repeated
	watchGrace = 250 * time.Millisecond // of processor time, from the first interrupt to the end of the worker
)

func startWatch(limit time.Duration, interrupt func()) *watch {
	w := &watch{limit: limit, begin: processorTime(), interrupt: interrupt}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(limit, w.check)
	return w
}

// check runs whenever the limit could have been reached.
func (w *watch) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		return
	}
	used := processorTime() - w.begin
	if used < w.limit {
		w.timer.Reset(max(w.limit-used, time.Millisecond))
		return
	}
	if !w.over.Swap(true) {
		w.overAt = used
	}
	if used > w.overAt+watchGrace {
		os.Exit(exitCPU)
	}
	w.interrupt()
	w.timer.Reset(watchAgain)
}

// expired reports whether the limit was reached.
func (w *watch) expired() bool { return w.over.Load() }

// stop ends the watch and returns the processor time that was used.
func (w *watch) stop() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
	w.timer = nil
	return processorTime() - w.begin
}
