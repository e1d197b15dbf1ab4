package script

import (
	"testing"
	"time"
)

func TestEndlessScriptsEnd(t *testing.T) {
	timeout := []error{ErrTimeout}
	either := []error{ErrTimeout, ErrMemory}
	limits := hostileLimits // all but a few use up their processor time
	limits.CPU = 100 * time.Millisecond
	runHostile(t, limits, []hostile{
		{"while", `while (true) {}`, timeout},
		{"for with a body", `for (let i = 0; ; i++) { Math.sqrt(i) }`, timeout},
		{"do", `let i = 0; do { i++ } while (i >= 0)`, timeout},
		{"caught", `for (;;) { try { for (;;) {} } catch {} finally { continue } }`, timeout},
		{"label and finally", `a: for (;;) { try { continue a } finally { continue a } }`, timeout},
		{"top of a getter", `const o = { get x() { for (;;) {} } }; return o.x`, timeout},
		{"toJSON", `return { toJSON() { for (;;) {} } }`, timeout},
		{"thenable", `return { then() { for (;;) {} } }`, timeout},
		{"toString", "return `${{ toString() { for (;;) {} } }}`", timeout},
		{"proxy as a result", `return new Proxy({}, { ownKeys() { for (;;) {} } })`, timeout},
		{"generator", `function* g() { for (;;) yield 1 } for (const x of g()) {}`, timeout},
		{"async generator", `async function* g() { for (;;) yield 1 } for await (const x of g()) {}`, timeout},
		{"await", `for (;;) await null`, timeout},
		{"resolved promises", `for (;;) await Promise.resolve(1)`, timeout},
		{"chain of promises", `const f = () => Promise.resolve().then(f); await f()`, either},
		{"promise that feeds itself", `const f = (r) => { Promise.resolve().then(() => f(r)) }; await new Promise(f)`, timeout},
		{"thenables for ever", `const t = () => ({ then(r) { r(t()) } }); await t()`, timeout},
		{"storm of promises", `const f = () => { Promise.resolve().then(f); Promise.resolve().then(f) }; f(); await new Promise(() => {})`, either},
		{"storm of async functions", `const f = async () => { await null; f(); f() }; await f(); await new Promise(() => {})`, either},
		{"loop that nobody waits for", `(async () => { for (;;) await null })(); await new Promise(() => {})`, timeout},
		{"sort", `[3, 2, 1].sort(() => { for (;;) {} })`, timeout},
		{"replace", `"a".replace(/a/, () => { for (;;) {} })`, timeout},
		{"reviver", `JSON.parse("[1]", () => { for (;;) {} })`, timeout},
		{"message of an error", `const e = new Error("x"); Object.defineProperty(e, "message", { get() { for (;;) {} } }); throw e`, timeout},
		{"error that is a proxy", `throw new Proxy(new Error("x"), { get() { for (;;) {} } })`, timeout},
		{"arguments of a call", `await ctx.tools.a.b({ toJSON() { for (;;) {} } })`, timeout},
		{"argument of a log", `ctx.log({ toJSON() { for (;;) {} } })`, timeout},
		{"regex, nested quantifiers", `/^(a+)+$/.test("a".repeat(60) + "b")`, timeout},
		{"regex, backreference", `/^(a*)*\1$/.test("a".repeat(60) + "b")`, timeout},
		{"regex, lookahead", `/^(?=(a+)+$).*b$/.test("a".repeat(60) + "c")`, timeout},
		{"regex, lookbehind", `/(?<=^(a+)+)b$/.test("a".repeat(60) + "c")`, append(timeout, nil)},
		{"regex, alternation", `/^(a|a|aa)+$/.test("a".repeat(80) + "b")`, timeout},
		{"reverse that does not look up", `Array.prototype.reverse.call({ length: 2 ** 53 - 1 })`, timeout},
		{"includes that does not look up", `Array.prototype.includes.call({ length: 2 ** 53 - 1 }, 1)`, timeout},
		{"indexOf that does not look up", `Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)`, timeout},
		{"lastIndexOf that does not look up", `Array.prototype.lastIndexOf.call({ length: 2 ** 53 - 1 }, 1)`, timeout},
		{"copyWithin that does not look up", `Array.prototype.copyWithin.call({ length: 2 ** 53 - 1 }, 1, 0)`, timeout},
		{"fill of a proxy", `Array.prototype.fill.call(new Proxy({ length: 2 ** 53 - 1 }, { set: () => true }), 1)`, timeout},
		{"String.raw", `String.raw({ raw: { length: 2 ** 53 - 1 } })`, either},
		{"join", `Array.prototype.join.call({ length: 2 ** 53 - 1 }, "")`, either},
		{"stringify that doubles", `let o = {}; for (let i = 0; i < 60; i++) o = [o, o]; JSON.stringify(o)`, either},
		{"result that doubles", `let o = {}; for (let i = 0; i < 60; i++) o = [o, o]; return o`, either},
		{"long comparisons", `const a = "x".repeat(2e6) + "1", b = "x".repeat(2e6) + "2"; for (;;) a < b`, timeout},
		{"bigints", `let n = 3n; for (;;) n = (n * n) % (10n ** 20000n)`, timeout},
		{"recursion that goes on", `const f = () => { try { f() } catch { f() } }; f()`, timeout},
		{"memory that is caught", `globalThis.a = []; for (;;) { try { for (;;) a.push({}) } catch {} }`, either},
		{"strings that are caught", `let s = "x"; for (;;) { try { s += s } catch {} }`, timeout},
		{"logs", `for (;;) ctx.log("x")`, timeout},
		{"logs, caught", `for (;;) { try { console.error("x".repeat(1e4)) } catch {} }`, timeout},
	})
}

func TestEndlessTopLevelEnds(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	for name, source := range map[string]string{
		"run":        "export default {}; for (;;) {}",
		"built-in":   "export default {}; Array.prototype.reverse.call({ length: 2 ** 53 - 1 })",
		"definition": "export default { get producers() { for (;;) {} } }",
	} {
		_, err := p.Run(t.Context(), Request{Program: compileTest(t, source), Handler: handlerPath}, nil, hostileLimits)
		if !isAny(err, []error{ErrTimeout}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A handler that left something running has still returned.
	if got := valueOf(t, p, `(async () => { for (;;) await null })(); return 1`, nil); got != "1" {
		t.Errorf("got %s", got)
	}
}
