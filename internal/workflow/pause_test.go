package workflow

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/tool"
)

func TestPause(t *testing.T) {
	hold(t,
		behaviour{"a paused workflow starts nothing and wants no time", pausedStartsNothing},
		behaviour{"what came while it was paused is done after resume", resumeDoesWhatCame},
		behaviour{"pausing twice changes nothing the second time", pauseTwice},
		behaviour{"a pause in the middle of prepare is a clean end", pauseInPrepare},
		behaviour{"a pause in the middle of a producer is a clean end", pauseInProducer},
		behaviour{"a pause after events were taken gives them back", pauseInMutate},
		behaviour{"a pause after the call left lets the run finish", pauseAfterCall},
		behaviour{"a pause in next lets the run finish", pauseInNext},
		behaviour{"a pause between choice and begin wins", pauseBeforeBegin},
		behaviour{"a pause of a person and a halt of the host are apart", pauseAndHaltAreApart},
		behaviour{"a pause survives a restart", pauseSurvivesRestart},
		behaviour{"deploying while paused changes the version and runs nothing", deployWhilePaused},
	)
}

//
func pausedStartsNothing(t *testing.T, k *kit) {
	w := k.deploy("asleep", "1", producing(map[string]string{"p": "10m"}).consumer("nap", napping(time.Hour), "in"))
	k.work(w)
	if !k.pause("asleep") {
		t.Error("pause changes nothing")
	}
	k.publish(w, "in", "a")
	k.ranSince()
	for range 48 {
		if until := k.work(w); !until.IsZero() {
			t.Fatalf("a paused lane wants to be woken at %v", until)
		}
		pass(time.Hour)
	}
	expect(t, "runs in two days", len(k.ranSince()), 0)
	d := k.look("asleep")
	if d.State != run.Stopped || d.Issue != run.IssuePaused || !d.Paused || !d.NextAt.IsZero() {
		t.Errorf("people see %s, %s, next at %v", d.State, d.Issue, d.NextAt)
	}
}

// lesson 20: the events, the wakeAt and one run of the producer.
func resumeDoesWhatCame(t *testing.T, k *kit) {
	w := k.deploy("resumed", "1", producing(map[string]string{"p": "10m"}).consumer("nap", napping(time.Hour), "other"))
	k.work(w)
	k.pause("resumed")
	k.publish(w, "in", "a", "b")
	pass(24 * time.Hour)
	k.ranSince()
	armed := len(k.armed.specs)
	if !k.resume("resumed") || len(k.armed.specs) != armed+1 {
		t.Error("resume does not arm the lane")
	}
	k.work(w)
	expect(t, "runs", k.ranSince(), []string{"consumers.take.prepare", "consumers.take.prepare", "consumers.nap.prepare", "producers.p.handler"})
	expect(t, "next look", k.work(w), time.Now().Add(10*time.Minute))
}

// Context 3.7.7: a double click is harmless, and only what changed is noted.
func pauseTwice(t *testing.T, k *kit) {
	k.work(k.deploy("twice", "1", consuming(takeOne("in"))))
	expect(t, "resume of what runs", k.resume("twice"), false)
	expect(t, "pause", []bool{k.pause("twice"), k.pause("twice")}, []bool{true, false})
	expect(t, "resume", []bool{k.resume("twice"), k.resume("twice")}, []bool{true, false})
	list, err := k.db.AuditLog(t.Context(), 0, 3)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "audit log", []string{list[0].Action, list[1].Action, list[2].Action}, []string{"workflow.resume", "workflow.pause", "workflow.deploy"})
	expect(t, "changes", []string{k.changes[1].What, k.changes[2].What}, []string{"paused", "resumed"})
}

// Lesson 37, context 3.8: no error, no failure that a script is fixed for;
// the run is cancelled, and after resume prepare runs again.
func pauseInPrepare(t *testing.T, k *kit) {
	k.writeThrough()
	pauses := true
	w := k.deploy("in-prepare", "1", consuming(func(c *goCtx, _ []json.RawMessage) any {
		ids := c.peek("in")
		if pauses {
			k.pause("in-prepare")
		}
		return take("in", ids...)
	}))
	k.publish(w, "in", "a")
	if until := k.work(w); !until.IsZero() {
		t.Errorf("it wants to be woken at %v", until)
	}
	expect(t, "story", k.story(w), []string{"take preparing cancelled"})
	expect(t, "error", k.lastRun(w).ErrorMessage, "")
	expect(t, "event", k.statuses(w, "in")["a"], eventstore.EventPending)
	expect(t, "attempts of the event", k.eventAttempts(w, "a"), 0)
	pauses = false
	k.resume("in-prepare")
	k.work(w)
	expect(t, "event", k.statuses(w, "in")["a"], eventstore.EventConsumed)
	expect(t, "retry chain", k.lastRun(w).RetryOf, "")
}

// eventAttempts is how often an event of "in" was taken and given back.
func (k *kit) eventAttempts(w workflowstore.Workflow, id string) int {
	k.t.Helper()
	return k.find(w, "in", id).Attempt
}

// A-131, lesson 37: its schedule stays due and nothing of it is there.
func pauseInProducer(t *testing.T, k *kit) {
	k.writeThrough()
	const name = "in-producer"
	pauses := true
	w := k.deploy(name, "1", producing(nil).producer("p", Schedule{Interval: "1h"}, func(c *goCtx, _ []json.RawMessage) any {
		c.thing(k, name, "x")
		if pauses {
			k.pause(name)
		}
		return map[string]int{"n": 1}
	}))
	k.work(w)
	r := k.lastRun(w)
	if r.Status != pawl.StatusCancelled || r.ErrorMessage != "" {
		t.Errorf("the run is %s: %s", r.Status, r.ErrorMessage)
	}
	if k.kept(w, "p").State != nil || len(k.statuses(w, "in")) != 0 || !k.schedules(w)["p"].LastRunAt.IsZero() {
		t.Error("something of the cancelled run is there")
	}
	pauses = false
	k.resume(name)
	k.work(w)
	expect(t, "event", k.statuses(w, "in")["x"], eventstore.EventConsumed)
}

// Nothing was sent yet, so the run ends and its events are pending again, one
// attempt later.
func pauseInMutate(t *testing.T, k *kit) {
	k.writeThrough()
	d := orderDefinition()
	mutate := d.handlers["consumers.order.mutate"]
	pauses := true
	w := k.deploy("in-mutate", "1", d.handler("consumers.order.mutate", func(c *goCtx, args []json.RawMessage) any {
		if pauses {
			k.pause("in-mutate")
		}
		return mutate(c, args)
	}))
	k.publish(w, "in", "a")
	k.work(w)
	expect(t, "story", k.story(w), []string{"order mutating cancelled"})
	expect(t, "event", k.statuses(w, "in")["a"], eventstore.EventPending)
	expect(t, "attempts of the event", k.eventAttempts(w, "a"), 1)
	expect(t, "orders", len(k.desk.things()), 0)
	pauses = false
	k.resume("in-mutate")
	k.work(w)
	expect(t, "orders", k.desk.things(), []string{"a"})
	k.checkInvariants(w)
}

// X-66, context 3.4: what was sent goes on to its commit; only then the lane
// stops.
func pauseAfterCall(t *testing.T, k *kit) {
	w := k.deploy("after-call", "1", orderDefinition())
	k.work(w)
	k.publish(w, "in", "a", "b")
	k.desk.answer = func(tool.Call) error { k.pause("after-call"); return nil }
	if until := k.work(w); !until.IsZero() {
		t.Errorf("it wants to be woken at %v", until)
	}
	expect(t, "last run", k.lastRun(w).Status, pawl.StatusCommitted)
	expect(t, "events", k.statuses(w, "in"), map[string]eventstore.EventStatus{"a": "consumed", "b": "pending"})
	expect(t, "orders", k.desk.things(), []string{"a"})
	expect(t, "what next published", k.statuses(w, "out")["out-a"], eventstore.EventPending)
}

// The same while next runs.
func pauseInNext(t *testing.T, k *kit) {
	d := orderDefinition()
	next := d.handlers["consumers.order.next"]
	w := k.deploy("in-next", "1", d.handler("consumers.order.next", func(c *goCtx, args []json.RawMessage) any {
		if dataOf(args[0]) != nil {
			k.pause("in-next")
		}
		return next(c, args)
	}))
	k.publish(w, "in", "a")
	k.work(w)
	expect(t, "last run", k.lastRun(w).Status, pawl.StatusCommitted)
	expect(t, "what next published", k.statuses(w, "out")["out-a"], eventstore.EventPending)
}

// whoever was chosen before the pause does not begin after it.
func pauseBeforeBegin(t *testing.T, k *kit) {
	w := k.deploy("before-begin", "1", consuming(takeOne("in")))
	k.publish(w, "in", "a")
	e := &session{Service: k.s, claim: k, memory: k.s.memoryOf(w.ID, k.fence), id: w.ID}
	v, st, err := e.next(t.Context())
	if err != nil || st.do != actConsume {
		t.Fatalf("the next step is %s (%v)", st.do, err)
	}
	k.pause("before-begin")
	if err := e.take(t.Context(), v, st); !errors.Is(err, pawl.ErrConflict) {
		t.Errorf("a run begins after the pause: %v", err)
	}
	expect(t, "runs", len(k.runs(w)), 0)
}

// X-16, lessons 12..14: what the host does never changes what the person wants,
// and the other way round; resume clears both.
func pauseAndHaltAreApart(t *testing.T, k *kit) {
	w := k.deploy("apart", "1", consuming(func(c *goCtx, _ []json.RawMessage) any {
		c.tool("desk", "read", nil)
		return take("in", c.peek("in")...)
	}))
	k.desk.fail(pawl.ClassAuth)
	k.work(w)
	expect(t, "wanted after a halt", k.workflow("apart").Desired, desiredActive)
	expect(t, "word", k.look("apart").State, run.NeedsAttention)
	k.pause("apart")
	expect(t, "newest run after a pause", k.lastRun(w).Status, pawl.StatusPausedApproval)
	expect(t, "word", k.look("apart").State, run.Stopped)
	k.desk.fail("")
	k.resume("apart")
	k.work(w)
	expect(t, "word", k.look("apart").State, run.Idle)
	expect(t, "story", k.story(w), []string{"take committed committed"})
	expect(t, "statement that it is mended", k.workflow("apart").ClearedRun, "")
}

// what a person wants is in the store.
func pauseSurvivesRestart(t *testing.T, k *kit) {
	w := k.deploy("stays", "1", producing(map[string]string{"p": "10m"}))
	k.publish(w, "in", "a")
	k.pause("stays")
	k.start("second")
	pass(time.Hour)
	k.ranSince()
	k.work(w)
	expect(t, "runs", len(k.ranSince()), 0)
}

// the new version is in force, and first runs after resume.
func deployWhilePaused(t *testing.T, k *kit) {
	w := k.deploy("edited", "1", consuming(takeOne("in")))
	k.work(w)
	k.pause("edited")
	k.publish(w, "in", "a")
	k.ranSince()
	again := k.deploy("edited", "2", producing(map[string]string{"p": "1h"}))
	k.work(w)
	expect(t, "runs", len(k.ranSince()), 0)
	if again.Version == w.Version || again.Desired != desiredPaused {
		t.Errorf("the version is %s and the workflow %s", again.Version, again.Desired)
	}
	k.resume("edited")
	k.work(w)
	expect(t, "runs", k.ranSince(), []string{"consumers.take.prepare", "producers.p.handler"})
	for _, r := range k.runs(w)[1:] {
		expect(t, "version of "+r.Handler, r.ScriptVersion, again.Version)
	}
}
