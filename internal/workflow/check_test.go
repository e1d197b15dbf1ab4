package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/script"
)

// checking checks sources as a deploy does: compiled, described, checked.
type checking struct{ pool *script.Pool }

func newChecking(t *testing.T) checking {
	t.Helper()
	pool, err := script.NewPool(script.Config{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return checking{pool}
}

func (c checking) check(t *testing.T, source string) (Config, error) {
	t.Helper()
	program, err := c.pool.Compile(t.Context(), "w.ts", source)
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	d, err := c.pool.Describe(t.Context(), program)
	if err != nil {
		t.Fatalf("describe: %v", err)
	}
	return Check(program.File, source, d)
}

// faults returns the faults of a source, each with its place and hint.
func (c checking) faults(t *testing.T, source string) []string {
	t.Helper()
	_, err := c.check(t, source)
	list, _ := errors.AsType[script.Diagnostics](err)
	var lines []string
	for _, d := range list {
		lines = append(lines, fmt.Sprintf("%d:%d: %s | %s", d.Line, d.Column, d.Message, d.Hint))
	}
	return lines
}

// marker stands in a source before the place of its one fault.
const marker = "▶"

// expectFault checks a source that has one fault, at its marker.
func (c checking) expectFault(t *testing.T, source, want string) {
	t.Helper()
	before, after, ok := strings.Cut(source, marker)
	if !ok {
		t.Fatalf("no marker in %s", source)
	}
	line := before[strings.LastIndexByte(before, '\n')+1:]
	place := fmt.Sprintf("%d:%d: ", 1+strings.Count(before, "\n"), len(line)+1)
	if diff := cmp.Diff([]string{place + want}, c.faults(t, before+after)); diff != "" {
		t.Errorf("%s\n%s", source, diff)
	}
}

const hintIntervals = "use digits and a unit, such as 90s, 5m, 12h or 7d; units (s, m, h, d) may be combined from the largest to the smallest, such as 1h30m"

// 3.11.1, 3.11.2: the workflow itself.
func TestFaultsOfTheWorkflow(t *testing.T) {
	c := newChecking(t)
	const rest = `, topics: { a: {} }, consumers: { c: { subscribe: ["a"], prepare() {} } } }`
	for name, test := range map[string]struct {
		source string
		want   []string
	}{
		"no default export": {"// nothing\nexport const x = 1", []string{"1:1: the script has no default export | " + exampleHint}},
		"function":          {"\n  export default () => 1", []string{"2:3: the default export must be an object, not a function | " + exampleHint}},
		"array":             {"export default [1]", []string{"1:1: the default export must be an object, not an array | " + exampleHint}},
		"null":              {"export default null", []string{"1:1: the default export must be an object, not null | " + exampleHint}},
		"hidden":            {"export default { toJSON: () => 1 }", []string{"1:1: the default export hides what it is from JSON | remove toJSON from the default export"}},
		"empty": {"export default {}", []string{
			`1:1: the workflow has no name | add name: "my-workflow"`,
			`1:1: the workflow has no topics | write topics: { "mail.received": {} }`,
			"1:1: the workflow has neither a producer nor a consumer | add a producer with a schedule, or a consumer of a topic",
		}},
		"no handlers": {`export default { name: "n", topics: {}, producers: {}, consumers: {} }`, []string{
			"1:1: the workflow has neither a producer nor a consumer | add a producer with a schedule, or a consumer of a topic",
		}},
		"name is no string":     {`export default { name: 5` + rest, []string{`1:18: name must be a string, not a number | write name: "my-workflow"`}},
		"name is a function":    {`export default { name() {}` + rest, []string{`1:18: name must be a string, not a function | write name: "my-workflow"`}},
		"name is empty":         {`export default { name: ""` + rest, []string{"1:18: name is empty | " + workflowNameHint}},
		"name with space":       {`export default { name: "a b"` + rest, []string{`1:18: name "a b" has the character ' ' | ` + workflowNameHint}},
		"name with #":           {`export default { name: "a#b"` + rest, []string{`1:18: name "a#b" has the character '#' | ` + workflowNameHint}},
		"name not ASCII":        {`export default { name: "größe"` + rest, []string{`1:18: name "größe" has the character 'ö' | ` + workflowNameHint}},
		"name begins with dot":  {`export default { name: ".a"` + rest, []string{`1:18: name ".a" begins with '.' | ` + workflowNameHint}},
		"name too long":         {`export default { name: "` + strings.Repeat("a", 101) + `"` + rest, []string{"1:18: name has 101 characters; at most 100 are allowed | "}},
		"unknown field":         {`export default { name: "n", descriptin: "x"` + rest, []string{`1:29: unknown field "descriptin" | did you mean "description"?`}},
		"unknown field far off": {`export default { name: "n", xyzzy: 1` + rest, []string{`1:29: unknown field "xyzzy" | the fields are name, description, topics, producers, consumers, labels, keep, expect, needs`}},
		"unknown function":      {`export default { name: "n", topic() {}` + rest, []string{`1:29: unknown field "topic" | did you mean "topics"?`}},
		"description":           {`export default { name: "n", description: 1` + rest, []string{"1:29: description must be a string, not a number | "}},
		"keep":                  {`export default { name: "n", keep: "7d"` + rest, []string{`1:29: keep must be an object, not a string | write keep: { runs: "7d", reads: "1d" }`}},
		"an age is no string":   {`export default { name: "n", keep: { runs: 7 }` + rest, []string{`1:37: keep: "runs" must be a string, not a number | write keep: { runs: "7d", reads: "1d" }`}},
		"an age is nonsense":    {`export default { name: "n", keep: { runs: "soon" }` + rest, []string{`1:37: keep: runs: "soon" is not an age | Write an age such as 12h, 30d or 2w, or forever.`}},
		"nothing is called so":  {`export default { name: "n", keep: { runz: "7d" }` + rest, []string{`1:37: keep: there is nothing called "runz" to keep | Did you mean runs? Kinds: runs, idle-runs, reads, logs, events, slots, rejects, mutations.`}},
		"not of one lane":       {`export default { name: "n", keep: { audit: "7d" }` + rest, []string{`1:37: keep: audit are not those of one lane | Set it with --keep audit=AGE when you start the server.`}},
		"expect":                {`export default { name: "n", expect: "7d"` + rest, []string{`1:29: expect must be an object, not a string | write expect: { freshWithin: "2h", doneBy: "07:00", onTime: 99.5 }`}},
		"expect nothing known":  {`export default { name: "n", expect: { freshwithin: "2h" }` + rest, []string{`1:39: expect: unknown field "freshwithin" | did you mean "freshWithin"?`}},
		"expect a number":       {`export default { name: "n", expect: { freshWithin: 2 }` + rest, []string{`1:39: expect: freshWithin cannot be a number | write expect: { freshWithin: "2h", doneBy: "07:00", onTime: 99.5 }`}},
		"expect rows":           {`export default { name: "n", expect: { rows: 5 }` + rest, []string{`1:39: expect: nothing of the workflow is due by a schedule, so rows means nothing | Expect freshWithin instead.`}},
		"expect no time of day": {`export default { name: "n", expect: { doneBy: "7" }` + rest, []string{`1:39: expect: "7" is not a time of day | Write a time of day such as "07:00".`}},
		"too short":             {`export default { name: "n", keep: { mutations: "1h" }` + rest, []string{`1:37: keep: mutations: "1h" is too short | Keep them for 1d or longer: a call is reconciled by them for up to a day.`}},
		"labels":                {`export default { name: "n", labels: "x"` + rest, []string{`1:29: labels must be an object, not a string | write labels: { team: "data" }`}},
		"label's value":         {`export default { name: "n", labels: { a: 1 }` + rest, []string{`1:39: label "a": its value must be a string, not a number | `}},
		"label's long value":    {`export default { name: "n", labels: { a: "x".repeat(201) }` + rest, []string{`1:39: label "a": its value has more than 200 characters | `}},
		"label's control":       {`export default { name: "n", labels: { a: "x\n" }` + rest, []string{`1:39: label "a": its value has a control character | `}},
		"label's name":          {`export default { name: "n", labels: { "a b": "1" }` + rest, []string{`1:39: label "a b": its name has a space | ` + nameHint}},
		"label with =":          {`export default { name: "n", labels: { "a=b": "1" }` + rest, []string{`1:39: label "a=b": its name has the character '=' or ',' | `}},
		"groups": {`export default { name: "n", topics: ["a"], producers: [], consumers: 5 }`, []string{
			"1:44: producers must be an object, not a list | write producers: { name: { ... } }",
			"1:59: consumers must be an object, not a number | write consumers: { name: { ... } }",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, c.faults(t, test.source)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// All faults are told at once, in the order of the source, but not endlessly.
func TestFaultsAreToldTogetherInOrder(t *testing.T) {
	c := newChecking(t)
	got := c.faults(t, `export default {
  consumers: { addRow: { subscribe: ["mail.recieved"], prepare: 1 } },
  producers: { pollMail: { publishes: ["mail.received", "x"], schedule: { interval: "0m" } } },
  topics: { "mail.received": {} },
};`)
	want := []string{
		`1:1: the workflow has no name | add name: "my-workflow"`,
		`2:38: consumer "addRow": subscribe names topic "mail.recieved", which is not declared | did you mean "mail.received"?`,
		`2:56: consumer "addRow": prepare must be a function, not a number | `,
		`3:16: producer "pollMail": handler is missing | add async handler(ctx, state) { ... }`,
		`3:57: producer "pollMail": publishes names topic "x", which is not declared | add it to topics`,
		`3:75: producer "pollMail": interval "0m" must be longer than zero | ` + hintIntervals,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	many := c.faults(t, "export default {"+strings.Repeat("\n", 30)+"name: 1, ...Object.fromEntries(Array.from({ length: 5000 }, (_, i) => ['x' + i, i])) }")
	if len(many) != 20 {
		t.Errorf("%d faults are told", len(many))
	}
}

func TestErrorOfCheckLooksLikeThatOfCompile(t *testing.T) {
	_, err := newChecking(t).check(t, "export default {\n  name: 'a b', topics: ['t'],\n  consumers: { c: { subscribe: ['t'], prepare() {} } } }")
	e, ok := errors.AsType[*pawl.Error](err)
	if !ok || !errors.Is(err, pawl.ErrInvalid) {
		t.Fatalf("got %v", err)
	}
	want := []pawl.Field{{Pointer: "/script", Message: `w.ts:2:3: name "a b" has the character ' '`}}
	if diff := cmp.Diff(want, e.Fields); diff != "" || e.Op != "check w.ts" || e.Msg != "the script has errors" || e.Hint != workflowNameHint {
		t.Errorf("%s\n%+v", diff, e)
	}
	faults, _ := errors.AsType[script.Diagnostics](err)
	if faults[0].Text != "  name: 'a b', topics: ['t']," || faults[0].File != "w.ts" {
		t.Errorf("got %+v", faults[0])
	}
}

// 3.11.3: what is extracted, and that it can be stored.
func TestCheckedScriptBecomesAConfig(t *testing.T) {
	config, err := newChecking(t).check(t, `import { workflow, producer, consumer } from "pawl";
const poll = producer({ publishes: ["b", "a.b"], schedule: { cron: "0 9 * * 1-5", timezone: "Europe/Berlin" }, handler: async () => {} });
export default workflow({
  name: "mail-to-sheet.2", description: "d", labels: { team: "data", empty: "" },
  topics: { b: {}, "a.b": { description: "x" }, unused: {}, "outside": {} },
  producers: { poll, a: poll, "a.b": { description: "x", publishes: ["b"], schedule: { interval: "1s" }, async handler() {} } },
  consumers: {
    z: consumer({ subscribe: ["b", "outside"], publishes: ["a.b"], prepare: async () => ({ reservations: [], data: 1 }), next() {} }),
    "y.z": { subscribe: ["a.b", "b"], publishes: [], prepare() {}, mutate() {}, next: undefined },
  },
} as any);`)
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Name: "mail-to-sheet.2", Topics: []string{"a.b", "b", "outside", "unused"}, Labels: map[string]string{"team": "data", "empty": ""},
		Producers: []Producer{
			{Name: "poll", Publishes: []string{"b", "a.b"}, Schedule: Schedule{Cron: "0 9 * * 1-5", Timezone: "Europe/Berlin"}},
			{Name: "a", Publishes: []string{"b", "a.b"}, Schedule: Schedule{Cron: "0 9 * * 1-5", Timezone: "Europe/Berlin"}},
			{Name: "a.b", Publishes: []string{"b"}, Schedule: Schedule{Interval: "1s"}},
		},
		Consumers: []Consumer{
			{Name: "z", Subscribe: []string{"b", "outside"}, Publishes: []string{"a.b"}, HasNext: true},
			{Name: "y.z", Subscribe: []string{"a.b", "b"}, HasMutate: true},
		},
	}
	if diff := cmp.Diff(want, config); diff != "" {
		t.Fatal(diff)
	}
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	var again Config
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config, again); diff != "" {
		t.Errorf("stored and read again: %s", diff)
	}
}

// The script decides what Check sees; whatever it is, Check ends and answers.
func FuzzCheck(f *testing.F) {
	f.Add(`{"name":"n","topics":{"a":{}},"consumers":{"c":{"subscribe":["a"]}}}`, "consumers.c.prepare")
	f.Add(`{"producers":{"p":{"schedule":{"interval":"5m"}},"q":[null]}}`, "producers.p.handler\nproducers.q.0\nproducers.x\nname")
	f.Add(`{"topics":[1,"a","a"],"labels":{"":null}}`, "consumers..\nproducers.")
	f.Add(`{"a":`, "consumers")
	f.Add(`[]`, "")
	f.Fuzz(func(t *testing.T, config, functions string) {
		d := script.Description{Kind: "object", Config: json.RawMessage(config), Functions: strings.Split(functions, "\n")}
		checked, err := Check("w.ts", "export default "+config, d)
		if (err == nil) != (checked.Name != "") {
			t.Errorf("name %q with error %v", checked.Name, err)
		}
		if faults, ok := errors.AsType[script.Diagnostics](err); err != nil && (!ok || len(faults) == 0 || faults[0].Line < 1) {
			t.Errorf("got %v", err)
		}
	})
}
