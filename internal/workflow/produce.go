package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/partitionstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// MaxState is the most bytes of the state that a handler returns.
const MaxState = 1 << 20

// produce runs the handler of a producer and commits what it gathered.
func (x *execution) produce(ctx context.Context) error {
	p, ok := x.config.Producer(x.run.Handler)
	if !ok {
		return x.stop(ctx, pawl.ClassInternal, "handler", vanished(x.run))
	}
	h := x.newHost(producerRules, p.Publishes, nil)
	x.begins()
	result, err := x.call(ctx, "handler", h, orAbsent(x.state)...)
	if err != nil || result == nil {
		return err
	}
	if fault := checkState(result); fault != "" {
		return x.stop(ctx, pawl.ClassLogic, "state", fault)
	}
	next, err := nextRun(p.Schedule)
	if err != nil { // never guessed
		return x.stop(ctx, pawl.ClassInternal, "schedule", err.Error())
	}
	return x.commit(ctx, h, result, func(ctx context.Context, tx *store.Tx) error {
		if p.Schedule.limited() {
			return x.movesOn(ctx, tx, p)
		}
		at, _ := next(tx.Now)
		return workflowstore.In(tx).ProducerRan(ctx, scheduleRow(x.id, p, planned{}, at), x.run.StartedAt)
	})
}

// nextRun returns what computes the next instant of a schedule that has one.
func nextRun(s Schedule) (func(time.Time) (time.Time, bool), error) {
	spec, err := s.Spec()
	if err != nil {
		return nil, fmt.Errorf("the schedule cannot be used: %w", err)
	}
	if _, ok := spec.Next(time.Now()); !ok && !s.limited() { // which may end
		return nil, fmt.Errorf("the schedule %s has no next instant", s.Value())
	}
	return spec.Next, nil
}

// orAbsent passes a state that was never set as absent, not as null.
func orAbsent(state json.RawMessage) []json.RawMessage {
	if state == nil {
		return nil
	}
	return []json.RawMessage{state}
}

// checkState says what is wrong with a returned state, or is empty.
func checkState(r *script.Result) string {
	if r.HasValue && len(r.Value) > MaxState {
		return fmt.Sprintf("the state that the handler returned has %d bytes; the limit is %d: keep large things in events or outside", len(r.Value), MaxState)
	}
	return ""
}

// commit ends the run: its events, inputs, state and whatever belongs to its
// kind of handler become true in one transaction. It does not wait for the disk,
// and if the next run is certain it waits for that one (see held): whoever dies
// before it is there runs next again, from the result that is, or begins anew what
// called nothing.
func (x *execution) commit(ctx context.Context, h *host, result *script.Result, also func(context.Context, *store.Tx) error) error {
	var state json.RawMessage
	if result != nil && result.HasValue {
		state = result.Value
	}
	if err := x.cfg.fault("before commit"); err != nil {
		return err
	}
	n := x.news
	ask := !x.keepsNews(h)
	if ask {
		n = &news{}
	}
	step := func(ctx context.Context, tx *store.Tx, r runstore.Run) (runstore.Run, error) {
		if err := x.writeEffects(ctx, tx, h, state); err != nil {
			return runstore.Run{}, err
		}
		if also != nil {
			if err := also(ctx, tx); err != nil {
				return runstore.Run{}, err
			}
		}
		if r.HandlerType == pawl.HandlerProducer {
			r.Brought = new(int64(len(h.events)))
		}
		next, err := x.ledger.CommitKnowing(ctx, tx, r, state, x.mutation, x.view.calm)
		if err == nil && ask {
			err = x.askAhead(ctx, tx, n)
		}
		return next, err
	}
	if !ask && n.foreseen != nil && len(n.foreseen.events) > 0 && !x.cfg.writeThrough {
		x.hold(step, state)
	} else if err := x.write(ctx, step, store.Lazy); err != nil {
		return fmt.Errorf("commit run %s: %w", x.run.ID, err)
	}
	x.ended = true
	x.acknowledge(n.more)
	x.lookAhead(n, state)
	return x.cfg.fault("committed")
}

// acknowledge notes what the consumer has seen. Of a run whose prepare ran in
// an earlier attempt nobody knows what that was, so its consumer stays as
// dirty as it is: it is asked once more at most.
func (x *execution) acknowledge(more bool) {
	c, ok := x.view.config.Consumer(x.run.Handler)
	switch {
	case !ok || x.run.HandlerType != pawl.HandlerConsumer:
	case x.looked:
		x.memory.acknowledge(c, x.view.seqs, more)
	case more:
		x.markDirty()
	}
}

// writeEffects writes what the handler gathered while it ran.
func (x *execution) writeEffects(ctx context.Context, tx *store.Tx, h *host, state json.RawMessage) error {
	if h != nil {
		if err := eventstore.In(tx).AddInputs(ctx, h.inputs); err != nil {
			return err
		}
		events := h.events
		if x.run.HandlerType == pawl.HandlerConsumer && len(events) > 0 {
			causes, err := x.causes(ctx, tx)
			if err != nil {
				return err
			}
			for i := range events {
				events[i].CausedBy = causes
			}
		}
		if _, err := eventstore.In(tx).Publish(ctx, x.id, x.run.ID, events); err != nil {
			return err
		}
		if x.partID != "" && len(events) > 0 { // whoever takes them is in another lane
			if err := x.arm(ctx, tx, x.view.workflow, tx.Now); err != nil {
				return err
			}
		}
	}
	if x.partID != "" {
		return partitionstore.In(tx).SetState(ctx, x.id, x.partID, state)
	}
	return workflowstore.In(tx).SetHandlerState(ctx, x.id, x.run.Handler, state)
}

// reservations are those of the store.
func (p Prepared) reservations() []eventstore.Reservation {
	out := make([]eventstore.Reservation, len(p.Reservations))
	for i, r := range p.Reservations {
		out[i] = eventstore.Reservation{Topic: r.Topic, IDs: r.IDs}
	}
	return out
}

// phaseNow is the instant that a phase sees.
func phaseNow() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
