package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/tool"
)

func TestViews(t *testing.T) {
	hold(t,
		behaviour{"each state of a lane has its word and its sentence", wordsOfStates},
		behaviour{"a lane is Running while a handler runs", runningWhileActive},
		behaviour{"a lane that waits for an answer says so", wordsOfReconciliation},
		behaviour{"schedules are told as frequency, countdown and daily time", scheduleInWords},
		behaviour{"the last activity is told in inputs and effects", lastActivityInWords},
		behaviour{"what people see names no phase, handler, topic or chain", viewNamesNoInnards},
		behaviour{"the next instant is that of the scheduler", nextInstantIsTheSchedulers},
		behaviour{"why tells which condition is not met", whyTellsTheGate},
		behaviour{"lists are read page by page", lanesPageByPage},
		behaviour{"an event that is held by an ended run is told and not repaired", orphanIsTold},
		behaviour{"a lane that is due and has no job is armed by the sweep", sweepArmsLanes},
	)
}

// readingProducer is a workflow whose producer depends on the desk.
func readingProducer() definition {
	return producing(nil).producer("p", Schedule{Interval: "1h"}, func(c *goCtx, _ []json.RawMessage) any {
		c.tool("desk", "read", nil)
		return nothing{}
	})
}

// the four words, each with an issue that a person can read
// and, where one can, act on.
func wordsOfStates(t *testing.T, k *kit) {
	for i, c := range []struct {
		class    pawl.Class
		after    func(w workflowstore.Workflow)
		word     run.State
		issue    run.Issue
		sentence string
	}{
		{"", nil, run.Idle, run.IssueNone, ""},
		{"", func(w workflowstore.Workflow) { k.pause(w.Name) }, run.Stopped, run.IssuePaused, "It is paused, by tester since NOW; resume it to continue."},
		{pawl.ClassTransient, nil, run.Running, run.IssueBackingOff, "The last attempt failed; it is tried again in 10 s: the desk says no."},
		{pawl.ClassTransient, func(w workflowstore.Workflow) { k.settle(w) }, run.NeedsAttention, run.IssueRetriesUsedUp, "It failed 6 times in a row and is not retried automatically; resume it when the cause is fixed: the desk says no."},
		{pawl.ClassLogic, nil, run.NeedsAttention, run.IssueFixesUsedUp, "The script failed; deploy a corrected version, or resume it if the cause was external: the desk says no."},
		{pawl.ClassAuth, nil, run.NeedsAttention, run.IssueSignIn, "An account must be connected again: the desk says no."},
		{pawl.ClassPermission, nil, run.NeedsAttention, run.IssuePermission, "A permission is missing; grant it and resume: the desk says no."},
		{pawl.ClassPrecondition, nil, run.NeedsAttention, run.IssuePrecondition, "Something that it needs is missing; add it and resume: the desk says no."},
		{pawl.ClassInternal, nil, run.NeedsAttention, run.IssueInternal, "Pawl or a connection failed; resume it when that is fixed: the desk says no."},
		{pawl.ClassAuth, func(w workflowstore.Workflow) { k.pause(w.Name) }, run.Stopped, run.IssuePaused, "It is paused, by tester since NOW; resume it to continue."},
	} {
		w := k.deploy(fmt.Sprintf("state-%d", i), "1", readingProducer())
		k.desk.fail(c.class)
		k.work(w)
		if c.after != nil {
			c.after(w)
		}
		d := k.look(w.Name)
		c.sentence = strings.ReplaceAll(c.sentence, "NOW", pawl.FormatTime(d.Pause.At))
		if d.State != c.word || d.Issue != c.issue || d.Sentence != c.sentence {
			t.Errorf("%d (%s): %s, %s: %q; want %s, %s: %q", i, c.class, d.State, d.Issue, d.Sentence, c.word, c.issue, c.sentence)
		}
	}
}

// and Idle before and after.
func runningWhileActive(t *testing.T, k *kit) {
	var during Details
	var why lane.Why
	w := k.deploy("runs", "1", consuming(func(*goCtx, []json.RawMessage) any {
		for range 100 { // a prepare that takes its time is written down by itself
			if during = k.look("runs"); during.State == run.Running {
				break
			}
			pass(holdTime)
		}
		var err error
		if why, err = k.s.Why(t.Context(), lane.Viewer{}, "runs", time.Time{}); err != nil {
			t.Error(err)
		}
		return take("in")
	}))
	expect(t, "word before", k.look("runs").State, run.Idle)
	k.work(w)
	expect(t, "word during", during.State, run.Running)
	expect(t, "word after", k.look("runs").State, run.Idle)
	if closed := closedGates(why); closed != "idle" || !strings.Contains(why.Next, "when the run has ended") {
		t.Errorf("during the run the closed gates are %q, and next: %s", closed, why.Next)
	}
}

// closedGates are the conditions that are not met.
func closedGates(y lane.Why) string {
	var list []string
	for _, g := range y.Gates {
		if !g.Open {
			list = append(list, g.Name)
		}
		if g.Text == "" {
			list = append(list, g.Name+" has no text")
		}
	}
	return strings.Join(list, " ")
}

// Running while the host asks, Needs attention once only a person knows;
// after a resume that knows no more the lane still waits (context 3.7.6).
func wordsOfReconciliation(t *testing.T, k *kit) {
	w := k.deploy("unknown", "1", orderDefinition())
	k.work(w)
	k.publish(w, "in", "a")
	k.desk.answer = func(tool.Call) error { return fmt.Errorf("the line went dead") }
	k.desk.inquiry = func(tool.Call) (bool, bool) { return false, false }
	k.work(w)
	d := k.look("unknown")
	if d.State != run.Running || d.Issue != run.IssueReconciling || !strings.Contains(d.Sentence, "desk.order") || d.NextAt.IsZero() {
		t.Errorf("while the host asks: %s, %s, next at %v: %s", d.State, d.Issue, d.NextAt, d.Sentence)
	}
	k.settle(w)
	d = k.look("unknown")
	if d.State != run.NeedsAttention || d.Issue != run.IssueOutcomeUnknown || !d.NextAt.IsZero() {
		t.Errorf("when it gave up: %s, %s, next at %v", d.State, d.Issue, d.NextAt)
	}
	k.resume("unknown")
	k.ranSince()
	k.follow(w, 24*time.Hour)
	expect(t, "runs after resume", len(k.ranSince()), 0)
	expect(t, "issue after resume", k.look("unknown").Issue, run.IssueOutcomeUnknown)
}

// each once, also when two producers share it.
func scheduleInWords(t *testing.T, k *kit) {
	w := k.deploy("in-words", "1", producing(map[string]string{"p": "5m", "q": "300s"}).producer("r", Schedule{Cron: "0 9 * * *", Timezone: "Europe/Berlin"}, idle))
	k.work(w)
	d := k.look("in-words")
	expect(t, "schedule", d.Schedule, "Every 5 minutes; Daily at 09:00 Berlin time")
	expect(t, "countdown", time.Until(d.NextAt), 5*time.Minute)
	k.work(k.deploy("by-events", "1", consuming(takeOne("in"))))
	expect(t, "schedule without producers", k.look("by-events").Schedule, "When there are events")
}

// what was found, what was done with it, what did not happen, and how
// much waits.
func lastActivityInWords(t *testing.T, k *kit) {
	w := k.deploy("activity", "1", orderDefinition())
	expect(t, "after the deploy", k.look("activity").LastText, "Deployed")
	k.work(w)
	expect(t, "after a look", k.look("activity").LastText, "Checked; nothing to do")
	pass(time.Second)
	k.publish(w, "in", "a")
	d := k.look("activity")
	expect(t, "after an event", []any{d.LastText, d.Pending}, []any{"Found Thing a", 1})
	pass(time.Second)
	k.work(w)
	d = k.look("activity")
	expect(t, "after its run", []any{d.LastText, d.Pending, d.LastAt.Equal(time.Now())}, []any{"Done: Order a", 0, true})
	pass(time.Second)
	k.publish(w, "in", "b")
	k.desk.fail(pawl.ClassAuth)
	pass(time.Second)
	k.work(w)
	expect(t, "after a refusal", k.look("activity").LastText, "Did not happen: Order b")
}

// in the states in which the host goes on or stops by itself.
func viewNamesNoInnards(t *testing.T, k *kit) {
	d := orderDefinition()
	secret := definition{
		config: Config{Topics: []string{"topicword"}, Consumers: []Consumer{{Name: "handlerword", Subscribe: []string{"topicword"}}}},
		handlers: map[string]goHandler{
			"consumers.handlerword.prepare": takeOne("topicword"),
			"consumers.handlerword.mutate":  d.handlers["consumers.order.mutate"],
		},
	}
	w := k.deploy("plain", "1", secret)
	k.work(w)
	check := func(when string) {
		t.Helper()
		l := k.look("plain").Lane
		text := strings.ToLower(fmt.Sprint(l.State, l.Sentence, l.Schedule, l.LastText))
		for _, word := range []string{"handlerword", "topicword", "preparing", "mutating", "emitting", "retry", "attempt 2", "consumer", "producer"} {
			if strings.Contains(text, word) {
				t.Errorf("%s people read %q in %q", when, word, text)
			}
		}
	}
	check("when nothing happened")
	k.publish(w, "topicword", "a")
	for _, class := range []pawl.Class{pawl.ClassTransient, pawl.ClassAuth} {
		k.desk.fail(class)
		k.work(w)
		check("after " + string(class))
		k.resume("plain")
	}
	k.desk.fail("")
	k.crashAt(w, "called", 1)
	check("after a crash")
	k.work(w)
	check("while it is asked")
	k.settle(w)
	check("in the end")
}

// Lesson 29: the countdown is of what the scheduler waits for; there is none
// for what cannot run.
func nextInstantIsTheSchedulers(t *testing.T, k *kit) {
	w := k.deploy("countdown", "1", readingProducer().consumer("nap", napping(20*time.Minute), "in"))
	agree := func(when string) {
		t.Helper()
		until := k.work(w)
		if got := k.look("countdown").NextAt; !got.Equal(until) {
			t.Errorf("%s people are told %v, the lane waits until %v", when, got, until)
		}
	}
	agree("after the deploy")
	pass(20 * time.Minute)
	agree("after a wake")
	k.desk.fail(pawl.ClassTransient)
	pass(40 * time.Minute)
	agree("in a backoff")
	k.pause("countdown")
	agree("while paused")
	k.resume("countdown")
	k.desk.fail(pawl.ClassLogic)
	agree("while halted")
	expect(t, "issue", k.look("countdown").Issue, run.IssueFixesUsedUp)
}

// The four conditions of running, one after another.
func whyTellsTheGate(t *testing.T, k *kit) {
	w := k.deploy("why", "1", readingProducer())
	why := func() lane.Why {
		t.Helper()
		y, err := k.s.Why(t.Context(), lane.Viewer{}, "why", time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		return y
	}
	expect(t, "closed when it is due", closedGates(why()), "")
	k.work(w)
	y := why()
	expect(t, "closed when nothing is due", closedGates(y), "due")
	if !strings.Contains(y.Next, pawl.FormatTime(time.Now().Add(time.Hour))) || len(y.Recent) == 0 {
		t.Errorf("next: %s, with %d runs", y.Next, len(y.Recent))
	}
	k.pause("why")
	expect(t, "closed while paused", closedGates(why()), "wanted due")
	k.resume("why")
	k.desk.fail(pawl.ClassAuth)
	pass(time.Hour)
	k.work(w)
	y = why()
	expect(t, "closed while halted", closedGates(y), "healthy")
	expect(t, "sentence of the gate", y.Gates[2].Text, y.Sentence)
}

// Lesson 27: no silent cap.
func lanesPageByPage(t *testing.T, k *kit) {
	for i := range 5 {
		k.deploy(fmt.Sprintf("page-%d", i), "1", consuming(takeOne("in")))
	}
	var names []string
	after := lane.Place{Name: "page"}
	for {
		page, next, err := k.s.List(t.Context(), lane.Query{After: after, Limit: 2})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range page {
			if strings.HasPrefix(l.Name, "page-") {
				names = append(names, l.Name)
			}
		}
		if next == (lane.Place{}) {
			break
		}
		after = next
	}
	expect(t, "names", names, []string{"page-0", "page-1", "page-2", "page-3", "page-4"})
}

// Context 3.12.4, lesson 9: an alarm; the event stays as it is.
func orphanIsTold(t *testing.T, k *kit) {
	w := k.deploy("held", "1", consuming(takeOne("in")))
	k.publish(w, "in", "a")
	k.work(w)
	k.write(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `update events set status = 'reserved' where workflow_id = $1`, w.ID)
		return err
	})
	d := k.look("held")
	if d.State != run.NeedsAttention || d.Issue != run.IssueInconsistent {
		t.Errorf("people see %s, %s", d.State, d.Issue)
	}
	if err := k.s.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.start("second")
	k.work(w)
	expect(t, "event", k.statuses(w, "in")["a"], eventstore.EventReserved)
	k.write(func(ctx context.Context, tx *store.Tx) error { // so that no other test sees it
		_, err := tx.Exec(ctx, `update events set status = 'consumed' where workflow_id = $1`, w.ID)
		return err
	})
}

// Lessons 20, 21: a lane that lost its job is found, if it can be due at all.
func sweepArmsLanes(t *testing.T, k *kit) {
	timed := k.deploy("sweep-timed", "1", producing(map[string]string{"p": "1h"}))
	naps := k.deploy("sweep-naps", "1", consuming(napping(time.Hour)))
	quiet := k.deploy("sweep-quiet", "1", consuming(takeOne("in")))
	stopped := k.deploy("sweep-stopped", "1", producing(map[string]string{"p": "1h"}))
	halted := k.deploy("sweep-halted", "1", readingProducer())
	k.desk.fail(pawl.ClassAuth)
	for _, w := range []workflowstore.Workflow{timed, naps, quiet, stopped, halted} {
		k.work(w)
	}
	k.pause("sweep-stopped")
	k.armed.specs = nil
	if err := k.s.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	armed := map[string]bool{}
	for _, s := range k.armed.specs {
		if s.RunAt.After(time.Now()) {
			t.Errorf("%s is armed for %v, not for now", s.Key, s.RunAt)
		}
		armed[s.Key] = true
	}
	for _, w := range []workflowstore.Workflow{timed, naps, quiet, stopped, halted} {
		if want := w.ID == timed.ID || w.ID == naps.ID; armed[jobKey(w.Lane)] != want {
			t.Errorf("%s is armed: %v", w.Name, !want)
		}
	}
}

// Gates tell the truth: what waits and was looked at does not make a lane run.
func TestWhyDoesNotPromiseARun(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		k := newKitWithoutOwner(t, url)
		p := restart(t, k)
		left := make(chan struct{}, 100)
		w := k.deploy("shop", "1", consuming(func(*goCtx, []json.RawMessage) any { left <- struct{}{}; return take("in") }))
		<-left
		k.publish(w, "in", "a")
		<-left
		gate := func() lane.Gate {
			why, err := k.s.Why(t.Context(), lane.Viewer{}, "shop", time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range why.Gates {
				if g.Name == "due" {
					return g
				}
			}
			t.Fatalf("no gate tells what is due: %+v", why.Gates)
			return lane.Gate{}
		}
		until(t, "the gate closes", func() bool { return !gate().Open })
		if text := gate().Text; !strings.HasPrefix(text, "1 input is waiting; it has seen") {
			t.Errorf("it says %q", text)
		}
		p.stop()
		k.publish(w, "in", "b") // nobody works, so it is due
		if g := gate(); !g.Open || g.Text != "2 inputs are waiting." {
			t.Errorf("it says %+v", g)
		}
		err := k.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `insert into events (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, created_by, caused_by, created_at, updated_at)
			with recursive n (i) as (select cast(1 as bigint) union all select i + 1 from n where i < 2500)
			select i, $1, 'in', 1000 + i, 1000 + i, 'm-' || i, '{}', 'pending', 'api', '[]', 1, 1 from n`, w.ID)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if g := gate(); !g.Open || g.Text != "At least 2500 inputs are waiting." {
			t.Errorf("it says %+v", g)
		}
	})
}
