package script

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl"
)

func TestCompileTranslatesTypeScript(t *testing.T) {
	source := `
import { workflow, consumer, producer, type Event } from "pawl";
enum Colour { Red = "red" }
abstract class Base<T> { constructor(protected readonly value: T) {} abstract get(): T }
class Box extends Base<string> { #n = 1; get() { return this.value as string + this.#n } }
const handler = async (ctx: any, state?: { cursor?: string }): Promise<string> => {
  const box = new Box(state?.cursor ?? Colour.Red)!;
  return box.get() satisfies string;
};
export default workflow({ producers: { p: producer({ handler }) }, consumers: { c: consumer({}) } } as any);
`
	p := newTestPool(t, Config{Workers: 1})
	result, err := p.Run(t.Context(), Request{Program: compileTest(t, source), Handler: handlerPath}, nil, Limits{})
	if err != nil || string(result.Value) != `"red1"` {
		t.Errorf("got %s, %v", result.Value, err)
	}
}

func TestFaultsHavePlaceAndHint(t *testing.T) {
	for name, test := range map[string]struct {
		source string
		want   []string // of the first fault, in its text and hint
	}{
		"syntax":            {"const a = 1;\nconst b = ;\n", []string{"x.ts:2:11:", `Unexpected ";"`}},
		"node module":       {"export const a = 1;\n  import fs from \"fs\";\nfs;", []string{"x.ts:2:18:", `"fs" cannot be imported`, `from "pawl" and from nothing else`}},
		"file":              {`import x from "./other"; x`, []string{"x.ts:1:15:", `"./other" cannot be imported`}},
		"data":              {`import x from "data:text/javascript,1"; x`, []string{"cannot be imported"}},
		"url":               {`import x from "https://example.com/x.js"; x`, []string{"cannot be imported"}},
		"inside pawl":       {`import x from "pawl/inner"; x`, []string{"cannot be imported"}},
		"re-export":         {`export * from "fs"`, []string{"x.ts:1:15:", "cannot be imported"}},
		"dynamic":           {`const x = await_(); async function await_() { return import("fs") }`, []string{"cannot be imported"}},
		"require":           {`const fs = require("fs")`, []string{`"fs" cannot be imported`}},
		"require pawl":      {`const fs = require("pawl")`, []string{"cannot be imported"}},
		"top-level await":   {"export default {};\nawait 1;", []string{"x.ts:2:1:", "Top-level await"}},
		"unknown export":    {`import { flow } from "pawl"; flow()`, []string{"x.ts:1:10:", `"flow"`}},
		"columns in UTF-16": {`const s = "😀é"; const = 1`, []string{"x.ts:1:24:"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compile("x.ts", test.source)
			faults, ok := errors.AsType[Diagnostics](err)
			if !ok || len(faults) == 0 || !errors.Is(err, pawl.ErrInvalid) {
				t.Fatalf("got %v", err)
			}
			got := faults[0].String() + " | " + faults[0].Hint
			for _, want := range test.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not in %q", want, got)
				}
			}
		})
	}
}

func TestCompileReadsNoFiles(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("tsconfig.json", `{"compilerOptions":{"target":"es5","jsx":"react","paths":{"pawl":["./mine.ts"]}}}`)
	write("mine.ts", `export const workflow = () => "mine"`)
	first, err := Compile(filepath.Join(dir, "x.ts"), `import { workflow } from "pawl"; export default workflow({ a: globalThis.name ?? 2 })`)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(first.JavaScript(), "mine") || !strings.Contains(first.JavaScript(), "??") {
		t.Errorf("a file changed the outcome:\n%s", first.JavaScript())
	}
}

func TestSourceOverTheLimitIsRefused(t *testing.T) {
	_, err := Compile("x.ts", "//"+strings.Repeat("x", MaxSource))
	if !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), "512 KiB") {
		t.Errorf("got %v", err)
	}
	p := newTestPool(t, Config{})
	if _, err := p.Compile(t.Context(), "x.ts", "//"+strings.Repeat("x", MaxSource)); !errors.Is(err, pawl.ErrInvalid) {
		t.Errorf("the pool: %v", err)
	}
}

// a version is a hash of the content.
func TestVersionIsOfTheContent(t *testing.T) {
	base := version("a.workflow.ts", "export default 1")
	for name, test := range map[string]struct {
		file, source string
		same         bool
	}{
		"same":         {"a.workflow.ts", "export default 1", true},
		"other name":   {"b.workflow.ts", "export default 1", true},
		"other text":   {"a.workflow.ts", "export default 2", false},
		"other syntax": {"a.workflow.js", "export default 1", false},
	} {
		if same := version(test.file, test.source) == base; same != test.same {
			t.Errorf("%s: same version is %v", name, same)
		}
	}
}

func TestToolchainIsThatOfTheModule(t *testing.T) {
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for module, name := range map[string]string{"github.com/evanw/esbuild": "esbuild", "modernc.org/libquickjs": "libquickjs"} {
		_, rest, _ := strings.Cut(string(text), module+" v")
		version, _, _ := strings.Cut(rest, "\n")
		version, _, _ = strings.Cut(version, " ")
		if want := name + "/" + version; version == "" || !strings.Contains(toolchain+" libquickjs/"+quickVersion+" ", want+" ") {
			t.Errorf("toolchain %q lacks %q: change it, so that programs get a new version", toolchain, want)
		}
	}
}

func TestPoolCompilesAsTheFunctionDoes(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	source := "import { workflow } from \"pawl\";\nexport default workflow({ name: 'é' });\nexport const nan = typeof x == 'nil';"
	want, err := Compile("a/b.ts", source)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Compile(t.Context(), "a/b.ts", source)
	if err != nil {
		t.Fatal(err)
	}
	if got.Version != want.Version || got.JavaScript() != want.JavaScript() || string(got.SourceMap()) != string(want.SourceMap()) {
		t.Errorf("got\n%s\nwant\n%s", got.JavaScript(), want.JavaScript())
	}
	if len(got.Warnings) != 1 || got.Warnings[0] != want.Warnings[0] || got.Warnings[0].Line != 3 {
		t.Errorf("warnings %v, want %v", got.Warnings, want.Warnings)
	}
	_, err = p.Compile(t.Context(), "a/b.ts", "const = 1")
	if faults, ok := errors.AsType[Diagnostics](err); !ok || faults[0].String() != `a/b.ts:1:7: Expected identifier but found "="` {
		t.Errorf("got %v", err)
	}
}

func TestSourceThatBringsTheCompilerDownIsAFault(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	for name, source := range map[string]string{
		"brackets": strings.Repeat("[", 500_000),
		"negation": strings.Repeat("!", 500_000) + "1",
		"arrows":   strings.Repeat("a=>", 150_000) + "1",
	} {
		_, err := p.Compile(t.Context(), "deep.ts", source)
		if !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := valueOf(t, p, "return 1", nil); got != "1" {
		t.Errorf("afterwards: %s", got)
	}
}

func TestExamplesCompileAndDeclareWhatTheySay(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	for file, functions := range map[string]string{
		"mail-to-sheet.workflow.ts": "producers.pollMail.handler consumers.addRow.prepare consumers.addRow.mutate consumers.addRow.next",
		"digest.workflow.ts":        "producers.collect.handler consumers.digest.prepare consumers.digest.mutate consumers.digest.next",
	} {
		source, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		program, err := p.Compile(t.Context(), file, string(source))
		if err != nil {
			t.Fatal(err)
		}
		d, err := p.Describe(t.Context(), program)
		if err != nil || strings.Join(d.Functions, " ") != functions {
			t.Errorf("%s: %v %v", file, d.Functions, err)
		}
	}
}

func TestTypesAreSyntaxThatCompiles(t *testing.T) {
	if !strings.Contains(Types(), `declare module "pawl"`) {
		t.Fatal("the types are not those of the module")
	}
	// Every name that the module exports has a type, and the file parses.
	if _, err := Compile("pawl.d.ts", Types()); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"workflow", "producer", "consumer"} {
		if !strings.Contains(Types(), "export function "+name+"<") || !strings.Contains(moduleSource, " as "+name) {
			t.Errorf("%s is in the module or in the types alone", name)
		}
	}
}
