package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/repair"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// bank counts the calls of its methods.
type bank struct {
	mu    sync.Mutex
	calls map[string]int
	args  []string // of act
}

func (b *bank) tool() goTool {
	return goTool{call: func(_ context.Context, c tool.Call) (json.RawMessage, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.calls[c.Method]++; c.Method == "act" {
			b.args = append(b.args, string(c.Args))
		}
		return json.RawMessage(`{"ok":true}`), nil
	}}
}

func (b *bank) count(method string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls[method]
}

// paying is a script that pays 1 for each event. What each phase does with the
// event "bad" is up to the test.
func paying(prepareBad, mutateBad string) string {
	return strings.NewReplacer("PREPARE", prepareBad, "MUTATE", mutateBad).Replace(`import { workflow } from "pawl";
export default workflow({
  name: "pay", topics: { in: {}, out: {} },
  producers: { look: { publishes: ["in"], schedule: { interval: "1d" }, handler: async (ctx) => {} } },
  consumers: {
    order: {
      subscribe: ["in"], publishes: ["out"],
      async prepare(ctx) {
        const [e] = await ctx.peek("in");
        if (!e) return { reservations: [], data: null };
        if (e.payload === "bad") { PREPARE }
        return { reservations: [{ topic: "in", ids: [e.messageId] }], data: e.payload };
      },
      async mutate(ctx, p) {
        if (p.data === "bad") { MUTATE }
        await ctx.tools.bank.act({ amount: 1, to: p.data });
      },
      async next(ctx, p, result) { ctx.publish("out", { messageId: "paid-" + p.data, payload: p.data }); },
    },
    file: { subscribe: ["out"], async prepare(ctx) {
      const list = await ctx.peek("out");
      return { reservations: [{ topic: "out", ids: list.map((e) => e.messageId) }], data: null };
    } },
  },
});`)
}

const throwsBad = `throw new Error("a bad event");`

// payKit has a bank and one payment behind it.
func payKit(t *testing.T, k *kit, pool *script.Pool) (workflowstore.Workflow, *bank) {
	b := &bank{calls: map[string]int{}}
	k.plug("bank", b.tool())
	k.s.cfg.Scripts, k.s.cfg.Trials, k.s.cfg.Limits = pool, pool, smallLimits
	w := k.deployScript("pay", paying(throwsBad, ""))
	k.publish(w, "in", "good")
	k.work(w)
	expect(t, "payments", b.count("act"), 1)
	return w, b
}

func testPool(t *testing.T) *script.Pool {
	pool, err := script.NewPool(script.Config{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// tricks reach bank.fire, which the script that a person deployed never named.
var tricks = map[string]string{
	"computed":           `const c = ctx; await c["to" + "ols"]["ba" + "nk"][["fi", "re"].join("")]({});`,
	"another method":     `await ctx.tools.bank.fire({});`,
	"rest of ctx":        `const { peek, ...rest } = ctx; await rest["tools"].bank[["fi", "re"].join("")]({});`,
	"rest parameters":    `await ((...all) => all[0]["tools"]["bank"][["fi", "re"].join("")]({}))(ctx);`,
	"a proxy":            `const p = new Proxy(ctx, { get: (o, k) => o[k] }); await p.tools["bank"][["fi", "re"].join("")]({});`,
	"a getter":           `const o = { get t() { return ctx.tools; } }; await o.t.bank[["fi", "re"].join("")]({});`,
	"reflection":         `await Reflect.get(Reflect.get(ctx.tools, "bank"), ["fi", "re"].join(""))({});`,
	"a prototype":        `const o = Object.create(ctx); await o.tools.bank[["fi", "re"].join("")]({});`,
	"keys of ctx":        `for (const k of Object.keys(ctx)) if (k.length === 5 && k[0] === "t") await ctx[k].bank["fire"]({});`,
	"call":               `const f = ctx.tools.bank[["fi", "re"].join("")]; await f.call(null, {});`,
	"bind":               `const f = ctx.tools.bank[["fi", "re"].join("")].bind(null, {}); await f();`,
	"a closure":          `const make = (c) => async () => c.tools.bank[["fi", "re"].join("")]({}); await make(ctx)();`,
	"a thenable":         `await { then(done) { ctx.tools.bank[["fi", "re"].join("")]({}).then(done); } };`,
	"a generator":        `function* g() { yield ctx.tools; } for (const t of g()) await t.bank[["fi", "re"].join("")]({});`,
	"a default":          `await ((t = ctx.tools) => t.bank[["fi", "re"].join("")]({}))();`,
	"a tagged template":  "await ((s, t) => t.bank[\"fi\" + \"re\"]({}))`${ctx.tools}`;",
	"an array pattern":   `const [{ tools }] = [ctx]; await tools.bank[["fi", "re"].join("")]({});`,
	"another connection": `await ctx.tools["de" + "sk"].order({});`,
	"not waited for":     `ctx.tools.bank[["fi", "re"].join("")]({});`,
	"caught":             `try { await ctx.tools.bank[["fi", "re"].join("")]({}); } catch {} finally { try { await ctx.tools.bank[["fi", "re"].join("")]({}); } catch {} }`,
}

// A version that auto-fix made calls what people let the workflow call, whatever
// its text looks like: the host refuses anything else at the call, and asks.
func TestConfinedVersionCallsOnlyWhatPeopleDeployed(t *testing.T) {
	pool := testPool(t)
	both(t, func(t *testing.T, k *kit) {
		w, b := payKit(t, k, pool)
		i := 0
		for name, trick := range tricks {
			t.Run(name, func(t *testing.T) {
				k.t = t
				i++
				event := fmt.Sprint("e", i)
				k.deployConfined(w, strings.ReplaceAll(paying("", trick), `"bad"`, `"`+event+`"`))
				k.publish(w, "in", event)
				k.work(w)
				r := k.runOf(w, "order")
				if name == "not waited for" && r.Status == pawl.StatusCommitted { // its other call was faster, and ended the phase
					expect(t, "calls", b.count("fire"), 0)
					return
				}
				if r.Status != pawl.StatusPausedApproval || r.ErrorClass != pawl.ClassPermission || r.ErrorCode != codeNotGranted || !strings.Contains(r.ErrorMessage, "approve the run") {
					t.Errorf("the run is %s (%s %s: %s)", r.Status, r.ErrorClass, r.ErrorCode, r.ErrorMessage)
				}
				if b.count("fire") > 0 || len(k.desk.things()) > 0 || b.count("act") > i { // those for the events before it
					t.Errorf("calls were made: %v, %d", b.calls, len(k.desk.things()))
				}
				if err := k.do(func(ctx context.Context, tx *store.Tx) error { _, err := k.s.Reject(ctx, tx, r.ID, "ann"); return err }); err != nil {
					t.Fatal(err)
				}
				k.resume("pay")
			})
		}
	})
}

// Reads are held to the same, in prepare and in producers.
func TestConfinedVersionReadsOnlyWhatPeopleDeployed(t *testing.T) {
	pool := testPool(t)
	both(t, func(t *testing.T, k *kit) {
		w, b := payKit(t, k, pool)
		k.deployConfined(w, paying(`await ctx.tools["ba" + "nk"]["lo" + "ok"]({ all: "accounts" });`, ""))
		k.publish(w, "in", "bad")
		k.work(w)
		if r := k.runOf(w, "order"); r.ErrorCode != codeNotGranted || b.count("look") != 0 {
			t.Errorf("the run is %s (%s), %d reads", r.Status, r.ErrorMessage, b.count("look"))
		}
		// A resume grants nothing; a person who approves does, for this call.
		k.resume("pay")
		k.work(w)
		expect(t, "reads after a resume", b.count("look"), 0)
		r := k.runOf(w, "order")
		if err := k.do(func(ctx context.Context, tx *store.Tx) error { return k.s.Approve(ctx, tx, r.ID, "", false, "ann") }); err != nil {
			t.Fatal(err)
		}
		k.work(w)
		if b.count("look") != 1 || b.count("act") != 2 || b.count("fire") != 0 {
			t.Errorf("after the approval: %v", b.calls)
		}
		if got := k.statuses(w, "in")["bad"]; got != eventstore.EventConsumed {
			t.Errorf("the event is %s", got)
		}
	})
}

// A person who deploys what auto-fix made frees it; nothing else does, also not
// a restart.
func TestPersonFreesAConfinedVersion(t *testing.T) {
	pool := testPool(t)
	both(t, func(t *testing.T, k *kit) {
		w, b := payKit(t, k, pool)
		source := paying("", tricks["computed"])
		k.deployConfined(w, source)
		k.start("n2")
		k.plug("bank", b.tool())
		k.s.cfg.Scripts, k.s.cfg.Trials, k.s.cfg.Limits = pool, pool, smallLimits
		k.publish(w, "in", "bad")
		k.work(w)
		expect(t, "calls before", b.count("fire"), 0)
		out, err := k.s.Apply(t.Context(), Deploy{Filename: "pay.workflow.ts", Script: source, By: "ann"})
		if err != nil || out.What != Unchanged {
			t.Fatal(out.What, err)
		}
		k.resume("pay")
		k.work(w)
		expect(t, "calls after", b.count("fire"), 1)
	})
}

// deployConfined puts a version in force as auto-fix does.
func (k *kit) deployConfined(w workflowstore.Workflow, source string) {
	k.t.Helper()
	config, _, err := Inspect(k.t.Context(), k.s.cfg.Scripts, "pay.workflow.ts", source)
	if err != nil {
		k.t.Fatal(err)
	}
	out := Deployed{Name: w.Name, Version: VersionOf("pay.workflow.ts", source), Config: config}
	k.write(func(ctx context.Context, tx *store.Tx) error {
		return k.s.deploy(ctx, tx, Deploy{Name: w.Name, Filename: "pay.workflow.ts", Script: source, By: fixedBy, confined: true}, asJSON(config), &out)
	})
}

// Context 3.9: what a proposal declares is compared as it evaluates, what it
// names must be known, and a doubt of the replays is for a person.
func TestGateOfProposals(t *testing.T) {
	pool := testPool(t)
	fixed := paying("", "")
	for name, test := range map[string]struct{ script, says string }{
		"a good fix":                 {fixed, "activated"},
		"a larger amount":            {strings.ReplaceAll(fixed, "amount: 1,", "amount: 1000000,"), "proposed run "},
		"one extra read":             {strings.ReplaceAll(fixed, `await ctx.peek("in");`, `await ctx.peek("in", { limit: 7 });`), "proposed it reads what the run that failed did not read"},
		"an extra read for the good": {strings.ReplaceAll(fixed, `if (e.payload === "bad") {`, `if (e.payload !== "bad") { await ctx.peek("in", { limit: 7 });`), "proposed it reads what run "},
		"another payload":            {strings.ReplaceAll(fixed, `payload: p.data }); }`, `payload: [p.data] }); }`), "proposed run "},
		"the schedule":               {strings.ReplaceAll(fixed, `"1d"`, `"1s"`), "rejected it changes the schedule of the producer"},
		"a computed schedule":        {strings.ReplaceAll(fixed, `interval: "1d"`, `["inter" + "val"]: 2 - 1 + "s"`), "rejected it changes the schedule of the producer"},
		"another cron":               {strings.ReplaceAll(fixed, `interval: "1d"`, `cron: "* * * * *"`), "rejected it changes the schedule"},
		"the name":                   {strings.ReplaceAll(fixed, `name: "pay"`, `name: "p" + "ay2"`), "rejected it changes the name"},
		"a topic":                    {strings.ReplaceAll(fixed, `out: {} }`, `out: {}, ["mo" + "re"]: {} }`), "rejected "},
		"a publication":              {strings.ReplaceAll(fixed, `subscribe: ["in"], publishes: ["out"]`, `subscribe: ["in"], publishes: ["out", "i" + "n"]`), "rejected it changes what the consumer"},
		"a subscription":             {strings.ReplaceAll(fixed, `subscribe: ["out"]`, `subscribe: ["out", "in"]`), "rejected it changes what the consumer"},
		"a phase":                    {strings.ReplaceAll(fixed, `async next(ctx, p, result) {`, `async nextt(ctx, p, result) {`), "rejected "},
		"labels":                     {strings.ReplaceAll(fixed, `name: "pay",`, `name: "pay", labels: { team: "x" },`), "rejected it changes its labels"},
		"a call by its name":         {paying("", tricks["another method"]), "rejected it calls bank.fire"},
		"a call that is hidden":      {paying("", tricks["computed"]), "rejected the run fails with it too"},
		"with":                       {paying("", `with (ctx) { await tools.bank[["fi", "re"].join("")]({}); }`), "rejected "},
		"eval":                       {paying("", `await (0, globalThis["ev" + "al"])("ctx.tools.bank.fire({})");`), "rejected the run fails with it too"},
		"made of text":               {paying("", `await (async () => {}).constructor("c", "return c.tools.bank.fire({})")(ctx);`), "rejected the run fails with it too"},
		"still failing":              {paying(`throw new Error("still");`, ""), "rejected the run fails with it too"},
		"fails the good":             {strings.ReplaceAll(fixed, `if (e.payload === "bad") {`, `if (e.payload === "good") { throw new Error("now this");`), "rejected run "},
		"a topic made at run time":   {strings.ReplaceAll(fixed, `ctx.publish("out",`, `ctx.publish(["i", "n"].join(""),`), "rejected run "},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, k *kit) {
				w, b := payKit(t, k, pool)
				m := &mechanic{propose: func(repair.Evidence) (repair.Proposal, error) { return repair.Proposal{Script: test.script}, nil }}
				k.s.cfg.Repair = m
				k.publish(w, "in", "bad")
				k.work(w)
				got := k.repairs(w)
				if len(got) == 0 || !strings.HasPrefix(got[len(got)-1], test.says) {
					t.Errorf("proposals: %q, want %q", got, test.says)
				}
				if b.count("fire") > 0 || b.count("look") > 0 {
					t.Errorf("calls were made: %v", b.calls)
				}
				activated := test.says == "activated"
				if want := map[bool]int{false: 1, true: 2}[activated]; b.count("act") != want {
					t.Errorf("%d payments (%q), want %d", b.count("act"), b.args, want)
				}
				if d := k.look("pay"); !activated && d.State != run.NeedsAttention {
					t.Errorf("people see %s, %s", d.State, d.Issue)
				}
			})
		})
	}
}

// What passes the gate because it waits for another time is held at the call.
func TestTimeBombIsHeldAtTheCall(t *testing.T) {
	pool := testPool(t)
	both(t, func(t *testing.T, k *kit) {
		w, b := payKit(t, k, pool)
		k.publish(w, "in", "bad")
		k.work(w)
		failed := k.runOf(w, "order")
		bomb := paying("", fmt.Sprintf(`if (Date.now() > %d) await ctx["to" + "ols"].bank[["fi", "re"].join("")]({});`, failed.CreatedAt.UnixMilli()))
		k.s.cfg.Repair = &mechanic{propose: func(repair.Evidence) (repair.Proposal, error) { return repair.Proposal{Script: bomb}, nil }}
		k.work(w)
		if got := k.repairs(w); len(got) != 1 || got[0] != "activated" {
			t.Errorf("proposals: %q", got)
		}
		if r := k.runOf(w, "order"); r.ErrorCode != codeNotGranted || b.count("fire") > 0 {
			t.Errorf("the run is %s: %s; calls %v", r.Status, r.ErrorMessage, b.calls)
		}
	})
}

// A proposal that waits is approved or refused by a person, once, as it was
// seen; the approved one is confined like any other.
func TestPersonDecidesAboutAProposal(t *testing.T) {
	pool := testPool(t)
	for _, approve := range []bool{true, false} {
		t.Run(fmt.Sprint("approve ", approve), func(t *testing.T) {
			both(t, func(t *testing.T, k *kit) {
				w, b := payKit(t, k, pool)
				script := strings.ReplaceAll(paying("", ""), "amount: 1,", "amount: 2,")
				m := &mechanic{propose: func(repair.Evidence) (repair.Proposal, error) { return repair.Proposal{Script: script}, nil }}
				k.s.cfg.Repair = m
				k.publish(w, "in", "bad")
				k.work(w)
				k.work(w) // asks nobody again
				expect(t, "questions for a script", len(m.asked), 1)
				d := k.look("pay")
				if d.State != run.NeedsAttention || d.Issue != run.IssueApproval {
					t.Errorf("people see %s, %s", d.State, d.Issue)
				}
				r := k.runOf(w, "order")
				var asked mutationstore.Approval
				k.read(func(ctx context.Context, tx *store.Tx) (err error) {
					asked, err = mutationstore.In(tx).NewestApproval(ctx, r.ID)
					return err
				})
				if asked.Tool != proposalTool || !strings.Contains(string(asked.Arguments), "amount: 2,") || !strings.Contains(string(asked.Arguments), "would do something else") {
					t.Errorf("asked: %+v", asked)
				}
				decide := func(hash string, always bool) error {
					return k.do(func(ctx context.Context, tx *store.Tx) error {
						if approve {
							return k.s.Approve(ctx, tx, r.ID, hash, always, "ann")
						}
						_, err := k.s.Reject(ctx, tx, r.ID, "ann")
						return err
					})
				}
				if approve {
					if decide("another", false) == nil || decide("", true) == nil {
						t.Error("another proposal, or one for always, was approved")
					}
				}
				if err := decide(asked.Hash, false); err != nil {
					t.Fatal(err)
				}
				if decide(asked.Hash, false) == nil {
					t.Error("it was decided twice")
				}
				k.work(w)
				got, paid := k.repairs(w), b.count("act")
				if approve && (paid != 2 || !strings.HasPrefix(got[0], "activated") || !strings.Contains(b.args[1], "2")) {
					t.Errorf("approved: %q, %v", got, b.args)
				}
				if !approve && (paid != 1 || got[0] != "rejected a person refused it" || len(m.asked) != 1 || k.look("pay").Issue != run.IssueFixesUsedUp) {
					t.Errorf("refused: %q, %v, asked %d times, %s", got, b.args, len(m.asked), k.look("pay").Issue)
				}
				if approve {
					k.read(func(ctx context.Context, tx *store.Tx) error {
						v, err := workflowstore.In(tx).GetWorkflowVersion(ctx, w.ID, k.workflow("pay").Version)
						if err == nil && !v.Confined {
							t.Error("what was approved is not confined")
						}
						return err
					})
				}
			})
		})
	}
}

// A deploy by a person ends a proposal that waits.
func TestDeployEndsAProposal(t *testing.T) {
	pool := testPool(t)
	both(t, func(t *testing.T, k *kit) {
		w, b := payKit(t, k, pool)
		k.s.cfg.Repair = &mechanic{propose: func(repair.Evidence) (repair.Proposal, error) {
			return repair.Proposal{Script: strings.ReplaceAll(paying("", ""), "amount: 1,", "amount: 2,")}, nil
		}}
		k.publish(w, "in", "bad")
		k.work(w)
		failed := k.runOf(w, "order")
		k.deployScript("pay", paying("", "")+"\n// by hand")
		if err := k.do(func(ctx context.Context, tx *store.Tx) error {
			return k.s.Approve(ctx, tx, failed.ID, "", false, "ann")
		}); err == nil {
			t.Error("a proposal for another version was approved")
		}
		k.work(w)
		if got := k.repairs(w); got[0] != "rejected the run was tried again without it" || b.count("act") != 2 {
			t.Errorf("proposals: %q, payments %v", got, b.args)
		}
		k.read(func(ctx context.Context, tx *store.Tx) error {
			list, err := mutationstore.In(tx).ListApprovals(ctx, mutationstore.ApprovalFilter{State: mutationstore.ApprovalPending}, store.Place{}, 10)
			if len(list) > 0 {
				t.Errorf("%d questions wait", len(list))
			}
			return err
		})
	})
}
