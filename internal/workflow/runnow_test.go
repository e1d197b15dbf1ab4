package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

func TestRunNow(t *testing.T) {
	hold(t,
		behaviour{"it runs every producer one after another and no consumer", runNowRunsProducers},
		behaviour{"it moves the time of each producer and of nothing else", runNowMovesTimes},
		behaviour{"it survives a restart", runNowSurvivesRestart},
		behaviour{"it survives a failure and holds once", runNowSurvivesFailure},
		behaviour{"it holds once although a clock was ahead", runNowOfTomorrow},
		behaviour{"it is refused while a run is active", runNowWhileActive},
		behaviour{"it is refused while the workflow backs off", runNowWhileBackingOff},
		behaviour{"it is refused while the workflow is halted", runNowWhileHalted},
		behaviour{"it is refused while the workflow is paused", runNowWhilePaused},
		behaviour{"it is refused for what has no producers or is not there", runNowWithoutProducers},
		behaviour{"it loses no race against a run that begins", runNowRace},
		behaviour{"it is noted with who asked", runNowIsNoted},
	)
}

// the label is manual; the consumer runs only because
// of what a producer published.
func runNowRunsProducers(t *testing.T, k *kit) {
	const name = "now"
	publishes := false
	d := producing(map[string]string{"p": "1h", "r": "1h"}).producer("q", Schedule{Cron: "0 0 1 1 *"}, func(c *goCtx, _ []json.RawMessage) any {
		if publishes {
			c.thing(k, name, "x")
		}
		return nothing{}
	})
	w := k.deploy(name, "1", d)
	k.work(w)
	pass(time.Minute)
	k.ranSince()
	if err := k.runNow(name); err != nil {
		t.Fatal(err)
	}
	k.work(w)
	expect(t, "runs", k.ranSince(), []string{"producers.p.handler", "producers.r.handler", "producers.q.handler"})
	expect(t, "label", k.lastRun(w).Trigger, triggerManual)
	expect(t, "label of scheduled work", k.triggers(w, "q"), []string{triggerSchedule, triggerManual})
	publishes = true
	if err := k.runNow(name); err != nil {
		t.Fatal(err)
	}
	k.work(w)
	expect(t, "runs of the consumer", count(k.ranSince(), "consumers.take.prepare"), 1)
	expect(t, "its cause", k.lastRun(w).Trigger, triggerEvent)
}

// next_run_at is counted from the manual run; nothing runs again because
// of the request.
func runNowMovesTimes(t *testing.T, k *kit) {
	w := k.deploy("moves", "1", producing(map[string]string{"p": "1h", "q": "1d"}))
	k.work(w)
	pass(30 * time.Minute)
	if err := k.runNow("moves"); err != nil {
		t.Fatal(err)
	}
	asked := k.schedules(w)["p"]
	if asked.RequestedAt.IsZero() || !sameInstant(asked.NextRunAt, time.Now().Add(30*time.Minute)) {
		t.Errorf("the request is %v and moves the schedule to %v", asked.RequestedAt, asked.NextRunAt)
	}
	k.work(w)
	for name, want := range map[string]time.Duration{"p": time.Hour, "q": 24 * time.Hour} {
		row := k.schedules(w)[name]
		if !row.RequestedAt.IsZero() || !sameInstant(row.NextRunAt, time.Now().Add(want)) {
			t.Errorf("after its run %s is asked for at %v and due at %v", name, row.RequestedAt, row.NextRunAt)
		}
	}
	k.ranSince()
	k.follow(w, 59*time.Minute)
	expect(t, "more runs", len(k.ranSince()), 0)
}

// the request is in the store, not in memory.
func runNowSurvivesRestart(t *testing.T, k *kit) {
	k.writeThrough()
	w := k.deploy("survivor", "1", producing(map[string]string{"p": "1d", "q": "1d"}))
	k.work(w)
	if err := k.runNow("survivor"); err != nil {
		t.Fatal(err)
	}
	k.start("second")
	k.ranSince()
	k.crashAt(w, "before commit", 2) // the first has run, the second has not
	k.work(w)
	expect(t, "runs of the first", count(k.ranSince(), "producers.p.handler"), 1)
	expect(t, "labels of the second", k.triggers(w, "q"), []string{"schedule", "manual", "manual"})
	for _, p := range k.schedules(w) {
		if !p.RequestedAt.IsZero() {
			t.Errorf("%s is still asked for", p.Producer)
		}
	}
}

// a request that was written by a clock that was ahead is fulfilled when the
// clock is right again, and not once more for as long as the time that it bears has
// not come.
func runNowOfTomorrow(t *testing.T, k *kit) {
	w := k.deploy("tomorrow", "1", producing(map[string]string{"p": "7d"}))
	k.work(w)
	k.ranSince()
	k.write(func(ctx context.Context, tx *store.Tx) error {
		tx.Now = tx.Now.Add(24 * time.Hour)
		return k.s.RunNow(ctx, tx, "tomorrow", "tester")
	})
	k.follow(w, time.Hour)
	if n := len(k.ranSince()); n < 1 || n > 2 {
		t.Errorf("it ran %d times", n)
	}
	expect(t, "request", k.schedules(w)["p"].RequestedAt, time.Time{})
}

// a run that was asked for and fails is still asked for, and fulfilled by
// its retry.
func runNowSurvivesFailure(t *testing.T, k *kit) {
	d := producing(nil).producer("p", Schedule{Interval: "1d"}, func(c *goCtx, _ []json.RawMessage) any {
		c.tool("desk", "read", nil)
		return nothing{}
	})
	w := k.deploy("fails-once", "1", d)
	k.work(w)
	if err := k.runNow("fails-once"); err != nil {
		t.Fatal(err)
	}
	k.desk.fail(pawl.ClassTransient)
	until := k.work(w)
	k.desk.fail("")
	pass(time.Until(until))
	k.ranSince()
	k.work(w)
	expect(t, "runs", k.ranSince(), []string{"producers.p.handler"})
	expect(t, "labels", k.triggers(w, "p"), []string{"schedule", "manual", "manual"})
	expect(t, "request", k.schedules(w)["p"].RequestedAt, time.Time{})
}

// refusedNow fails unless a run now is refused for the reason and changes
// nothing.
func refusedNow(t *testing.T, k *kit, name, reason string) {
	t.Helper()
	w := k.workflow(name)
	before, armed := fmt.Sprint(k.schedules(w), k.story(w), w), len(k.armed.specs)
	err := k.runNow(name)
	if !errors.Is(err, pawl.ErrConflict) || reasonOf(err) != reason {
		t.Errorf("it says %v for the reason %q, want %q", err, reasonOf(err), reason)
	}
	if after := fmt.Sprint(k.schedules(w), k.story(w), k.workflow(name)); after != before || len(k.armed.specs) != armed {
		t.Errorf("the refusal changed something: %s, before %s", after, before)
	}
}

//
func runNowWhileActive(t *testing.T, k *kit) {
	k.writeThrough()
	const name = "active"
	tried := 0
	try := func(c *goCtx, _ []json.RawMessage) any {
		tried++
		refusedNow(t, k, name, ReasonRunActive)
		return take("in", c.peek("in")...)
	}
	d := consuming(try).producer("p", Schedule{Interval: "1h"}, func(*goCtx, []json.RawMessage) any {
		tried++
		refusedNow(t, k, name, ReasonRunActive)
		return nothing{}
	})
	w := k.deploy(name, "1", d)
	k.work(w)
	expect(t, "times it was tried", tried, 2)
	k.allCommitted(w)
}

//
func runNowWhileBackingOff(t *testing.T, k *kit) {
	w := k.deploy("backs-off", "1", producing(nil).producer("p", Schedule{Interval: "1h"}, func(c *goCtx, _ []json.RawMessage) any {
		c.tool("desk", "read", nil)
		return nothing{}
	}))
	k.desk.fail(pawl.ClassTransient)
	k.work(w)
	refusedNow(t, k, "backs-off", ReasonBackingOff)
	k.settle(w)
	refusedNow(t, k, "backs-off", ReasonPaused) // the retries are used up
}

// whatever halted it.
func runNowWhileHalted(t *testing.T, k *kit) {
	for i, class := range []pawl.Class{pawl.ClassLogic, pawl.ClassInternal, pawl.ClassAuth, pawl.ClassPermission, pawl.ClassPrecondition} {
		name := fmt.Sprintf("halted-%d", i)
		w := k.deploy(name, "1", producing(nil).producer("p", Schedule{Interval: "1h"}, func(c *goCtx, _ []json.RawMessage) any {
			c.tool("desk", "read", nil)
			return nothing{}
		}))
		k.desk.fail(class)
		k.work(w)
		refusedNow(t, k, name, ReasonPaused)
	}
}

//
func runNowWhilePaused(t *testing.T, k *kit) {
	w := k.deploy("stopped", "1", producing(map[string]string{"p": "1h"}))
	k.work(w)
	k.pause("stopped")
	refusedNow(t, k, "stopped", ReasonPaused)
	k.resume("stopped")
	if err := k.runNow("stopped"); err != nil {
		t.Errorf("after resume it is refused: %v", err)
	}
}

// not_deployed, and not found for a name that nobody knows.
func runNowWithoutProducers(t *testing.T, k *kit) {
	k.work(k.deploy("no-producers", "1", consuming(takeOne("in"))))
	refusedNow(t, k, "no-producers", ReasonUndeployed)
	if err := k.runNow("nobody-knows"); !errors.Is(err, pawl.ErrNotFound) {
		t.Errorf("a run of what is not there: %v", err)
	}
}

// a request between the choice of a run and its begin is not lost:
// that run fulfils it, because it begins after it.
func runNowRace(t *testing.T, k *kit) {
	w := k.deploy("race", "1", producing(map[string]string{"p": "1h"}))
	k.work(w)
	pass(time.Hour)
	e := &session{Service: k.s, claim: k, memory: k.s.memoryOf(w.ID, k.fence), id: w.ID}
	v, st, err := e.next(t.Context())
	if err != nil || st.do != actProduce {
		t.Fatalf("the next step is %s (%v)", st.do, err)
	}
	if err := k.runNow("race"); err != nil {
		t.Fatal(err)
	}
	k.ranSince()
	if err := e.take(t.Context(), v, st); err != nil {
		t.Fatal(err)
	}
	k.work(w)
	expect(t, "runs", k.ranSince(), []string{"producers.p.handler"})
	expect(t, "request", k.schedules(w)["p"].RequestedAt, time.Time{})
}

// Context 3.7.7: who and when; and the lane is armed in the same transaction.
func runNowIsNoted(t *testing.T, k *kit) {
	w := k.deploy("noted", "1", producing(map[string]string{"p": "1h"}))
	k.work(w)
	armed := len(k.armed.specs)
	if err := k.runNow("noted"); err != nil {
		t.Fatal(err)
	}
	list, err := k.db.AuditLog(t.Context(), 0, 1)
	if err != nil || len(list) != 1 || list[0].Action != "workflow.run" || list[0].Actor != "tester" || list[0].Subject != "workflow:noted" {
		t.Errorf("the audit log ends with %v (%v)", list, err)
	}
	specs := k.armed.specs[armed:]
	if len(specs) != 1 || specs[0].Key != jobKey(w.Lane) || specs[0].RunAt.After(time.Now()) {
		t.Errorf("armed: %v", specs)
	}
	gone := errors.New("given up")
	err = k.do(func(ctx context.Context, tx *store.Tx) error {
		return errors.Join(k.s.RunNow(ctx, tx, "noted", "tester"), gone)
	})
	if !errors.Is(err, gone) || len(k.armed.specs) != armed+1 {
		t.Errorf("a transaction that was given up armed the lane (%v)", err)
	}
}
