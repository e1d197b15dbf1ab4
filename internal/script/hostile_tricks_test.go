package script

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTricksHarmOnlyTheirScript(t *testing.T) {
	thrown := []error{&Thrown{}}
	never := []error{ErrNeverSettles}
	runHostile(t, patientLimits, []hostile{
		{"never settles", `await new Promise(() => {})`, never},
		{"never settles, thenable", `await { then() {} }`, never},
		{"waits for itself", `const p = Promise.resolve().then(() => p); await p`, thrown},
		{"large result", `return "x".repeat(1e5)`, []error{ErrOutput}},
		{"large result by toJSON", `return { toJSON: () => "x".repeat(1e5) }`, []error{ErrOutput}},
		{"large arguments", `await ctx.tools.a.b("x".repeat(1e5))`, []error{ErrOutput}},
		{"large arguments, caught", `try { await ctx.tools.a.b("x".repeat(1e5)) } catch {} return 1`, []error{ErrOutput}},
		{"large event", `try { ctx.publish("a", { payload: "x".repeat(1e5) }) } catch {} return 1`, []error{ErrOutput}},
		{"large arguments in an executor", `await new Promise((r) => { ctx.tools.a.b("x".repeat(1e5)).then(r, r) }); return 1`, []error{ErrOutput}},
		{"many calls", `for (;;) { try { await ctx.peek("t") } catch {} }`, []error{ErrHostCalls}},
		{"many calls, finally", `for (;;) { try { for (;;) await ctx.peek("t") } catch {} finally { ctx.log("on") } }`, []error{ErrHostCalls}},
		{"many calls in executors", `for (;;) { await new Promise((r) => { ctx.peek("t").then(r, r) }) }`, []error{ErrHostCalls}},
		{"many calls at once", `await Promise.allSettled(Array.from({ length: 1e4 }, () => ctx.peek("t"))); return 1`, []error{ErrHostCalls}},
		{"polluted prototypes", `Object.prototype.polluted = Array.prototype.polluted = 1; globalThis.polluted = 1; return 1`, nil},
		{"frozen world", `for (const k of Object.getOwnPropertyNames(globalThis)) { try { Object.freeze(globalThis[k]); Object.freeze(globalThis[k].prototype) } catch {} } Object.freeze(globalThis); return await ctx.peek("x").catch((e) => e.message)`, nil},
		{"poisoned then", `Promise.prototype.then = () => { throw 1 }; await ctx.peek("x")`, append(never, thrown...)},
		{"poisoned constructor", `Object.defineProperty(Promise.prototype, "constructor", { get() { throw new Error("c") } }); await ctx.peek("x")`, append(never, thrown...)},
		{"poisoned species", `Object.defineProperty(Promise, Symbol.species, { get() { throw new Error("s") } }); await ctx.peek("x").then(1)`, thrown},
		{"poisoned JSON", `JSON.stringify = JSON.parse = () => { throw 1 }; Object.prototype.toJSON = () => ({ mine: 1 }); return { a: 1 }`, nil},
		{"poisoned arrays", `Object.defineProperty(Array.prototype, 0, { set() { throw 1 } }); Array.prototype[Symbol.iterator] = null; return await ctx.peek("x").catch(() => 1)`, nil},
		{"poisoned objects", `Object.defineProperty(Object.prototype, "resolve", { set() { throw 1 }, get() { throw 2 } }); return await ctx.peek("x").catch(() => 1)`, nil},
		{"poisoned errors", `Error.prototype.toString = () => { throw 1 }; Object.defineProperty(Error.prototype, "name", { get() { throw 2 } }); throw new Error("x")`, thrown},
		{"poisoned strings", `for (const k of Object.getOwnPropertyNames(String.prototype)) if (!["constructor", "length"].includes(k)) String.prototype[k] = () => { throw 1 }; return await ctx.peek("x").catch(() => 1)`, nil},
		{"poisoned functions", `Function.prototype.call = Function.prototype.apply = Function.prototype.bind = null; Reflect.apply = null; return await ctx.peek("x").catch(() => 1)`, nil},
		{"error without anything", `const e = Object.create(Error.prototype); throw e`, thrown},
		{"error that is revoked", `const { proxy, revoke } = Proxy.revocable(new Error("x"), {}); revoke(); throw proxy`, append(thrown, ErrNeverSettles)},
		{"result that is revoked", `const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return proxy`, append(thrown, ErrNeverSettles)},
		{"traps that throw", `return new Proxy({}, { ownKeys() { throw new Error("t") }, get() { throw new Error("t") } })`, thrown},
		{"traps that lie", `return new Proxy({}, { ownKeys: () => ["a", "a"], getOwnPropertyDescriptor: () => 5 })`, thrown},
		{"getter that throws", `return { get a() { throw new Error("g") } }`, thrown},
		{"eval", `return eval("1")`, []error{&Thrown{Name: "ReferenceError"}}},
		{"indirect eval", `return (0, globalThis.eval)("1")`, []error{&Thrown{Name: "TypeError"}}},
		{"Function", `return Function("return 1")()`, []error{&Thrown{Name: "TypeError"}}},
		{"constructors of functions", `for (const f of [() => 1, async () => 1, function* () {}, async function* () {}]) { try { f.constructor("return 1"); return "made" } catch (e) { if (!(e instanceof TypeError)) return e } } throw new TypeError("none")`, []error{&Thrown{Name: "TypeError"}}},
		{"Reflect.construct", `return Reflect.construct(Function, ["return 1"])()`, []error{&Thrown{Name: "TypeError"}}},
		{"import of a module", `const name = "fs"; return (await import(name)).x`, thrown},
		{"the host's function", `return typeof __host + typeof std + typeof os + typeof require + typeof process`, nil},
		{"a second definition", `globalThis.__pawl = { default: { producers: { p: { handler: () => 2 } } } }; return 1`, nil},
		{"forged memory error", `throw new InternalError("out of memory")`, []error{ErrMemory}},
	})
}

// knownGlobals are all that a script sees of the engine and of the prelude.
const knownGlobals = `Error EvalError RangeError ReferenceError SyntaxError TypeError URIError InternalError AggregateError
Array Object Function Iterator parseInt parseFloat isNaN isFinite decodeURI decodeURIComponent encodeURI encodeURIComponent
escape unescape Infinity NaN undefined Number Boolean String Math Reflect Symbol globalThis BigInt Date RegExp JSON Proxy
Map Set WeakMap WeakSet ArrayBuffer Uint8ClampedArray Int8Array Uint8Array Int16Array Uint16Array Int32Array Uint32Array
BigInt64Array BigUint64Array Float16Array Float32Array Float64Array DataView Promise console __pawl`

func TestScriptsSeeKnownGlobalsOnly(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	var got []string
	if err := json.Unmarshal([]byte(valueOf(t, p, `return Reflect.ownKeys(globalThis).map(String)`, nil)), &got); err != nil {
		t.Fatal(err)
	}
	want := append(strings.Fields(knownGlobals), "Symbol(Symbol.toStringTag)")
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a new global may show the time, memory or the outside; look at it first (-want +got):\n%s", diff)
	}
}

func TestStrangeDataArrivesWhole(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	host := &fakeHost{answer: echo}
	for body, want := range map[string]string{
		`return JSON.parse('{"__proto__":{"a":1},"constructor":2}')`:         `{"__proto__":{"a":1},"constructor":2}`,
		`return (await ctx.tools.a.b(JSON.parse('{"__proto__":[1]}'))).args`: `{"__proto__":[1]}`,
		`return state`:                                 `{"__proto__":{"x":1},"toJSON":"t","then":"u"}`,
		`return "\ud800"`:                              `"\ufffd"`,
		`return "a\udc00\ud800b"`:                      `"a\ufffd\ufffdb"`,
		`return "😀" + "\ud83d\ude00"`:                  `"😀😀"`,
		`return { ["\udfff"]: "\\ud800" }`:             `{"\ufffd":"\\ud800"}`,
		`return (await ctx.tools.a.b("x\ud800")).args`: `"x` + "\uFFFD" + `"`,
		`return "\u0000\u2028"`:                        `"\u0000` + "\u2028" + `"`,
		`return -0`:                                    `0`,
		`return 1e21`:                                  `1e+21`,
	} {
		if got := valueOf(t, p, body, host, rawJSON(`{"__proto__":{"x":1},"toJSON":"t","then":"u"}`)); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", body, got, want)
		}
	}
}

func TestLargeAnswerEndsThePhase(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	host := &fakeHost{answer: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`"` + strings.Repeat("x", 100<<10) + `"`), nil
	}}
	_, err := runBody(t, p, `try { await ctx.peek("a") } catch {} return 1`, host, patientLimits)
	if limit, ok := errors.AsType[*LimitError](err); !ok || limit.Limit != LimitPayload {
		t.Errorf("got %v", err)
	}
}

func TestDeepAnswerIsTheScriptsToCatch(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	host := &fakeHost{answer: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)), nil
	}}
	if got := valueOf(t, p, `try { await ctx.peek("a"); return "parsed" } catch (e) { return "caught" }`, host); got != `"caught"` {
		t.Errorf("got %s", got)
	}
}

func TestLogsOverTheLimitAreDropped(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	result, err := runBody(t, p, `for (let i = 0; i < 1e4; i++) ctx.log("line " + i); return 1`, nil, patientLimits)
	if err != nil || !result.LogsCut || len(result.Logs) == 0 || len(result.Logs) > hostileLimits.Log/lineCost {
		t.Errorf("%v, cut %v, %d lines", err, result.LogsCut, len(result.Logs))
	}
	result, err = runBody(t, p, `ctx.log("é".repeat(1e6)); return 1`, nil, Limits{})
	if err != nil || len(result.Logs) != 1 || len(result.Logs[0].Text) > mostLine || !strings.HasSuffix(result.Logs[0].Text, "...") {
		t.Errorf("%v, %d lines", err, len(result.Logs))
	}
}
