package script

import (
	"errors"
	"strings"
	"testing"
)

// 3.11.3: the declarative parts, and which handlers there are.
func TestDescribeTellsWhatIsDeclared(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	for name, test := range map[string]struct {
		source          string
		kind, functions string
		config          string
	}{
		"workflow": {
			source: `import { workflow, consumer, producer } from "pawl";
export default workflow({
  name: "n", topics: { "a.b": {} }, extra: 1,
  producers: { poll: producer({ publishes: ["a.b"], schedule: { cron: "0 9 * * *", timezone: "Europe/Berlin" }, handler: async () => 1 }) },
  consumers: { c: consumer({ subscribe: ["a.b"], async prepare() {}, next: async () => 1, mutate: "no" }) },
} as any);`,
			kind:      "object",
			functions: "producers.poll.handler consumers.c.prepare consumers.c.next",
			config:    `{"name":"n","topics":{"a.b":{}},"extra":1,"producers":{"poll":{"publishes":["a.b"],"schedule":{"cron":"0 9 * * *","timezone":"Europe/Berlin"}}},"consumers":{"c":{"subscribe":["a.b"],"mutate":"no"}}}`,
		},
		"odd places for functions": {
			source: `export default { name: () => 1, producers: { p: () => 1, "x.y": { deep: { f() {} }, handler() {} } }, consumers: [() => 1] }`,
			kind:   "object", functions: "name producers.p producers.x.y.handler consumers.0",
			config: `{"producers":{"x.y":{"deep":{}}},"consumers":[null]}`,
		},
		"empty":       {source: `export default {}`, kind: "object", config: "{}"},
		"no default":  {source: `export const workflow = {}`, kind: "undefined", config: "null"},
		"null":        {source: `export default null`, kind: "null", config: "null"},
		"array":       {source: `export default [1]`, kind: "array", config: "null"},
		"function":    {source: `export default () => 1`, kind: "function", config: "null"},
		"text":        {source: `export default "x"`, kind: "string", config: "null"},
		"CommonJS":    {source: `module.exports = { default: { name: "c" } }`, kind: "object", config: `{"name":"c"}`},
		"odd groups":  {source: `export default { producers: null, consumers: 5 }`, kind: "object", config: `{"producers":null,"consumers":5}`},
		"toJSON":      {source: `export default { name: "a", toJSON: () => undefined }`, kind: "object", functions: "toJSON", config: "null"},
		"always 2020": {source: `export default { name: new Date().toISOString(), topics: Math.random() === Math.random() }`, kind: "object", config: `{"name":"2020-01-01T00:00:00.000Z","topics":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := p.Describe(t.Context(), compileTest(t, test.source))
			if err != nil {
				t.Fatal(err)
			}
			if d.Kind != test.kind || strings.Join(d.Functions, " ") != test.functions || string(d.Config) != test.config {
				t.Errorf("got %s\n%v\n%s", d.Kind, d.Functions, d.Config)
			}
			for _, path := range d.Functions {
				if !d.HasFunction(path) || d.HasFunction(path+"x") {
					t.Errorf("HasFunction(%q)", path)
				}
			}
		})
	}
}

// 3.11.4: tools cannot be used, and there is a limit of time.
func TestDescribeEndsBadScripts(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	for source, want := range map[string][]error{
		`throw new Error("x")`: {&Thrown{Name: "Error"}},
		`export default { get name() { throw new RangeError("x") } }`:       {&Thrown{Name: "RangeError"}},
		`export default new Proxy({}, { ownKeys() { throw new Error() } })`: {&Thrown{Name: "Error"}},
		`export default { name: "x".repeat(5e6) }`:                          {ErrOutput},
		`const f = () => f(); f()`:                                          {ErrStack},
		`ctx.tools.a.b()`:                                                   {&Thrown{Name: "ReferenceError"}},
	} {
		if _, err := p.Describe(t.Context(), compileTest(t, source)); !isAny(err, want) {
			t.Errorf("%s: %v", source, err)
		}
	}
}

func TestDescribeIsLimited(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1, Heap: 4 << 20})
	if _, err := p.Describe(t.Context(), compileTest(t, `const a = []; for (;;) a.push({})`)); !errors.Is(err, ErrMemory) {
		t.Errorf("memory: %v", err)
	}
	_, err := p.Describe(t.Context(), compileTest(t, `for (;;) {}`))
	if limit, ok := errors.AsType[*LimitError](err); !ok || limit.Limit != LimitCPU || limit.Allowed != "5s" {
		t.Errorf("got %v", err)
	}
}
