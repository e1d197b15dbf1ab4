package script

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

var errNotAllowed = errors.New("not in this phase")

// refusing aborts calls of tools named stop and publishes to "stop"; other
// calls answer.
func refusing() *fakeHost {
	return &fakeHost{answer: func(_ context.Context, op string, args json.RawMessage) (json.RawMessage, error) {
		switch {
		case op == "tool" && strings.Contains(string(args), `"stop"`):
			return nil, Abort(errNotAllowed)
		case op == "publish" && strings.Contains(string(args), `"stop"`):
			return nil, errNotAllowed
		}
		return json.RawMessage("1"), nil
	}}
}

// and 3.3.1: nothing that a script does keeps it running after the
// host has ended the phase. Each body calls the tool "after" or publishes to
// "after" wherever it could go on.
func TestAbortCannotBeCaught(t *testing.T) {
	p := newTestPool(t, Config{Workers: 2})
	bodies := map[string]string{
		"plain":         `await ctx.tools.a.stop(); ctx.publish("after", {})`,
		"try":           `try { await ctx.tools.a.stop() } catch { ctx.publish("after", {}) } finally { ctx.publish("after", {}) }`,
		"then":          `await ctx.tools.a.stop().then(() => ctx.publish("after", {}), () => ctx.publish("after", {})).finally(() => ctx.publish("after", {}))`,
		"allSettled":    `await Promise.allSettled([ctx.tools.a.stop(), ctx.tools.a.stop()]); ctx.publish("after", {})`,
		"race":          `await Promise.race([ctx.tools.a.stop(), new Promise(() => {})]); ctx.publish("after", {})`,
		"any":           `await Promise.any([ctx.tools.a.stop(), new Promise(() => {})]); ctx.publish("after", {})`,
		"executor":      `await new Promise((resolve) => { ctx.tools.a.stop().then(resolve, resolve) }); ctx.publish("after", {})`,
		"nested async":  `const f = async () => { try { await ctx.tools.a.stop() } finally { ctx.publish("after", {}) } }; try { await f() } catch {} ctx.publish("after", {})`,
		"generator":     `async function* g() { try { yield await ctx.tools.a.stop() } finally { ctx.publish("after", {}) } } for await (const x of g()) ctx.publish("after", {}); ctx.publish("after", {})`,
		"using a proxy": `const t = new Proxy(ctx.tools, { get: (o, k) => o[k] }); try { await t.a.stop() } catch {} ctx.publish("after", {})`,
		"thenable":      `await { then(r) { ctx.tools.a.stop().then(r, r) } }; ctx.publish("after", {})`,
		"poisoned then": `Promise.prototype.then = function (a, b) { a?.(); b?.() }; try { await ctx.tools.a.stop() } catch {} ctx.publish("after", {})`,
		"told":          `ctx.publish("stop", {}); await ctx.tools.a.after()`,
		"told, caught":  `try { ctx.publish("stop", {}) } catch {} await ctx.tools.a.after()`,
		"told in order": `ctx.publish("stop", {}); ctx.publish("after", {}); ctx.registerInput({ source: "after", type: "t", id: "1", title: "t" }); await ctx.tools.a.after()`,
		"told in async": `await Promise.allSettled([(async () => ctx.publish("stop", {}))()]); await ctx.tools.a.after()`,
		"not awaited":   `ctx.tools.a.stop(); await new Promise(() => {})`,
		"returns":       `ctx.tools.a.stop(); return "fine"`,
		"throws":        `ctx.tools.a.stop(); throw new Error("mine")`,
		"loops":         `ctx.tools.a.stop(); for (;;) {}`,
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			host := refusing()
			result, err := runBody(t, p, body, host, Limits{})
			if !errors.Is(err, ErrAborted) || !errors.Is(err, errNotAllowed) {
				t.Fatalf("ended with %v, value %s", err, result.Value)
			}
			for _, call := range host.seen() {
				if strings.Contains(call, "after") {
					t.Errorf("the script went on: %s", call)
				}
			}
		})
	}
	if got := valueOf(t, p, "return 1", nil); got != "1" {
		t.Errorf("afterwards: %s", got)
	}
}

// Messages that were sent before the host could object have no effect either.
func TestNothingSentAfterAnAbortCounts(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	host := refusing()
	answer := host.answer
	host.answer = func(ctx context.Context, op string, args json.RawMessage) (json.RawMessage, error) {
		if strings.Contains(string(args), `"first"`) {
			<-time.After(50 * time.Millisecond) // meanwhile the script sends all it has
		}
		return answer(ctx, op, args)
	}
	_, err := runBody(t, p, `
ctx.publish("first", {});
for (let i = 0; i < 20; i++) ctx.publish("fine", {});
ctx.publish("stop", {});
for (let i = 0; i < 20; i++) ctx.publish("after", {});
await 1`, host, Limits{})
	if calls := host.seen(); !errors.Is(err, errNotAllowed) || len(calls) != 22 {
		t.Errorf("%v, %d calls, the last %s", err, len(calls), calls[len(calls)-1])
	}
}

// A limit that a script meets inside a promise is swallowed by the promise;
// the script still ends there.
func TestLimitsCannotBeCaught(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	limits := patientLimits
	limits.HostCalls = 3
	for name, test := range map[string]struct {
		body string
		want error
	}{
		"executor":          {`new Promise(() => { ctx.tools.a.b("x".repeat(1e5)) }); ctx.publish("after", {}); for (;;) {}`, ErrOutput},
		"executor, loop":    {`new Promise(() => { ctx.tools.a.b("x".repeat(1e5)) }); for (;;) {}`, ErrOutput},
		"async function":    {`(async () => { ctx.tools.a.b("x".repeat(1e5)) })(); ctx.publish("after", {}); for (;;) {}`, ErrOutput},
		"executor, calls":   {`new Promise(() => { for (;;) ctx.peek("a") }); ctx.publish("after", {}); for (;;) {}`, ErrHostCalls},
		"what is left over": {`let p = Promise.resolve(); for (let i = 0; i < 9; i++) p = p.then(() => {}); p.then(() => { for (;;) {} }); return 1`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			host := &fakeHost{}
			result, err := runBody(t, p, test.body, host, limits)
			if !errors.Is(err, test.want) {
				t.Errorf("ended with %v", err)
			}
			if strings.Contains(strings.Join(host.seen(), " "), "after") {
				t.Error("the script went on")
			}
			if result.Wall > limits.CPU/2 {
				t.Errorf("it went on for %s", result.Wall)
			}
		})
	}
}

func TestAbortSaysWhereAndWhy(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	for body, want := range map[string]struct {
		op    string
		place Place
	}{
		"const x: number = 1;\n\n  await ctx.tools.a.stop({ x });":                           {"tool", Place{"test.workflow.ts", 4, 21}},
		"const f = (topic: string): void =>\n  ctx.publish(topic, {});\nf('stop');\nawait 1": {"publish", Place{"test.workflow.ts", 3, 7}},
		"await null;\nawait ctx.tools.a.ok();\nawait ctx.tools.a.stop();":                    {"tool", Place{"test.workflow.ts", 4, 19}},
	} {
		_, err := runBody(t, p, body, refusing(), Limits{})
		got, ok := errors.AsType[*Aborted](err)
		if !ok || got.Op != want.op || got.Place() != want.place || !errors.Is(got.Cause, errNotAllowed) {
			t.Errorf("%s\ngot  %+v\nwant %+v", body, got, want)
		}
	}
}

// 3.3.4: the host ends a phase with its mutation, and nothing after it runs.
func TestHostCanEndAPhaseThatWentWell(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	applied := errors.New("applied")
	host := &fakeHost{answer: func(context.Context, string, json.RawMessage) (json.RawMessage, error) { return nil, Abort(applied) }}
	_, err := runBody(t, p, `await ctx.tools.sheet.append({}); await ctx.tools.sheet.append({})`, host, Limits{})
	if !errors.Is(err, applied) || len(host.seen()) != 1 {
		t.Errorf("%v, calls %v", err, host.seen())
	}
}

func TestFirstAbortWins(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	first, second := errors.New("first"), errors.New("second")
	host := &fakeHost{}
	done := make(chan struct{})
	host.answer = func(_ context.Context, _ string, args json.RawMessage) (json.RawMessage, error) {
		if strings.Contains(string(args), `"one"`) {
			defer close(done)
			return nil, Abort(first)
		}
		<-done
		return nil, Abort(second)
	}
	_, err := runBody(t, p, `await Promise.all([ctx.tools.a.two(), ctx.tools.a.one()])`, host, Limits{})
	if !errors.Is(err, ErrAborted) {
		t.Errorf("got %v", err)
	}
	if errors.Is(err, first) == errors.Is(err, second) {
		t.Errorf("not one of the two: %v", err)
	}
}

func TestPhaseWithoutAHostCannotCall(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	for _, body := range []string{`try { await ctx.peek("a") } catch {}`, `ctx.publish("a", {}); await 1`} {
		if _, err := runBody(t, p, body, nil, Limits{}); !errors.Is(err, ErrAborted) {
			t.Errorf("%s: %v", body, err)
		}
	}
}
