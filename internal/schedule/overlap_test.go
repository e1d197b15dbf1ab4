package schedule

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// runsAndIsGivenBack starts a slot of 00:01 whose graph runs long and ends a while
// after it was cancelled, and gives it back: the server stops.
func (k *kit) runsAndIsGivenBack(policy pawl.ConcurrencyPolicy) schedulestore.Schedule {
	k.t.Helper()
	k.graph.set(func() { k.graph.takes, k.graph.stops = 10*time.Minute, 20*time.Second })
	sch := k.create(ask(string(policy), policy))
	k.pass(time.Minute + 50*time.Second)
	k.stop()
	if r := k.runOf(sch); r.Status != pawl.StatusPausedTransient || r.ErrorCode != notAnswered {
		k.t.Fatalf("the run was not given back: it is %s, %s", r.Status, r.ErrorCode)
	}
	k.nobody(5 * time.Second)
	k.start()
	return sch
}

func (k *kit) wantNoOverlap(sch schedulestore.Schedule) {
	k.t.Helper()
	if both := k.graph.overlaps(sch.ID); both != "" {
		k.t.Errorf("%s: runs overlap: %s", sch.Policy, both)
	}
}

// C-58, X-30, X-62: what a server that stopped gave back goes on at its executor.
// A person who cancels it ends it there, and nothing starts before it has ended.
func TestACancelledRunThatWasGivenBackIsWaitedFor(t *testing.T) {
	for _, policy := range []pawl.ConcurrencyPolicy{pawl.PolicyQueue, pawl.PolicyForbid, pawl.PolicyReplace} {
		onSQLite(t, func(t *testing.T, k *kit) {
			sch := k.runsAndIsGivenBack(policy)
			r := k.runOf(sch)
			k.write(func(ctx context.Context, tx *store.Tx) error { return k.s.cancelRun(ctx, tx, r, "ada") })
			k.pass(90 * time.Second)
			if got := k.story(sch); got[0] != "00:01 error aborted" || len(k.graph.executed(sch.ID)) < 2 {
				t.Errorf("%s: the slots are %v", policy, got)
			}
			if slot := k.slots(sch)[0]; slot.CompletedAt.Before(k.graph.seen(pawl.SlotKey(sch.ID, at(1))).endsAt()) {
				t.Errorf("%s: the slot was closed at %s, before its run ended", policy, slot.CompletedAt)
			}
			k.wantNoOverlap(sch)
		})
	}
}

// a slot that replaces one that was given back waits for its end,
// also when that one is taken up later than the new one comes due.
func TestReplaceWaitsForARunThatWasGivenBack(t *testing.T) {
	onSQLite(t, func(t *testing.T, k *kit) {
		sch := k.runsAndIsGivenBack(pawl.PolicyReplace)
		k.change(`update jobs set run_at = run_at + 60000 where key = $1`, pawl.SlotKey(sch.ID, at(1)))
		k.pass(10 * time.Second) // until 00:02:05
		k.wantStory(sch, "00:01 running", "00:02 pending")
		k.pass(50 * time.Second) // until 00:02:55
		k.wantStory(sch, "00:01 error aborted", "00:02 running", "00:03 pending")
		k.wantNoOverlap(sch)
	})
}

// a slot that replaces more slots than are looked at together begins after
// the last of them, also if those that were looked at only wait for people.
func TestReplaceWaitsForTheLastOfMany(t *testing.T) {
	onSQLite(t, func(t *testing.T, k *kit) {
		sch := k.create(ask("s", pawl.PolicyAllow))
		k.graph.asksPeople()
		for range mostRunning {
			k.runNow(sch)
		}
		k.pass(time.Second)
		k.graph.set(func() { k.graph.answer, k.graph.takes, k.graph.stops = nil, 10*time.Minute, 20*time.Second })
		k.runNow(sch)
		k.pass(time.Second)
		policy := pawl.PolicyReplace
		k.update(sch, client.SchedulePatch{ConcurrencyPolicy: &policy})
		k.pass(63 * time.Second) // until 00:01:05
		if got := k.story(sch); got[mostRunning-1] != "00:00 error aborted" || got[mostRunning] != "00:00 running" || got[mostRunning+1] != "00:01 pending" {
			t.Errorf("the slots end with %v", got[mostRunning-1:])
		}
		k.pass(30 * time.Second)
		if got := k.story(sch); got[mostRunning] != "00:00 error aborted" || got[mostRunning+1] != "00:01 running" {
			t.Errorf("the slots end with %v", got[mostRunning:])
		}
		k.wantNoOverlap(sch)
	})
}

// a slot whose attempts crashed too often is not given up while its
// executor still runs it.
func TestASlotThatCrashedTooOftenIsWaitedFor(t *testing.T) {
	for _, policy := range []pawl.ConcurrencyPolicy{pawl.PolicyQueue, pawl.PolicyForbid} {
		onSQLite(t, func(t *testing.T, k *kit) {
			k.graph.takes = 4 * time.Minute
			sch := k.create(ask("s", policy))
			k.pass(65 * time.Second)
			for range 5 {
				k.restart(time.Second)
				k.pass(2 * time.Second)
			}
			if r := k.runOf(sch); r.Status != pawl.StatusCrashed {
				t.Fatalf("%s: the run is %s", policy, r.Status)
			}
			k.pass(3 * time.Minute) // until 00:04:20
			if got := k.story(sch); got[0] != "00:01 running" {
				t.Errorf("%s: the slots are %v", policy, got)
			}
			k.pass(2 * time.Minute)
			if got := k.story(sch); got[0] != "00:01 success" || len(k.graph.executed(sch.ID)) < 2 {
				t.Errorf("%s: the slots are %v", policy, got)
			}
			k.wantNoOverlap(sch)
		})
	}
}

// a slot whose attempts crashed too often, and that nobody executes any
// more, is ended at its executor; then people are told and the schedule goes on.
func TestASlotThatNobodyExecutesEnds(t *testing.T) {
	onSQLite(t, func(t *testing.T, k *kit) {
		k.graph.takes = 20 * time.Hour
		sch := k.create(ask("s", pawl.PolicyQueue))
		k.pass(65 * time.Second)
		for range 5 {
			k.restart(time.Second)
			k.pass(2 * time.Second)
		}
		if r := k.runOf(sch); r.Status != pawl.StatusCrashed {
			t.Fatalf("the run is %s", r.Status)
		}
		k.graph.set(func() { k.graph.abandons, k.graph.takes = true, time.Second })
		k.pass(3 * time.Minute)
		if got := k.story(sch); got[0] != "00:01 error internal" || got[1] != "00:02 success" {
			t.Errorf("the slots are %v", got)
		}
		if !slices.ContainsFunc(k.notices, func(n lane.Notice) bool { return n.Issue == run.IssueFailed }) {
			t.Errorf("people were told %+v", k.notices)
		}
		k.wantNoOverlap(sch)
	})
}

// What the tests take for an overlap is one: a run that is cancelled at the instant
// at which it began, and the one that then begins in its place, only meet. The
// order in which they are found must not matter.
func TestRunsThatMeetDoNotOverlap(t *testing.T) {
	begun := at(1)
	for name, c := range map[string]struct {
		spans    [][2]time.Duration // from, to
		overlaps bool
	}{
		"one ended as it began":      {[][2]time.Duration{{0, 0}, {0, time.Minute}}, false},
		"one follows the other":      {[][2]time.Duration{{0, time.Minute}, {time.Minute, 2 * time.Minute}}, false},
		"both began together":        {[][2]time.Duration{{0, time.Second}, {0, time.Minute}}, true},
		"one began during the other": {[][2]time.Duration{{0, time.Minute}, {59 * time.Second, 2 * time.Minute}}, true},
		"one lasts beyond another":   {[][2]time.Duration{{0, time.Hour}, {time.Second, time.Second}, {time.Minute, 2 * time.Minute}}, true},
	} {
		for range 50 { // runs are kept in a map
			f := newFakeGraph()
			for i, span := range c.spans {
				f.runs[fmt.Sprintf("s:%d", i)] = &fakeRun{begun: []time.Time{begun.Add(span[0])}, ended: []time.Time{begun.Add(span[1])}}
			}
			if both := f.overlaps("s"); (both != "") != c.overlaps {
				t.Fatalf("%s: they overlap: %q", name, both)
			}
		}
	}
}
