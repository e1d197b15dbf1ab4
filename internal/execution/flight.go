package execution

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/billing"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/executionstore"
	"github.com/pawlrun/pawl/internal/store/grantstore"
)

// How long things may take that are not the run itself.
const (
	cancelGrace = 10 * time.Second // for a run to end by itself once it was cancelled
	callTimeout = 30 * time.Second // for a note to an executor or to the database
)

// flight is a claim of this process and the run that it follows.
type flight struct {
	s          *Service
	key, owner string
	exec       runner.Executor
	run        runner.Run // its Caller is written by identify, under mu
	bill       billing.Attempt
	stopAtOnce bool               // somebody asked to stop it before it was claimed
	free       bool               // it is the first claim, and set nothing aside
	account    grantstore.Account // as the claim saw it; zero if it did not look

	beaten atomic.Pointer[time.Time] // when the lease was last moved, or got

	claimed        executionstore.Execution                  // of the first claim, as it was written
	end            func(contract.RunAnswerV1, Success) error // who else writes of a good outcome; may be nil
	endedElsewhere bool                                      // it did

	mu     store.Turn
	memory memory         // guarded by mu
	facts  []billing.Fact // of this claim; guarded by mu

	ctx     context.Context // of the run
	cancel  context.CancelCauseFunc
	ended   chan struct{} // closed when the run has returned
	helpers sync.WaitGroup
	stopped bool // asked to stop, or too late for that; guarded by mu

	done   chan struct{} // closed when answer and err are there
	answer contract.RunAnswerV1
	err    error
}

// fly follows the run to its end and writes down how it ended.
func (f *flight) fly() {
	defer f.cancel(nil)
	ctx, stop := context.WithTimeout(f.ctx, longestRun)
	defer stop()
	watch, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	f.helpers.Go(func() { f.watch(watch) })

	result, err := f.runGraph(runner.WithPermit(ctx, f.stillOwned))
	close(f.ended)
	f.answer, f.err = f.conclude(context.Cause(ctx), result, err)
	unwatch()
	f.setStopped()
	f.helpers.Wait()
}

// actFor is how long a claim is acted for without its lease being moved; others
// may take it over after the whole lease.
const actFor = leaseFor * 7 / 10

// errLapsed ends a run here whose claim may have ended without this process
// having noticed: it was stopped, or the database is away.
var errLapsed = &pawl.Error{Code: pawl.CodeUnavailable, Op: "run graph", Msg: "the claim of the run may be over, because no heartbeat reached the database"}

// stillOwned is asked before anything leaves. Nothing leaves any more once it has
// failed, and the run is given back.
func (f *flight) stillOwned() error {
	if f.s.alive() == nil && time.Since(*f.beaten.Load()) < actFor {
		return nil
	}
	f.cancel(errLapsed)
	return errLapsed
}

// setStopped makes it too late to ask for a stop.
func (f *flight) setStopped() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
}

// runGraph runs the graph, or, if it is to be stopped already, sees to it that
// it does not go on elsewhere. A caller whose key is not there runs nothing; what
// was begun before is found again by a later attempt.
func (f *flight) runGraph(ctx context.Context) (runner.Result, error) {
	err := f.identify(ctx)
	if f.stopAtOnce {
		return f.stopElsewhere(ctx), nil // an executor that misses the key refuses, which is told
	}
	if fault, ok := errors.AsType[*callerFault](err); ok {
		return runner.Failure(runner.CodeInternal, fault.Error()), nil
	}
	if err != nil {
		return runner.Result{}, err
	}
	result, err := f.exec.Run(ctx, f.run, f.emit)
	return f.run.Caller.Key.Clean(result), f.run.Caller.Key.CleanError(err)
}

// stopElsewhere cancels a run that this process does not follow.
func (f *flight) stopElsewhere(ctx context.Context) runner.Result {
	m, _ := f.snapshot()
	run := f.run
	run.Remote = m.Remote
	if !f.cancelExecutor(ctx, run) {
		return runner.Result{Code: string(contract.Aborted), Message: "the run was cancelled, and its executor did not take note", Unknown: true}
	}
	return runner.Result{Code: string(contract.Aborted), Message: "the run was cancelled"}
}

// emit takes the events of the run. It blocks until they are stored.
func (f *flight) emit(e runner.Event) error {
	switch e.Kind {
	case runner.KindProgress:
		f.s.progress(f.run.RunID, f.redact(e.Text))
	case runner.KindUsage:
		if e.Usage != nil {
			f.use(*e.Usage)
		}
	case runner.KindRemote:
		return f.remember(e)
	case runner.KindOutput:
		f.show(e.Output)
	}
	return nil
}

// show keeps what the run has written so far. It never fails the run: all of it is
// written with the outcome.
func (f *flight) show(output json.RawMessage) {
	err := f.write(func(ctx context.Context, tx *store.Tx) error {
		return executionstore.In(tx).ShowExecution(ctx, f.key, f.owner, output)
	})
	if err != nil {
		f.s.log.Warn("what a run has written is shown later", "run", f.run.RunID, "err", err)
		return
	}
	f.s.shown(f.run.ScheduleID, f.run.Schedule)
}

// use charges a unit of usage. It never fails the run: what cannot be written
// now is written with the outcome.
func (f *flight) use(u runner.Usage) {
	key := f.run.Caller.Key
	u.Unit, u.Model = key.CleanText(u.Unit), key.CleanText(u.Model)
	f.mu.Lock()
	fact := f.s.factOf(u)
	fact.Unit = billing.Unit(u.Unit, f.memory.Units+len(f.facts)+1)
	f.facts = append(f.facts, fact)
	f.mu.Unlock()
	if u.Unit == "" {
		f.s.log.Warn("an executor reported usage without a unit", "run", f.run.RunID, "unit", fact.Unit)
	}
	err := f.write(func(ctx context.Context, tx *store.Tx) error {
		return billing.Charge(ctx, tx, f.bill, []billing.Fact{fact})
	})
	if err != nil {
		f.s.log.Warn("a receipt is written later", "run", f.run.RunID, "unit", fact.Unit, "err", err)
	}
}

// remember stores what the executor needs to find its run again.
func (f *flight) remember(e runner.Event) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.memory.Remote = e.Remote
	raw := f.memory.json()
	return f.write(func(ctx context.Context, tx *store.Tx) error {
		return executionstore.In(tx).RememberExecution(ctx, f.key, f.owner, raw)
	})
}

// write is a transaction that goes on when the run or the service is stopped.
func (f *flight) write(fn store.Func) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(f.s.base), callTimeout)
	defer cancel()
	return f.s.db.WriteShared(ctx, f.key, fn)
}

// watch moves the lease and looks whether the run was asked to stop, until
// everything is written. A lost lease ends the run here.
func (f *flight) watch(ctx context.Context) {
	ticks := time.NewTicker(lookEvery)
	defer ticks.Stop()
	beaten := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		var cancelAt time.Time
		var err error
		switch now := time.Now(); {
		case now.Sub(beaten) >= beatEvery:
			beaten = now
			cancelAt, err = f.beat(ctx)
		case f.s.db.Shared(): // else whoever cancels is in this process
			cancelAt, err = f.loadCancel(ctx)
		}
		switch {
		case errors.Is(err, pawl.ErrLeaseLost):
			f.cancel(err)
			return
		case err != nil && ctx.Err() == nil:
			f.s.log.Warn("the lease of a run could not be moved", "run", f.run.RunID, "err", err)
		case !cancelAt.IsZero():
			f.askStop(ctx)
		}
	}
}

func (f *flight) beat(ctx context.Context) (cancelAt time.Time, err error) {
	begun := time.Now()
	err = f.s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		cancelAt, err = executionstore.In(tx).BeatExecution(ctx, f.key, f.owner, tx.Now.Add(leaseFor))
		return err
	})
	if err == nil {
		f.beaten.Store(&begun)
	}
	return cancelAt, err
}

func (f *flight) loadCancel(ctx context.Context) (cancelAt time.Time, err error) {
	err = f.s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		e, err := executionstore.In(tx).ExecutionByKey(ctx, f.key)
		if err == nil && e.Owner == f.owner {
			cancelAt = e.CancelAt
		}
		return err
	})
	return cancelAt, err
}

// askStop tells the executor to stop, and ends the run here if it has not ended
// a moment later.
func (f *flight) askStop(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return
	}
	f.stopped = true
	run := f.run
	run.Remote = f.memory.Remote
	f.helpers.Go(func() {
		f.cancelExecutor(context.WithoutCancel(ctx), run)
		select {
		case <-f.ended:
		case <-time.After(cancelGrace):
			f.cancel(runner.ErrCancelled)
		}
	})
}

// cancelExecutor reports whether the executor took note that a run is cancelled.
func (f *flight) cancelExecutor(ctx context.Context, run runner.Run) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := run.Caller.Key.CleanError(f.exec.Cancel(ctx, run))
	if err != nil {
		f.s.log.Warn("a run could not be cancelled at its executor", "run", run.RunID, "err", err)
	}
	return err == nil
}
