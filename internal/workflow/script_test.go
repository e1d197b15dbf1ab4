package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// smallLimits end a bad script soon; one that is to meet another limit than that
// of time has enough of it, also under the race detector.
var smallLimits = script.Limits{CPU: 2 * time.Minute, Wall: 5 * time.Minute, Heap: 16 << 20, HostCalls: 200}

// Everything else in this package runs Go functions as handlers; here are the
// real ones, in the processes of a real pool.
func TestRealScripts(t *testing.T) {
	pool, err := script.NewPool(script.Config{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	both(t, func(t *testing.T, k *kit) {
		k.s.cfg.Scripts, k.s.cfg.Limits = pool, smallLimits
		for _, b := range []behaviour{
			{"the example of the surface runs", exampleRuns},
			{"errors name the place in the source", errorsNameThePlace},
			{"what a phase may not do cannot be caught", nothingIsCaught},
			{"nothing runs after the call", nothingRunsAfterTheCall},
			{"two calls at once are one", twoCallsAreOne},
			{"bad scripts harm only themselves", badScriptsHarmThemselves},
			{"lines of the log are stored", logIsStored},
			{"chance is the same when a phase is repeated", chanceIsRepeated},
		} {
			t.Run(b.name, func(t *testing.T) {
				k.t = t
				k.desk.clear()
				k.desk.refuse, k.desk.answer, k.desk.inquiry = nil, nil, nil
				b.test(t, k)
			})
		}
	})
}

// deployScript deploys a script of a file of its own name.
func (k *kit) deployScript(name, source string) workflowstore.Workflow {
	k.t.Helper()
	if _, err := k.s.Apply(k.t.Context(), Deploy{Filename: name + ".workflow.ts", Script: source, By: "tester"}); err != nil {
		k.t.Fatalf("deploy %s: %v\n%s", name, err, source)
	}
	return k.workflow(name)
}

// runOf is the newest run of a handler.
func (k *kit) runOf(w workflowstore.Workflow, handler string) (of runstore.Run) {
	k.t.Helper()
	for _, r := range k.runs(w) {
		if r.Handler == handler {
			of = r
		}
	}
	return of
}

// exampleScript is the workflow that the documents show, with another office.
const exampleScript = `import { workflow, consumer } from "pawl";
export default workflow({
  name: "mail-to-sheet",
  topics: { "mail.received": {}, "row.added": {} },
  producers: {
    pollMail: {
      publishes: ["mail.received"],
      schedule: { interval: "5m" },
      handler: async (ctx, state) => {
        const mails = await ctx.tools.office.look({ after: state?.cursor });
        for (const m of mails.items) {
          const inputId = ctx.registerInput({ source: "mail", type: "message", id: m.id, title: ` + "`Mail from ${m.from}: ${m.subject}`" + ` });
          ctx.publish("mail.received", { messageId: m.id, inputId, payload: m });
        }
        return { cursor: mails.cursor };
      },
    },
  },
  consumers: {
    addRow: consumer({
      subscribe: ["mail.received"],
      publishes: ["row.added"],
      async prepare(ctx, state) {
        const [first] = await ctx.peek("mail.received");
        if (!first) return { reservations: [], data: {} };
        return { reservations: [{ topic: "mail.received", ids: [first.messageId] }], data: first.payload, ui: { title: ` + "`Add a row for ${first.payload.from}`" + ` }, wakeAt: undefined };
      },
      async mutate(ctx, prepared) { await ctx.tools.office.act({ row: [prepared.data.from, prepared.data.subject] }); },
      async next(ctx, prepared, result) {
        if (result.status === "applied") ctx.publish("row.added", { messageId: ` + "`row:${prepared.data.id}`" + `, payload: result.result });
        return { count: 1 };
      },
    }),
    told: { subscribe: ["row.added"], async prepare(ctx) {
      const events = await ctx.peek("row.added");
      return { reservations: [{ topic: "row.added", ids: events.map((e) => e.messageId) }], data: null };
    } },
  },
});
`

// context 3.3: mails become rows, once each, with what people
// read about them; the cursor goes from run to run.
func exampleRuns(t *testing.T, k *kit) {
	var rows, asked []string
	k.plug("office", goTool{call: func(_ context.Context, c tool.Call) (json.RawMessage, error) {
		if c.Method == "look" {
			asked = append(asked, string(c.Args))
			return json.RawMessage(`{"cursor":"c1","items":[{"id":"m1","from":"Ann","subject":"One"},{"id":"m2","from":"Bob","subject":"Zwölf"}]}`), nil
		}
		rows = append(rows, string(c.Args))
		return json.RawMessage(fmt.Sprintf(`{"row":%d}`, len(rows))), nil
	}})
	w := k.deployScript("mail-to-sheet", exampleScript)
	k.work(w)
	if err := k.runNow(w.Name); err != nil {
		t.Fatal(err)
	}
	k.work(w)
	if diff := cmp.Diff([]string{`{"row":["Ann","One"]}`, `{"row":["Bob","Zwölf"]}`}, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`{}`, `{"after":"c1"}`}, asked); diff != "" {
		t.Errorf("searches (-want +got):\n%s", diff)
	}
	for topic, ids := range map[string][]string{"mail.received": {"m1", "m2"}, "row.added": {"row:m1", "row:m2"}} {
		got := k.statuses(w, topic)
		for _, id := range ids {
			if len(got) != 2 || got[id] != eventstore.EventConsumed {
				t.Errorf("%s has the events %v", topic, got)
			}
		}
	}
	calls := k.ledgerRows(w)
	if len(calls) != 2 || calls[0].Title != "Add a row for Ann" || string(calls[1].Result) != `{"row":2}` {
		t.Errorf("the calls are %+v", calls)
	}
	if see := k.look(w.Name); see.LastText != "Done: Add a row for Bob" {
		t.Errorf("people read %q", see.LastText)
	}
	k.allCommitted(w)
}

// probeScript is a workflow whose phases do what the pieces say. Lines of the
// pieces begin at line 4 (produce), 8 (prepare), 13 (mutate) and 16 (next).
func probeScript(name, produce, prepare, mutate, next string) string {
	return `export default { name: "` + name + `", topics: { in: {}, out: {} },
  producers: { poll: { publishes: ["in"], schedule: { interval: "1h" }, async handler(ctx: any, state: any) {
    const inputId: string = ctx.registerInput({ source: "t", type: "t", id: "a", title: "A" });
    ` + produce + `
    ctx.publish("in", { messageId: "a", inputId, payload: 1 });
  } } },
  consumers: { order: { subscribe: ["in"], publishes: ["out"], async prepare(ctx: any) {
    ` + prepare + `
    const events = await ctx.peek("in");
    return { reservations: [{ topic: "in", ids: events.map((e: any) => e.messageId) }], data: events.length };
  },
  async mutate(ctx: any, prepared: any) {
    ` + mutate + `
  },
  async next(ctx: any, prepared: any, result: any) {
    ` + next + `
    if (prepared.data) ctx.publish("out", { messageId: "told", payload: null });
  } },
  tell: { subscribe: ["out"], async prepare(ctx: any) {
    const [e] = await ctx.peek("out");
    return { reservations: e ? [{ topic: "out", ids: [e.messageId] }] : [], data: null };
  } } } }
`
}

// place finds a text in a script, as errors name it.
func placeOf(file, source, text string) string {
	at := strings.Index(source, text)
	line := strings.Count(source[:at], "\n") + 1
	column := at - strings.LastIndex(source[:at], "\n")
	return fmt.Sprintf("%s.workflow.ts:%d:%d", file, line, column)
}

// what went wrong in a script, or what it may not do, is told with the
// line and column of its source.
func errorsNameThePlace(t *testing.T, k *kit) {
	nested := "type T = { a: number };\n    const f = (x: T | null): number => x!.a;\n    if ((await ctx.peek(\"in\")).length) f(null);"
	for i, c := range []struct {
		name, prepare, mutate, next string
		at                          string // the text at which it happens
		phase                       pawl.Phase
		code, text                  string
	}{
		{name: "thrown", mutate: `throw new RangeError("too far");`, at: `RangeError("too`, phase: pawl.PhaseMutating, code: "RangeError", text: "too far"},
		{name: "in a function", prepare: nested, at: "x!.a", phase: pawl.PhasePreparing, code: "TypeError", text: "null"},
		{name: "in next", next: `if (prepared.data) JSON.parse("{");`, at: `parse("{")`, phase: pawl.PhaseEmitting, code: "SyntaxError", text: "expecting property name"},
		{name: "refused", mutate: "const id: number = 1;\n    await ctx.peek(\"in\");", at: "peek(\"in\");\n  }", phase: pawl.PhaseMutating, code: "phase", text: "ctx.peek cannot be used in mutate"},
		{name: "refused publish", prepare: `ctx.publish("in", { messageId: "b" });`, at: `publish("in", { messageId: "b"`, phase: pawl.PhasePreparing, code: "phase", text: "ctx.publish cannot be used in prepare"},
	} {
		name := fmt.Sprintf("place-%d", i)
		source := probeScript(name, "", c.prepare, c.mutate, c.next)
		w := k.deployScript(name, source)
		k.work(w)
		r := k.runOf(w, "order")
		expectRun(t, r, c.phase, pawl.StatusFailedLogic)
		if want := placeOf(name, source, c.at) + ": "; r.ErrorCode != c.code || !strings.HasPrefix(r.ErrorMessage, want) || !strings.Contains(r.ErrorMessage, c.text) {
			t.Errorf("%s: the error is %s, %q; want %s, %q with %q", c.name, r.ErrorCode, r.ErrorMessage, c.code, want, c.text)
		}
	}
}

// catching is a piece of a script that tries something in every way that could
// hide its failure, and goes on.
func catching(call string) string {
	return `try { await ` + call + `; ctx.log("went through") } catch { ctx.log("caught") } finally { ctx.log("finally") }
    await Promise.allSettled([(async () => ` + call + `)()]).then(() => ctx.log("settled"), () => ctx.log("settled"));
    ctx.log("went on");`
}

// context 3.3.1, A-141, X-24, lessons 35, 36: what a phase may not do ends it at
// the call. No handler of the script sees it, nothing after it runs, and the
// first reason is the one that counts.
func nothingIsCaught(t *testing.T, k *kit) {
	k.desk.refuse = func(c tool.Call) *tool.Error {
		if c.Method == "read" && strings.Contains(string(c.Args), "fail") {
			return refusal(pawl.ClassTransient)
		}
		return nil
	}
	order, read := `ctx.tools.desk.order("x")`, `ctx.tools.desk.read({ how: "fail" })`
	for i, c := range []struct {
		name                           string
		produce, prepare, mutate, next string
		handler                        string
		phase                          pawl.Phase
		status                         pawl.Status
		code                           string
	}{
		{"mutation in a producer", catching(order), "", "", "", "poll", pawl.PhaseExecuting, pawl.StatusFailedLogic, "phase"},
		{"peek in a producer", catching(`ctx.peek("in")`), "", "", "", "poll", pawl.PhaseExecuting, pawl.StatusFailedLogic, "phase"},
		{"mutation in prepare", "", catching(order), "", "", "order", pawl.PhasePreparing, pawl.StatusFailedLogic, "phase"},
		{"publish in prepare", "", catching(`ctx.publish("out", { messageId: "m", payload: 1 })`), "", "", "order", pawl.PhasePreparing, pawl.StatusFailedLogic, "phase"},
		{"read in mutate", "", "", catching(`ctx.tools.desk.read()`) + order, "", "order", pawl.PhaseMutating, pawl.StatusFailedLogic, "phase"},
		{"peek in mutate", "", "", catching(`ctx.getByIds("in", ["a"])`) + order, "", "order", pawl.PhaseMutating, pawl.StatusFailedLogic, "phase"},
		{"mutation in next", "", "", "", "if (prepared.data) {" + catching(order) + "}", "order", pawl.PhaseEmitting, pawl.StatusFailedLogic, "phase"},
		{"input in next", "", "", "", `if (prepared.data) {` + catching(`ctx.registerInput({ source: "s", type: "t", id: "i", title: "I" })`) + `}`, "order", pawl.PhaseEmitting, pawl.StatusFailedLogic, "phase"},
		{"unknown topic in next", "", "", "", `if (prepared.data) {` + catching(`ctx.publish("in", { messageId: "m", payload: 1 })`) + `}`, "order", pawl.PhaseEmitting, pawl.StatusFailedLogic, "topic"},
		{"unknown connection", "", "", catching(`ctx.tools.dask.order("x")`) + order, "", "order", pawl.PhaseMutating, pawl.StatusPausedApproval, "unknown_connection"},
		{"failed read in a producer", catching(read), "", "", "", "poll", pawl.PhaseExecuting, pawl.StatusPausedTransient, "refused"},
		{"failed read, then an exception", "", "try { await " + read + ` } finally { throw new Error("mine") }`, "", "", "order", pawl.PhasePreparing, pawl.StatusPausedTransient, "refused"},
	} {
		name := fmt.Sprintf("caught-%d", i)
		w := k.deployScript(name, probeScript(name, c.produce, c.prepare, c.mutate, c.next))
		k.work(w)
		r := k.runOf(w, c.handler)
		expectRun(t, r, c.phase, c.status)
		if r.ErrorCode != c.code || !strings.HasPrefix(r.ErrorMessage, name+".workflow.ts:") {
			t.Errorf("%s: the error is %s: %s", c.name, r.ErrorCode, r.ErrorMessage)
		}
		if d, err := k.details(t.Context(), r.ID); err != nil || len(d.Logs) != 0 {
			t.Errorf("%s: the script went on after the call: %+v (%v)", c.name, d.Logs, err)
		}
		if out := k.statuses(w, "out"); len(out) != 0 {
			t.Errorf("%s: it published %v", c.name, out)
		}
	}
	if got := k.desk.things(); len(got) != 0 {
		t.Errorf("orders %v", got)
	}
}

// context 3.3.4: the call is the last thing that mutate does, whatever is
// written after it and around it.
func nothingRunsAfterTheCall(t *testing.T, k *kit) {
	w := k.deployScript("after", probeScript("after", "", "", `ctx.log("before");
    try { await ctx.tools.desk.order("first") } finally { ctx.log("finally"); await ctx.tools.desk.order("second") }
    ctx.log("after"); throw new Error("late");`, ""))
	k.work(w)
	r := k.runOf(w, "order")
	expectRun(t, r, pawl.PhaseCommitted, pawl.StatusCommitted)
	d, err := k.details(t.Context(), r.ID)
	if err != nil || len(d.Logs) != 1 || d.Logs[0].Text != "before" || d.Logs[0].Phase != pawl.PhaseMutating {
		t.Errorf("the log is %+v (%v)", d.Logs, err)
	}
	w = k.deployScript("behind", probeScript("behind", "", "", `await ctx.tools.desk.order("behind")
    await ctx.tools.desk.order("never")`, ""))
	k.work(w)
	d, err = k.details(t.Context(), k.runOf(w, "order").ID)
	if err != nil || len(d.Logs) != 1 || d.Logs[0].Level != "warn" || !strings.Contains(d.Logs[0].Text, "behind it in the script did not run") {
		t.Errorf("the log of a script with two calls is %+v (%v)", d.Logs, err)
	}
	if got := k.desk.things(); !slices.Equal(got, []string{"behind", "first"}) {
		t.Errorf("orders %v", got)
	}
}

// context 3.3, 3.5.6: a script that calls twice at once, or breaks a rule while
// its call is under way, has one effect, that of the call that comes first in
// the script, and the call is not cut off: a tool that cannot be asked would
// leave nobody knowing what became of it. With two calls the run fails, and goes
// on forward once the script is mended.
func twoCallsAreOne(t *testing.T, k *kit) {
	var mu sync.Mutex
	var calls []string
	k.plug("slow", goTool{call: func(ctx context.Context, c tool.Call) (json.RawMessage, error) {
		mu.Lock()
		calls = append(calls, string(c.Args))
		mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond): // time for the second call to come
			return json.RawMessage(`"done"`), nil
		}
	}})
	for i, c := range []struct {
		piece  string
		broken bool // it breaks a rule as well, and may be ended before its call was made
		twice  bool // it makes another call beside the first
	}{
		{`await Promise.all([ctx.tools.slow.fire(1), ctx.tools.slow.fire(2), ctx.tools.slow.fire(3)]);`, false, true},
		{`ctx.tools.slow.fire(1); throw new Error("early");`, false, false},
		{`ctx.tools.slow.fire(1);`, false, false},
		{`const p = ctx.tools.slow.fire(1); try { await ctx.peek("in") } catch {} await p;`, true, false},
		{`ctx.tools.slow.fire(1); ctx.publish("out", { messageId: "m", payload: 1 });`, true, false},
	} {
		calls = nil
		name := fmt.Sprintf("twice-%d", i)
		w := k.deployScript(name, probeScript(name, "", "", c.piece, ""))
		k.work(w)
		rows := k.ledgerRows(w)
		if c.broken && len(calls) == 0 && len(rows) == 0 {
			expectRun(t, k.runOf(w, "order"), pawl.PhaseMutating, pawl.StatusFailedLogic)
			continue
		}
		if !slices.Equal(calls, []string{"1"}) || len(rows) != 1 || rows[0].State != pawl.MutationApplied || string(rows[0].Result) != `"done"` {
			t.Errorf("%s: the tool got %v; the rows are %+v", c.piece, calls, rows)
		}
		if c.twice { // what happened is recorded, and the script is told what it did
			r := k.runOf(w, "order")
			expectRun(t, r, pawl.PhaseEmitting, pawl.StatusFailedLogic)
			if r.ErrorCode != codeSecondCall || !strings.Contains(r.ErrorMessage, "tools.slow.fire was called in mutate in addition to another call") {
				t.Errorf("%s: %s: %s", c.piece, r.ErrorCode, r.ErrorMessage)
			}
			k.deployScript(name, probeScript(name, "", "", `await ctx.tools.slow.fire(4)`, ""))
			k.work(w)
			if len(calls) != 1 {
				t.Errorf("%s: after the script was mended the tool got %v", c.piece, calls)
			}
		}
		expectRun(t, k.runOf(w, "order"), pawl.PhaseCommitted, pawl.StatusCommitted)
	}
}

// a script that loops, eats memory, recurses, never ends or
// spoils what is built in fails as what it is, in words; a workflow beside it
// goes on.
func badScriptsHarmThemselves(t *testing.T, k *kit) {
	good := k.deployScript("good", probeScript("good", "", "", `await ctx.tools.desk.order("good")`, ""))
	k.work(good)
	for i, c := range []struct{ name, piece, code, text string }{
		{"loop in little time", `for (;;) {}`, "limit_wall", "ran too long: the limit for a phase with its calls is 300ms"},
		{"loop after a call in little time", `await ctx.peek("in"); for (;;) {}`, "limit_wall", "ran too long"},
		{"loop", `for (;;) {}`, "limit_cpu", "ran too long: the limit for its own processor time is 300ms"},
		{"loop that catches", `for (;;) { try { for (;;) {} } catch {} finally { continue } }`, "limit_cpu", "ran too long"},
		{"allocate", `const a: string[] = []; for (let i = 0; ; i++) a.push("x".repeat(1e5) + i)`, "limit_heap", "too much memory: the limit for memory is 16 MiB"},
		{"recurse", `const f = (n: number): number => f(n + 1) + 1; f(0)`, "limit_stack", "nested calls too deeply"},
		{"never ends", `await new Promise(() => {})`, "never_settles", "nothing will settle"},
		{"too many calls", `for (;;) { try { await ctx.peek("in") } catch {} }`, "limit_hostCalls", "too many calls"},
		{"poisoned lists", `Array.prototype.map = () => { throw new Error("poisoned") };`, "Error", "poisoned"},
		{"poisoned errors", `Error.prototype.toString = () => { throw 1 }; Object.defineProperty(Error.prototype, "message", { get() { throw 2 } }); null!.x`, "TypeError", ""},
		{"made code", `(globalThis as any).Function("return 1")()`, "TypeError", "code cannot be made from text"},
	} {
		name := fmt.Sprintf("bad-%d", i)
		w := k.deployScript(name, probeScript(name, "", c.piece, "", ""))
		switch c.code {
		case "limit_cpu":
			k.s.cfg.Limits.CPU = 300 * time.Millisecond
		case "limit_wall":
			k.s.cfg.Limits.Wall = 300 * time.Millisecond
		}
		k.work(w)
		k.s.cfg.Limits = smallLimits
		r := k.runOf(w, "order")
		expectRun(t, r, pawl.PhasePreparing, pawl.StatusFailedLogic)
		if r.ErrorCode != c.code || !strings.Contains(r.ErrorMessage, c.text) {
			t.Errorf("%s: the error is %s: %s; want %s with %q", c.name, r.ErrorCode, r.ErrorMessage, c.code, c.text)
		}
		before := len(k.runs(good))
		if err := k.runNow("good"); err != nil {
			t.Fatal(err)
		}
		k.work(good)
		if len(k.runs(good)) == before {
			t.Errorf("%s: the workflow beside it did not run", c.name)
		}
		k.allCommitted(good)
	}
}

// context 3.3: what a script logs is kept with the run, with the phase and in
// its order, whether the run succeeds or not.
func logIsStored(t *testing.T, k *kit) {
	w := k.deployScript("logs", probeScript("logs", "", `ctx.log("look", { n: 1 }, [2]); console.warn("careful");`,
		`ctx.log("act"); await ctx.tools.desk.order("logs");`, `ctx.log("tell"); if (prepared.data) throw new Error("after all");`))
	k.work(w)
	r := k.runOf(w, "order")
	d, err := k.details(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, line := range d.Logs {
		got = append(got, fmt.Sprintf("%s %s %s", line.Phase, line.Level, line.Text))
	}
	want := []string{`preparing info look {"n":1} [2]`, "preparing warn careful", "mutating info act", "emitting info tell"}
	if diff := cmp.Diff(want, got); diff != "" || r.Status != pawl.StatusFailedLogic {
		t.Errorf("the run is %s; its log (-want +got):\n%s", r.Status, diff)
	}
}

// context 3.3.2: time stands still in a phase, and chance depends on the run and
// the phase alone: a phase that the same run repeats draws the same numbers,
// another run or phase draws others.
func chanceIsRepeated(t *testing.T, k *kit) {
	type draw struct {
		Where  string
		Random [2]float64
		Times  [3]int64
	}
	var draws []draw
	refuseOnce := true
	k.plug("dice", goTool{call: func(_ context.Context, c tool.Call) (json.RawMessage, error) {
		var d draw
		if err := json.Unmarshal(c.Args, &d); err != nil {
			return nil, errors.New("not what the test sends: " + string(c.Args))
		}
		draws = append(draws, d)
		if refuseOnce {
			refuseOnce = false
			return nil, refusal(pawl.ClassAuth)
		}
		return json.RawMessage(`null`), nil
	}})
	roll := func(method, where string) string {
		return `const t0 = Date.now(), r0 = Math.random(); for (let i = 0; i < 1e5; i++);
    await ctx.tools.dice.` + method + `({ where: "` + where + `", random: [r0, Math.random()], times: [t0, new Date().getTime(), +ctx.now()] });`
	}
	w := k.deployScript("dice", probeScript("dice", "", roll("look", "prepare"), roll("fire", "mutate"), ""))
	k.work(w)
	k.resume("dice")
	k.work(w)
	if len(draws) < 3 || draws[0].Where != "prepare" {
		t.Fatalf("the draws are %+v", draws)
	}
	if draws[0].Random != draws[1].Random || draws[0].Random[0] == draws[0].Random[1] {
		t.Errorf("the same phase of the same run drew %v and %v", draws[0].Random, draws[1].Random)
	}
	for i, d := range draws {
		if d.Times[0] != d.Times[1] || d.Times[1] != d.Times[2] {
			t.Errorf("time went on in a phase: %v", d.Times)
		}
		if i > 1 && d.Random == draws[1].Random {
			t.Errorf("draw %d of %s is that of another run or phase", i, d.Where)
		}
	}
}
