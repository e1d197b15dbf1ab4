package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// deployed is the answer to a deploy.
func deployed(t *testing.T, name, what, previous string) fakeJSON {
	t.Helper()
	raw, err := json.Marshal(client.Deployment{Name: name, What: what, Version: "v", PreviousScript: client.NullString(previous)})
	if err != nil {
		t.Fatal(err)
	}
	return fakeJSON{200, string(raw)}
}

// apply runs apply in a folder with files.
func apply(t *testing.T, f *fake, files map[string]string, args ...string) result {
	t.Helper()
	c := f.call()
	c.dir = folder(t, files)
	return c.run(t, append([]string{"apply"}, args...)...)
}

func TestApplySaysWhatEachFileDid(t *testing.T) {
	files := map[string]string{"flows/a.workflow.ts": validScript("a"), "flows/deep/b.workflow.js": validScript("b"), "flows/c.workflow.ts": validScript("c"), "flows/notes.txt": "x"}
	f := newFake(t, map[string]fakeJSON{
		"PUT /api/v1/workflows/a": deployed(t, "a", "created", ""),
		"PUT /api/v1/workflows/b": deployed(t, "b", "updated", "old\n"),
		"PUT /api/v1/workflows/c": deployed(t, "c", "unchanged", validScript("c")),
	})
	r := apply(t, f, files, "-f", "flows/a.workflow.ts", "flows")
	r.expect(t, pawl.ExitDone)
	if want := "workflow a created\nworkflow c unchanged\nworkflow b updated\n"; r.stdout != want {
		t.Errorf("got:\n%s", r.stdout)
	}
	if want := "1 created, 1 updated, 1 unchanged.\n"; r.stderr != want {
		t.Errorf("stderr: %s", r.stderr)
	}
	var sent client.ScriptRequest
	if err := json.Unmarshal([]byte(f.sent()[0]), &sent); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(client.ScriptRequest{Script: validScript("a"), Filename: "a.workflow.ts"}, sent); diff != "" {
		t.Error(diff)
	}
}

func TestApplyShowsWhatChanges(t *testing.T) {
	was := strings.Replace(validScript("a"), "5m", "9m", 1)
	f := newFake(t, map[string]fakeJSON{"PUT /api/v1/workflows/a": deployed(t, "a", "updated", was)})
	files := map[string]string{"a.workflow.ts": validScript("a")}
	r := apply(t, f, files, "a.workflow.ts", "--dry-run")
	r.expect(t, pawl.ExitDone, "Dry run, nothing was changed: 1 updated.")
	for _, w := range []string{"workflow a updated (dry run)\n--- deployed/a\n+++ a.workflow.ts\n@@ -3,7 +3,7 @@\n", "\n-    poll: {", "\n+    poll: {"} {
		if !strings.Contains(r.stdout, w) {
			t.Errorf("lacks %q:\n%s", w, r.stdout)
		}
	}
	if got, err := patch(was, strings.TrimPrefix(r.stdout, "workflow a updated (dry run)\n")); err != nil || got != validScript("a") {
		t.Errorf("the diff does not apply: %v\n%s", err, got)
	}
	if !strings.Contains(f.sent()[0], `"dryRun":true`) {
		t.Errorf("sent %s", f.sent()[0])
	}
	if r := apply(t, f, files, "a.workflow.ts", "--diff"); !strings.Contains(r.stdout, "@@") {
		t.Errorf("--diff:\n%s", r.stdout)
	}
	if r := apply(t, f, files, "a.workflow.ts"); strings.Contains(r.stdout, "@@") {
		t.Errorf("a pipe gets a diff that nobody asked for:\n%s", r.stdout)
	}
	c := f.call()
	c.dir, c.terminal = folder(t, files), true
	if r := c.run(t, "apply", "a.workflow.ts"); !strings.Contains(r.stdout, "\x1b[32m+    poll") {
		t.Errorf("a terminal gets no coloured diff:\n%q", r.stdout)
	}
}

// a definition with faults changes nothing, and neither do those beside it.
func TestApplySendsNothingIfOneFileIsFaulty(t *testing.T) {
	f := newFake(t, nil)
	tests := map[string]struct {
		files map[string]string
		args  []string
		says  []string
	}{
		"script": {map[string]string{"a.workflow.ts": validScript("a"), "b.workflow.ts": "const b = ;"}, []string{"."},
			[]string{"b.workflow.ts:1:11: ", "nothing was applied, because 1 of 2 definitions cannot be"}},
		"hint": {map[string]string{"a.workflow.ts": strings.Replace(validScript("a"), `name: "a",`, "", 1)}, []string{"."},
			[]string{"a.workflow.ts:2:1: the workflow has no name\n  hint: add name:"}},
		"same name": {map[string]string{"a.workflow.ts": validScript("a"), "b.workflow.ts": validScript("a")}, []string{"."},
			[]string{`b.workflow.ts:3:3: workflow "a" is also defined in a.workflow.ts`}},
		"kind": {map[string]string{"a.workflow.ts": validScript("a"), "s.yaml": "# prices\nkind: sorce\nname: p\n"}, []string{"."},
			[]string{`s.yaml:2:7: this version has no kind "sorce". Did you mean source?`}},
		"source": {map[string]string{"a.workflow.ts": validScript("a"), "s.yaml": "# prices\nkind: source\nname: p\n"}, []string{"."},
			[]string{"s.yaml:2:1: url is missing"}},
		"connection": {map[string]string{"c.yaml": "kind: connection\nname: shop\n"}, []string{"-f", "c.yaml"},
			[]string{"c.yaml:1:1: a connection is not applied", "--connection-dir"}},
		"provider":  {map[string]string{"p.yml": "kind: \"provider\"\n"}, []string{"p.yml"}, []string{"--provider-dir"}},
		"no kind":   {map[string]string{"c.yaml": "name: x\n"}, []string{"c.yaml"}, []string{"c.yaml: the file defines nothing"}},
		"other":     {map[string]string{"c.txt": "x"}, []string{"c.txt"}, []string{"c.txt: the file is not a definition"}},
		"nothing":   {map[string]string{"c.txt": "x"}, []string{"."}, []string{"there is nothing to apply in ."}},
		"only yaml": {map[string]string{"c.yaml": "kind: executor\n"}, []string{"."}, []string{"c.yaml: left out", "there is nothing to apply in ."}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := apply(t, f, tt.files, tt.args...)
			r.expect(t, pawl.ExitFailed, tt.says...)
			if r.stdout != "" || f.requests() != "" {
				t.Errorf("said %s, asked %s", r.stdout, f.requests())
			}
		})
	}
	apply(t, f, nil, "absent").expect(t, pawl.ExitNotFound, "there is no absent")
}

func TestApplyLeavesWhatTheServerReadsItself(t *testing.T) {
	f := newFake(t, map[string]fakeJSON{"PUT /api/v1/workflows/a": deployed(t, "a", "created", "")})
	files := map[string]string{"a.workflow.ts": validScript("a"), "connections/shop.yaml": "kind: connection\n", "compose.yaml": "services: {}\n"}
	r := apply(t, f, files, ".")
	r.expect(t, pawl.ExitDone, "shop.yaml: left out; the server reads it from its own folders. Start the server with --connection-dir DIR.")
	if strings.Contains(r.stderr, "compose") {
		t.Errorf("stderr: %s", r.stderr)
	}
}

func TestApplyTakesStdin(t *testing.T) {
	f := newFake(t, map[string]fakeJSON{"PUT /api/v1/workflows/a": deployed(t, "a", "created", "")})
	c := f.call()
	c.stdin = validScript("a")
	r := c.run(t, "apply", "-f", "-", "--filename", "mine/a.workflow.js")
	r.expect(t, pawl.ExitDone)
	if r.stdout != "workflow a created\n" || !strings.Contains(f.sent()[0], `"filename":"a.workflow.js"`) {
		t.Errorf("said %s, sent %v", r.stdout, f.sent())
	}
	c.stdin = "("
	c.run(t, "apply", "-f", "-", "--filename", "a.workflow.ts").expect(t, pawl.ExitFailed, "a.workflow.ts:1:2: ")
}

func TestApplyTellsWhatTheServerRefuses(t *testing.T) {
	f := newFake(t, map[string]fakeJSON{
		"PUT /api/v1/workflows/a": deployed(t, "a", "created", ""),
		"PUT /api/v1/workflows/b": {422, `{"code":"invalid","detail":"The script has errors.","hint":"Add it.","errors":[{"pointer":"/script","message":"b.workflow.ts:3:5: no such tool","line":3,"column":5}]}`},
	})
	files := map[string]string{"a.workflow.ts": validScript("a"), "b.workflow.ts": validScript("b"), "c.workflow.ts": validScript("c")}
	r := apply(t, f, files, ".")
	r.expect(t, pawl.ExitFailed, "1 created.\nerror: apply b.workflow.ts: The script has errors.\n  b.workflow.ts:3:5: no such tool\nhint: Add it.")
	if r.stdout != "workflow a created\n" || strings.Contains(f.requests(), "/c") {
		t.Errorf("said %s, asked %s", r.stdout, f.requests())
	}
	f.answer["PUT /api/v1/workflows/a"] = fakeJSON{403, "forbidden"}
	apply(t, f, files, ".").expect(t, pawl.ExitNotAllowed, "apply a.workflow.ts: ")
	c := call{dir: folder(t, files)}
	c.run(t, "apply", ".", "--server", "http://127.0.0.1:1").expect(t, pawl.ExitUnreachable)
}

func TestApplyAsJSON(t *testing.T) {
	f := newFake(t, map[string]fakeJSON{
		"PUT /api/v1/workflows/a": deployed(t, "a", "updated", "old\n"),
		"PUT /api/v1/workflows/b": deployed(t, "b", "created", ""),
	})
	r := apply(t, f, map[string]string{"a.workflow.ts": validScript("a"), "b.workflow.ts": validScript("b")}, ".", "-o", "json", "--diff")
	r.expect(t, pawl.ExitDone)
	var list struct{ Items []client.Deployment }
	if err := json.Unmarshal([]byte(r.stdout), &list); err != nil {
		t.Fatalf("%v:\n%s", err, r.stdout)
	}
	want := []client.Deployment{{Name: "a", What: "updated", Version: "v", PreviousScript: "old\n"}, {Name: "b", What: "created", Version: "v"}}
	if diff := cmp.Diff(want, list.Items); diff != "" {
		t.Error(diff)
	}
}

func TestApplyWarnsAndGoesOn(t *testing.T) {
	f := newFake(t, map[string]fakeJSON{"PUT /api/v1/workflows/x": deployed(t, "x", "created", "")})
	source := strings.Replace(validScript("x"), `name: "x",`, fmt.Sprintf("name: %q, name: %q,", "y", "x"), 1)
	apply(t, f, map[string]string{"x.workflow.ts": source}, ".").expect(t, pawl.ExitDone, "x.workflow.ts:3:14: warning: ")
}

// What is written takes the place of what the diff was made from, and of nothing
// else.
func TestApplyDoesNotOverwriteWhatItDidNotShow(t *testing.T) {
	for name, tt := range map[string]struct{ tag, header string }{
		"changed": {`"v1"`, `If-Match: "v1"`},
		"new":     {"", "If-None-Match: *"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				dry := strings.Contains(string(body), `"dryRun":true`)
				for _, header := range []string{"If-Match", "If-None-Match"} {
					if value := r.Header.Get(header); value != "" {
						asked = append(asked, header+": "+value)
					}
				}
				if !dry { // somebody was faster
					problem(w, http.StatusPreconditionFailed, "precondition_failed", "the workflow was changed since you read it")
					return
				}
				if tt.tag != "" {
					w.Header().Set("ETag", tt.tag)
				}
				_, _ = io.WriteString(w, `{"name":"a","what":"updated","dryRun":true,"warnings":[]}`)
			}))
			defer s.Close()
			dir := folder(t, map[string]string{"a.workflow.ts": validScript("a")})
			r := call{dir: dir, env: map[string]string{"PAWL_URL": s.URL, "PAWL_TOKEN": "x"}}.run(t, "apply", "-f", "a.workflow.ts", "--diff")
			r.expect(t, pawl.ExitRefused, "was changed since you read it")
			if strings.Join(asked, ",") != tt.header || strings.Contains(r.stdout, "updated") {
				t.Errorf("sent %v, wrote %q", asked, r.stdout)
			}
		})
	}
}
