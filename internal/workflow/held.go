package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/store"
)

// held is the commit of a run that is written with the first steps of the next one,
// or by itself if these do not come soon: what the run did is on the disk, nobody
// waits for what it leaves, and the lane has more to do. Losing it only means that
// next runs again, from that result.
//
// The next run stands on it, so it is written only together with it or after it. If
// that one cannot be written, this one is all the same, when its owner looks again.
type held struct {
	mu    sync.Mutex
	of    *execution // nil if there is none; guarded by mu, as are the others
	step  transition
	timer *time.Timer
}

// hold ends the run in memory.
func (x *execution) hold(ctx context.Context, commit transition, state json.RawMessage) {
	ctx = context.WithoutCancel(ctx)
	h := &x.held
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of, h.step = x, commit
	h.timer = time.AfterFunc(holdTime, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.of == x {
			_ = h.writeLocked(ctx) // whoever writes next finds out
		}
	})
	x.run.Phase, x.run.Status, x.run.OutputState = pawl.PhaseCommitted, pawl.StatusCommitted, state
}

// commit is the step in the transaction of somebody who holds mu.
func (h *held) commit(ctx context.Context, tx *store.Tx) error {
	if h.of == nil {
		return nil
	}
	if _, err := h.step(ctx, tx, h.of.unwritten.row); err != nil {
		return err
	}
	return h.of.flush(ctx, tx)
}

// writeLocked writes the commit by itself.
func (h *held) writeLocked(ctx context.Context) error {
	if h.of == nil {
		return nil
	}
	if err := h.of.cfg.fault("before held"); err != nil {
		return err
	}
	err := h.of.db.WritePlan(context.WithoutCancel(ctx), func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Fence(ctx, h.of.run.Owner); err != nil {
			return err
		}
		return h.commit(ctx, tx)
	}, store.Lazy)
	if err == nil {
		h.clear()
	}
	return err
}

func (h *held) clear() {
	if h.of != nil {
		h.timer.Stop()
		h.of, h.step, h.timer = nil, nil, nil
	}
}

// writeCommit writes the commit that is held, for whoever needs it in the database.
// If that cannot be, it is as if the run had not ended, and its owner forgets what it
// knew.
func (e *session) writeCommit(ctx context.Context) error {
	e.held.mu.Lock()
	defer e.held.mu.Unlock()
	x, err := e.held.of, e.held.writeLocked(ctx)
	if err == nil {
		return nil
	}
	e.held.clear()
	e.ahead, e.states = nil, nil
	switch {
	case errors.Is(err, pawl.ErrConflict): // a person was faster
		x.markDirty()
	case errors.Is(err, pawl.ErrUnavailable), errors.Is(err, pawl.ErrLeaseLost):
		x.ledger.GaveUp(x.run.ID, ledger.Failure{}) // nothing crashed
	}
	return err
}
