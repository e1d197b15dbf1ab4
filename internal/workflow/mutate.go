package workflow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/tool"
)

// reconcileTime bounds one question what became of a call.
const reconcileTime = 30 * time.Second

// calledMutation is the call of a run and what became of it.
type calledMutation struct {
	row    store.Mutation
	target tool.Target
	result json.RawMessage
	// err is why it failed; NotApplied of a *tool.Error tells a call that did
	// not happen from one of which nobody knows.
	err error
	// refused says that the call never left: the ledger row could not be
	// written.
	refused bool
	by      string // who knows the outcome: the answer itself, or reconcile
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
	switch c := h.call; {
	case c == nil:
		return x.record(ctx, nil, json.RawMessage(resultNone))
	case c.refused:
		return c.err
	case c.err == nil:
		return x.applied(ctx, c)
	case notApplied(c.err):
		return x.failed(ctx, c, failureFrom(c.err))
	default:
		return x.unknown(ctx, c)
	}
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
	c.err = x.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := x.ledger.Hold(ctx, tx, x.run); err != nil {
			return err
		}
		causes, err := tx.CausesOf(ctx, x.id, x.prepared.reservations())
		if err != nil {
			return err
		}
		c.row, err = tx.InsertMutation(ctx, store.Mutation{
			ID: store.NewID(), WorkflowID: x.id, RunID: x.run.ID, Tool: t.Name, Method: t.Method.Name,
			Arguments: args, IdempotencyKey: store.NewID(), Title: title, CanReconcile: t.Method.Reconciles,
		}, causes)
		if err != nil {
			return err
		}
		return x.useApproval(ctx, tx)
	})
	if c.err == nil {
		c.err = x.cfg.fault("in flight")
	}
	if c.refused = c.err != nil; c.refused {
		return c
	}
	c.result, c.err = t.Connection.Call(ctx, tool.Call{Method: t.Method.Name, Args: args, Key: c.row.IdempotencyKey})
	if err := x.cfg.fault("called"); err != nil {
		c.refused, c.err = true, err // tests: the answer is lost with the process
	}
	return c
}

// applied records the result of a call that happened.
func (x *execution) applied(ctx context.Context, c *calledMutation) error {
	result, err := appliedResult(c.result)
	if err != nil {
		return x.unknown(ctx, &calledMutation{row: c.row, target: c.target, err: err})
	}
	return x.record(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.MoveMutation(ctx, c.row.ID, pawl.MutationInFlight, store.MutationChange{To: pawl.MutationApplied, Result: orNullJSON(c.result), ResolvedBy: c.by})
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
	err := x.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Fence(ctx, x.run.Owner); err != nil {
			return err
		}
		if also != nil {
			if err := also(ctx, tx); err != nil {
				return err
			}
		}
		next, err := x.toEmitting(ctx, tx, x.run, result)
		if err != nil {
			return err
		}
		tx.AfterCommit(func() { x.run = next })
		return x.flush(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("record the result of run %s: %w", x.run.ID, err)
	}
	return x.cfg.fault("recorded")
}

// failed records a call that did not happen, and stops the run, in one
// transaction.
func (x *execution) failed(ctx context.Context, c *calledMutation, f *failure) error {
	return x.stopWith(ctx, f.stored(), func(ctx context.Context, tx *store.Tx) error {
		return tx.MoveMutation(ctx, c.row.ID, pawl.MutationInFlight, store.MutationChange{To: pawl.MutationFailed, ErrorClass: f.class, ErrorMessage: f.text, ResolvedBy: c.by})
	})
}

// unknown asks once what became of the call; if that does not help, the run
// waits for the answer (context 3.6.3).
func (x *execution) unknown(ctx context.Context, c *calledMutation) error {
	f := failureFrom(c.err)
	if c.target.Method.Reconciles {
		c.by = "reconcile"
		switch answer := ask(ctx, c.target, c.row); answer.State {
		case tool.Applied:
			c.result, c.err = answer.Result, nil
			return x.applied(ctx, c)
		case tool.NotApplied:
			return x.failed(ctx, c, &failure{class: pawl.ClassTransient, code: f.code, text: f.text + "; it did not happen"})
		case tool.Later:
		}
	}
	return x.stopWith(ctx, ledger.Failure{Class: pawl.ClassIndeterminate, Code: f.code, Message: f.text}, func(ctx context.Context, tx *store.Tx) error {
		return askLater(ctx, tx, c)
	})
}

// askLater leaves a call that was asked about in vain to the background, which
// begins after the first wait; a tool that cannot be asked leaves it to the
// transition that follows.
func askLater(ctx context.Context, tx *store.Tx, c *calledMutation) error {
	if !c.target.Method.Reconciles {
		return nil
	}
	if err := tx.MoveMutation(ctx, c.row.ID, pawl.MutationInFlight, store.MutationChange{To: pawl.MutationNeedsReconcile}); err != nil {
		return err
	}
	wait, _ := run.Reconcile(0)
	return tx.ReconcileLater(ctx, c.row.ID, 0, tx.Now.Add(wait))
}

// ask asks a tool what became of a call; a failed question is one for later.
func ask(ctx context.Context, t tool.Target, row store.Mutation) tool.Answer {
	ctx, cancel := context.WithTimeout(ctx, reconcileTime)
	defer cancel()
	answer, err := t.Connection.Reconcile(ctx, tool.Call{Method: row.Method, Args: row.Arguments, Key: row.IdempotencyKey})
	unreadable := answer.State == tool.Applied && !json.Valid(orNullJSON(answer.Result))
	if err != nil || answer.State == "" || unreadable {
		return tool.Answer{State: tool.Later}
	}
	return answer
}

// reconcile asks what became of the call of a run that waits, and records what
// it hears. Who goes on with the run is chosen next.
func (e *session) reconcile(ctx context.Context, v *view) error {
	row := *v.open
	target, err := e.cfg.Tools.Lookup(row.Tool, row.Method)
	answer := tool.Answer{State: tool.Later}
	if err == nil {
		answer = ask(ctx, target, row)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := e.cfg.fault("asked"); err != nil {
		return err
	}
	var result json.RawMessage
	if answer.State == tool.Applied {
		if result, err = appliedResult(answer.Result); err != nil {
			answer.State = tool.Later
		}
	}
	return e.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Fence(ctx, e.claim.Fence()); err != nil {
			return err
		}
		switch answer.State {
		case tool.Applied:
			if err := tx.MoveMutation(ctx, row.ID, pawl.MutationNeedsReconcile, store.MutationChange{To: pawl.MutationApplied, Result: orNullJSON(answer.Result), ResolvedBy: "reconcile"}); err != nil {
				return err
			}
			_, err := e.ledger.Advance(ctx, tx, v.row, pawl.PhaseMutated, ledger.Checkpoint{MutationResult: result})
			return err
		case tool.NotApplied:
			return tx.MoveMutation(ctx, row.ID, pawl.MutationNeedsReconcile, store.MutationChange{To: pawl.MutationFailed, ResolvedBy: "reconcile"})
		case tool.Later:
		}
		return askedInVain(ctx, tx, row)
	})
}

// askedInVain counts a question without an answer; after the last one a person
// must say what happened.
func askedInVain(ctx context.Context, tx *store.Tx, row store.Mutation) error {
	attempts := row.ReconcileAttempts + 1
	wait, ok := run.Reconcile(attempts)
	if err := tx.ReconcileLater(ctx, row.ID, attempts, tx.Now.Add(wait)); err != nil || ok {
		return err
	}
	return tx.MoveMutation(ctx, row.ID, pawl.MutationNeedsReconcile, store.MutationChange{To: pawl.MutationIndeterminate})
}

// newHost makes the host of one phase of the run.
func (x *execution) newHost(r rules, publishes, subscribes []string) *host {
	return &host{rules: r, world: storeWorld{x}, now: phaseNow(), scope: x.id, createdBy: x.run.ID, publishes: publishes, subscribes: subscribes}
}

// storeWorld is the world of a real run.
type storeWorld struct{ x *execution }

func (w storeWorld) peek(ctx context.Context, topic string, limit int) (events []store.Event, err error) {
	err = w.x.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		events, err = tx.PeekEvents(ctx, w.x.id, topic, limit)
		return err
	})
	return events, err
}

func (w storeWorld) byMessage(ctx context.Context, topic string, ids []string) (events []store.Event, err error) {
	err = w.x.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		events, err = tx.EventsByMessage(ctx, w.x.id, topic, ids)
		return err
	})
	return events, err
}

func (w storeWorld) knownInput(ctx context.Context, id string) (known bool, err error) {
	err = w.x.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		found, err := tx.KnownInputs(ctx, w.x.id, []string{id})
		known = found[id]
		return err
	})
	return known, err
}

func (w storeWorld) lookup(connection, method string) (tool.Target, error) {
	return w.x.cfg.Tools.Lookup(connection, method)
}

func (w storeWorld) read(ctx context.Context, t tool.Target, args json.RawMessage) (json.RawMessage, error) {
	return t.Connection.Call(ctx, tool.Call{Method: t.Method.Name, Args: args})
}

func (w storeWorld) noted(op string, call, answer json.RawMessage, err error) {
	w.x.trace.read(w.x.run.Phase, op, clipCall(w.x.cfg.Tools.Redact(call)), answer, err)
}

func (w storeWorld) approved(ctx context.Context, t tool.Target, args json.RawMessage) (bool, error) {
	return w.x.approved(ctx, t, args)
}

func (w storeWorld) mutate(ctx context.Context, t tool.Target, args json.RawMessage) *calledMutation {
	return w.x.openCall(ctx, t, args)
}

var _ script.Host = (*host)(nil)
