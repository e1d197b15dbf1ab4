package workflow

import (
	"context"
	"encoding/json"
	"errors"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// resultNone is the result of a run that called nothing.
const resultNone = `{"status":"none"}`

// prepare asks the script what to take and what to do with it, and reserves it.
func (x *execution) prepare(ctx context.Context) error {
	c, ok := x.config.Consumer(x.run.Handler)
	if !ok {
		return x.stop(ctx, pawl.ClassInternal, "handler", vanished(x.run))
	}
	x.looked = true
	h := x.newHost(prepareRules, nil, c.Subscribe)
	x.begins()
	result, err := x.call(ctx, "prepare", h, orAbsent(x.state)...)
	if err != nil || result == nil {
		return err
	}
	prepared, err := CheckPrepared(result.Value, result.HasValue, c, h.now)
	if err != nil {
		return x.stop(ctx, pawl.ClassLogic, "prepare_result", textOf(err))
	}
	err = x.reserve(ctx, c, prepared)
	if errors.Is(err, pawl.ErrInvalid) { // of the events that it named
		return x.stop(ctx, pawl.ClassLogic, "reservation", textOf(err))
	}
	return err
}

// textOf is what people read of an error: what and hint.
func textOf(err error) string {
	e, ok := errors.AsType[*pawl.Error](err)
	if !ok {
		return err.Error()
	}
	if e.Hint == "" {
		return e.Msg
	}
	return e.Msg + " (" + e.Hint + ")"
}

// reserve stores what prepare returned and takes the events, all or none, and
// goes on to the phase that comes next. Nothing was sent yet, so losing it
// only repeats prepare.
func (x *execution) reserve(ctx context.Context, c Consumer, p Prepared) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	kept, path := ledger.Checkpoint{PrepareResult: raw}, []pawl.Phase{pawl.PhasePrepared, run.AfterPrepared(p.Reserved())}
	if path[1] == pawl.PhaseMutating && !c.HasMutate {
		kept.MutationResult, path = json.RawMessage(resultNone), append(path, pawl.PhaseMutated, pawl.PhaseEmitting)
	}
	if err := x.cfg.fault("before reserve"); err != nil {
		return err
	}
	err = x.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Fence(ctx, x.run.Owner); err != nil {
			return err
		}
		if err := eventstore.In(tx).ReserveEvents(ctx, x.id, x.run.ID, p.reservations()); err != nil {
			return err
		}
		next, err := x.ledger.Advance(ctx, tx, x.run, kept, path...)
		if err != nil {
			return err
		}
		tx.AfterCommit(func() { x.run, x.prepared = next, p })
		return x.flush(ctx, tx)
	}, store.Lazy)
	if err != nil {
		return err
	}
	return x.cfg.fault("reserved")
}

// emit runs next, which always runs if there is one, and commits.
func (x *execution) emit(ctx context.Context) error {
	c, ok := x.config.Consumer(x.run.Handler)
	if !ok {
		return x.stop(ctx, pawl.ClassInternal, "handler", vanished(x.run))
	}
	wake := func(ctx context.Context, tx *store.Tx) error { return x.setWake(ctx, tx, c) }
	if !c.HasNext {
		return x.commit(ctx, nil, nil, wake)
	}
	result := x.run.MutationResult
	if len(result) == 0 {
		result = json.RawMessage(resultNone)
	}
	h := x.newHost(nextRules, c.Publishes, nil)
	done, err := x.call(ctx, "next", h, x.run.PrepareResult, result)
	if err != nil || done == nil {
		return err
	}
	if fault := checkState(done); fault != "" {
		return x.stop(ctx, pawl.ClassLogic, "state", fault)
	}
	return x.commit(ctx, h, done, wake)
}

// setWake keeps when the consumer wants to look again; unless a version was
// deployed meanwhile that gives it other topics, because that one lets it look
// at once. The workflow's row is shared, so that no deploy comes in
// between.
func (x *execution) setWake(ctx context.Context, tx *store.Tx, c Consumer) error {
	w, err := workflowstore.In(tx).ShareWorkflow(ctx, x.id)
	if err != nil {
		return err
	}
	if w.Version != x.run.ScriptVersion {
		config, err := x.session.config(ctx, tx, x.id, w.Version)
		if err != nil {
			return err
		}
		if now, ok := config.Consumer(c.Name); !ok || !sameTopics(now.Subscribe, c.Subscribe) {
			return nil
		}
	}
	return workflowstore.In(tx).SetWakeAt(ctx, x.id, x.run.Handler, x.prepared.Wake())
}
