package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/telemetry"
)

// execution is one run that this process executes.
type execution struct {
	*session
	view     *view
	draft    runstore.Run // as it began, if that was here
	run      runstore.Run // as the last transition left it; see unwritten
	config   Config       // of the run's version
	rights   rights       // what that version may call; nil is everything
	state    json.RawMessage
	prepared Prepared
	trace    trace
	looked   bool                    // prepare ran here, so that the view is what it saw
	approval *mutationstore.Approval // of the call that is about to be made
	ended    bool                    // committed, stopped or cancelled

	// mutation is what is known about the call of the run; nil if it was made
	// before this process took over.
	mutation  *ledger.Mutation
	cancel    context.CancelCauseFunc // of the context that it is executed with
	unwritten unwritten
	peeked    peeked
	joined    string // the traceparent of its events; empty: it is a part of what its session is

	foreseen *foreseen // what prepare saw without asking; guarded by memory.habit.mu
	news     *news     // what was asked for with the result of the call; nil if nothing was
}

// errWithdrawn is the cause with which a run ends that a person took back.
var errWithdrawn = errors.New("the run was cancelled")

// execute drives the run until it ends. It returns an error only when the
// store, the lease or the process does not let it go on; what a script does
// wrong is the run's own end.
func (x *execution) execute(ctx context.Context) error {
	x.register()
	defer x.unregister()
	defer x.unwritten.drop()
	if x.run.HandlerType == pawl.HandlerConsumer {
		x.memory.inRow++
	} else {
		x.memory.inRow = 0
	}
	err := x.drive(telemetry.InRun(ctx, x.run.ID))
	if err == nil || x.ended {
		return err
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errWithdrawn), errors.Is(err, pawl.ErrConflict):
		x.markDirty() // its events are pending again
		return &pawl.Error{Code: pawl.CodeConflict, Op: "execute run", Msg: "it was cancelled", Err: err}
	case errors.Is(cause, queue.ErrShutdown):
		x.giveBack(context.WithoutCancel(ctx))
	case errors.Is(cause, queue.ErrLeaseLost), errors.Is(err, pawl.ErrUnavailable):
		x.ledger.GaveUp(x.run.ID, ledger.Failure{}) // the database is away: nothing crashed
	}
	return err
}

func (x *execution) drive(ctx context.Context) error {
	if x.run.HandlerType == pawl.HandlerProducer {
		return x.produce(ctx)
	}
	if len(x.run.PrepareResult) > 0 {
		if err := json.Unmarshal(x.run.PrepareResult, &x.prepared); err != nil {
			return x.stop(ctx, pawl.ClassInternal, "stored_result", "the stored result of prepare cannot be read: "+err.Error())
		}
		if err := x.joinAgain(ctx); err != nil {
			return err
		}
	}
	for session := ctx; !x.ended; {
		ctx := telemetry.With(session, x.joined)
		var err error
		switch x.run.Phase {
		case pawl.PhasePreparing:
			err = x.prepare(ctx)
		case pawl.PhasePrepared:
			err = x.write(ctx, x.advance(ledger.Checkpoint{}, run.AfterPrepared(x.prepared.Reserved())), store.Lazy)
		case pawl.PhaseMutating:
			err = x.mutate(ctx)
		case pawl.PhaseMutated:
			if before := x.view.row; before.ID == x.run.ID && before.ErrorCode == codeSecondCall {
				err = x.stop(ctx, pawl.ClassLogic, codeSecondCall, before.ErrorMessage)
				break
			}
			err = x.write(ctx, x.advance(ledger.Checkpoint{}, pawl.PhaseEmitting), store.Lazy)
		case pawl.PhaseEmitting:
			err = x.emit(ctx)
		default:
			err = x.stop(ctx, pawl.ClassInternal, "phase", "the run has the phase "+string(x.run.Phase)+", in which nothing can be done")
		}
		if errors.Is(err, eventstore.ErrNotReserved) {
			err = x.unreserved(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// register lets a person's action stop the run in this process at once.
func (x *execution) register() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.running[x.run.ID] = x.cancel
}

func (x *execution) unregister() {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.running, x.run.ID)
}

// withdraw stops a run that was cancelled, if it is executed here.
func (s *Service) withdraw(runID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel, ok := s.running[runID]; ok {
		cancel(errWithdrawn)
	}
}

// giveBack cancels the run because the process stops, so that it does not look
// like a crash; one that sent something must be recovered instead. It is no
// person who cancels, so the failures before it still count.
func (x *execution) giveBack(ctx context.Context) {
	x.unwritten.drop()
	if !x.unwritten.written() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err := x.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		spent, err := runstore.In(tx).GetRetry(ctx, x.run.Kind, x.run.Lane)
		if err != nil {
			return err
		}
		if _, err := x.ledger.Cancel(ctx, tx, x.run); err != nil {
			return err
		}
		if err := runstore.In(tx).SetRetry(ctx, spent); err != nil {
			return err
		}
		return x.settleView(ctx, tx, x.view)
	})
	if err != nil {
		x.log.Info("a run is left for recovery", "run", x.run.ID, "why", err)
	}
}

func (x *execution) markDirty() {
	if x.run.HandlerType == pawl.HandlerConsumer && x.memory.marked != nil {
		x.memory.marked[x.run.Handler] = true
	}
}

// call runs one phase of the handler and returns what it returned. A nil
// result says that the run was stopped for it.
func (x *execution) call(ctx context.Context, function string, host *host, args ...json.RawMessage) (*script.Result, error) {
	program, err := x.program(ctx, x.id, x.run.ScriptVersion)
	if err != nil {
		return nil, x.stop(ctx, failureFrom(err).class, "script", "the script cannot be made ready: "+err.Error())
	}
	group := "consumers."
	if x.run.HandlerType == pawl.HandlerProducer {
		group = "producers."
	}
	if err := x.claim.StillOwned(); err != nil {
		return nil, err
	}
	result, err := x.cfg.Scripts.Run(ctx, script.Request{
		Program: program, Handler: group + x.run.Handler + "." + function, Args: args,
		Now: host.now, Seed: seedOf(x.run.ID, function), Scope: x.id, ScheduledFor: standsFor(x.run), EndsAtCall: host.mutate,
	}, host, x.cfg.Limits)
	x.trace.addLogs(x.run.Phase, result)
	if ended := context.Cause(ctx); ended != nil && host.call == nil {
		return nil, ended
	}
	if second := host.secondCall(); second != nil && host.call == nil { // nothing was sent
		return nil, x.stopWith(ctx, second.stored(), nil)
	}
	if host.asked != nil && host.failureOf(nil) == nil {
		return nil, x.ask(ctx, host)
	}
	if host.call != nil { // what became of the call decides, not what the script did
		return &result, nil
	}
	failure := host.failureOf(err)
	if failure == nil {
		return &result, nil
	}
	if failure.code == codeWorkerCrashed && !x.crashedBefore() {
		failure.class = pawl.ClassTransient // somebody killed it; a script that does so itself does it again
	}
	return nil, x.stopWith(ctx, failure.stored(), nil)
}

// codeNoConnection is the code of a run whose script calls a connection that is
// not there. That is no fault of the script: the run waits, and every new process
// tries once whether it has the connection.
const codeNoConnection = "unknown_connection"

// codeWorkerCrashed is the code of a run whose script process ended in the
// middle.
const codeWorkerCrashed = "worker_crashed"

// crashedBefore reports whether the attempt before this one ended because its
// script process did.
func (x *execution) crashedBefore() bool {
	before := x.view.row
	return before.ID != "" && x.run.RetryOf == before.ID && before.ErrorCode == codeWorkerCrashed
}

// standsFor is the instant of its schedule that the run of a producer stands for;
// zero if it was asked for.
func standsFor(r runstore.Run) time.Time {
	if r.HandlerType != pawl.HandlerProducer || r.Trigger != triggerSchedule {
		return time.Time{}
	}
	return r.ScheduledFor
}

// seedOf makes what Math.random returns the same whenever the phase is run
// again.
func seedOf(runID, function string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(runID + "/" + function)) // never fails
	return h.Sum64()
}

// advance moves the run on.
func (x *execution) advance(keep ledger.Checkpoint, path ...pawl.Phase) transition {
	return func(ctx context.Context, tx *store.Tx, r runstore.Run) (runstore.Run, error) {
		return x.ledger.Advance(ctx, tx, r, keep, path...)
	}
}

// stop ends the run with a failure of a class that was decided where it arose.
func (x *execution) stop(ctx context.Context, class pawl.Class, code, text string) error {
	return x.stopWith(ctx, ledger.Failure{Class: class, Code: code, Message: text}, nil)
}

// maxRetryAfter bounds how long the other side can make a workflow wait.
const maxRetryAfter = time.Hour

// codeDeferred is the code of a run that our own limit put off.
const codeDeferred = "deferred"

// stored is the failure as it ends a run. Our own limits may be those of a day
// or a month, and are waited for.
func (f *failure) stored() ledger.Failure {
	if f.deferred {
		return ledger.Failure{Class: pawl.ClassTransient, Code: codeDeferred, Message: f.text, RetryAfter: f.retryAfter, Deferred: true}
	}
	return ledger.Failure{Class: f.class, Code: f.code, Message: f.text, RetryAfter: min(f.retryAfter, maxRetryAfter)}
}

// stopWith is stop in one transaction with something else.
func (x *execution) stopWith(ctx context.Context, f ledger.Failure, also func(context.Context, *store.Tx) error) error {
	if err := x.cfg.fault("before stop"); err != nil {
		return err
	}
	f.Message = x.cfg.Tools.RedactText(f.Message)
	if f.Code == codeNoConnection {
		x.memory.missing = x.run.ID
	}
	err := x.write(ctx, func(ctx context.Context, tx *store.Tx, r runstore.Run) (runstore.Run, error) {
		if also != nil {
			if err := also(ctx, tx); err != nil {
				return runstore.Run{}, err
			}
		}
		o, err := x.ledger.Stop(ctx, tx, r, f)
		if err != nil {
			return runstore.Run{}, err
		}
		return o.Run, x.settleView(ctx, tx, x.view)
	})
	if err != nil {
		return fmt.Errorf("stop run %s: %w", x.run.ID, err)
	}
	x.ended = true
	x.log.InfoContext(ctx, "a run stopped", "workflow", x.view.workflow.Name, "handler", x.run.Handler, "run", x.run.ID, "phase", x.run.Phase, "status", x.run.Status, "error", f.Message)
	return x.cfg.fault("stopped")
}
