package script

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Surface 3, Workflow: what ctx can do, and what reaches the host.
func TestContextReachesTheHost(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	for name, test := range map[string]struct{ body, call string }{
		"peek":             {`await ctx.peek("a.b")`, `peek {"topic":"a.b"}`},
		"peek with limit":  {`await ctx.peek("a", { limit: 5 })`, `peek {"topic":"a","limit":5}`},
		"getByIds":         {`await ctx.getByIds("a", ["1", "2"])`, `getByIds {"topic":"a","ids":["1","2"]}`},
		"tool":             {`await ctx.tools.mail.search({ after: "x" })`, `tool {"connection":"mail","method":"search","args":{"after":"x"}}`},
		"tool, no args":    {`await ctx.tools["my-mail"]["a.b"]()`, `tool {"connection":"my-mail","method":"a.b"}`},
		"publish":          {`ctx.publish("a", { messageId: "1", payload: { x: null } })`, `publish {"topics":["a"],"event":{"messageId":"1","payload":{"x":null}}}`},
		"publish to many":  {`ctx.publish(["a", "b"], { messageId: "1" })`, `publish {"topics":["a","b"],"event":{"messageId":"1"}}`},
		"registerInput":    {`ctx.registerInput({ source: "s", type: "t", id: "1", title: "T" })`, `registerInput {"inputId":"` + InputID("", "s", "t", "1") + `","source":"s","type":"t","id":"1","title":"T"}`},
		"registerInput, 7": {`ctx.registerInput({ source: "s", type: "t", id: 7, title: "T" })`, `registerInput {"inputId":"` + InputID("", "s", "t", "7") + `","source":"s","type":"t","id":"7","title":"T"}`},
		"data survives":    {`await ctx.tools.a.b(JSON.parse('{"__proto__":1,"é😀":"\\u2028\\u0000"}'))`, `tool {"connection":"a","method":"b","args":{"__proto__":1,"é😀":"` + "\u2028" + `\u0000"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			host := &fakeHost{answer: echo}
			if _, err := runBody(t, p, test.body, host, Limits{}); err != nil {
				t.Fatal(err)
			}
			if got := host.seen(); len(got) != 1 || got[0] != test.call {
				t.Errorf("got  %q\nwant %q", got, test.call)
			}
		})
	}
}

func TestAnswersReachTheScript(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	host := &fakeHost{answer: echo}
	for body, want := range map[string]string{
		`return await ctx.peek("a", { limit: 2 })`:                                                `{"topic":"a","limit":2}`,
		`return (await ctx.tools.a.b([1, "é", null])).args`:                                       `[1,"é",null]`,
		`return await Promise.all([1, 2, 3].map(async (n) => (await ctx.tools.a.b(n)).args * n))`: `[1,4,9]`,
		`return typeof ctx.publish("a", {})`:                                                      `"undefined"`,
		`return ctx.registerInput({ source: "s", type: "t", id: "1", title: "T" })`:               `"` + InputID("", "s", "t", "1") + `"`,
		`return ctx.peek("a").constructor === Promise`:                                            `true`,
		`const { log, peek } = ctx; log("x"); return (await peek("b")).topic`:                     `"b"`,
	} {
		if got := valueOf(t, p, body, host); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", body, got, want)
		}
	}
	if got := valueOf(t, p, `return await ctx.peek("a")`, &fakeHost{}); got != "null" {
		t.Errorf("no answer is %s", got)
	}
}

// 3.2: registering again returns the same id.
func TestInputIDsAreStableAndApart(t *testing.T) {
	if got := InputID("", "mail", "message", "1"); got != "in_9d5e96a3ee1dd54fdc920bef83db0a58" {
		t.Errorf("InputID changed to %s: stored inputs would not be found again", got)
	}
	seen := map[string]bool{}
	for _, parts := range [][3]string{{"a", "b", "c"}, {"ab", "", "c"}, {"a", "bc", ""}, {"", "ab", "c"}, {"a", "b", "c "}, {"1:a", "b", "c"}} {
		seen[InputID("w", parts[0], parts[1], parts[2])] = true
	}
	if len(seen) != 6 {
		t.Errorf("%d ids for 6 inputs", len(seen))
	}
}

func TestInputWithoutItsPartsIsRefused(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	for _, input := range []string{
		``, `null`, `"x"`, `{}`, `{ source: "s", type: "t", id: "1" }`, `{ source: "s", type: "t", id: "", title: "T" }`,
		`{ source: 1, type: "t", id: "1", title: "T" }`, `{ source: "s", type: "t", id: {}, title: "T" }`,
	} {
		host := &fakeHost{}
		_, err := runBody(t, p, "ctx.registerInput("+input+")", host, Limits{})
		if thrown, ok := errors.AsType[*Thrown](err); !ok || thrown.Name != "TypeError" || len(host.seen()) != 0 {
			t.Errorf("registerInput(%s): %v, calls %v", input, err, host.seen())
		}
	}
}

// no return value and no state are not null.
func TestAbsentIsNotNull(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	for body, want := range map[string]string{
		``: "absent", `return undefined`: "absent", `return null`: "null", `return {}`: "{}", `return 0`: "0",
		`return ""`: `""`, `return false`: "false", `return [undefined]`: "[null]", `return { a: undefined }`: "{}",
		`return NaN`: "null", `return new Date(0)`: `"1970-01-01T00:00:00.000Z"`,
	} {
		result, err := runBody(t, p, body, nil, Limits{})
		got := string(result.Value)
		if !result.HasValue {
			got = "absent" + got
		}
		if err != nil || got != want {
			t.Errorf("%q gives %s, %v; want %s", body, got, err, want)
		}
	}
	for want, args := range map[string][]json.RawMessage{
		`"undefined,1"`: nil, `"undefined,1" `: {nil}, `"object,1"`: {json.RawMessage("null")}, `"number,1"`: {json.RawMessage("5")},
	} {
		if got := valueOf(t, p, "return [typeof state, 1].join()", nil, args...); got != strings.TrimSpace(want) {
			t.Errorf("%s gives %s", args, got)
		}
	}
}

func TestResultsThatAreNotDataAreRefused(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	for _, body := range []string{`return () => 1`, `return Symbol("x")`, `return 1n`, `const a = []; a.push(a); return a`, `return { a: 1n }`, `return class {}`} {
		_, err := runBody(t, p, body, nil, Limits{})
		if thrown, ok := errors.AsType[*Thrown](err); !ok || thrown.Name != "TypeError" {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestHandlersGetTheirArguments(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	program := compileTest(t, `
class Row { count = 0; prepare(ctx: any, state: any) { this.count++; return { data: [this.count, state] } } }
export default {
  producers: { "poll.mail v2": { label: "x", handler(ctx: any, state: any) { return this.label + state.n } } },
  consumers: { row: new Row(), all: { next: (ctx: any, prepared: any, result: any, none: any) => [prepared, result, none === undefined] } },
}`)
	for path, test := range map[string]struct {
		args []json.RawMessage
		want string
	}{
		"producers.poll.mail v2.handler": {[]json.RawMessage{json.RawMessage(`{"n":1}`)}, `"x1"`},
		"consumers.row.prepare":          {[]json.RawMessage{json.RawMessage(`"s"`)}, `{"data":[1,"s"]}`},
		"consumers.all.next":             {[]json.RawMessage{json.RawMessage(`{"data":1}`), json.RawMessage(`{"status":"none"}`)}, `[{"data":1},{"status":"none"},true]`},
	} {
		for range 2 { // the second time as the first: every phase is fresh
			result, err := p.Run(t.Context(), Request{Program: program, Handler: path, Args: test.args}, nil, Limits{})
			if err != nil || string(result.Value) != test.want {
				t.Errorf("%s: %s, %v", path, result.Value, err)
			}
		}
	}
	for _, path := range []string{"producers.none.handler", "consumers.row.mutate", "x", "a.b", "consumers.row.count", "constructor.constructor.constructor"} {
		_, err := p.Run(t.Context(), Request{Program: program, Handler: path}, nil, Limits{})
		if thrown, ok := errors.AsType[*Thrown](err); !ok || !strings.Contains(thrown.Message, path+" is not a function") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := p.Run(t.Context(), Request{Program: program}, nil, Limits{}); err == nil {
		t.Error("a phase without a handler ran")
	}
	if _, err := p.Run(t.Context(), Request{Program: program, Handler: handlerPath, Args: []json.RawMessage{json.RawMessage("{")}}, nil, Limits{}); err == nil {
		t.Error("an argument that is not JSON was accepted")
	}
}

func TestTimeStandsStill(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	ms := "1774746123456"
	iso := `"2026-03-29T01:02:03.456Z"`
	for body, want := range map[string]string{
		`return Date.now()`:                    ms,
		`return new Date()`:                    iso,
		`return +new Date()`:                   ms,
		`return Date().slice(0, 15)`:           `"Sun Mar 29 2026"`,
		`return ctx.now()`:                     iso,
		`return ctx.now().getTime()`:           ms,
		`return ctx.now() + 1000`:              "1774746124456",
		`return ctx.now() - 456`:               "1774746123000",
		`return new Date(ctx.now()).getTime()`: ms,
		"return `${ctx.now()}`":                iso,
		`return Date.parse(ctx.now())`:         ms,
		`return ctx.now() instanceof Date`:     "true",
		`const a = ctx.now(); a.setTime(0); return ctx.now().getTime()`:                       ms,
		`for (let i = 0; i < 1e5; i++); await ctx.peek("a"); return Date.now()`:               ms,
		`return new (class extends Date {})().getTime()`:                                      ms,
		`return new Date(0).constructor.now()`:                                                ms,
		`return Reflect.construct(Date, []).getTime()`:                                        ms,
		`return [Date.name, Date.length, Date.UTC(2020, 0), new Date(2020, 0).toISOString()]`: `["Date",7,1577836800000,"2020-01-01T00:00:00.000Z"]`,
		`return new Date().getTimezoneOffset()`:                                               "0",
		`return typeof performance + typeof setTimeout + typeof Intl`:                         `"undefinedundefinedundefined"`,
	} {
		if got := valueOf(t, p, body, &fakeHost{}); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", body, got, want)
		}
	}
}

// Surface 2, 1: a producer's run knows the instant that it stands for, and nothing
// can change it. One worker serves runs of different instants.
func TestScheduledForIsTheInstantOfTheRun(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	program := compileTest(t, handler(`
		try { ctx.scheduledFor = "another"; } catch {}
		try { Object.defineProperty(ctx, "scheduledFor", { value: "another" }); } catch {}
		const { scheduledFor } = ctx;
		return [scheduledFor, ctx.scheduledFor === scheduledFor, new Date(ctx.scheduledFor).getTime()];`))
	for _, test := range []struct {
		at   time.Time
		want string
	}{
		{testNow.Add(-time.Hour).In(time.FixedZone("x", 3600)), `["2026-03-29T00:02:03.456Z",true,1774742523456]`},
		{time.Time{}, `[null,true,0]`},
		{testNow, `["2026-03-29T01:02:03.456Z",true,1774746123456]`},
	} {
		result, err := p.Run(t.Context(), Request{Program: program, Handler: handlerPath, Now: testNow, ScheduledFor: test.at}, &fakeHost{}, Limits{})
		if err != nil || string(result.Value) != test.want {
			t.Errorf("%v: %s, %v, want %s", test.at, result.Value, err, test.want)
		}
	}
}

func TestChanceComesFromTheSeed(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	program := compileTest(t, handler(`return Array.from({ length: 500 }, () => Math.random())`))
	draw := func(seed uint64) []float64 {
		result, err := p.Run(t.Context(), Request{Program: program, Handler: handlerPath, Seed: seed}, nil, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		var numbers []float64
		if err := json.Unmarshal(result.Value, &numbers); err != nil {
			t.Fatal(err)
		}
		return numbers
	}
	first := draw(1)
	if !slices.Equal(first, draw(1)) {
		t.Error("the same seed gives other numbers")
	}
	for _, seed := range []uint64{0, 2, 1 << 32, 1 << 63} {
		if slices.Equal(first, draw(seed)) {
			t.Errorf("seed %d gives the numbers of seed 1", seed)
		}
	}
	// A run that another version of Pawl goes on with gets the same numbers again.
	for seed, want := range map[uint64][]float64{
		7:                  {0.427936967379521, 0.3077336660080918, 0.17272426490461135},
		0xfedcba9876543210: {0.7371387705601095, 0.07569599570987073, 0.22780889573281615},
	} {
		if got := draw(seed)[:3]; !slices.Equal(got, want) {
			t.Errorf("seed %d gives %v, not %v", seed, got, want)
		}
	}
	sum, seen := 0.0, map[float64]bool{}
	for _, n := range first {
		if n < 0 || n >= 1 {
			t.Fatalf("%v is not in [0, 1)", n)
		}
		sum += n
		seen[n] = true
	}
	if mean := sum / 500; mean < 0.4 || mean > 0.6 || len(seen) != 500 {
		t.Errorf("mean %v of %d different numbers", mean, len(seen))
	}
}

func TestLogsAreKeptWithTheirLevel(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	result, err := runBody(t, p, `
ctx.log("a", 1, { b: [2] }, null, undefined, 3n, Symbol("s"));
console.log("c"); console.info("d"); console.debug("e"); console.warn("f"); console.error("g");
const loop = {}; loop.loop = loop; ctx.log(loop);
ctx.log();
ctx.log(new TypeError("bad"));`, nil, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, line := range result.Logs {
		if line.At.IsZero() {
			t.Error("a line without a time")
		}
		got = append(got, line.Level+" "+line.Text)
	}
	want := []string{
		`info a 1 {"b":[2]} null undefined 3 Symbol(s)`, "info c", "info d", "debug e", "warn f", "error g",
		"info (a value that cannot be shown)", "info ",
		"info TypeError: bad\n    at handler (test.workflow.ts:7:13)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines differ (-want +got):\n%s", diff)
	}
}

func TestLogsSurviveAFailure(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	result, err := runBody(t, p, `ctx.log("before"); await ctx.peek("a"); throw new Error("x")`, &fakeHost{}, Limits{})
	if err == nil || len(result.Logs) != 1 || result.Logs[0].Text != "before" || result.Calls != 1 || result.Wall <= 0 || result.CPU <= 0 {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestRefusedCallRejectsThePromise(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	host := &fakeHost{answer: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return nil, errors.New("not <today>")
	}}
	got := valueOf(t, p, `try { await ctx.peek("a") } catch (e) { return [e instanceof Error, e.name, e.message] }`, host)
	if got != `[true,"HostError","not <today>"]` {
		t.Errorf("got %s", got)
	}
	_, err := runBody(t, p, `await ctx.peek("a")`, host, Limits{})
	if thrown, ok := errors.AsType[*Thrown](err); !ok || thrown.Name != "HostError" || thrown.Message != "not <today>" {
		t.Errorf("uncaught: %v", err)
	}
}

func TestToolsAreNotThenables(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	host := &fakeHost{}
	got := valueOf(t, p, `
await ctx.tools; await ctx.tools.mail;
ctx.log(ctx.tools, ctx.tools.mail);
let thrown = 0;
for (const f of [() => ctx.tools.mail.search(1, 2), () => { ctx.tools.x = 1 }, () => { ctx.peek = 1 }]) try { f() } catch { thrown++ }
return [thrown, Object.keys(ctx.tools), "mail" in ctx.tools, typeof ctx.tools.mail[Symbol.iterator]]`, host)
	if got != `[3,[],false,"undefined"]` || len(host.seen()) != 0 {
		t.Errorf("got %s, calls %v", got, host.seen())
	}
}

func TestCallsOverTheLimitInFlightWait(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	var now, most atomicMax
	host := &fakeHost{answer: func(ctx context.Context, _ string, args json.RawMessage) (json.RawMessage, error) {
		most.max(now.add(1))
		defer now.add(-1)
		select {
		case <-time.After(2 * time.Millisecond): // so that calls can pile up
		case <-ctx.Done():
		}
		return args, nil
	}}
	result, err := runBody(t, p, `
const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => ctx.tools.a.b(i)));
return answers.every((a, i) => a.args === i)`, host, Limits{InFlight: 3})
	if err != nil || string(result.Value) != "true" || result.Calls != 100 {
		t.Errorf("%s, %v, %d calls", result.Value, err, result.Calls)
	}
	if got := most.value(); got > 3 {
		t.Errorf("%d calls at once", got)
	}
}

// Told operations keep their order, also against calls: 3.3, a publish that is
// not allowed must end a phase before its mutation.
func TestOrderOfCallsIsKept(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	host := &fakeHost{}
	_ = valueOf(t, p, `
for (let i = 0; i < 20; i++) {
  ctx.publish("a", { messageId: "m" + i });
  if (i % 5 === 0) await ctx.tools.a.b(i);
}
return 1`, host)
	var want []string
	for i := range 20 {
		n := string(mustJSON(t, i))
		want = append(want, `publish {"topics":["a"],"event":{"messageId":"m`+n+`"}}`)
		if i%5 == 0 {
			want = append(want, `tool {"connection":"a","method":"b","args":`+n+`}`)
		}
	}
	if diff := cmp.Diff(want, host.seen()); diff != "" {
		t.Error(diff)
	}
}

func TestRunReturnsAfterItsCalls(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	release, ended := make(chan struct{}), make(chan struct{})
	host := &fakeHost{answer: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		<-release
		close(ended)
		return nil, nil
	}}
	go func() {
		time.AfterFunc(20*time.Millisecond, func() { close(release) })
	}()
	if got := valueOf(t, p, `ctx.tools.a.b(); return 1`, host); got != "1" {
		t.Errorf("got %s", got)
	}
	select {
	case <-ended:
	default:
		t.Error("Run returned before a call that nobody waited for")
	}
}
