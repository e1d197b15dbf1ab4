package workflow

import (
	"slices"
	"testing"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/run"
)

// Partitions wait for a source that is too old, without their places, and the end of a
// fetch wakes them.
func TestPartitionsWaitForTheirSource(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.fakeSources()
		d := shopDefinition()
		d.config.Needs = []client.Need{{Source: "prices", MaxAge: "10m", Wait: "20m"}}
		d.config.Consumers = d.config.Consumers[:1]
		delete(d.handlers, "consumers.tell.prepare")
		w := k.deploy("shop", "1", d)
		b := newBoard(k)
		k.send(w, "a", "a1")
		k.send(w, "b", "b1")
		b.run()
		k.checkParts(w, 0)
		if got := k.desk.things(); len(got) != 0 || len(k.runs(w)) != 0 {
			t.Errorf("orders: %v, runs: %v", got, k.story(w))
		}
		k.stands(w, run.Running, run.IssueWaitingFresh, "It waits for source prices, 1h old")
		k.fetchPrices()
		b.run()
		if got := k.desk.things(); !slices.Equal(got, []string{"a1", "b1"}) {
			t.Errorf("orders: %v\n%v", got, k.story(w))
		}
		k.checkParts(w, 0)
		k.stands(w, run.Idle, run.IssueNone, "")
	})
}
