package ledger

import (
	"context"
	"sync"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// left are the runs that this process stopped executing without being able to
// write so. The zero value is ready.
type left struct {
	mu   sync.Mutex
	runs map[string]Failure // by run id; guarded by mu
}

// mostLeft bounds how many are remembered. One that is forgotten counts as a
// crash.
const mostLeft = 10_000

// GaveUp notes that this process stopped executing a run that is still active
// in the database, because the database was away: nothing crashed. If this
// process finds the run again, it is not counted as a crash. With a class
// the run is stopped as the failure says then, and else it is recovered like a
// crashed one. Another process cannot know, and counts.
func (l *Ledger) GaveUp(runID string, why Failure) {
	if runID == "" {
		return
	}
	l.left.mu.Lock()
	defer l.left.mu.Unlock()
	if l.left.runs == nil || len(l.left.runs) >= mostLeft {
		l.left.runs = map[string]Failure{}
	}
	l.left.runs[runID] = why
}

func (l *Ledger) gaveUp(runID string) (Failure, bool) {
	l.left.mu.Lock()
	defer l.left.mu.Unlock()
	why, ok := l.left.runs[runID]
	return why, ok
}

func (l *Ledger) forgetLeft(runID string) {
	l.left.mu.Lock()
	defer l.left.mu.Unlock()
	delete(l.left.runs, runID)
}

// stopLeft stops a run that this process had to leave; the caller holds it.
func (l *Ledger) stopLeft(ctx context.Context, tx *store.Tx, now runstore.Run, f Failure) (Outcome, error) {
	status, why := run.StatusFor(now.HandlerType, f.Class), f.stored()
	stopped, err := runstore.In(tx).StopRun(ctx, now, status, !run.Resumable(status), &why)
	if err != nil {
		return Outcome{}, err
	}
	return l.conclude(ctx, tx, stopped, f)
}

// interrupted is why a run ended that is recovered like a crashed one, although
// nothing crashed.
func interrupted() *runstore.RunFailure {
	return &runstore.RunFailure{Code: "interrupted", Class: pawl.ClassTransient, Message: "The database was unavailable; the run is continued later."}
}

// GotFurther forgets the crashes of a lane, in the transaction of the step that
// no attempt of it had reached: it does not go round in a circle.
func (l *Ledger) GotFurther(ctx context.Context, tx *store.Tx, r runstore.Run) error {
	_, _, err := changeRetry(ctx, tx, r, func(was run.Retry) (run.Retry, bool) {
		next := was
		next.Crashes = 0
		return next, false
	})
	return err
}
