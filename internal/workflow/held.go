package workflow

import (
	"context"
	"encoding/json"
	"errors"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/store"
)

// held is the commit of a run that is written with the first steps of the next one:
// what the run did is on the disk, nobody waits for what it leaves, and the lane has
// more to do. Losing it only means that next runs again, from that result.
//
// The next run stands on it, so it is written only together with it or after it, and
// as soon (see unwritten). If that one cannot be written, this one is all the same,
// when its owner looks again. Between two runs it belongs to the session, and then
// to whoever writes for the run that follows.
type held struct {
	of   *execution // nil if there is none
	step transition
}

// hold ends the run in memory.
func (x *execution) hold(commit transition, state json.RawMessage) {
	x.held = held{x, commit}
	x.run.Phase, x.run.Status, x.run.OutputState = pawl.PhaseCommitted, pawl.StatusCommitted, state
}

// commit is the step in the transaction of somebody else.
func (h held) commit(ctx context.Context, tx *store.Tx) error {
	if h.of == nil {
		return nil
	}
	if _, err := h.step(ctx, tx, h.of.unwritten.row); err != nil {
		return err
	}
	return h.of.flush(ctx, tx)
}

// writeCommit writes the commit that is held by itself, for whoever needs it in the
// database.
func (e *session) writeCommit(ctx context.Context) error {
	x := e.held.of
	if x == nil {
		return nil
	}
	if err := e.cfg.fault("before held"); err != nil {
		return err
	}
	err := e.db.WritePlan(context.WithoutCancel(ctx), func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Fence(ctx, x.run.Owner); err != nil {
			return err
		}
		return e.held.commit(ctx, tx)
	}, store.Lazy)
	e.held = held{}
	if errors.Is(err, pawl.ErrUnavailable) || errors.Is(err, pawl.ErrLeaseLost) {
		e.ledger.GaveUp(x.run.ID, ledger.Failure{}) // nothing crashed
	}
	return err
}
