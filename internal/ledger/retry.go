package ledger

import (
	"context"
	"errors"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// Retry inserts the successor of a run that stopped, in the shape that the
// rules of recovery give it: afresh, forward with copies of the results, or
// waiting for reconciliation. An active one is to be executed at once by the
// owner of the fence. It is called when the way out has come (Decision.Exit):
// the backoff is over, a fix is there, the outcome is known, a person asked.
//
// version is the script version to use; empty is the same as before. After a
// logic failure of a workflow it must be another one, unless asked: a
// person who says that the outside is mended knows more than the rule.
//
// It fails with pawl.ErrConflict when nothing may follow the run, when it has
// a successor already, or when the lane has an active run.
func (l *Ledger) Retry(ctx context.Context, tx *store.Tx, owner store.Fence, r runstore.Run, version string, asked bool) (runstore.Run, error) {
	const op = "retry run"
	if err := tx.Fence(ctx, owner); err != nil {
		return runstore.Run{}, err
	}
	now, err := runstore.In(tx).HoldRun(ctx, r.ID)
	if err != nil {
		return runstore.Run{}, err
	}
	v, err := l.View(ctx, tx, now)
	if err != nil {
		return runstore.Run{}, err
	}
	d := run.Decide(v)
	if d.Successor == run.SuccessorNone {
		return runstore.Run{}, refuse(op, now, "nothing can follow it: %s", d.Reason)
	}
	if version == "" {
		version = now.ScriptVersion
	}
	if d.Exit == run.ExitFix && version == now.ScriptVersion && !asked {
		return runstore.Run{}, refuse(op, now, "its script failed and has not changed since")
	}
	return l.succeed(ctx, tx, owner, now, d, version, tx.Now)
}

// Resume makes a run that waits for approval or reconciliation active again:
// the same row, at the same phase, with what it reserved. It is called
// by the owner of the lane, when the wait is over.
func (l *Ledger) Resume(ctx context.Context, tx *store.Tx, owner store.Fence, r runstore.Run) (runstore.Run, error) {
	const op = "resume run"
	if err := tx.Fence(ctx, owner); err != nil {
		return runstore.Run{}, err
	}
	now, err := runstore.In(tx).HoldRun(ctx, r.ID)
	if err != nil {
		return runstore.Run{}, err
	}
	s, err := runstore.In(tx).Successor(ctx, r.ID)
	if err == nil {
		return runstore.Run{}, refuse(op, now, "it is history: run %s follows it", s.ID)
	}
	if !errors.Is(err, pawl.ErrNotFound) {
		return runstore.Run{}, err
	}
	v, err := l.View(ctx, tx, now)
	if err != nil {
		return runstore.Run{}, err
	}
	d := run.Decide(v)
	if !d.Resume || !run.CanMove(now.Status, pawl.StatusActive) {
		return runstore.Run{}, refuse(op, now, "it is %s at %s: %s", now.Status, now.Phase, d.Reason)
	}
	active, err := runstore.In(tx).ActivateRun(ctx, now, owner)
	if err != nil {
		return runstore.Run{}, err
	}
	l.emit(tx, Resumed, active, run.Decision{})
	return active, nil
}
