package workflow

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store/eventstore"
)

func TestPriorities(t *testing.T) {
	hold(t,
		behaviour{"consumers go before producers", consumersBeforeProducers},
		behaviour{"the consumer of the oldest event goes first", oldestEventFirst},
		behaviour{"consumers with events go before those whose wakeAt has come", eventsBeforeWakes},
		behaviour{"a retry goes before everything that is due", retryGoesFirst},
		behaviour{"a consumer that feeds itself lets a due producer through after 100 runs", selfFeedingConsumer},
		behaviour{"a session gives its worker back and the next one goes on", sessionGivesWorkerBack},
	)
}

// all is due when the workflow is deployed.
func consumersBeforeProducers(t *testing.T, k *kit) {
	const name = "consumers-first"
	w := k.deploy(name, "1", producing(nil).producer("p", Schedule{Interval: "1h"}, func(c *goCtx, _ []json.RawMessage) any {
		c.thing(k, name, "from p")
		return nothing{}
	}).producer("q", Schedule{Interval: "1h"}, idle))
	k.work(w)
	expect(t, "order", k.ranSince(), []string{
		"consumers.take.prepare", "producers.p.handler", "consumers.take.prepare", "producers.q.handler",
	})
}

// by the age of the oldest pending event, over all topics of a
// consumer, not by the order of the script or the names.
func oldestEventFirst(t *testing.T, k *kit) {
	d := consuming(takeOne("in")).consumer("alpha", takeOne("second"), "second").consumer("zulu", takeOne("first"), "first")
	w := k.deploy("oldest", "1", d)
	k.work(w)
	k.publish(w, "first", "1")
	pass(time.Second)
	k.publish(w, "second", "2")
	pass(time.Second)
	k.publish(w, "in", "3")
	k.publish(w, "first", "4")
	k.ranSince()
	k.work(w)
	expect(t, "order", k.ranSince(), []string{
		"consumers.zulu.prepare", "consumers.alpha.prepare", "consumers.take.prepare", "consumers.zulu.prepare",
	})
}

// a due wakeAt has its turn after events.
func eventsBeforeWakes(t *testing.T, k *kit) {
	w := k.deploy("wakes-last", "1", consuming(takeOne("in")).consumer("alarm", napping(time.Hour), "other"))
	k.work(w)
	pass(2 * time.Hour)
	k.publish(w, "in", "a", "b")
	k.ranSince()
	k.work(w)
	expect(t, "order", k.ranSince(), []string{"consumers.take.prepare", "consumers.take.prepare", "consumers.alarm.prepare"})
}

// lesson 23: what failed is tried again first, although older
// events and producers are due meanwhile.
func retryGoesFirst(t *testing.T, k *kit) {
	const name = "retry-first"
	d := producing(map[string]string{"p": "1s"}).consumer("read", func(c *goCtx, _ []json.RawMessage) any {
		c.tool("desk", "read", nil)
		return take("other", c.peek("other")...)
	}, "other")
	w := k.deploy(name, "1", d)
	k.work(w)
	k.desk.fail(pawl.ClassTransient)
	k.publish(w, "other", "x")
	until := k.work(w)
	expect(t, "status", k.lastRun(w).Status, pawl.StatusPausedTransient)
	k.desk.fail("")
	k.publish(w, "in", "a")
	pass(time.Until(until))
	k.ranSince()
	k.work(w)
	expect(t, "order", k.ranSince(), []string{"consumers.read.prepare", "consumers.take.prepare", "producers.p.handler"})
}

// without this a consumer that publishes what it takes would keep the
// producers of its workflow from ever running.
func selfFeedingConsumer(t *testing.T, k *kit) {
	const name = "self-feeding"
	n := 0
	d := consuming(takeOne("in")).handler("consumers.take.next", func(c *goCtx, args []json.RawMessage) any {
		if dataOf(args[0]) != nil && n < 250 {
			n++
			c.publish("in", fmt.Sprintf("%d", n), nil, "")
		}
		return nothing{}
	}).producer("p", Schedule{Interval: "1h"}, idle)
	d.config.Consumers[0].Publishes = []string{"in"}
	w := k.deploy(name, "1", d)
	k.work(w)
	pass(time.Hour)
	k.publish(w, "in", "0")
	k.ranSince()
	k.work(w)
	before := 0
	for _, phase := range k.ranSince() {
		if phase == "producers.p.handler" {
			break
		}
		if phase == "consumers.take.prepare" {
			before++
		}
	}
	expect(t, "runs of the consumer before the producer", before, 100)
}

// a session that has been at it for long ends, asks to be called again at
// once, and loses nothing.
func sessionGivesWorkerBack(t *testing.T, k *kit) {
	w := k.deploy("long", "1", consuming(func(c *goCtx, _ []json.RawMessage) any {
		pass(sessionTime / 2)
		ids := c.peek("in")
		return take("in", ids[:min(1, len(ids))]...)
	}))
	k.publish(w, "in", "a", "b", "c", "d", "e", "f")
	until := k.work(w)
	if until.After(time.Now()) || until.IsZero() {
		t.Errorf("it wants to be called again at %v, not now", until)
	}
	if n := len(k.taken(w, "take")); n == 0 || n == 6 {
		t.Errorf("the session took %d of 6 events", n)
	}
	k.settle(w)
	expect(t, "taken in the end", len(k.taken(w, "take")), 6)
	expect(t, "left", k.statuses(w, "in")["f"], eventstore.EventConsumed)
}
