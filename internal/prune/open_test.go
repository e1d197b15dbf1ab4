package prune

import (
	"slices"
	"testing"
)

// An event that ended while the run that had it is still open stays: whoever
// decides about the run needs to see what it was about.
func TestEventsOfOpenRunsStay(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.run(row{id: "newest", days: 0})
		k.run(row{id: "open", status: "paused:approval", days: 600})
		k.run(row{id: "ended", days: 600})
		k.event("skipped of an open run", "skipped", "x", "open", 700, 600)
		k.event("consumed of an open run", "consumed", "x", "open", 700, 600)
		k.event("of one that ended", "consumed", "x", "ended", 700, 600)
		k.event("of nobody", "skipped", "x", "", 700, 600)
		k.prune()
		k.left("message_id", "events", "skipped of an open run", "consumed of an open run")
	})
}

// A pass that goes through everything once more finds the stretches of those before
// it, and adds what came since.
func TestAStretchThatIsMetAgainGrows(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.run(row{id: "z", days: 0})
		k.idles("a", 200, 50, row{})
		k.prune()
		k.wantFolds("a000 50 49")
		k.idles("b", 150, 50, row{})
		k.prune()
		k.wantFolds("a000 100 99")
		k.left("id", "runs", "a000", "z")
	})
}

// A lane that keeps idle runs for longer than others has them folded for as long.
func TestIdleRunsAreFoldedForAsLongAsTheirLaneKeepsThem(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.workflow("long", `{}`)
		k.exec(`update lanes set keep = 'idle-runs=10d' where lane = 'long'`)
		k.run(row{id: "z", lane: "long", days: 0})
		k.idles("a", 5*24*60, 20, row{lane: "long"})
		k.prune()
		k.wantFolds("a000 20 19")
	})
}

// The next pass goes on where the one before it came to.
func TestAPassGoesOnWhereTheLastOneEnded(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.run(row{id: "new", days: 0})
		k.run(row{id: "old", days: 500})
		floors := func() []string { return k.texts(`select name || ' since ' || since from retention_floors`) }
		k.s.size["runs of workflow"] = 1 // a step that is not the last notes how far it came
		k.prune()
		k.exec(`update retention_floors set since = since - 60000`)
		before := floors()
		if len(before) == 0 {
			t.Fatal("no walk was noted")
		}
		if _, err := k.s.Prune(t.Context(), Options{}); err != nil {
			t.Fatal(err)
		}
		if after := floors(); !slices.Equal(after, before) {
			t.Errorf("the walks were %q, and then %q", before, after)
		}
	})
}
