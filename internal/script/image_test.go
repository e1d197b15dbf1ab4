package script

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Whatever a script does to what its top level made, or to the environment, the
// next phase begins where the top level ended.
func TestNothingIsLeftInAnImage(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	for name, source := range map[string]string{
		"variables":    `let n = 0; %s return ++n`,
		"objects":      `const seen = { n: 0 }; %s return ++seen.n`,
		"collections":  `const m = new Map([["n", 0]]); %s m.set("n", m.get("n") + 1); return m.get("n")`,
		"arrays":       `const a: number[] = []; %s a.push(1); for (let i = 0; i < 1e5; i++) a.push(i); return a.length - 1e5`,
		"closures":     `const next = (() => { let n = 0; return () => ++n })(); %s return next()`,
		"generators":   `const g = (function* () { for (let n = 1; ; n++) yield n })(); %s return g.next().value`,
		"classes":      `class A { static #n = 0; static next() { return ++A.#n } } %s return A.next()`,
		"expressions":  `const r = /a/g; %s r.test("aaa"); return r.lastIndex`,
		"buffers":      `const b = new Uint8Array(1 << 16); %s b.fill(b[0] + 1); return b[65535]`,
		"globals":      `globalThis.n = 0; %s return ++globalThis.n`,
		"prototypes":   `%s const was = (Array.prototype as any).left; (Array.prototype as any).left = 2; return was ?? 1`,
		"built-in":     `%s const was = JSON.stringify; JSON.stringify = () => "2"; Object.freeze = () => { throw 2 }; return was === JSON.stringify ? 2 : 1`,
		"symbols":      `const s = Symbol.for("n"); const o: any = { [s]: 0 }; %s return ++o[Symbol.for("n")]`,
		"promises":     `let n = 0; const later = Promise.resolve().then(() => { n++ }); %s await later; return n`,
		"weak":         `const w = new WeakMap(); const k = {}; w.set(k, 0); %s w.set(k, w.get(k) + 1); return w.get(k)`,
		"shapes":       `const o: any = {}; %s for (let i = 0; i < 300; i++) o["k" + i] = i; const n = Object.keys(o).length; delete o.k7; return n - 299`,
		"dictionaries": `const d: any = Object.create(null); %s d[Math.random()] = 1; return Object.keys(d).length`,
		"errors":       `const e: any = new Error("x"); e.n = 0; %s return ++e.n`,
	} {
		t.Run(name, func(t *testing.T) {
			before, after, _ := strings.Cut(source, "%s")
			program := compileTest(t, before+"\n"+handler(after))
			other := compileTest(t, "const other = "+fmt.Sprintf("%q", name)+";\n"+handler(`(globalThis as any).n = 9; (Array.prototype as any).left = 9; return other`))
			for range 3 {
				result, err := p.Run(t.Context(), Request{Program: program, Handler: handlerPath, Now: time.UnixMilli(1)}, nil, Limits{})
				if err != nil || string(result.Value) != "1" {
					t.Fatalf("%s, %v", result.Value, err)
				}
				if result, err = p.Run(t.Context(), Request{Program: other, Handler: handlerPath}, nil, Limits{}); err != nil || string(result.Value) != fmt.Sprintf("%q", name) {
					t.Fatalf("another program: %s, %v", result.Value, err)
				}
			}
		})
	}
}

// A phase that is stopped in the middle, by whatever limit, leaves nothing either.
func TestNothingIsLeftOfAPhaseThatWasStopped(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	program := compileTest(t, `let n = 0; const held: unknown[] = [];
export default { producers: { p: { async handler(ctx: any, how: any) {
  n++;
  if (how === "loop") for (;;) n++;
  if (how === "memory") for (;;) held.push(new Array(1000).fill(n));
  if (how === "stack") { const f = (): number => f() + n++; f() }
  if (how === "throw") throw new Error("x" + n);
  if (how === "calls") for (;;) await ctx.peek("a");
  if (how === "never") await new Promise(() => {});
  return [n, held.length];
} } } }`)
	for _, how := range []string{"loop", "memory", "stack", "throw", "calls", "never", ""} {
		limits := Limits{CPU: 200 * time.Millisecond, Heap: 16 << 20, HostCalls: 5}
		arg, _ := json.Marshal(how)
		if _, err := p.Run(t.Context(), Request{Program: program, Handler: handlerPath, Args: []rawJSON{arg}}, &silentHost{}, limits); (err == nil) != (how == "") {
			t.Errorf("%s: %v", how, err)
		}
		result, err := p.Run(t.Context(), Request{Program: program, Handler: handlerPath, Args: []rawJSON{rawJSON(`""`)}}, nil, Limits{})
		if err != nil || string(result.Value) != "[1,0]" {
			t.Errorf("after %s: %s, %v", how, result.Value, err)
		}
	}
}

// A top level that depends on the phase runs in each, with its time and chance,
// and says what it says every time.
func TestTopLevelsThatDependOnThePhase(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	for name, c := range map[string]struct{ top, want string }{
		"now":             {`const at = Date.now();`, "%d"},
		"date":            {`const at = new Date().getTime();`, "%d"},
		"date as text":    {`const at = Date.parse(Date());`, "%d"},
		"caught":          {`let at = 0; try { at = Date.now() } catch { at = -1 } finally { at += 0 }`, "%d"},
		"in a promise":    {`let at = 0; new Promise((ok) => { at = Date.now(); ok(at) });`, "%d"},
		"a fixed instant": {`const at = new Date(7).getTime();`, "7"},
	} {
		program := compileTest(t, c.top+"\n"+handler(`return at`))
		for _, now := range []int64{1_000, 2_000, 3_000} {
			result, err := p.Run(t.Context(), Request{Program: program, Handler: handlerPath, Now: time.UnixMilli(now)}, nil, Limits{})
			want := c.want
			if want == "%d" {
				want = fmt.Sprint(now)
			}
			if err != nil || string(result.Value) != want {
				t.Errorf("%s at %d: %s, %v", name, now, result.Value, err)
			}
		}
	}
	program := compileTest(t, "console.log(\"loaded\"); const x = Math.random();\n"+handler(`return x`))
	var values []string
	for seed := range uint64(3) {
		result, err := p.Run(t.Context(), Request{Program: program, Handler: handlerPath, Seed: seed}, nil, Limits{})
		if err != nil || len(result.Logs) != 1 || !strings.Contains(result.Logs[0].Text, "loaded") {
			t.Errorf("%v, %v", result.Logs, err)
		}
		values = append(values, string(result.Value))
	}
	if slices.Sort(values); len(slices.Compact(values)) != 3 {
		t.Errorf("the same chance in several phases: %v", values)
	}
}

// Programs with large top levels are bounded together, and go on working.
func TestImagesAreBounded(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	for i := range 40 {
		program := compileTest(t, fmt.Sprintf("const big = new Uint8Array(%d << 20).fill(%d);\n", 1+i%9, i+1)+handler(`return big[big.length - 1]`))
		for range 2 {
			result, err := p.Run(t.Context(), Request{Program: program, Handler: handlerPath}, nil, Limits{})
			if err != nil || string(result.Value) != fmt.Sprint(i+1) {
				t.Fatalf("program %d: %s, %v", i, result.Value, err)
			}
		}
	}
}
