package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// inTime runs a test on each database under a clock of its own, which stands
// still while anything works.
func inTime(t *testing.T, test func(t *testing.T, k *kit)) {
	t.Helper()
	pgtest.Both(t, func(t *testing.T, url string) {
		synctest.Test(t, func(t *testing.T) { test(t, newKit(t, url)) })
	})
}

// settle works on a lane, through the instants it asks for, until it is idle
// or halted.
func (k *kit) settle(w workflowstore.Workflow) {
	k.t.Helper()
	for range 100 {
		until := k.work(w)
		k.checkInvariants(w)
		if until.IsZero() {
			return
		}
		time.Sleep(time.Until(until))
	}
	k.t.Fatal("the lane does not come to rest")
}

// checkInvariants holds what must be true whenever nobody works: no event is
// pending while a call that took it may have happened (lesson 4), every held
// event belongs to an open run, at most one run is active.
func (k *kit) checkInvariants(w workflowstore.Workflow) {
	k.t.Helper()
	k.read(func(ctx context.Context, tx *store.Tx) error {
		orphans, err := eventstore.In(tx).OrphanedReservations(ctx, w.ID, 10)
		if err != nil || len(orphans) > 0 {
			k.t.Errorf("orphaned reservations: %v (%v)", orphans, err)
		}
		calls, err := mutationstore.In(tx).ListMutations(ctx, w.ID, mutationstore.MutationCursor{}, 500)
		if err != nil {
			return err
		}
		for _, m := range calls {
			if !run.Unresolved(m.State) {
				continue
			}
			r, err := runstore.In(tx).GetRun(ctx, m.RunID)
			if err != nil {
				return err
			}
			var p Prepared
			if err := json.Unmarshal(r.PrepareResult, &p); err != nil {
				return err
			}
			for _, res := range p.Reservations {
				events, err := eventstore.In(tx).EventsByMessage(ctx, w.ID, res.Topic, res.IDs)
				if err != nil {
					return err
				}
				for _, e := range events {
					if e.Status != eventstore.EventReserved || e.ReservedBy != r.ID {
						k.t.Errorf("the call of run %s is %s, but its event %s is %s by %q", r.ID, m.State, e.MessageID, e.Status, e.ReservedBy)
					}
				}
			}
		}
		return nil
	})
}

// places are the points of a run at which a process can end: on both sides of
// every durable step and of the call itself.
var places = []string{
	"begun", "before reserve", "reserved", "before call", "in flight", "called", "before result", "recorded", "before commit", "committed",
}

// unwrittenAt are the places at which nothing of a run is in the database, if its
// steps come quickly: a crash there leaves no trace of it.
var unwrittenAt = []string{"begun", "before reserve", "reserved", "before call"}

// ..A-111, A-123..A-126, X-06, X-08, lessons 1-5: whatever the
// instant of a crash, every event has its one effect and its one successor
// event, and the crashed row stays readable. So it is when the steps before the
// call are written with it, and when each is written by itself.
func TestCrashAnywhereLosesAndRepeatsNothing(t *testing.T) {
	for _, through := range []bool{false, true} {
		t.Run(fmt.Sprintf("through=%v", through), func(t *testing.T) {
			inTime(t, func(t *testing.T, k *kit) {
				if through {
					k.writeThrough()
				}
				for i, place := range places {
					for n := 1; n <= 3; n++ {
						k.crashAndLook(fmt.Sprintf("shop-%d-%d", i, n), place, n)
					}
				}
			})
		})
	}
}

// crashAndLook crashes at the n-th time that a run comes by a place, goes on, and
// looks at what became of three events.
func (k *kit) crashAndLook(name, place string, n int) {
	t := k.t
	t.Helper()
	w := k.deploy(name, "1", orderDefinition())
	k.desk.clear()
	k.publish(w, "in", "a", "b", "c")
	if !k.crashAt(w, place, n) {
		t.Errorf("%s: the run does not come by %d times", place, n)
	}
	k.settle(w)
	if diff := cmp.Diff([]string{"a", "b", "c"}, k.desk.things()); diff != "" {
		t.Errorf("crash at %s (%d): orders (-want +got):\n%s\n%v", place, n, diff, k.story(w))
	}
	want := map[string]eventstore.EventStatus{"out-a": eventstore.EventConsumed, "out-b": eventstore.EventConsumed, "out-c": eventstore.EventConsumed}
	if diff := cmp.Diff(want, k.statuses(w, "out")); diff != "" {
		t.Errorf("crash at %s (%d): events (-want +got):\n%s\n%v", place, n, diff, k.story(w))
	}
	crashes, wants := 0, 1
	for _, r := range k.runs(w) {
		if r.Status == pawl.StatusCrashed {
			crashes++
		}
	}
	if place == "committed" || !k.through && slices.Contains(unwrittenAt, place) {
		wants = 0
	}
	if crashes != wants {
		t.Errorf("crash at %s (%d): %d crashed runs, not %d: %v", place, n, crashes, wants, k.story(w))
	}
}

// a crash after the call left leaves a successor that waits for the
// answer at mutating, with the reservations and the open call in its hands.
func TestCrashInFlightWaitsForReconciliation(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", orderDefinition())
		k.publish(w, "in", "a")
		k.crashAt(w, "in flight", 1) // the call did not leave, but nobody knows
		k.desk.inquiry = func(tool.Call) (bool, bool) { return false, false }
		until := k.work(w)
		story := k.story(w)
		if want := []string{"order mutating crashed", "order mutating paused:reconciliation"}; !slices.Equal(story[len(story)-2:], want) {
			t.Fatalf("after the crash: %v, want to end with %v", story, want)
		}
		if k.desk.asked != 1 {
			t.Errorf("the desk was asked %d times at once, not once", k.desk.asked)
		}
		if wait := time.Until(until); wait <= 0 || wait > 20*time.Second {
			t.Errorf("it asks again in %v, not within 20 s", wait)
		}
		if got := k.statuses(w, "in")["a"]; got != eventstore.EventReserved {
			t.Errorf("the event is %s while it is unknown what the call did", got)
		}
		k.desk.inquiry = nil
		k.settle(w)
		if diff := cmp.Diff([]string{"a"}, k.desk.things()); diff != "" {
			t.Errorf("orders (-want +got):\n%s", diff)
		}
	})
}

// after three crashes in a row nobody tries again until a person says so.
func TestCrashLoopCallsAPerson(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.writeThrough()
		w := k.deploy("shop", "1", orderDefinition())
		k.settle(w)
		k.publish(w, "in", "a")
		for range run.CrashAttempts {
			k.crashAt(w, "begun", 1)
		}
		if until := k.work(w); !until.IsZero() {
			t.Errorf("a lane in a crash loop wants to be woken at %v", until)
		}
		d, err := k.s.Describe(t.Context(), "shop")
		if err != nil || d.State != run.NeedsAttention || d.Issue != run.IssueCrashLoop {
			t.Fatalf("the lane is %s, %s (%v), which is not what people must see", d.State, d.Issue, err)
		}
		k.write(func(ctx context.Context, tx *store.Tx) error {
			changed, err := k.s.Resume(ctx, tx, "shop", "tester")
			if !changed {
				t.Error("resume changes nothing")
			}
			return err
		})
		k.settle(w)
		if diff := cmp.Diff([]string{"a"}, k.desk.things()); diff != "" {
			t.Errorf("orders (-want +got):\n%s", diff)
		}
	})
}

// a process that has to leave a run because the database is away, however
// often, did not crash: the lane is not halted, and goes on when it can.
func TestAnAbsentDatabaseIsNoCrash(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", orderDefinition())
		k.settle(w)
		k.publish(w, "in", "a")
		for range run.CrashAttempts + 1 {
			left := false
			k.fault = func(place string) error {
				if place != "before reserve" {
					return nil
				}
				left = true
				return &pawl.Error{Code: pawl.CodeUnavailable, Msg: "the database is away"}
			}
			if _, err := k.s.work(t.Context(), k, w.ID); !errors.Is(err, pawl.ErrUnavailable) || !left {
				t.Fatalf("left %v: %v", left, err)
			}
		}
		k.fault = nil
		k.settle(w)
		if diff := cmp.Diff([]string{"a"}, k.desk.things()); diff != "" {
			t.Errorf("orders (-want +got):\n%s", diff)
		}
	})
}

// pass lets time go by. It is for tests under inTime, where that takes none.
func pass(d time.Duration) { time.Sleep(d) }
