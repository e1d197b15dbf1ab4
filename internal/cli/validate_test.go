package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
)

// validScript is a workflow without faults.
func validScript(name string) string {
	return fmt.Sprintf(`import { workflow } from "pawl";
export default workflow({
  name: %q,
  topics: { "mail.received": {} },
  producers: {
    poll: { publishes: ["mail.received"], schedule: { interval: "5m" }, async handler() {} },
    slow: { publishes: ["mail.received"], schedule: { cron: "0 9 * * *" }, async handler() {} },
  },
  consumers: { read: { subscribe: ["mail.received"], prepare: () => ({ reservations: [], data: {} }) } },
});
`, name)
}

func TestValidateTellsWhatIsRight(t *testing.T) {
	dir := folder(t, map[string]string{
		"b.workflow.ts": validScript("b"), "flows/deep/a.workflow.js": validScript("a"), "notes.txt": "x", "flows/other.ts": "(",
		".hidden/c.workflow.ts": "(", "node_modules/p/d.workflow.ts": "(", ".e.workflow.ts": "(",
	})
	r := call{dir: dir}.run(t, "validate", ".", "b.workflow.ts")
	r.expect(t, pawl.ExitDone)
	want := "b.workflow.ts: ok (workflow b, 2 producers, 1 consumer)\n" + filepath.FromSlash("flows/deep/a.workflow.js") + ": ok (workflow a, 2 producers, 1 consumer)\n"
	if r.stdout != want || r.stderr != "" {
		t.Errorf("got:\n%s%s", r.stdout, r.stderr)
	}
}

// A fault is told as compilers do, whatever found it: the compiler, the script
// itself, or the rules.
func TestValidateTellsFaultsWithTheirPlace(t *testing.T) {
	for name, test := range map[string]struct{ source, want string }{
		"syntax":   {"const a = 1;\nconst b = ;\n", "w.workflow.ts:2:11: Unexpected \";\"\nerror: the definition has errors\n"},
		"import":   {`import fs from "fs"; fs`, "w.workflow.ts:1:16: \"fs\" cannot be imported\n  hint: a script can import from \"pawl\" and from nothing else; put the code into w.workflow.ts\nerror: the definition has errors\n"},
		"throws":   {"export default {};\n  throw new Error('no');", "w.workflow.ts:2:13: Error: no\nerror: the definition has errors\n"},
		"no name":  {strings.Replace(validScript("x"), `name: "x",`, "", 1), "w.workflow.ts:2:1: the workflow has no name\n  hint: add name: \"my-workflow\"\nerror: the definition has errors\n"},
		"interval": {strings.Replace(validScript("x"), "5m", "0m", 1), `w.workflow.ts:6:55: producer "poll": interval "0m" must be longer than zero`},
		"all": {strings.NewReplacer(`["mail.received"], prepare`, `["mail.recieved"], prepare`, "handler", "hander").Replace(validScript("x")),
			`w.workflow.ts:6:5: producer "poll": handler is missing
  hint: add async handler(ctx, state) { ... }
w.workflow.ts:6:79: producer "poll": unknown field "hander"
  hint: did you mean "handler"?
w.workflow.ts:7:5: producer "slow": handler is missing
  hint: add async handler(ctx, state) { ... }
w.workflow.ts:7:82: producer "slow": unknown field "hander"
  hint: did you mean "handler"?
w.workflow.ts:9:36: consumer "read": subscribe names topic "mail.recieved", which is not declared
  hint: did you mean "mail.received"?
error: the definition has errors
`},
		"empty":     {"", "w.workflow.ts:1:1: the script has no default export"},
		"too large": {"//" + strings.Repeat("x", 600<<10), "w.workflow.ts: the script has 614402 bytes; the limit is 512 KiB\n  hint: split it into several workflows"},
	} {
		t.Run(name, func(t *testing.T) {
			r := call{dir: folder(t, map[string]string{"w.workflow.ts": test.source})}.run(t, "validate", "w.workflow.ts")
			r.expect(t, pawl.ExitFailed)
			if r.stdout != "" || !strings.HasPrefix(r.stderr, test.want) {
				t.Errorf("got:\n%s%s\nwant:\n%s", r.stdout, r.stderr, test.want)
			}
		})
	}
}

func TestValidateWarnsAndPasses(t *testing.T) {
	source := strings.Replace(validScript("x"), `name: "x",`, `name: "y", name: "x",`, 1)
	r := call{dir: folder(t, map[string]string{"w.workflow.ts": source})}.run(t, "validate", ".")
	r.expect(t, pawl.ExitDone, `w.workflow.ts:3:14: warning: Duplicate key "name" in object literal`)
	if !strings.HasPrefix(r.stdout, "w.workflow.ts: ok") {
		t.Errorf("got:\n%s", r.stdout)
	}
}

func TestValidateRefusesTwoWorkflowsOfOneName(t *testing.T) {
	dir := folder(t, map[string]string{"a.workflow.ts": validScript("same"), "b.workflow.ts": validScript("same"), "c.workflow.ts": validScript("other")})
	r := call{dir: dir}.run(t, "validate", ".")
	r.expect(t, pawl.ExitFailed, "b.workflow.ts:3:3: workflow \"same\" is also defined in a.workflow.ts\n  hint: give one of them another name\nerror: 1 of 3 definitions have errors")
	if strings.Count(r.stdout, ": ok (") != 2 {
		t.Errorf("got:\n%s", r.stdout)
	}
}

func TestValidateAsJSON(t *testing.T) {
	dir := folder(t, map[string]string{"a.workflow.ts": validScript("a"), "b.workflow.ts": "\n let = ;", "c.txt": ""})
	r := call{dir: dir}.run(t, "validate", "a.workflow.ts", "b.workflow.ts", "c.txt", "-o", "json")
	r.expect(t, pawl.ExitFailed, "error: 2 of 3 definitions have errors")
	var got any
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
		t.Fatal(err)
	}
	item := func(file, kind, name string, faults ...any) any {
		return map[string]any{"file": file, "kind": kind, "name": name, "ok": len(faults) == 0, "errors": append([]any{}, faults...)}
	}
	want := map[string]any{"items": []any{
		item("a.workflow.ts", "workflow", "a"),
		item("b.workflow.ts", "workflow", "", map[string]any{"line": 2.0, "column": 8.0, "message": `Unexpected ";"`, "hint": ""}),
		item("c.txt", "", "", map[string]any{"line": 0.0, "column": 0.0, "message": "the file is not a definition", "hint": definitionHint}),
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestValidateNeedsSomethingToCheck(t *testing.T) {
	dir := folder(t, map[string]string{"empty/x.txt": "", "x.yaml": "name: x\n", "a.workflow.ts": validScript("a")})
	c := call{dir: dir}
	c.run(t, "validate").expect(t, pawl.ExitUsage, "Usage: pawl validate PATH...")
	c.run(t, "validate", "a.workflow.ts", "absent.workflow.ts").expect(t, pawl.ExitNotFound, "there is no absent.workflow.ts")
	c.run(t, "validate", "empty").expect(t, pawl.ExitFailed, "there is no definition in empty", "hint: "+definitionHint)
	c.run(t, "validate", "x.yaml").expect(t, pawl.ExitFailed, "x.yaml: not checked", "there is no definition in x.yaml")
	c.run(t, "validate", "empty/x.txt").expect(t, pawl.ExitFailed, "x.txt: the file is not a definition")
	if err := os.Mkdir(filepath.Join(dir, "folder.workflow.ts"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "empty", "gone.workflow.ts")); err != nil {
		t.Fatal(err)
	}
	c.run(t, "validate", "empty").expect(t, pawl.ExitFailed, "gone.workflow.ts: the file cannot be read: ")
}

func TestValidateFollowsALinkToAFolder(t *testing.T) {
	dir := folder(t, map[string]string{"real/a.workflow.ts": validScript("a")})
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	r := call{dir: dir}.run(t, "validate", "link")
	r.expect(t, pawl.ExitDone)
	if !strings.HasPrefix(r.stdout, filepath.Join("link", "a.workflow.ts")+": ok") {
		t.Errorf("got:\n%s", r.stdout)
	}
}

func TestValidateColoursOnATerminal(t *testing.T) {
	dir := folder(t, map[string]string{"a.workflow.ts": validScript("a"), "b.workflow.ts": "("})
	const escape = "\x1b["
	if r := (call{dir: dir, terminal: true}).run(t, "validate", "."); !strings.Contains(r.stdout, escape) || !strings.Contains(r.stderr, escape) {
		t.Errorf("no colour on a terminal:\n%s%s", r.stdout, r.stderr)
	}
	if r := (call{dir: dir}).run(t, "validate", "."); strings.Contains(r.stdout+r.stderr, escape) {
		t.Errorf("colour in a pipe:\n%s%s", r.stdout, r.stderr)
	}
}

// Many files share one pool, and their results keep their order.
func TestValidateChecksManyFiles(t *testing.T) {
	files := map[string]string{}
	var want strings.Builder
	for i := range 40 {
		name := fmt.Sprintf("w%02d", i)
		files[name+".workflow.ts"] = validScript(name)
		fmt.Fprintf(&want, "%s.workflow.ts: ok (workflow %s, 2 producers, 1 consumer)\n", name, name)
	}
	r := call{dir: folder(t, files)}.run(t, "validate", ".")
	r.expect(t, pawl.ExitDone)
	if diff := cmp.Diff(want.String(), r.stdout); diff != "" {
		t.Error(diff)
	}
}

func TestValidateChecksConnections(t *testing.T) {
	dir := folder(t, map[string]string{
		"good/outbox.yaml": "kind: connection\nname: outbox\ntype: file\nroot: ./out-${WHERE}\n",
		"good/compose.yml": "services: {}\n",
		"bad/a.yaml":       "# two\nkind: connection\nname: outbox\ntype: fiel\nroot: ./out\n---\nkind: connection\nname: b\ntype: file\nroot: ./out\n",
		"bad/b.yaml":       "kind: connection\nname: c\ntype: file\nroot: ./out\n",
	})
	c := call{dir: dir, env: map[string]string{"WHERE": "side"}}
	r := c.run(t, "validate", "good")
	r.expect(t, pawl.ExitDone, "compose.yml: not checked, because it has no kind")
	if want := filepath.FromSlash("good/outbox.yaml") + ": ok (connection outbox, type file)\n"; r.stdout != want {
		t.Errorf("got:\n%s", r.stdout)
	}
	c.env = nil
	if r := c.run(t, "validate", "good"); r.code != pawl.ExitDone || !strings.Contains(r.stderr, "outbox.yaml: warning: the environment variable WHERE is not set here") {
		t.Errorf("without its variable: %d\n%s", r.code, r.stderr)
	}
	r = c.run(t, "validate", "bad")
	r.expect(t, pawl.ExitFailed, filepath.FromSlash("bad/a.yaml")+":4:7: unknown type", "1 of 2 definitions have errors")
	if want := filepath.FromSlash("bad/b.yaml") + ": ok (connection c, type file)\n"; r.stdout != want {
		t.Errorf("got:\n%s", r.stdout)
	}
}
