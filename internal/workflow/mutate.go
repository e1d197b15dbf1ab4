package workflow

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// calledMutation is the call of a run and what became of it.
type calledMutation struct {
	row    mutationstore.Mutation
	target tool.Target
	result json.RawMessage
	// err is why it failed; NotApplied of a *tool.Error tells a call that did
	// not happen from one of which nobody knows.
	err error
	// refused says that the call never left: the ledger row could not be
	// written.
	refused bool
	by      string        // who knows the outcome: the answer itself, or reconcile
	wait    time.Duration // before it can be asked what became of it
}

// mutate runs the script's mutate and records what became of the one call that
// it makes.
func (x *execution) mutate(ctx context.Context) error {
	h := x.newHost(mutateRules, nil, nil)
	h.now = x.sameInstant(h.now)
	result, err := x.call(ctx, "mutate", h, x.run.PrepareResult)
	if err != nil || result == nil {
		return err
	}
	// The call may have happened, so its record is written even when the
	// process is about to stop.
	ctx = context.WithoutCancel(ctx)
	second := h.secondCall()
	if c, _ := x.config.Consumer(x.run.Handler); c.AfterCall && h.call != nil {
		x.trace.warn(x.run.Phase, "The call ended mutate: what is behind it in the script did not run.")
	}
	switch c := h.call; {
	case c == nil:
		return x.record(ctx, nil, json.RawMessage(resultNone))
	case c.refused:
		return c.err
	case c.err == nil:
		err = x.applied(ctx, c, second)
	case notApplied(c.err):
		f := failureFrom(c.err)
		if second != nil {
			f = second
		}
		return x.failed(ctx, c, f, !notSent(c.err))
	default:
		err = x.unknown(ctx, c, second)
	}
	if err != nil || x.ended || second == nil {
		return err
	}
	// What happened is on the disk; what the script wanted besides did not
	// happen, so it must not go on as if all were well.
	return x.stopWith(ctx, second.stored(), nil)
}

// abort ends the phase; but not before the call of mutate has ended, which
// would be cut off with it and leave nobody knowing what became of it.
func (h *host) abort(ctx context.Context, err error) error {
	h.mu.Lock()
	underWay := h.underWay
	h.mu.Unlock()
	if underWay != nil {
		select {
		case <-underWay:
		case <-ctx.Done():
		}
	}
	return script.Abort(err)
}

func notApplied(err error) bool {
	e, ok := errors.AsType[*tool.Error](err)
	return ok && e.NotApplied
}

func notSent(err error) bool {
	e, ok := errors.AsType[*tool.Error](err)
	return ok && e.NotSent
}

// mutate of the world: the ledger row is on the disk before the call leaves.
func (x *execution) openCall(ctx context.Context, t tool.Target, args json.RawMessage) *calledMutation {
	c := &calledMutation{target: t, by: "answer"}
	if len(args) == 0 {
		args = json.RawMessage("null")
	}
	title := ""
	if x.prepared.UI != nil {
		title = x.prepared.UI.Title
	}
	if c.err = x.cfg.fault("before call"); c.err != nil {
		c.refused = true
		return c
	}
	row := mutationstore.Mutation{
		ID: store.NewID(), WorkflowID: x.id, RunID: x.run.ID, Tool: t.Name, Method: t.Method.Name, Arguments: args,
		IdempotencyKey: store.NewID(), Title: title, CanReconcile: t.Method.Reconciles, AbsentAfter: absentAfter(t.Method),
	}
	_, c.err = x.writeBeside(ctx, func(ctx context.Context, tx *store.Tx, r runstore.Run) (runstore.Run, error) {
		row := row
		if x.unwritten.row.ID != "" { // else this transaction begins it
			if err := x.ledger.Hold(ctx, tx, r); err != nil {
				return r, err
			}
		}
		causes, err := x.causes(ctx, tx)
		if err != nil {
			return r, err
		}
		if x.memory.keepsKeys {
			kept, err := mutationstore.In(tx).TakeKey(ctx, x.id, actOf(row, x.prepared))
			if err != nil {
				return r, err
			}
			row.IdempotencyKey = cmp.Or(kept, row.IdempotencyKey)
		}
		if c.row, err = mutationstore.In(tx).InsertMutation(ctx, row, causes); err != nil {
			return r, err
		}
		return r, x.useApproval(ctx, tx)
	})
	if c.err == nil {
		c.err = x.cfg.fault("in flight")
	}
	if c.err == nil {
		c.err = x.claim.StillOwned()
	}
	if c.refused = c.err != nil; c.refused {
		return c
	}
	c.result, c.err = t.Connection.Call(outbound.WithPermit(ctx, x.claim.StillOwned), tool.Call{Method: t.Method.Name, Args: args, Key: c.row.IdempotencyKey})
	if err := x.cfg.fault("called"); err != nil {
		c.refused, c.err = true, err // tests: the answer is lost with the process
	}
	return c
}

// applied records the result of a call that happened.
func (x *execution) applied(ctx context.Context, c *calledMutation, second *failure) error {
	result, err := appliedResult(c.result)
	if err != nil {
		return x.unknown(ctx, &calledMutation{row: c.row, target: c.target, err: err}, second)
	}
	if x.mutation != nil {
		x.mutation = &ledger.Mutation{State: pawl.MutationApplied}
	}
	return x.record(ctx, func(ctx context.Context, tx *store.Tx) error {
		return mutationstore.In(tx).MoveMutation(ctx, c.row.ID, pawl.MutationInFlight, mutationstore.MutationChange{To: pawl.MutationApplied, Result: orNullJSON(c.result), ResolvedBy: c.by})
	}, result)
}

func orNullJSON(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// appliedResult is what next gets for a call that happened. Bytes that are no
// text are replaced, because the effect is there and must be recorded.
func appliedResult(result json.RawMessage) (json.RawMessage, error) {
	raw, err := json.Marshal(struct {
		Status string          `json:"status"`
		Result json.RawMessage `json:"result"`
	}{"applied", bytes.ToValidUTF8(orNullJSON(result), []byte("\uFFFD"))})
	if err != nil { // an answer that is no JSON came after the effect (context 3.5.7)
		return nil, &tool.Error{Class: pawl.ClassIndeterminate, Code: "answer", Msg: "the answer of the call cannot be read", Err: err}
	}
	return raw, nil
}

// record reaches mutated with the result, and emitting with it, on the disk.
func (x *execution) record(ctx context.Context, also func(context.Context, *store.Tx) error, result json.RawMessage) error {
	if err := x.cfg.fault("before result"); err != nil {
		return err
	}
	news, ask := x.foresee()
	err := x.write(ctx, func(ctx context.Context, tx *store.Tx, r runstore.Run) (runstore.Run, error) {
		if also != nil {
			if err := also(ctx, tx); err != nil {
				return runstore.Run{}, err
			}
		}
		next, err := x.ledger.Advance(ctx, tx, r, ledger.Checkpoint{MutationResult: result, Mutation: x.mutation}, pawl.PhaseMutated, pawl.PhaseEmitting)
		if err == nil && ask {
			err = x.askAhead(ctx, tx, news)
		}
		return next, err
	})
	if err != nil {
		return fmt.Errorf("record the result of run %s: %w", x.run.ID, err)
	}
	x.news = news
	return x.cfg.fault("recorded")
}

// failed records a call that did not happen, and stops the run, in one
// transaction. Unless the other end said so itself, the next call for the same
// act carries the same key.
func (x *execution) failed(ctx context.Context, c *calledMutation, f *failure, refused bool) error {
	change := mutationstore.MutationChange{To: pawl.MutationFailed, ErrorClass: f.class, ErrorMessage: f.text, ResolvedBy: c.by}
	if !refused {
		change.KeepFor = actOf(c.row, x.prepared)
	}
	return x.stopWith(ctx, f.stored(), func(ctx context.Context, tx *store.Tx) error {
		return mutationstore.In(tx).MoveMutation(ctx, c.row.ID, pawl.MutationInFlight, change)
	})
}

// causes are the inputs from which the events of the run come.
func (x *execution) causes(ctx context.Context, tx *store.Tx) ([]string, error) {
	if known, ok := x.peeked.causesOf(x.prepared); ok {
		return known, nil
	}
	return eventstore.In(tx).CausesOf(ctx, x.id, x.prepared.reservations())
}

// newHost makes the host of one phase of the run.
func (x *execution) newHost(r rules, publishes, subscribes []string) *host {
	return &host{rules: r, world: storeWorld{x}, now: phaseNow(), scope: x.id, createdBy: x.run.ID, publishes: publishes, subscribes: subscribes}
}

// storeWorld is the world of a real run.
type storeWorld struct{ x *execution }

func (w storeWorld) peek(ctx context.Context, topic string, limit int) (events []eventstore.Event, err error) {
	events, known := w.x.seenAhead(topic, limit)
	if known {
		w.x.peeked.add(events)
		return events, nil
	}
	err = w.x.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		if part, parted := w.x.takesFrom(); parted {
			events, err = eventstore.In(tx).PeekPart(ctx, w.x.id, topic, part, limit, maxPeekBytes)
			return err
		}
		events, err = eventstore.In(tx).PeekEvents(ctx, w.x.id, topic, limit, maxPeekBytes)
		return err
	})
	w.x.memory.habit.sawEvents(events)
	w.x.peeked.add(events)
	return events, err
}

func (w storeWorld) byMessage(ctx context.Context, topic string, ids []string) (events []eventstore.Event, err error) {
	err = w.x.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		events, err = eventstore.In(tx).EventsByMessageWithin(ctx, w.x.id, topic, ids, maxPeekBytes)
		return err
	})
	return events, err
}

func (w storeWorld) knownInput(ctx context.Context, id string) (known bool, err error) {
	err = w.x.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		found, err := eventstore.In(tx).KnownInputs(ctx, w.x.id, []string{id})
		known = found[id]
		return err
	})
	return known, err
}

func (w storeWorld) lookup(connection, method string) (tool.Target, error) {
	t, err := w.x.cfg.Tools.Lookup(connection, method)
	if err == nil {
		err = w.x.checkRight(connection, method)
	}
	return t, err
}

func (w storeWorld) read(ctx context.Context, t tool.Target, args json.RawMessage) (json.RawMessage, error) {
	w.x.used(t.Name, t.Method.Name)
	if err := w.x.writeHeld(ctx); err != nil { // whoever is called can look at the run
		return nil, err
	}
	return t.Connection.Call(ctx, tool.Call{Method: t.Method.Name, Args: args})
}

func (w storeWorld) noted(op string, call, answer json.RawMessage, err error) {
	w.x.trace.read(w.x.run.Phase, op, clipCall(w.x.cfg.Tools.Redact(call)), answer, err)
}

func (w storeWorld) approved(ctx context.Context, t tool.Target, args json.RawMessage) (bool, error) {
	return w.x.approved(ctx, t, args)
}

func (w storeWorld) mutate(ctx context.Context, t tool.Target, args json.RawMessage) *calledMutation {
	w.x.used(t.Name, t.Method.Name)
	return w.x.openCall(ctx, t, args)
}

var _ script.Host = (*host)(nil)
