package ledger

import (
	"context"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// Spec asks for a first attempt.
type Spec struct {
	Kind          pawl.Kind
	Lane          string
	Handler       string
	HandlerType   pawl.HandlerType
	Trigger       string
	ScheduledFor  time.Time // zero if it stands for no slot
	ScriptVersion string
	// Validated begins behind the first phase: what it is for was done in the
	// same transaction.
	Validated bool
}

// Begin inserts an active run at its first phase, to be executed at once by
// the owner of the fence. It fails with pawl.ErrConflict (run_active) when the
// lane has an active run; the transaction can go on after that, so that a slot
// can be recorded as skipped. Whether the lane is halted is asked before
// (run.Halts), not here.
func (l *Ledger) Begin(ctx context.Context, tx *store.Tx, owner store.Fence, s Spec) (runstore.Run, error) {
	if phaseOf(s) == "" || s.Lane == "" || s.Kind == "" {
		return runstore.Run{}, &pawl.Error{Code: pawl.CodeInternal, Op: "begin run", Msg: fmt.Sprintf("%q is not a lane of kind %q with a handler of type %q", s.Lane, s.Kind, s.HandlerType)}
	}
	if err := tx.Fence(ctx, owner); err != nil {
		return runstore.Run{}, err
	}
	r, err := runstore.In(tx).InsertRun(ctx, first(owner, s, tx.Now))
	if err != nil {
		return runstore.Run{}, err
	}
	if s.HandlerType == pawl.HandlerSchedule { // the attempts are those of one slot
		if err := runstore.In(tx).ClearRetry(ctx, s.Kind, s.Lane); err != nil {
			return runstore.Run{}, err
		}
	}
	l.emit(tx, Begun, r, run.Decision{})
	return r, nil
}

// BeginAll is Begin for lanes without failures, whose fences the transaction has.
// If one of them has an active run the transaction fails with
// store.ErrSetRefused.
func (l *Ledger) BeginAll(ctx context.Context, tx *store.Tx, drafts []runstore.Run) ([]runstore.Run, error) {
	list, err := runstore.In(tx).InsertRuns(ctx, drafts)
	if err != nil {
		return nil, err
	}
	for _, r := range list {
		l.emit(tx, Begun, r, run.Decision{})
	}
	return list, nil
}

// Draft is Begin without a database: the run as Enter will store it, created
// after the given run of its lane.
func (l *Ledger) Draft(owner store.Fence, s Spec, before runstore.Run) runstore.Run {
	now := time.Now().UTC().Truncate(time.Millisecond)
	r := first(owner, s, now)
	if !r.CreatedAt.After(before.CreatedAt) {
		r.CreatedAt = before.CreatedAt.Add(time.Millisecond)
	}
	return r
}

// Enter stores a draft, at its first phase or as far as it came since: see Advance.
func (l *Ledger) Enter(ctx context.Context, tx *store.Tx, draft runstore.Run, c Checkpoint, path ...pawl.Phase) (runstore.Run, error) {
	at, err := c.check("enter run", draft, path)
	if err != nil {
		return runstore.Run{}, err
	}
	if err := tx.Fence(ctx, draft.Owner); err != nil {
		return runstore.Run{}, err
	}
	entered := draft
	if len(path) > 0 {
		entered.Phase, entered.PrepareResult, entered.MutationResult, entered.UpdatedAt = at, c.PrepareResult, c.MutationResult, tx.Now
	}
	if err := runstore.In(tx).PutRun(ctx, entered); err != nil {
		return runstore.Run{}, err
	}
	l.emit(tx, Begun, draft, run.Decision{})
	l.emitPath(tx, entered, path)
	return entered, nil
}

// first is a first attempt that begins now.
func first(owner store.Fence, s Spec, now time.Time) runstore.Run {
	return runstore.Run{
		ID: store.NewID(), Kind: s.Kind, Lane: s.Lane, Handler: s.Handler, HandlerType: s.HandlerType,
		Trigger: s.Trigger, ScheduledFor: s.ScheduledFor, ScriptVersion: s.ScriptVersion,
		Phase: phaseOf(s), Status: pawl.StatusActive, Attempt: 1, Owner: owner, CreatedAt: now, UpdatedAt: now, StartedAt: now,
	}
}

// phaseOf is the phase that a run begins at, empty if there is none.
func phaseOf(s Spec) pawl.Phase {
	if s.Validated && s.HandlerType == pawl.HandlerSchedule {
		return pawl.PhaseExecuting
	}
	return run.FirstPhase(s.HandlerType)
}

// succeed inserts the successor that was decided on and settles what the run
// holds. An active successor belongs to the owner of the fence.
func (l *Ledger) succeed(ctx context.Context, tx *store.Tx, owner store.Fence, r runstore.Run, d run.Decision, version string, started time.Time) (runstore.Run, error) {
	next := runstore.Run{
		ID: store.NewID(), Kind: r.Kind, Lane: r.Lane, Handler: r.Handler, HandlerType: r.HandlerType,
		Trigger: r.Trigger, ScheduledFor: r.ScheduledFor, ScriptVersion: version,
		RetryOf: r.ID, Attempt: r.Attempt + 1, Phase: d.SuccessorPhase, Status: d.SuccessorStatus,
	}
	if d.CopyResults {
		next.PrepareResult, next.MutationResult = r.PrepareResult, r.MutationResult
	}
	if next.Status == pawl.StatusActive {
		next.Owner, next.StartedAt = owner, started
	}
	next, err := runstore.In(tx).InsertRun(ctx, next)
	if err != nil {
		return runstore.Run{}, err
	}
	if err := l.settle(ctx, tx, r, d, next.ID); err != nil {
		return runstore.Run{}, err
	}
	l.emit(tx, Begun, next, d)
	return next, nil
}
