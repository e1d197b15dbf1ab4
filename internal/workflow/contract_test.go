package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

func TestContract(t *testing.T) {
	hold(t,
		behaviour{"a handler publishes only what it declares", publishUndeclared},
		behaviour{"a handler publishes to all topics of a call or to none", publishToSeveral},
		behaviour{"a producer names an input of its workflow and next names none", publishNamesInput},
		behaviour{"a consumer looks only at what it subscribes to", peekForeignTopic},
		behaviour{"peek is bounded and shows the oldest first", peekIsBounded},
		behaviour{"only pending events of its own topics can be taken, all or none", reserveWhatIsNotThere},
		behaviour{"a state over the limit is a fault and changes nothing", stateOverTheLimit},
		behaviour{"ten thousand events in one run are published, and one more is refused", tenThousandEvents},
		behaviour{"an input without events is not done", inputWithoutEvents},
	)
}

// faulty runs a producer that does something it must not, and fails unless that
// is a logic failure of which nothing is left.
func faultyProducer(t *testing.T, k *kit, name string, act func(c *goCtx)) runstore.Run {
	t.Helper()
	w := k.deploy(name, "1", producing(nil).producer("p", Schedule{Interval: "1h"}, func(c *goCtx, _ []json.RawMessage) any {
		c.thing(k, name, "before")
		act(c)
		return nothing{}
	}))
	k.work(w)
	r := k.lastRun(w)
	if r.Handler != "p" || r.Status != pawl.StatusFailedLogic || r.ErrorMessage == "" {
		t.Errorf("%s: the run of %s is %s: %s", name, r.Handler, r.Status, r.ErrorMessage)
	}
	if n := len(k.statuses(w, "in")); n != 0 {
		t.Errorf("%s: %d events were published", name, n)
	}
	return r
}

// Context 3.1.5: the message says what it may publish.
func publishUndeclared(t *testing.T, k *kit) {
	r := faultyProducer(t, k, "undeclared", func(c *goCtx) {
		c.publish("elsewhere", "x", nil, thingID(k.workflow("undeclared"), "before"))
	})
	if !strings.Contains(r.ErrorMessage, `"elsewhere"`) || !strings.Contains(r.ErrorMessage, `"in"`) {
		t.Errorf("the message is %q", r.ErrorMessage)
	}
}

// Context 3.1.4: the one that is not declared takes the others with it.
func publishToSeveral(t *testing.T, k *kit) {
	faultyProducer(t, k, "several", func(c *goCtx) {
		c.call("publish", map[string]any{"topics": []string{"in", "elsewhere"}, "event": map[string]any{
			"messageId": "x", "inputId": thingID(k.workflow("several"), "before"),
		}})
	})
	faultyProducer(t, k, "no-topic", func(c *goCtx) {
		c.call("publish", map[string]any{"topics": []string{}, "event": map[string]any{"messageId": "x"}})
	})
}

// Context 3.2.3.
func publishNamesInput(t *testing.T, k *kit) {
	faultyProducer(t, k, "no-input", func(c *goCtx) { c.publish("in", "x", nil, "") })
	other := k.deploy("other-inputs", "1", consuming(takeOne("in")))
	k.publish(other, "in", "foreign")
	faultyProducer(t, k, "foreign-input", func(c *goCtx) { c.publish("in", "x", nil, thingID(other, "foreign")) })
	w := k.deploy("next-input", "1", orderDefinition().handler("consumers.order.next", func(c *goCtx, args []json.RawMessage) any {
		if id := dataOf(args[0]); id != nil {
			c.publish("out", "x", nil, thingID(k.workflow("next-input"), fmt.Sprint(id)))
		}
		return nothing{}
	}))
	k.publish(w, "in", "a")
	k.work(w)
	r := k.lastRun(w)
	if r.Status != pawl.StatusFailedLogic || r.Phase != pawl.PhaseEmitting {
		t.Errorf("next that names an input is %s at %s", r.Status, r.Phase)
	}
}

// Context 3.1.6, lesson 44: peek and getByIds.
func peekForeignTopic(t *testing.T, k *kit) {
	for i, look := range []func(c *goCtx){
		func(c *goCtx) { c.peek("other") },
		func(c *goCtx) { c.peek("nowhere") },
		func(c *goCtx) { c.call("getByIds", map[string]any{"topic": "other", "ids": []string{"x"}}) },
	} {
		name := fmt.Sprintf("peeks-%d", i)
		d := consuming(func(c *goCtx, _ []json.RawMessage) any {
			look(c)
			return take("in")
		}).consumer("zulu", takeOne("other"), "other")
		w := k.deploy(name, "1", d)
		k.publish(w, "in", "a")
		k.work(w)
		r := k.lastRun(w)
		if r.Handler != "take" || r.Status != pawl.StatusFailedLogic || !strings.Contains(r.ErrorMessage, "subscribe") {
			t.Errorf("%s: the run of %s is %s: %s", name, r.Handler, r.Status, r.ErrorMessage)
		}
	}
}

// Context 3.1.6: 100 by default, 1000 at most, oldest first.
func peekIsBounded(t *testing.T, k *kit) {
	const name = "bounded"
	got := map[string]int{}
	var first, last string
	w := k.deploy(name, "1", producing(nil).producer("p", Schedule{Interval: "1h"}, func(c *goCtx, _ []json.RawMessage) any {
		for i := range 1200 {
			c.thing(k, name, fmt.Sprintf("%04d", i))
		}
		return nothing{}
	}).handler("consumers.take.prepare", func(c *goCtx, _ []json.RawMessage) any {
		ids := c.peek("in")
		if len(ids) == 0 {
			return take("in")
		}
		got["default"], first, last = len(ids), ids[0], ids[len(ids)-1]
		for _, limit := range []int{1, 7, 1000, 5000} {
			var events []scriptEvent
			if err := json.Unmarshal(c.call("peek", map[string]any{"topic": "in", "limit": limit}), &events); err != nil {
				t.Error(err)
			}
			got[fmt.Sprint(limit)] = len(events)
		}
		return take("in")
	}))
	k.work(w)
	expect(t, "events", got, map[string]int{"default": 100, "1": 1, "7": 7, "1000": 1000, "5000": 1000})
	expect(t, "first and last", []string{first, last}, []string{"0000", "0099"})
}

// Context 3.1.8, lesson 44: foreign, taken, repeated and unknown events; the
// good one beside each is not taken either.
func reserveWhatIsNotThere(t *testing.T, k *kit) {
	reservation := func(topic string, ids ...string) map[string]any { return map[string]any{"topic": topic, "ids": ids} }
	for name, list := range map[string][]any{
		"unknown":      {reservation("in", "good", "nobody-sent-this")},
		"consumed":     {reservation("in", "good", "taken")},
		"repeated":     {reservation("in", "good", "good")},
		"repeated-too": {reservation("in", "good"), reservation("in", "good")},
		"foreign":      {reservation("in", "good"), reservation("other", "theirs")},
		"empty-id":     {reservation("in", "good", "")},
	} {
		taken := false
		d := consuming(func(c *goCtx, _ []json.RawMessage) any {
			if ids := c.peek("in"); !taken {
				taken = true
				return take("in", ids...)
			}
			return map[string]any{"reservations": list, "data": nil}
		}).consumer("zulu", func(*goCtx, []json.RawMessage) any { return take("other") }, "other")
		w := k.deploy("reserve-"+name, "1", d)
		k.publish(w, "in", "taken")
		k.work(w)
		k.publish(w, "other", "theirs")
		k.publish(w, "in", "good")
		k.work(w)
		r := k.lastRun(w)
		if r.Status != pawl.StatusFailedLogic || r.Phase != pawl.PhasePreparing || r.ErrorMessage == "" {
			t.Errorf("%s: the run is %s at %s: %s", name, r.Status, r.Phase, r.ErrorMessage)
		}
		expect(t, name+": the good event", k.statuses(w, "in")["good"], eventstore.EventPending)
		expect(t, name+": the foreign event", k.statuses(w, "other")["theirs"], eventstore.EventPending)
	}
}

// Context 3.3.5: for producers and for next; a state of exactly the limit is
// kept.
func stateOverTheLimit(t *testing.T, k *kit) {
	size := MaxState - 2 // quotes
	returns := func(*goCtx, []json.RawMessage) any { return strings.Repeat("x", size) }
	w := k.deploy("big-producer", "1", producing(nil).producer("p", Schedule{Interval: "1h"}, returns))
	k.work(w)
	expect(t, "bytes kept", len(k.kept(w, "p").State), MaxState)
	size++
	w = k.deploy("bigger-producer", "1", producing(nil).producer("p", Schedule{Interval: "1h"}, returns))
	k.work(w)
	r := k.lastRun(w)
	if r.Status != pawl.StatusFailedLogic || r.ErrorCode != "state" || k.kept(w, "p").State != nil {
		t.Errorf("the run is %s (%s): %s", r.Status, r.ErrorCode, r.ErrorMessage)
	}
	w = k.deploy("big-next", "1", consuming(takeOne("in")).handler("consumers.take.next", returns))
	k.publish(w, "in", "a")
	k.work(w)
	r = k.lastRun(w)
	if r.Status != pawl.StatusFailedLogic || r.Phase != pawl.PhaseEmitting || k.kept(w, "take").State != nil {
		t.Errorf("the run is %s at %s: %s", r.Status, r.Phase, r.ErrorMessage)
	}
	expect(t, "event", k.statuses(w, "in")["a"], eventstore.EventReserved)
}

// all of them in the one transaction of the commit.
func tenThousandEvents(t *testing.T, k *kit) {
	n := maxEvents
	handler := func(name string) goHandler {
		return func(c *goCtx, _ []json.RawMessage) any {
			id := thingID(k.workflow(name), "all")
			c.call("registerInput", map[string]string{"source": "test", "type": "thing", "id": "all", "title": "All"})
			for i := range n {
				c.publish("in", fmt.Sprint(i), i, id)
			}
			return nothing{}
		}
	}
	quiet := func(*goCtx, []json.RawMessage) any { return take("in") }
	w := k.deploy("many", "1", consuming(quiet).producer("p", Schedule{Interval: "1h"}, handler("many")))
	k.work(w)
	k.allCommitted(w)
	expect(t, "pending", k.look("many").Pending, 1) // all are of one input
	n++
	w = k.deploy("too-many", "1", consuming(quiet).producer("p", Schedule{Interval: "1h"}, handler("too-many")))
	k.work(w)
	expect(t, "status", k.lastRun(w).Status, pawl.StatusFailedLogic)
	expect(t, "pending", k.look("too-many").Pending, 0)
}

// Lesson 45, context 3.2.5: it is orphaned.
func inputWithoutEvents(t *testing.T, k *kit) {
	w := k.deploy("orphan", "1", producing(nil).producer("p", Schedule{Interval: "1h"}, func(c *goCtx, _ []json.RawMessage) any {
		c.call("registerInput", map[string]string{"source": "test", "type": "thing", "id": "a", "title": "Thing a"})
		return nothing{}
	}))
	k.work(w)
	k.read(func(ctx context.Context, tx *store.Tx) error {
		i, err := eventstore.In(tx).GetInput(ctx, thingID(w, "a"))
		expect(t, "input", i.Status, eventstore.InputOrphaned)
		return err
	})
}
