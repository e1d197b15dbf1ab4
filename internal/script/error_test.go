package script

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl"
)

func TestExceptionsAreTold(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	for body, want := range map[string]Thrown{
		`throw new Error("x")`:      {Name: "Error", Message: "x", Place: Place{"test.workflow.ts", 2, 11}},
		`throw new RangeError("é")`: {Name: "RangeError", Message: "é", Place: Place{"test.workflow.ts", 2, 11}},
		`class Mine extends Error { name = "Mine" }; throw new Mine("m")`: {Name: "Mine", Message: "m", Place: Place{"test.workflow.ts", 2, 42}},
		`(state as any).x.y`:                    {Name: "TypeError", Message: "cannot read property 'x' of undefined", Place: Place{"test.workflow.ts", 2, 2}},
		`undefinedName()`:                       {Name: "ReferenceError", Message: "'undefinedName' is not defined", Place: Place{"test.workflow.ts", 2, 1}},
		`await null; throw new Error("later")`:  {Name: "Error", Message: "later", Place: Place{"test.workflow.ts", 2, 23}},
		`throw "text"`:                          {Message: "text"},
		`throw { code: 5 }`:                     {Message: `{"code":5}`},
		`throw undefined`:                       {Message: "undefined"},
		`throw null`:                            {Message: "null"},
		`throw 1n`:                              {Message: "1"},
		`throw Symbol("s")`:                     {Message: "Symbol(s)"},
		`throw Object.create(null)`:             {Message: "{}"},
		`return Promise.reject(new Error("r"))`: {Name: "Error", Message: "r", Place: Place{"test.workflow.ts", 2, 27}},
		`throw Object.assign(new Error("a"), { message: 5, name: {} })`: {Place: Place{"test.workflow.ts", 2, 25}},
	} {
		_, err := runBody(t, p, body, nil, Limits{})
		got, ok := errors.AsType[*Thrown](err)
		if !ok {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if got.Name != want.Name || got.Message != want.Message || got.Place != want.Place {
			t.Errorf("%s\ngot  %q %q %s\nwant %q %q %s", body, got.Name, got.Message, got.Place, want.Name, want.Message, want.Place)
		}
		if Class(err) != pawl.ClassLogic {
			t.Errorf("%s: class %s", body, Class(err))
		}
	}
}

func TestStackNamesTheSource(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	program, err := Compile("flows/mail.workflow.ts", `import { workflow } from "pawl";

interface Mail {
  from: string;
}

function check(mail: Mail): void {
  if (mail.from === "")
    throw new Error("no sender");
}

const each = (mails: Mail[]) => mails.forEach((mail) => check(mail));

export default workflow({
  producers: {
    poll: {
      async handler(ctx: unknown, state: Mail[]) {
        each(state);
      },
    },
  },
} as any);
`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Run(t.Context(), Request{Program: program, Handler: "producers.poll.handler", Args: [](rawJSON){rawJSON(`[{"from":""}]`)}}, nil, Limits{})
	got, _ := errors.AsType[*Thrown](err)
	want := `    at check (flows/mail.workflow.ts:9:15)
    at <anonymous> (flows/mail.workflow.ts:12:57)
    at forEach (native)
    at each (flows/mail.workflow.ts:12:39)
    at handler (flows/mail.workflow.ts:18:9)`
	if got == nil || got.Stack != want {
		t.Fatalf("got %v\n%s\nwant\n%s", err, got.Stack, want)
	}
	if err.Error() != "flows/mail.workflow.ts:9:15: Error: no sender" {
		t.Errorf("text %q", err)
	}
}

func TestFaultsAtLoadAreTold(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	for source, want := range map[string]string{
		"export default {};\nthrow new TypeError('top')":                "test.workflow.ts:2:11: TypeError: top",
		"export default {};\nthrow 'text'":                              "text",
		"const x: any = undefined;\nexport default { producers: x.y }":  "test.workflow.ts:2:29: TypeError: cannot read property 'y' of undefined",
		"export const a = 1":                                            "TypeError: producers.p.handler is not a function",
		"export default null":                                           "TypeError: producers.p.handler is not a function",
		"export default { get producers() { throw new Error('got') } }": "test.workflow.ts:1:46: Error: got",
	} {
		_, err := p.Run(t.Context(), Request{Program: compileTest(t, source), Handler: handlerPath}, nil, Limits{})
		if _, ok := errors.AsType[*Thrown](err); !ok || err.Error() != want {
			t.Errorf("%q\ngot  %v\nwant %s", source, err, want)
		}
	}
}

func TestLimitErrorsSayWhatIsAllowed(t *testing.T) {
	limits, err := Limits{}.complete(DefaultLimits().Heap)
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[Limit]struct {
		is    error
		text  string
		class pawl.Class
	}{
		LimitCPU:       {ErrTimeout, "the script ran too long: the limit for its own processor time is 30s", pawl.ClassLogic},
		LimitWall:      {ErrTimeout, "the script ran too long: the limit for a phase with its calls is 5m0s", pawl.ClassTransient},
		LimitHeap:      {ErrMemory, "the script used too much memory: the limit for memory is 128 MiB", pawl.ClassLogic},
		LimitStack:     {ErrStack, "the script nested calls too deeply: the limit for nested calls is 2000", pawl.ClassLogic},
		LimitHostCalls: {ErrHostCalls, "the script made too many calls: the limit for calls of a phase is 10000", pawl.ClassLogic},
		LimitPayload:   {ErrOutput, "the script's data is too large: the limit for the data of one call is 8 MiB", pawl.ClassLogic},
		LimitOutput:    {ErrOutput, "the script's data is too large: the limit for what a handler returns is 4 MiB", pawl.ClassLogic},
	} {
		err := fmt.Errorf("run: %w", (&exchange{limits: limits}).over(limit))
		if !errors.Is(err, want.is) || err.Error() != "run: "+want.text || Class(err) != want.class {
			t.Errorf("%s: %v, class %s", limit, err, Class(err))
		}
	}
	if got := Class(fmt.Errorf("x: %w", ErrWorkerCrashed)); got != pawl.ClassInternal {
		t.Errorf("a crash is %s", got)
	}
}

func TestLimitsAreChecked(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1, Heap: 32 << 20})
	for name, limits := range map[string]Limits{
		"negative time": {CPU: -1}, "negative wall": {Wall: -time.Second}, "little heap": {Heap: 1 << 20},
		"more heap than the pool has": {Heap: 64 << 20}, "deep": {Stack: 1 << 20}, "negative stack": {Stack: -1},
		"payload": {Payload: 1 << 30}, "output": {Output: -1}, "calls": {HostCalls: -1}, "log": {Log: -1},
	} {
		if _, err := runBody(t, p, "return 1", nil, limits); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTextOfErrorsIsBounded(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	_, err := runBody(t, p, `const e = new Error("m".repeat(1e6)); e.name = "n".repeat(1e6); e.stack = "s\n".repeat(1e6); throw e`, nil, Limits{})
	got, ok := errors.AsType[*Thrown](err)
	if !ok || len(got.Message) > mostText+3 || len(got.Name) > mostText+3 || strings.Count(got.Stack, "\n") > mostFrames {
		t.Errorf("message %d, name %d, stack %d", len(got.Message), len(got.Name), len(got.Stack))
	}
}
