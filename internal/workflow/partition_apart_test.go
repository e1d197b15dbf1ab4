package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/partitionstore"
	"github.com/pawlrun/pawl/internal/tool"
)

func (k *kit) why() (y lane.Why) {
	k.t.Helper()
	y, err := k.s.Why(k.t.Context(), lane.Viewer{}, "shop", time.Time{})
	if err != nil {
		k.t.Fatal(err)
	}
	return y
}

func partsGate(y lane.Why) lane.Gate {
	for _, g := range y.Gates {
		if g.Name == "partitions" {
			return g
		}
	}
	return lane.Gate{}
}

// throwsFor is shopDefinition whose prepare throws for some events.
func throwsFor(bad ...string) definition {
	return shopDefinition().with(map[string]goHandler{
		"consumers.order.prepare": func(c *goCtx, args []json.RawMessage) any {
			if ids := c.peek("in"); len(ids) > 0 && slices.Contains(bad, ids[0]) {
				throw("cannot read " + ids[0])
			}
			return takeOne("in")(c, args)
		},
	})
}

// A partition whose script fails waits for another version; the others go on.
func TestAPartitionThatFailsHoldsBackNobodyElse(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", throwsFor("a1", "c1"))
		b := newBoard(k)
		for _, id := range []string{"a1", "a2", "b1"} {
			k.send(w, id[:1], id)
		}
		b.finish()
		k.send(w, "b", "b2")
		b.finish()
		k.checkParts(w, 0)
		if got := k.desk.things(); !slices.Equal(got, []string{"b1", "b2"}) {
			t.Errorf("orders: %v", got)
		}
		y := k.why()
		if y.State != run.NeedsAttention || y.Issue != run.IssueFixesUsedUp || !strings.HasPrefix(y.Sentence, `Partition "a" of order: The script failed`) || !strings.Contains(y.Sentence, "cannot read a1") {
			t.Errorf("the workflow is %s (%s): %s", y.State, y.Issue, y.Sentence)
		}
		if y.Next != "Its other partitions continue; this one does nothing until then." || partsGate(y).Text != "Of its partitions 1 needs attention." {
			t.Errorf("next: %s, gates: %+v", y.Next, y.Gates)
		}
		k.send(w, "c", "c1")
		b.finish()
		k.checkParts(w, 0)
		if y := k.why(); !strings.HasSuffix(y.Sentence, " Another partition needs attention, too.") {
			t.Errorf("with two: %s", y.Sentence)
		}
		k.deploy("shop", "2", shopDefinition())
		b.finish()
		k.checkParts(w, 0)
		if got := k.desk.things(); !slices.Equal(got, []string{"a1", "a2", "b1", "b2", "c1"}) {
			t.Errorf("orders after a new version: %v\n%v", got, k.story(w))
		}
		if y := k.why(); y.State != run.Idle || y.Sentence != "" {
			t.Errorf("after a new version: %s: %s", y.State, y.Sentence)
		}
	})
}

// signDefinition asks a person before every call.
func signDefinition() definition {
	return shopDefinition().with(map[string]goHandler{
		"consumers.order.mutate": func(c *goCtx, args []json.RawMessage) any {
			c.tool("desk", "sign", dataOf(args[0]))
			return nothing{}
		},
	})
}

// A partition that waits for a person holds back nobody else, and the answer is for its
// own run.
func TestAPartitionWaitsForItsOwnApproval(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", signDefinition())
		b := newBoard(k)
		for _, id := range []string{"a1", "a2", "b1", "c1"} {
			k.send(w, id[:1], id)
		}
		b.run()
		k.checkParts(w, 0)
		of := map[string]string{}
		for _, name := range []string{"a", "b", "c"} {
			runs := k.runsOf(w, name)
			if len(runs) != 1 || runs[0].Status != pawl.StatusPausedApproval {
				t.Fatalf("runs of %s: %+v", name, runs)
			}
			of[name] = runs[0].ID
		}
		if y := k.why(); y.Issue != run.IssueApproval || y.Do != "pawl approve "+of["a"] || !strings.Contains(y.Sentence, "2 other partitions need attention") {
			t.Errorf("%s: %s, do %s", y.Issue, y.Sentence, y.Do)
		}
		k.write(func(ctx context.Context, tx *store.Tx) error { return k.s.Approve(ctx, tx, of["b"], "", false, "ann") })
		b.run()
		if got := k.desk.things(); !slices.Equal(got, []string{"b1"}) {
			t.Errorf("orders: %v", got)
		}
		k.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.Reject(ctx, tx, of["c"], "ann")
			return err
		})
		b.run()
		k.checkParts(w, 0)
		if w := k.workflow("shop"); w.Desired != desiredActive {
			t.Errorf("the workflow is %s because one partition was rejected", w.Desired)
		}
		k.send(w, "c", "c2")
		k.write(func(ctx context.Context, tx *store.Tx) error { return k.s.Approve(ctx, tx, of["a"], "", false, "ann") })
		b.run()
		if runs := k.runsOf(w, "c"); len(runs) != 1 || runs[0].Status != pawl.StatusCancelled {
			t.Errorf("c goes on after it was rejected: %+v", runs)
		}
		if got := k.desk.things(); !slices.Equal(got, []string{"a1", "b1"}) {
			t.Errorf("orders: %v", got)
		}
		k.resume("shop")
		b.run()
		if runs := k.runsOf(w, "c"); len(runs) != 2 || runs[1].Status != pawl.StatusPausedApproval {
			t.Errorf("c after it was resumed: %+v", runs)
		}
		k.checkParts(w, 0)
	})
}

// The outcome of a call is asked about in one partition while others go on, and so is a
// call of which only a person knows.
func TestAnUnknownOutcomeIsThatOfItsPartition(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", shopDefinition())
		b := newBoard(k)
		k.desk.answer = func(c tool.Call) error {
			if string(c.Args) == `"a1"` {
				return &tool.Error{Class: pawl.ClassIndeterminate, Code: "timeout", Msg: "no answer"}
			}
			return nil
		}
		k.desk.inquiry = func(tool.Call) (bool, bool) { return false, false }
		k.send(w, "a", "a1")
		k.send(w, "a", "a2")
		k.send(w, "b", "b1")
		b.run()
		k.checkParts(w, 0)
		if y := k.why(); y.State != run.Running || y.Issue != run.IssueReconciling || !strings.HasPrefix(y.Sentence, `Partition "a" of order: The outcome`) || y.NextAt.IsZero() {
			t.Errorf("%s (%s): %s, next %s", y.State, y.Issue, y.Sentence, y.NextAt)
		}
		if got := k.desk.things(); !slices.Equal(got, []string{"a1", "b1"}) {
			t.Errorf("orders: %v", got)
		}
		b.finish() // until nobody answers any more
		k.send(w, "b", "b2")
		b.finish()
		k.checkParts(w, 0)
		runs := k.runsOf(w, "a")
		open := runs[len(runs)-1]
		if y := k.why(); y.Issue != run.IssueOutcomeUnknown || open.Status != pawl.StatusPausedReconciliation {
			t.Fatalf("%s: %s; run %s", y.Issue, y.Sentence, open.Status)
		}
		k.write(func(ctx context.Context, tx *store.Tx) error {
			return k.s.Resolve(ctx, tx, open.ID, Happened, json.RawMessage(`{}`), "ann")
		})
		b.finish()
		if got := k.desk.things(); !slices.Equal(got, []string{"a1", "a2", "b1", "b2"}) {
			t.Errorf("orders at last: %v\n%v", got, k.story(w))
		}
		k.checkParts(w, 0)
	})
}

// A partition that backs off gives its place away and comes back.
func TestAPartitionThatBacksOffGivesItsPlaceAway(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		d := shopDefinition()
		d.config.Consumers[0].PartitionLimit = 1
		w := k.deploy("shop", "1", d)
		b := newBoard(k)
		k.desk.refuse = func(c tool.Call) *tool.Error {
			if string(c.Args) == `"a1"` {
				return &tool.Error{Class: pawl.ClassTransient, Code: "busy", Msg: "busy", NotApplied: true}
			}
			return nil
		}
		k.send(w, "a", "a1")
		k.send(w, "b", "b1")
		b.run()
		k.checkParts(w, 1)
		if got := k.desk.things(); !slices.Equal(got, []string{"b1"}) {
			t.Errorf("orders: %v", got)
		}
		if y := k.why(); y.State != run.Running || y.Issue != run.IssueBackingOff || y.NextAt.IsZero() {
			t.Errorf("%s (%s): %s", y.State, y.Issue, y.Sentence)
		}
		k.desk.refuse = nil
		b.finish()
		if got := k.desk.things(); !slices.Equal(got, []string{"a1", "b1"}) {
			t.Errorf("orders: %v", got)
		}
		k.checkParts(w, 0)
	})
}

// No more partitions are at work than the limit allows, each comes to its turn, and one
// that has much to do lets others go first.
func TestAsManyPartitionsAreAtWorkAsTheLimitAllows(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		d := shopDefinition()
		d.config.Consumers[0].PartitionLimit = 3
		w := k.deploy("shop", "1", d)
		b := newBoard(k)
		for i := range 20 {
			k.send(w, fmt.Sprintf("c%02d", i), fmt.Sprintf("e%02d", i))
		}
		for range 100 {
			list := b.now()
			if len(list) == 0 {
				break
			}
			parts := 0
			for _, key := range list {
				if b.of[key].Partition != "" {
					parts++
				}
			}
			if parts > 3 {
				t.Fatalf("%d partitions have a job", parts)
			}
			if err := b.one(list[0]); err != nil {
				t.Fatal(err)
			}
			k.checkParts(w, 3)
		}
		b.finish()
		if got := k.desk.things(); len(got) != 20 {
			t.Errorf("%d orders", len(got))
		}
	})
}

// The gate of partitions tells how many of them do what, and is closed while some wait
// for a place.
func TestTheGateOfPartitionsTellsWhatTheyDo(t *testing.T) {
	for _, c := range []struct {
		counts partitionstore.Counts
		open   bool
		says   string
	}{
		{partitionstore.Counts{}, true, "No partition has anything to do."},
		{partitionstore.Counts{Working: 1}, true, "Of its partitions 1 is at work."},
		{partitionstore.Counts{Working: 2, Waiting: 1}, false, "Of its partitions 2 are at work, 1 waits for a place."},
		{partitionstore.Counts{Waiting: partitionstore.MostCounted, Attention: 1, HeldUp: 3}, false, "Of its partitions 1000 or more wait for a place, 1 needs attention, 3 are held up."},
	} {
		v := &view{parts: &partsView{counts: c.counts}}
		if g := v.gateParts(); g.Open != c.open || g.Text != c.says {
			t.Errorf("%+v: open %v, %q", c.counts, g.Open, g.Text)
		}
	}
}
