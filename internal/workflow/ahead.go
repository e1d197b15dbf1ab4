package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// The owner of a lane is the only one who makes runs of it, so after a run that
// committed it knows what the next step depends on, but for what others may change
// at any time: the workflow itself, requests for a run, and events. These it asks
// for in the transaction of the commit, and then it need not look again. If they
// change after that, it is as if they had changed while the next run was on its
// way: the run is refused if the workflow is another one, and newer events are
// seen afterwards.

// news is what others may have changed, as of the commit of a run.
type news struct {
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
}

// foreseen is what a peek will see.
type foreseen struct {
	handler, topic string
	limit          int
	events         []eventstore.Event
}

// maxAheadLimit and maxAheadBytes bound the events that are read before anybody
// asks for them.
const (
	maxAheadLimit = 100
	maxAheadBytes = 256 << 10
)

// askAhead asks for what the next step depends on. The numbers of the topics come
// first: whoever has seen one can see every event up to it.
func (x *execution) askAhead(ctx context.Context, tx *store.Tx, n *news) error {
	n.seqs = map[string]int64{}
	if err := workflowstore.In(tx).AskRevision(ctx, x.id, &n.revision, &n.requested); err != nil {
		return err
	}
	if err := eventstore.In(tx).AskTopicSeqs(ctx, x.id, n.seqs); err != nil {
		return err
	}
	if x.run.HandlerType != pawl.HandlerConsumer || x.prepared.Reserved() == 0 {
		return nil
	}
	c, _ := x.config.Consumer(x.run.Handler)
	if topic, limit := x.habit.of(x.run.Handler); limit > 0 && limit <= maxAheadLimit && len(c.Subscribe) == 1 && c.Subscribe[0] == topic {
		return eventstore.In(tx).AskPeek(ctx, x.id, topic, limit, maxAheadBytes, func(events []eventstore.Event, err error) {
			n.more = len(events) > 0 || errors.Is(err, eventstore.ErrEventsTooLarge)
			if err == nil {
				n.foreseen = &foreseen{x.run.Handler, topic, limit, events}
			}
		})
	}
	return eventstore.In(tx).AskPending(ctx, x.id, c.Subscribe, func(any bool) { n.more = any })
}

// lookAhead keeps what the next step depends on, if all of it is known.
func (x *execution) lookAhead(n *news, state json.RawMessage) {
	if state != nil && x.states != nil {
		x.states[x.run.Handler] = state
	}
	v := *x.view
	if n.revision != v.workflow.Revision || n.requested || x.run.HandlerType != pawl.HandlerConsumer || x.run.ScriptVersion != v.workflow.Version {
		return
	}
	if !x.prepared.Wake().IsZero() || !v.wakes[x.run.Handler].IsZero() { // a deploy may have had its say
		return
	}
	x.ahead = &view{
		workflow: v.workflow, config: v.config, rights: x.rights, schedules: v.schedules, wakes: v.wakes, seqs: n.seqs,
		row: x.run, newest: ended(x.run), foreseen: n.foreseen,
	}
}

// seenAhead is what was read for a peek before it was made, once.
func (x *execution) seenAhead(topic string, limit int) ([]eventstore.Event, bool) {
	x.habit.mu.Lock()
	defer x.habit.mu.Unlock()
	x.habit.handler, x.habit.topic, x.habit.limit = x.run.Handler, topic, limit
	f := x.view.foreseen
	x.view.foreseen = nil
	if f == nil || f.handler != x.run.Handler || f.topic != topic || f.limit != limit {
		return nil, false
	}
	return f.events, true
}

func (h *habit) of(handler string) (topic string, limit int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.handler != handler {
		return "", 0
	}
	return h.topic, h.limit
}
