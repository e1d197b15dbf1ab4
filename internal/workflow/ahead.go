package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/partitionstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// The owner of a lane is the only one who makes runs of it, so after a run that
// committed it knows what the next step depends on, but for what others may change
// at any time: the workflow itself, requests for a run, and events. These it asks
// for in the transaction of the commit, and then it need not look again. If they
// change after that, it is as if they had changed while the next run was on its
// way: the run is refused if the workflow is another one, and newer events are
// seen afterwards.

// It asks with the result of the call already if it can expect that nothing of the
// run concerns anybody else: then the commit can be held (see held).

// news is what others may have changed, as of an instant.
type news struct {
	at        time.Time
	revision  int64
	requested bool
	seqs      map[string]int64

	more     bool // a consumer that took events left some
	foreseen *foreseen
}

// habit is what the prepare of a handler looked at last, and so is likely to look
// at next.
type habit struct {
	mu      sync.Mutex
	handler string // guarded by mu, as are the others
	topic   string
	limit   int
	bytes   int // of an event
}

// foreseen is what a peek will see: the first of these events.
type foreseen struct {
	handler, topic string
	limit          int
	events         []eventstore.Event
	at             time.Time
}

// maxAheadLimit and maxAheadBytes bound the events that are read before anybody
// asks for them.
const (
	maxAheadLimit = 100
	maxAheadBytes = 256 << 10
	maxAheadRuns  = 32
)

// newsTime is how long it is good enough to know what others wanted a moment ago.
// What is built on it is conditional all the same.
const newsTime = 50 * time.Millisecond

// askAhead asks for what the next step depends on. The numbers of the topics come
// first: whoever has seen one can see every event up to it.
func (x *execution) askAhead(ctx context.Context, tx *store.Tx, n *news) error {
	n.seqs, n.at = map[string]int64{}, time.Now()
	if err := workflowstore.In(tx).AskRevision(ctx, x.id, &n.revision, &n.requested); err != nil {
		return err
	}
	if err := x.askSeqs(ctx, tx, n); err != nil {
		return err
	}
	if x.run.HandlerType != pawl.HandlerConsumer || x.prepared.Reserved() == 0 {
		return nil
	}
	c, _ := x.config.Consumer(x.run.Handler)
	if topic, limit, width := x.memory.habit.of(x.run.Handler); limit > 0 && len(c.Subscribe) == 1 && c.Subscribe[0] == topic {
		return x.askPeek(ctx, tx, x.view, x.run.Handler, topic, width, func(events []eventstore.Event, err error) {
			n.more = len(events) > 0 || errors.Is(err, eventstore.ErrEventsTooLarge)
			if err == nil {
				n.foreseen = &foreseen{x.run.Handler, topic, limit, events, n.at}
			}
		})
	}
	if part, parted := x.takesFrom(); parted {
		return eventstore.In(tx).AskPart(ctx, x.id, part, c.Subscribe, func(any bool) { n.more = any })
	}
	return eventstore.In(tx).AskPending(ctx, x.id, c.Subscribe, func(any bool) { n.more = any })
}

// askPeek asks for the events at which a handler is likely to look next.
func (e *session) askPeek(ctx context.Context, tx *store.Tx, v *view, handler, topic string, width int, got func([]eventstore.Event, error)) error {
	if part, parted := e.partFor(v, handler); parted {
		return eventstore.In(tx).AskPeekPart(ctx, e.id, topic, part, width, maxAheadBytes, got)
	}
	return eventstore.In(tx).AskPeek(ctx, e.id, topic, width, maxAheadBytes, got)
}

// loadStart reads what a run begins with: what its handler keeps, and the events at
// which its prepare is likely to look.
func (e *session) loadStart(ctx context.Context, tx *store.Tx, v *view, handler string, at time.Time) error {
	if topic, limit, width := e.memory.habit.of(handler); limit > 0 {
		err := e.askPeek(ctx, tx, v, handler, topic, width, func(events []eventstore.Event, err error) {
			if err == nil {
				v.foreseen = &foreseen{handler, topic, limit, events, at}
			}
		})
		if err != nil {
			return err
		}
	}
	if _, known := e.states[handler]; known {
		return tx.Flush(ctx)
	}
	return e.loadState(ctx, tx, handler)
}

// askSeqs asks for the numbers of the topics.
func (x *execution) askSeqs(ctx context.Context, tx *store.Tx, n *news) error {
	if x.partID == "" {
		return eventstore.In(tx).AskTopicSeqs(ctx, x.id, n.seqs)
	}
	return partitionstore.In(tx).AskNews(ctx, x.id, x.partID, func(news int64) {
		for topic := range x.view.seqs {
			n.seqs[topic] = news
		}
	})
}

// lookAhead keeps what the next step depends on, if all of it is known.
func (x *execution) lookAhead(n *news, state json.RawMessage) {
	if state != nil && x.states != nil {
		x.states[x.run.Handler] = state
	}
	v := *x.view
	if n.revision != v.workflow.Revision || n.requested || !x.asBefore() {
		return
	}
	part := v.part
	if part != nil {
		now := *part
		for _, news := range n.seqs {
			now.News = news
		}
		if state != nil {
			now.State = state
		}
		part = &now
	}
	x.ahead = &view{
		part: part, parts: v.parts, workflow: v.workflow, config: v.config, rights: x.rights, schedules: v.schedules, times: v.times, wakes: v.wakes, seqs: n.seqs,
		row: x.run, newest: ended(x.run), foreseen: n.foreseen, calm: true,
	}
}

// asBefore reports whether the run leaves everything but events and the state of
// its handler as its owner knows it. Of instants to wake at a deploy may have had its
// say.
func (x *execution) asBefore() bool {
	return x.run.HandlerType == pawl.HandlerConsumer && x.run.ScriptVersion == x.view.workflow.Version &&
		x.prepared.Wake().IsZero() && x.view.wakes[x.run.Handler].IsZero()
}

// foresee finds out what the next step depends on while the run is not over, and
// whether it must be asked for. It is nil if the run is likely to change it.
func (x *execution) foresee() (n *news, ask bool) {
	x.memory.habit.mu.Lock()
	defer x.memory.habit.mu.Unlock()
	if !x.looked || !x.asBefore() || x.tells == x.run.Handler {
		return nil, false
	}
	if rest := x.rest(); rest != nil {
		return &news{at: rest.at, revision: x.view.workflow.Revision, seqs: x.view.seqs, more: true, foreseen: rest}, false
	}
	return &news{}, true
}

// rest is what the next peek will see if enough was read for this one.
func (x *execution) rest() *foreseen {
	f := x.foreseen
	if f == nil || time.Since(f.at) > newsTime {
		return nil
	}
	rest := *f
	rest.events = slices.DeleteFunc(slices.Clone(f.events), func(e eventstore.Event) bool {
		return slices.ContainsFunc(x.prepared.Reservations, func(r Reservation) bool { return r.Topic == e.Topic && slices.Contains(r.IDs, e.MessageID) })
	})
	if len(rest.events) < f.limit || len(rest.events) == len(f.events) {
		return nil
	}
	return &rest
}

// keepsNews reports whether what was asked for with the result of the call is still
// so. It is not if the handler published: who gets that is looked up.
func (x *execution) keepsNews(h *host) bool {
	tells := h != nil && len(h.events)+len(h.inputs) > 0 || !x.asBefore()
	x.memory.habit.mu.Lock()
	defer x.memory.habit.mu.Unlock()
	switch {
	case tells:
		x.tells = x.run.Handler
	case x.tells == x.run.Handler:
		x.tells = ""
	}
	n := x.news
	return n != nil && !tells && n.revision == x.view.workflow.Revision && !n.requested
}

// seenAhead is what was read for a peek before it was made, once.
func (x *execution) seenAhead(topic string, limit int) ([]eventstore.Event, bool) {
	x.memory.habit.mu.Lock()
	defer x.memory.habit.mu.Unlock()
	x.memory.habit.handler, x.memory.habit.topic, x.memory.habit.limit = x.run.Handler, topic, limit
	f := x.view.foreseen
	x.view.foreseen, x.foreseen = nil, nil
	if f == nil || f.handler != x.run.Handler || f.topic != topic || f.limit != limit {
		return nil, false
	}
	x.foreseen = f
	return f.events[:min(limit, len(f.events))], true
}

// sawEvents notes how large events are.
func (h *habit) sawEvents(events []eventstore.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes = 0
	for _, e := range events {
		h.bytes = max(h.bytes, len(e.Payload))
	}
}

// of is at what a handler will look, and how many events are worth reading then:
// those of some runs, if they are small. The limit is zero if nobody knows, or if it
// looks at too many.
func (h *habit) of(handler string) (topic string, limit, width int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.handler != handler || h.limit > maxAheadLimit {
		return "", 0, 0
	}
	width = min(h.limit*maxAheadRuns, maxAheadLimit, maxAheadBytes/4/(h.bytes+1))
	return h.topic, h.limit, max(h.limit, width)
}
