package workflow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// phaseNames are the columns of the matrix of context 3.3.
var phaseNames = []string{"producer", "prepare", "mutate", "next"}

// matrix is that of context 3.3: which phase may do what.
var matrix = []struct {
	operation string
	allowed   map[string]bool
	do        func(c *goCtx, scope string)
}{
	{"external read", map[string]bool{"producer": true, "prepare": true}, func(c *goCtx, _ string) { c.tool("desk", "read", nil) }},
	{"external mutation", map[string]bool{"mutate": true}, func(c *goCtx, _ string) { c.tool("desk", "order", "probe") }},
	{"topic peek", map[string]bool{"prepare": true}, func(c *goCtx, _ string) { c.peek("in") }},
	{"topic getByIds", map[string]bool{"prepare": true}, func(c *goCtx, _ string) {
		c.call("getByIds", map[string]any{"topic": "in", "ids": []string{"a"}})
	}},
	{"topic publish", map[string]bool{"producer": true, "next": true}, func(c *goCtx, scope string) { publishProbe(c, scope, "probe") }},
	{"register input", map[string]bool{"producer": true}, func(c *goCtx, _ string) { registerProbe(c) }},
}

func registerProbe(c *goCtx) {
	c.call("registerInput", map[string]any{"source": "test", "type": "thing", "id": "probe", "title": "Probe"})
}

// publishProbe publishes as the phase has to: a producer names an input.
func publishProbe(c *goCtx, scope, id string) {
	input := ""
	if scope != "" {
		registerProbe(c)
		input = script.InputID(scope, "test", "thing", "probe")
	}
	c.publish("out", id, id, input)
}

// probeDefinition is a workflow in which one phase runs a probe, and the others
// do nothing special.
func probeDefinition(phase string, probe func(c *goCtx)) definition {
	d := definition{
		config:   Config{Topics: []string{"in", "out"}},
		handlers: map[string]goHandler{"consumers.tell.prepare": takeOne("out"), "consumers.order.prepare": takeOne("in")},
	}
	d.config.Consumers = []Consumer{{Name: "order", Subscribe: []string{"in"}}, {Name: "tell", Subscribe: []string{"out"}}}
	after := func(c *goCtx, _ []json.RawMessage) any { probe(c); return nothing{} }
	switch phase {
	case "producer":
		d.config.Producers = []Producer{{Name: "poll", Publishes: []string{"out"}, Schedule: Schedule{Interval: "1h"}}}
		d.handlers["producers.poll.handler"] = after
	case "prepare":
		d.handlers["consumers.order.prepare"] = func(c *goCtx, args []json.RawMessage) any {
			taken := takeOne("in")(c, args)
			probe(c)
			return taken
		}
	case "mutate":
		d.handlers["consumers.order.mutate"] = after
	case "next":
		d.config.Consumers[0].Publishes = []string{"out"}
		d.handlers["consumers.order.next"] = after
	}
	return d
}

// probeRun runs a probe in a phase and returns the run that it was in. A
// consumer is given the event a.
func (k *kit) probeRun(name, phase string, probe func(c *goCtx, scope string)) (workflowstore.Workflow, runstore.Run) {
	k.t.Helper()
	scope, handler := "", "order"
	probed := false
	w := k.deploy(name, "1", probeDefinition(phase, func(c *goCtx) { probed = true; probe(c, scope) }))
	if phase == "producer" {
		scope, handler = w.ID, "poll"
	} else {
		k.publish(w, "in", "a")
	}
	k.work(w)
	if !probed {
		k.t.Fatalf("%s: the phase did not run", name)
	}
	var of runstore.Run
	for _, r := range k.runs(w) {
		if r.Handler == handler {
			of = r
		}
	}
	return w, of
}

// context 3.3: every cell of the matrix that says yes.
func TestPhasesMayDoWhatTheMatrixAllows(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for _, row := range matrix {
			for _, phase := range phaseNames {
				if !row.allowed[phase] {
					continue
				}
				name := strings.ReplaceAll(row.operation, " ", "-") + "-in-" + phase
				w, r := k.probeRun(strings.ToLower(name), phase, row.do)
				expectRun(t, r, pawl.PhaseCommitted, pawl.StatusCommitted)
				if row.operation == "topic publish" && k.statuses(w, "out")["probe"] != eventstore.EventConsumed {
					t.Errorf("%s: what it published is not there: %v", name, k.statuses(w, "out"))
				}
			}
		}
		if got := k.desk.things(); !slices.Equal(got, []string{"probe"}) {
			t.Errorf("the desk has the orders %v, want the one of mutate", got)
		}
	})
}

// context 3.3.1, A-141, X-24: every cell of the matrix that says no. The
// handler catches the refusal, goes on with what it may do and returns as if
// nothing had been; it has failed all the same and nothing of it has an effect.
func TestPhasesCannotDoWhatTheMatrixRefuses(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for _, row := range matrix {
			for _, phase := range phaseNames {
				if row.allowed[phase] {
					continue
				}
				name := strings.ReplaceAll(row.operation, " ", "-") + "-in-" + phase
				t.Log(name)
				w, r := k.probeRun(strings.ToLower(name), phase, func(c *goCtx, scope string) {
					caught(func() { row.do(c, scope) })
					for _, other := range matrix {
						if other.allowed[phase] {
							caught(func() { other.do(c, scope) })
						}
					}
				})
				at := map[string]pawl.Phase{"producer": pawl.PhaseExecuting, "prepare": pawl.PhasePreparing, "mutate": pawl.PhaseMutating, "next": pawl.PhaseEmitting}[phase]
				expectRun(t, r, at, pawl.StatusFailedLogic)
				if r.ErrorCode != "phase" || r.ErrorClass != pawl.ClassLogic {
					t.Errorf("%s: error %s of class %s (%s), want phase of class logic", name, r.ErrorCode, r.ErrorClass, r.ErrorMessage)
				}
				if !strings.Contains(r.ErrorMessage, phase) {
					t.Errorf("%s: the message does not name the phase: %s", name, r.ErrorMessage)
				}
				k.expectNoEffect(t, w, phase)
			}
		}
		if got := k.desk.things(); len(got) != 0 {
			t.Errorf("the desk has the orders %v", got)
		}
	})
}

// expectNoEffect holds that a refused probe left nothing behind, and that what
// its run took is where the rules of recovery want it.
func (k *kit) expectNoEffect(t *testing.T, w workflowstore.Workflow, phase string) {
	t.Helper()
	if out := k.statuses(w, "out"); len(out) != 0 {
		t.Errorf("it published %v", out)
	}
	if calls := k.ledgerRows(w); len(calls) != 0 {
		t.Errorf("it left the calls %v", calls)
	}
	if phase == "producer" {
		return
	}
	want := eventstore.EventPending
	if phase == "next" { // the result is recorded, so it only goes forward
		want = eventstore.EventReserved
	}
	if e := k.find(w, "in", "a"); e.Status != want {
		t.Errorf("the event is %s, want %s", e.Status, want)
	}
	if last := k.scripts.ran[len(k.scripts.ran)-1]; !strings.HasSuffix(last, "."+phase) {
		t.Errorf("%s ran after the phase that failed", last)
	}
}

// context 3.1.5, 3.1.6, 3.1.8, 3.2.3: what a handler did not declare, or must
// say and does not, is a fault of the script and has no effect.
func TestFaultsOfScriptsAreLogic(t *testing.T) {
	publish := func(args map[string]any) func(*goCtx, string) {
		return func(c *goCtx, _ string) { c.call("publish", args) }
	}
	event := map[string]any{"messageId": "m", "payload": 1}
	faults := []struct {
		name, phase string
		probe       func(c *goCtx, scope string)
		code, text  string
	}{
		{"publish to a topic that is not declared", "next", publish(map[string]any{"topics": []string{"in"}, "event": event}), "topic", `does not declare "in"`},
		{"publish to one of two topics that is not declared", "next", publish(map[string]any{"topics": []string{"out", "in"}, "event": event}), "topic", `does not declare "in"`},
		{"publish to no topic", "next", publish(map[string]any{"topics": []string{}, "event": event}), "publish", "no topic"},
		{"publish without a message id", "next", publish(map[string]any{"topics": []string{"out"}, "event": map[string]any{"payload": 1}}), "publish", "messageId"},
		{"publish with an empty message id", "next", publish(map[string]any{"topics": []string{"out"}, "event": map[string]any{"messageId": ""}}), "publish", "messageId"},
		{"publish in next with an input", "next", publish(map[string]any{"topics": []string{"out"}, "event": map[string]any{"messageId": "m", "inputId": "i"}}), "input", "inputId"},
		{"publish of a producer without an input", "producer", publish(map[string]any{"topics": []string{"out"}, "event": event}), "input", "inputId"},
		{"publish of a producer with an unknown input", "producer", publish(map[string]any{"topics": []string{"out"}, "event": map[string]any{"messageId": "m", "inputId": "in_0"}}), "input", "not an input"},
		{"peek at a topic of others", "prepare", func(c *goCtx, _ string) { c.peek("out") }, "topic", `does not subscribe to "out"`},
		{"peek with a wrong limit", "prepare", func(c *goCtx, _ string) { c.call("peek", map[string]any{"topic": "in", "limit": 0}) }, "peek", "limit"},
		{"getByIds of a topic of others", "prepare", func(c *goCtx, _ string) { c.call("getByIds", map[string]any{"topic": "out", "ids": []string{"x"}}) }, "topic", "subscribe"},
		{"an operation that does not exist", "prepare", func(c *goCtx, _ string) { c.call("delete", nil) }, "unknown_call", "delete"},
		{"an input without a source", "producer", func(c *goCtx, _ string) { c.call("registerInput", map[string]any{"type": "t", "id": "i"}) }, "input", "source"},
		{"an exception", "prepare", func(*goCtx, string) { throw("bad luck") }, "Error", "bad luck"},
		{"an exception in mutate", "mutate", func(*goCtx, string) { throw("bad luck") }, "Error", "bad luck"},
	}
	both(t, func(t *testing.T, k *kit) {
		for i, fault := range faults {
			w, r := k.probeRun(fmt.Sprintf("w%d", i), fault.phase, fault.probe)
			if r.Status != pawl.StatusFailedLogic || r.ErrorClass != pawl.ClassLogic || r.ErrorCode != fault.code || !strings.Contains(r.ErrorMessage, fault.text) {
				t.Errorf("%s: the run is %s, %s (%s): %s", fault.name, r.Status, r.ErrorCode, r.ErrorClass, r.ErrorMessage)
			}
			k.expectNoEffect(t, w, fault.phase)
			k.checkInvariants(w)
		}
	})
}

// context 3.1.8: events that cannot all be had are not reserved at all.
func TestReservationIsAllOrNothing(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for name, ids := range map[string][]string{"missing": {"a", "nowhere"}, "twice": {"a", "a"}, "taken": {"a", "gone"}} {
			d := orderDefinition()
			w := k.deploy(name, "1", d)
			k.publish(w, "in", "gone")
			k.settle(w)
			k.publish(w, "in", "a", "b")
			k.deploy(name, "2", d.with(map[string]goHandler{"consumers.order.prepare": func(*goCtx, []json.RawMessage) any {
				return map[string]any{"reservations": []any{map[string]any{"topic": "in", "ids": ids}}, "data": "a"}
			}}))
			k.work(w)
			expectRun(t, k.lastRun(w), pawl.PhasePreparing, pawl.StatusFailedLogic)
			for _, id := range []string{"a", "b"} {
				if e := k.find(w, "in", id); e.Status != eventstore.EventPending {
					t.Errorf("%s: event %s is %s", name, id, e.Status)
				}
			}
		}
		if got := k.desk.things(); !slices.Equal(got, []string{"gone", "gone", "gone"}) {
			t.Errorf("orders %v", got)
		}
	})
}
