package workflow

import (
	"context"

	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
)

// A session is a part of the trace of whoever woke it, and goes on with events that came
// meanwhile. So a run leaves the trace of its session when it takes events that have
// another one: it and what it calls from then on are parts of that of the first.

// join makes the run a part of a trace; an empty one changes nothing.
func (x *execution) join(traceparent string) {
	if traceparent == "" {
		return
	}
	x.unwritten.mu.Lock()
	defer x.unwritten.mu.Unlock()
	x.joined = traceparent
	x.run.Trace, x.draft.Trace, x.unwritten.row.Trace = traceparent, traceparent, traceparent
}

// joinAgain is join for a run that took its events before it was here.
func (x *execution) joinAgain(ctx context.Context) error {
	var trace string
	err := x.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		for _, r := range x.prepared.Reservations {
			if trace, err = eventstore.In(tx).TraceOf(ctx, x.id, r.Topic, r.IDs); trace != "" || err != nil {
				return err
			}
		}
		return nil
	})
	x.join(trace)
	return err
}

// traceOf is the trace of the first of the events that are to be reserved which has one.
func (p *peeked) traceOf(of Prepared) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range of.Reservations {
		for _, id := range r.IDs {
			if trace := p.traces[[2]string{r.Topic, id}]; trace != "" {
				return trace
			}
		}
	}
	return ""
}
