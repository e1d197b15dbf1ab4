package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// Crash ends an active run that nobody executes any more, and inserts its
// successor in the same transaction (A-123..A-125, X-08). The successor has
// not started; the owner of the fence executes it, beginning with Start. A run
// that this very process gave up is not counted; see GaveUp.
//
// It fails with pawl.ErrConflict if the run is not active any more.
func (l *Ledger) Crash(ctx context.Context, tx *store.Tx, owner store.Fence, r runstore.Run) (Outcome, error) {
	if err := tx.Fence(ctx, owner); err != nil {
		return Outcome{}, err
	}
	now, err := runstore.In(tx).HoldRun(ctx, r.ID)
	if err != nil {
		return Outcome{}, err
	}
	if now.Status != pawl.StatusActive || now.Owner != r.Owner {
		return Outcome{}, refuse("crash run", now, "it is %s by now", now.Status)
	}
	f, left := l.gaveUp(r.ID)
	tx.AfterCommit(func() { l.forgetLeft(r.ID) })
	if left && f.Class != "" {
		return l.stopLeft(ctx, tx, now, f)
	}
	var why *runstore.RunFailure
	if left {
		why = interrupted()
	}
	crashed, err := runstore.In(tx).StopRun(ctx, now, pawl.StatusCrashed, true, why)
	if err != nil {
		return Outcome{}, err
	}
	v, err := l.View(ctx, tx, crashed)
	if err != nil {
		return Outcome{}, err
	}
	o := Outcome{Run: crashed, Decision: run.Decide(v)}
	l.emit(tx, Crashed, crashed, o.Decision)
	o.Retry, o.Exhausted, err = changeRetry(ctx, tx, crashed, func(was run.Retry) (run.Retry, bool) {
		if left {
			return was, run.CrashLoop(was.Crashes)
		}
		next, ok := was.Crash()
		return next, !ok
	})
	if err != nil {
		return Outcome{}, err
	}
	if !o.followed() {
		return o, l.settle(ctx, tx, crashed, o.Decision, "")
	}
	o.Successor, err = l.succeed(ctx, tx, owner, crashed, o.Decision, crashed.ScriptVersion, time.Time{})
	return o, err
}

// followed reports whether the successor of a crashed run is made at once.
func (o Outcome) followed() bool {
	switch o.Decision.Successor {
	case run.SuccessorNone:
		return false
	case run.SuccessorSamePhase: // it only waits, so it cannot crash
		return true
	default:
		return !o.Exhausted
	}
}

// RecoverLane crashes the active run of a lane if nobody executes it: its
// owner is gone, or gave up on it. The owner of the lane calls it when it
// takes up the lane and executes nothing there yet. The zero Outcome says that
// there was nothing to do. Afterwards an active run of the lane is one that
// waits for its Start.
func (l *Ledger) RecoverLane(ctx context.Context, db *store.DB, owner store.Fence, kind pawl.Kind, lane string) (o Outcome, err error) {
	err = db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		o = Outcome{}
		if err := tx.Fence(ctx, owner); err != nil {
			return err
		}
		r, err := runstore.In(tx).ActiveRun(ctx, kind, lane)
		switch {
		case errors.Is(err, pawl.ErrNotFound):
			return nil
		case err != nil:
			return err
		case r.Owner == owner && r.StartedAt.IsZero():
			return nil
		}
		o, err = l.Crash(ctx, tx, owner, r)
		return err
	})
	if err != nil {
		return Outcome{}, fmt.Errorf("recover %s %s: %w", kind, lane, err)
	}
	return o, nil
}
