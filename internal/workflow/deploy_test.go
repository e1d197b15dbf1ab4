package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

func TestDeploy(t *testing.T) {
	hold(t,
		behaviour{"every handler runs at once", deployRunsAll},
		behaviour{"the same content again changes nothing", deployOfTheSame},
		behaviour{"a refused script changes nothing", deployThatIsRefused},
		behaviour{"a trial changes nothing and tells what would happen", deployDryRun},
		behaviour{"an unchanged schedule keeps its time and a changed one is due", deployKeepsTimes},
		behaviour{"a producer that is gone loses its schedule and its request", deployRemovesProducer},
		behaviour{"consumers that are new or subscribe anew run at once, those that are gone lose their wakeAt", deployWakesConsumers},
		behaviour{"a consumer that is unchanged runs only for what waits", deployLeavesConsumers},
		behaviour{"a run finishes with the version it began with", deployDuringRun},
		behaviour{"events keep their status and leftovers of a topic trigger nothing", deployKeepsEvents},
		behaviour{"an unfinished run whose handler is gone halts the lane", deployWithoutHandlerOfRun},
		behaviour{"a new version retries what failed at once", deployRetries},
		behaviour{"deleting frees the name and a new one begins from nothing", deleteAndCreate},
		behaviour{"deleting in the middle of prepare ends the run", deleteInPrepare},
		behaviour{"deleting is refused once a call left", deleteAfterCall},
	)
}

// lesson 22: producers are due now; consumers run their prepare
// although there are no events.
func deployRunsAll(t *testing.T, k *kit) {
	armed := len(k.armed.specs)
	w := k.deploy("all", "1", producing(map[string]string{"p": "1d", "q": "2d"}).consumer("other", takeOne("in"), "in"))
	for name, p := range k.schedules(w) {
		if !p.NextRunAt.Equal(time.Now()) || !p.LastRunAt.IsZero() {
			t.Errorf("%s is due at %v and ran at %v", name, p.NextRunAt, p.LastRunAt)
		}
	}
	if specs := k.armed.specs[armed:]; len(specs) != 1 || specs[0].Lane != jobKey(w.Lane) || !specs[0].RunAt.Equal(time.Now()) {
		t.Errorf("armed: %v", specs)
	}
	k.work(w)
	expect(t, "runs", k.ranSince(), []string{"consumers.other.prepare", "consumers.take.prepare", "producers.p.handler", "producers.q.handler"})
}

// apply deploys a definition and returns what that did.
func (k *kit) apply(name, revision string, d definition, change func(*Deploy)) (Deployed, error) {
	deploy := Deploy{Filename: "w.ts", Script: k.define(name, revision, d), By: "tester"}
	if change != nil {
		change(&deploy)
	}
	return k.s.Apply(k.t.Context(), deploy)
}

// the version is the content; a file of another language is another one.
func deployOfTheSame(t *testing.T, k *kit) {
	w := k.deploy("same", "1", producing(map[string]string{"p": "1h"}))
	k.work(w)
	before, armed := k.workflow("same"), len(k.armed.specs)
	out, err := k.apply("same", "1", producing(map[string]string{"p": "1h"}), func(d *Deploy) { d.Filename = "renamed.ts" })
	if err != nil || out.What != Unchanged || out.Version != w.Version {
		t.Errorf("it was %s as %s (%v)", out.What, out.Version, err)
	}
	if now := k.workflow("same"); fmt.Sprint(now) != fmt.Sprint(before) || len(k.armed.specs) != armed {
		t.Errorf("the workflow is %v, before %v", now, before)
	}
	if VersionOf("a.ts", "x") != VersionOf("b.ts", "x") || VersionOf("a.ts", "x") == VersionOf("a.js", "x") || VersionOf("a.ts", "x") == VersionOf("a.ts", "y") {
		t.Error("a version does not go by the content and its language")
	}
}

// Context 3.11.5: the version in force stays, with its schedules.
func deployThatIsRefused(t *testing.T, k *kit) {
	w := k.deploy("refused", "1", producing(map[string]string{"p": "1h"}))
	k.work(w)
	before, armed := fmt.Sprint(k.workflow("refused"), k.schedules(w)), len(k.armed.specs)
	if _, err := k.apply("refused", "2", producing(map[string]string{"p": "0m"}), nil); !errors.Is(err, pawl.ErrInvalid) {
		t.Errorf("an impossible schedule: %v", err)
	}
	_, err := k.apply("refused", "3", producing(map[string]string{"p": "2h"}), func(d *Deploy) { d.Name = "another" })
	if !errors.Is(err, pawl.ErrInvalid) {
		t.Errorf("a script of another name: %v", err)
	}
	if after := fmt.Sprint(k.workflow("refused"), k.schedules(w)); after != before || len(k.armed.specs) != armed {
		t.Errorf("a refused script left %s, before %s", after, before)
	}
}

// A dry run says what it would do, with the source that is in force.
func deployDryRun(t *testing.T, k *kit) {
	dry := func(d *Deploy) { d.DryRun = true }
	out, err := k.apply("dry", "1", consuming(takeOne("in")), dry)
	if err != nil || out.What != Created {
		t.Errorf("of what is not there: %s (%v)", out.What, err)
	}
	k.deploy("dry", "1", consuming(takeOne("in")))
	before := fmt.Sprint(k.workflow("dry"))
	out, err = k.apply("dry", "2", consuming(takeOne("in")), dry)
	if err != nil || out.What != Updated || out.Previous != "dry 1" {
		t.Errorf("of another version: %s of %q (%v)", out.What, out.Previous, err)
	}
	expect(t, "workflow", k.workflow("dry"), before)
}

// in one transaction with the version.
func deployKeepsTimes(t *testing.T, k *kit) {
	w := k.deploy("times", "1", producing(map[string]string{"same": "1h", "edited": "1d"}))
	k.work(w)
	pass(10 * time.Minute)
	before := k.schedules(w)
	k.deploy("times", "2", producing(map[string]string{"same": "1h", "edited": "5m", "added": "1h"}))
	after := k.schedules(w)
	if !after["same"].NextRunAt.Equal(before["same"].NextRunAt) || !after["same"].LastRunAt.Equal(before["same"].LastRunAt) {
		t.Errorf("the unchanged one is due at %v, before at %v", after["same"].NextRunAt, before["same"].NextRunAt)
	}
	for _, name := range []string{"edited", "added"} {
		if !after[name].NextRunAt.Equal(time.Now()) {
			t.Errorf("%s is due at %v, not now", name, after[name].NextRunAt)
		}
	}
	k.ranSince()
	k.work(w)
	expect(t, "runs", k.ranSince(), []string{"producers.added.handler", "producers.edited.handler"})
}

// the row is gone, and with it the request; when it comes
// back it is a new one.
func deployRemovesProducer(t *testing.T, k *kit) {
	w := k.deploy("removes", "1", producing(map[string]string{"p": "1d", "q": "1d"}))
	k.work(w)
	if err := k.runNow("removes"); err != nil {
		t.Fatal(err)
	}
	k.deploy("removes", "2", producing(map[string]string{"q": "1d"}))
	k.ranSince()
	k.work(w)
	expect(t, "runs without it", k.ranSince(), []string{"producers.q.handler"})
	expect(t, "schedules", len(k.schedules(w)), 1)
	k.deploy("removes", "3", producing(map[string]string{"p": "1d", "q": "1d"}))
	k.work(w)
	expect(t, "runs after it came back", k.ranSince(), []string{"producers.p.handler"})
	expect(t, "its label", k.lastRun(w).Trigger, triggerSchedule)
}

// the three kinds of consumers that a new version changes.
func deployWakesConsumers(t *testing.T, k *kit) {
	first := consuming(napping(3*time.Hour)).consumer("moved", napping(2*time.Hour), "in").consumer("gone", napping(time.Hour), "in")
	w := k.deploy("consumers", "1", first)
	k.work(w)
	wake := k.kept(w, "take").WakeAt
	second := consuming(napping(3*time.Hour)).consumer("moved", napping(2*time.Hour), "in", "other").consumer("added", napping(2*time.Hour), "in")
	k.deploy("consumers", "2", second)
	expect(t, "wakeAt of the unchanged one", k.kept(w, "take").WakeAt, wake)
	expect(t, "wakeAt of the one that is gone", k.kept(w, "gone").WakeAt, time.Time{})
	k.ranSince()
	expect(t, "next look", k.work(w), time.Now().Add(2*time.Hour))
	expect(t, "runs", k.ranSince(), []string{"consumers.added.prepare", "consumers.moved.prepare"})
}

// nothing waits for it, so it does not run; a consumer that
// declined what waits is asked again, because the new version may want it.
func deployLeavesConsumers(t *testing.T, k *kit) {
	w := k.deploy("leaves", "1", consuming(takeOne("in")).consumer("picky", func(*goCtx, []json.RawMessage) any { return take("other") }, "other"))
	k.publish(w, "other", "a")
	k.work(w)
	k.ranSince()
	k.deploy("leaves", "2", consuming(takeOne("in")).consumer("picky", takeOne("other"), "other"))
	k.work(w)
	expect(t, "runs", k.ranSince(), []string{"consumers.picky.prepare"})
	expect(t, "event", k.statuses(w, "other")["a"], eventstore.EventConsumed)
}

// A-119, context 3.13: mutate and next of the version whose prepare ran; the
// next run is of the new one.
func deployDuringRun(t *testing.T, k *kit) {
	k.writeThrough()
	const name = "during-run"
	var phases []string
	version := func(v string, prepared func()) definition {
		note := func(phase string) { phases = append(phases, v+" "+phase) }
		return consuming(func(c *goCtx, _ []json.RawMessage) any {
			ids := c.peek("in")
			note("prepare")
			prepared()
			return take("in", ids[:min(1, len(ids))]...)
		}).handler("consumers.take.next", func(*goCtx, []json.RawMessage) any { note("next"); return nothing{} })
	}
	w := k.deploy(name, "1", version("1", func() { k.deploy(name, "2", version("2", func() {})) }))
	k.publish(w, "in", "a", "b")
	k.work(w)
	expect(t, "phases", phases, []string{"1 prepare", "1 next", "2 prepare", "2 next"})
	k.allCommitted(w)
}

// Context 3.13, lesson 18: pending ones go to the new version, nothing is
// repeated, and what lost its consumer is not counted and wakes nobody.
func deployKeepsEvents(t *testing.T, k *kit) {
	w := k.deploy("events", "1", consuming(takeOne("in")).consumer("old", func(*goCtx, []json.RawMessage) any { return take("old") }, "old"))
	k.publish(w, "in", "done")
	k.publish(w, "old", "left")
	k.work(w)
	k.pause("events")
	k.publish(w, "in", "waits")
	k.deploy("events", "2", consuming(takeOne("in")))
	k.resume("events")
	k.ranSince()
	k.work(w)
	expect(t, "runs", k.ranSince(), []string{"consumers.take.prepare"})
	expect(t, "taken", k.taken(w, "take"), []string{"event: done", "event: waits"})
	expect(t, "leftover", k.statuses(w, "old")["left"], eventstore.EventPending)
	expect(t, "pending", k.look("events").Pending, 0)
	k.start("second")
	k.work(w)
	expect(t, "runs after a restart", len(k.ranSince()), 0)
}

// it waits, with a clear issue, and nothing else runs; a version that has
// the handler goes on.
func deployWithoutHandlerOfRun(t *testing.T, k *kit) {
	broken := func(*goCtx, []json.RawMessage) any { throw("broken"); return nil }
	w := k.deploy("vanished", "1", consuming(takeOne("in")).consumer("shaky", broken, "in"))
	k.work(w)
	k.deploy("vanished", "2", producing(map[string]string{"p": "1h"}))
	k.ranSince()
	if until := k.work(w); !until.IsZero() {
		t.Errorf("it wants to be woken at %v", until)
	}
	expect(t, "runs", len(k.ranSince()), 0)
	d := k.look("vanished")
	k.read(func(ctx context.Context, tx *store.Tx) error { // whoever looks for lanes that need somebody finds it
		row, err := runstore.In(tx).GetLane(ctx, pawl.KindWorkflow, w.Lane)
		expect(t, "row", fmt.Sprint(row.State, " ", row.Cause != ""), fmt.Sprint(run.NeedsAttention, " ", true))
		return err
	})
	if d.State != run.NeedsAttention || d.Issue != run.IssueInconsistent || d.Sentence == "" {
		t.Errorf("people see %s, %s: %s", d.State, d.Issue, d.Sentence)
	}
	k.deploy("vanished", "3", consuming(takeOne("in")).consumer("shaky", takeOne("in"), "in"))
	k.work(w)
	expect(t, "word", k.look("vanished").State, run.Idle)
}

// lesson 23: at once, and not with the version that failed.
func deployRetries(t *testing.T, k *kit) {
	fails := true
	d := producing(nil).producer("p", Schedule{Interval: "1d"}, func(*goCtx, []json.RawMessage) any {
		if fails {
			throw("broken")
		}
		return nothing{}
	})
	w := k.deploy("retries", "1", d)
	k.work(w)
	failed := k.lastRun(w)
	fails = false
	k.follow(w, 48*time.Hour)
	expect(t, "runs without a new version", k.lastRun(w).ID, failed.ID)
	again := k.deploy("retries", "2", d)
	k.work(w)
	r := k.lastRun(w)
	if r.RetryOf != failed.ID || r.ScriptVersion != again.Version || r.Status != pawl.StatusCommitted || r.Attempt != 2 {
		t.Errorf("the retry is %s of version %s after %s", r.Status, r.ScriptVersion, r.RetryOf)
	}
}

// Nothing of the old one runs again or is inherited; what it did can be read.
func deleteAndCreate(t *testing.T, k *kit) {
	const name = "phoenix"
	d := producing(nil).producer("p", Schedule{Interval: "1d"}, func(_ *goCtx, args []json.RawMessage) any {
		if len(args) > 0 {
			t.Errorf("the state is %s", args[0])
		}
		return map[string]int{"n": 1}
	})
	old := k.deploy(name, "1", d)
	k.publish(old, "in", "a")
	k.work(old)
	k.publish(old, "in", "b")
	if err := k.remove(name); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"run": k.runNow(name), "delete": k.remove(name)} {
		if !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("%s of a deleted workflow: %v", what, err)
		}
	}
	k.ranSince()
	if until := k.work(old); !until.IsZero() || len(k.ranSince()) != 0 {
		t.Errorf("the deleted workflow wants to be woken at %v", until)
	}
	if _, kept := k.s.memories[old.ID]; kept {
		t.Error("the deleted workflow is kept in memory")
	}
	w := k.deploy(name, "1", d)
	if w.ID == old.ID || w.Lane == old.Lane || k.s.LaneOf(&runstore.Run{Lane: w.Lane}).Name != name {
		t.Errorf("the new one has the id %s and the lane %s", w.ID, w.Lane)
	}
	k.work(w)
	expect(t, "runs of the new one", k.ranSince(), []string{"consumers.take.prepare", "producers.p.handler"})
	expect(t, "events of the new one", len(k.statuses(w, "in")), 0)
	if len(k.runs(old)) == 0 || k.find(old, "in", "a").Status != eventstore.EventConsumed {
		t.Error("what the old one did is gone")
	}
}

// The session ends without an error, and the run is cancelled.
func deleteInPrepare(t *testing.T, k *kit) {
	k.writeThrough()
	w := k.deploy("deleted", "1", consuming(func(c *goCtx, _ []json.RawMessage) any {
		if err := k.remove("deleted"); err != nil {
			t.Error(err)
		}
		return take("in", c.peek("in")...)
	}))
	k.publish(w, "in", "a")
	if until := k.work(w); !until.IsZero() {
		t.Errorf("it wants to be woken at %v", until)
	}
	expect(t, "story", k.story(w), []string{"take preparing cancelled"})
	expect(t, "event", k.statuses(w, "in")["a"], eventstore.EventPending)
}

// It is refused with a reason while what was sent is not recorded, and while it
// is unknown what became of it.
func deleteAfterCall(t *testing.T, k *kit) {
	w := k.deploy("sent", "1", orderDefinition())
	k.publish(w, "in", "a")
	k.crashAt(w, "called", 1)
	k.desk.knowNothing()
	k.work(w) // recovered, and waiting for the answer
	if err := k.remove("sent"); !errors.Is(err, pawl.ErrConflict) || reasonOf(err) != "outcome_unknown" {
		t.Errorf("deleted while a call has no outcome: %v", err)
	}
	k.desk.inquiry = nil
	k.settle(w)
	k.publish(w, "in", "b")
	tried := false
	k.fault = func(place string) error {
		if place == "before result" && !tried {
			tried = true
			if err := k.remove("sent"); !errors.Is(err, pawl.ErrConflict) || reasonOf(err) != ReasonRunActive {
				t.Errorf("deleted while a run has sent something: %v", err)
			}
		}
		return nil
	}
	k.work(w)
	expect(t, "tried", tried, true)
	expect(t, "orders", k.desk.things(), []string{"a", "b"})
	k.read(func(ctx context.Context, tx *store.Tx) error {
		_, err := workflowstore.In(tx).WorkflowByName(ctx, "sent")
		return err
	})
}
