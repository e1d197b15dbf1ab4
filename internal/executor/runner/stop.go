package runner

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrCancelled is why the context of a run ends that somebody cancelled.
var ErrCancelled = errors.New("the run was cancelled")

// Going are the runs that this process follows, so that they can be stopped.
// The zero value is ready.
type Going struct {
	mu    sync.Mutex
	stops map[string][]*context.CancelCauseFunc // by run id; guarded by mu
}

// Begin makes a context that Stop ends. end has to be called.
func (g *Going) Begin(ctx context.Context, r Run) (_ context.Context, end func()) {
	ctx, stop := context.WithCancelCause(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stops == nil {
		g.stops = map[string][]*context.CancelCauseFunc{}
	}
	g.stops[r.RunID] = append(g.stops[r.RunID], &stop)
	return ctx, func() {
		stop(nil)
		g.remove(r.RunID, &stop)
	}
}

func (g *Going) remove(runID string, gone *context.CancelCauseFunc) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var left []*context.CancelCauseFunc
	for _, stop := range g.stops[runID] {
		if stop != gone {
			left = append(left, stop)
		}
	}
	if left == nil {
		delete(g.stops, runID)
		return
	}
	g.stops[runID] = left
}

// Stop ends the run with this id, if it goes on here.
func (g *Going) Stop(runID string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, stop := range g.stops[runID] {
		(*stop)(ErrCancelled)
	}
}

// Within limits a context to the time that a run has: the shorter one of what
// the caller and what the definition allow.
func Within(ctx context.Context, r Run, defined time.Duration) (context.Context, context.CancelFunc) {
	limit := defined
	if r.Timeout > 0 && (limit <= 0 || r.Timeout < limit) {
		limit = r.Timeout
	}
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}

// Ended says how a run ends whose context ended. It is not ok if the context
// has not. An end that is neither a cancellation nor a timeout is an error:
// the process stops, or another one has taken over.
func Ended(ctx context.Context) (result Result, ok bool, err error) {
	cause := context.Cause(ctx)
	switch {
	case cause == nil:
		return Result{}, false, nil
	case errors.Is(cause, ErrCancelled):
		return Final(CodeAborted, "the run was cancelled"), true, nil
	case errors.Is(cause, context.DeadlineExceeded):
		return Failure(CodeTimeout, "the graph did not end in time"), true, nil
	}
	return Result{}, true, cause
}
