package script

import (
	"errors"
	"strings"
	"testing"
)

func TestScriptsThatEatMemoryEnd(t *testing.T) {
	memory := []error{ErrMemory}
	thrown := func(names ...string) []error {
		list := []error{ErrMemory}
		for _, name := range names {
			list = append(list, &Thrown{Name: name})
		}
		return list
	}
	runHostile(t, patientLimits, []hostile{
		{"arrays", `const a = []; for (;;) a.push(new Array(1e5).fill(1))`, memory},
		{"strings", `const a = []; for (;;) a.push("x".repeat(1e6) + a.length)`, memory},
		{"typed arrays", `const a = []; for (;;) a.push(new Uint8Array(1e6))`, memory},
		{"map", `const m = new Map(); for (let i = 0; ; i++) m.set(i, { i })`, memory},
		{"chain of objects", `let o = null; for (;;) o = { o }`, memory},
		{"closures", `let f = () => 0; for (;;) { const g = f; f = () => g }`, memory},
		{"length without end", `Array.from({ length: 2 ** 32 - 1 })`, memory},
		{"spread", `let a = [1]; for (;;) a = [...a, ...a]`, memory},
		{"promises", `const a = []; for (;;) a.push(new Promise(() => {}))`, memory},
		{"globals", `globalThis.a = []; for (;;) a.push({})`, memory},
		{"after an await", `await ctx.peek("x").catch(() => 0); const a = []; for (;;) a.push({})`, memory},
		{"await without memory", `globalThis.a = []; for (let i = 0; i < 3; i++) { try { for (;;) a.push([]) } catch {} } await null; return 1`, memory},
		{"jobs that are lost", `globalThis.a = []; const f = async () => { for (;;) { a.push({}); await null } }; f(); f(); await new Promise(() => {})`, memory},
		{"answer that is lost", `globalThis.a = []; ctx.peek("x").catch(() => { for (;;) a.push({}) }); await new Promise(() => {})`, memory},
		{"stacks of errors", `const a = []; function f(n) { if (n === 0) for (;;) a.push(new Error("x")); f(n - 1) } f(100)`, memory},
		{"bound functions", `let f = () => 1; for (let i = 0; i < 1e7; i++) f = f.bind(null); f()`, memory},
		{"proxies of proxies", `let o = {}; for (let i = 0; i < 1e7; i++) o = new Proxy(o, {}); o.x`, memory},
		{"string that doubles", `let s = "x"; for (;;) s += s`, thrown("InternalError", "RangeError")},
		{"huge repeat", `"x".repeat(2 ** 30)`, thrown("RangeError")},
		{"huge pad", `"x".padEnd(2 ** 30)`, thrown("RangeError")},
		{"huge buffer", `new ArrayBuffer(8e9)`, thrown("RangeError")},
		{"bigint", `return String(2n ** (2n ** 40n))`, thrown("RangeError")},
		{"deep regex", `new RegExp("(".repeat(1e6))`, thrown("SyntaxError")},
		{"deep JSON", `JSON.parse("[".repeat(1e6))`, thrown("SyntaxError")},
		{"calls in a queue", `for (;;) ctx.tools.a.b({ x: "x".repeat(1e4) })`, []error{ErrHostCalls}},
	})
}

func TestScriptsThatNestTooDeeplyEnd(t *testing.T) {
	stack := []error{ErrStack}
	runHostile(t, patientLimits, []hostile{
		{"calls", `const f = () => f(); f()`, stack},
		{"getter", `const o = { get x() { return this.x } }; o.x`, stack},
		{"toString", "const o = { toString() { return `${o}` } }; o + ''", stack},
		{"toJSON", `const o = { toJSON() { return JSON.stringify(o) } }; return o`, stack},
		{"async", `const f = async () => { await f() }; await f()`, stack},
		{"proxy", `const o = new Proxy({}, { get(t, k, r) { return r[k] } }); o.x`, stack},
		{"sort", `const f = () => [2, 1].sort(f); f()`, stack},
		{"constructor", `class A { b = new A() } new A()`, stack},
		{"generator", `function* g() { yield* g() } [...g()]`, stack},
		{"replace", `const f = () => "a".replace(/a/, f); f()`, stack},
		{"caught", `const f = () => f(); try { f() } catch (e) { return e.message }`, nil},
		{"deep result", `let o = {}; for (let i = 0; i < 1e5; i++) o = { o }; return o`, []error{ErrStack, ErrMemory, &Thrown{}}},
	})
}

func TestArgumentsLargerThanTheHeapEndThePhase(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	for name, state := range map[string]string{
		"text":  `"` + strings.Repeat("x", 20<<20) + `"`,
		"array": "[" + strings.Repeat("1,", 4<<20) + "1]",
	} {
		if _, err := runBody(t, p, `return state.length`, nil, patientLimits, rawJSON(state)); !errors.Is(err, ErrMemory) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
