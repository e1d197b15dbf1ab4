package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/partitionstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
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
	if p := x.view.part; p != nil && p.Fault != "" {
		return x.stop(ctx, pawl.ClassLogic, "partition", p.Fault)
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
	return x.reserve(ctx, c, prepared)
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

// reserve keeps what prepare returned and takes the events, all or none, and
// goes on to the phase that comes next. Nothing was sent yet, so losing it
// only repeats prepare; and events that this prepare saw pending can be had, so
// it need not wait for the database.
func (x *execution) reserve(ctx context.Context, c Consumer, p Prepared) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	kept, path := ledger.Checkpoint{PrepareResult: raw, Mutation: x.mutation}, []pawl.Phase{pawl.PhasePrepared, run.AfterPrepared(p.Reserved())}
	if path[1] == pawl.PhaseMutating && !c.HasMutate {
		kept.MutationResult, path = json.RawMessage(resultNone), append(path, pawl.PhaseMutated, pawl.PhaseEmitting)
	}
	if err := x.cfg.fault("before reserve"); err != nil {
		return err
	}
	x.prepared = p
	x.join(x.peeked.traceOf(p))
	step := func(ctx context.Context, tx *store.Tx, r runstore.Run) (runstore.Run, error) {
		if err := x.reserveEvents(ctx, tx, r.ID, p); err != nil {
			return runstore.Run{}, err
		}
		return x.ledger.Advance(ctx, tx, r, kept, path...)
	}
	if x.peeked.all(p) {
		next := x.run
		next.Phase, next.PrepareResult, next.MutationResult = path[len(path)-1], raw, kept.MutationResult
		err = x.laterAs(ctx, next, step, func(ctx context.Context, tx *store.Tx, r runstore.Run) (runstore.Run, error) {
			r, err := x.enter(kept, path...)(ctx, tx, r)
			if err != nil {
				return r, err
			}
			return r, x.reserveEvents(ctx, tx, r.ID, p)
		})
	} else {
		err = x.write(ctx, step, store.Lazy)
	}
	if err != nil {
		return err
	}
	return x.cfg.fault("reserved")
}

// takesFrom is the partition whose events the run can take.
func (x *execution) takesFrom() (part string, parted bool) { return x.partFor(x.view, x.run.Handler) }

// partFor is the partition whose events a run of a handler can take; without partitions it
// is all events. A run of the workflow's own lane that is older than the partitions of its
// consumer leaves theirs alone.
func (e *session) partFor(v *view, handler string) (part string, parted bool) {
	if e.partID != "" {
		return e.partID, true
	}
	c, _ := v.config.Consumer(handler)
	return eventstore.Unsorted, c.Partitioned()
}

func (x *execution) reserveEvents(ctx context.Context, tx *store.Tx, runID string, p Prepared) error {
	if part, parted := x.takesFrom(); parted {
		return eventstore.In(tx).ReservePart(ctx, x.id, runID, part, p.reservations())
	}
	return eventstore.In(tx).ReserveEvents(ctx, x.id, runID, p.reservations())
}

// unreserved ends a run that wanted events which cannot be had. If prepare saw
// them pending, a person was faster and nobody did anything wrong; else the
// reservation was refused at once, and it is the script's fault.
func (x *execution) unreserved(ctx context.Context) error {
	if x.peeked.all(x.prepared) {
		x.giveBack(context.WithoutCancel(ctx))
		return &pawl.Error{Code: pawl.CodeConflict, Op: "reserve events", Msg: "an event that prepare saw is gone"}
	}
	why := x.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		if part, parted := x.takesFrom(); parted {
			if err := eventstore.In(tx).WhyNotOfPart(ctx, x.id, part, x.prepared.reservations()); err != nil {
				return err
			}
		}
		return eventstore.In(tx).WhyNotReserved(ctx, x.id, x.prepared.reservations())
	})
	if !errors.Is(why, pawl.ErrInvalid) {
		return why
	}
	return x.stop(ctx, pawl.ClassLogic, "reservation", textOf(why))
}

// peeked are the pending events that prepare saw, with the inputs they come from.
type peeked struct {
	mu     sync.Mutex
	causes map[[2]string][]string // by topic and message id; guarded by mu
	traces map[[2]string]string   // the same; guarded by mu
}

func (p *peeked) add(events []eventstore.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.causes == nil {
		p.causes, p.traces = map[[2]string][]string{}, map[[2]string]string{}
	}
	for _, e := range events {
		if e.Status == eventstore.EventPending {
			p.causes[[2]string{e.Topic, e.MessageID}] = e.CausedBy
			if e.Trace != "" {
				p.traces[[2]string{e.Topic, e.MessageID}] = e.Trace
			}
		}
	}
}

// all reports whether everything that is to be reserved was seen, and is named
// once.
func (p *peeked) all(of Prepared) bool {
	_, ok := p.causesOf(of)
	return ok
}

// causesOf are the inputs from which the reserved events come, in order and
// without repetition, if all of them were seen.
func (p *peeked) causesOf(of Prepared) (causes []string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	named := map[[2]string]bool{}
	for _, r := range of.Reservations {
		for _, id := range r.IDs {
			key := [2]string{r.Topic, id}
			from, seen := p.causes[key]
			if !seen || named[key] {
				return nil, false
			}
			named[key] = true
			causes = append(causes, from...)
		}
	}
	slices.Sort(causes)
	return slices.Compact(causes), true
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
	if x.prepared.Wake().IsZero() && x.view.wakes[c.Name].IsZero() && x.view.workflow.Version == x.run.ScriptVersion {
		return nil // whatever a deploy set meanwhile stays
	}
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
	if x.partID != "" {
		return partitionstore.In(tx).SetWake(ctx, x.id, x.partID, x.prepared.Wake())
	}
	return workflowstore.In(tx).SetWakeAt(ctx, x.id, x.run.Handler, x.prepared.Wake())
}
