package executor

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
)

// folder makes a folder with files of these names and texts.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func testEnv(t *testing.T) Env {
	t.Helper()
	allow, err := outbound.ParsePrefixes([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	client, err := outbound.New(outbound.Config{AllowPrivate: allow})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return Env{HTTP: client, Getenv: func(name string) string { return map[string]string{"LANGGRAPH_KEY": "lsv2-abcdef"}[name] }}
}

// surface, Executor: the definitions as they are printed there.
const definitions = `kind: executor
name: langgraph
type: langgraph                 # a LangGraph server, self-hosted or platform
url: http://127.0.0.1:2024
headers: {x-api-key: "${LANGGRAPH_KEY}"}
graphs: {poet: {assistant: poet}}     # absent: the graph name is the assistant id
---
---
kind: executor
name: http
type: http                      # anything that answers one POST
graphs: {poet: {url: "https://agents.example.com/poet", timeout: 5m}}
---
kind: executor
name: exec
type: exec
graphs: {poet: {command: [sh, -c, 'echo {}'], timeout: 4m}}
---
kind: executor
name: open
type: langgraph
url: file:url
---
kind: connection
name: outbox
type: nobody-knows
`

func TestLoadFindsExecutors(t *testing.T) {
	dir := folder(t, map[string]string{"a.yaml": definitions, "url": "https://graphs.example.com/base\n", "b.yml": "kind: provider\ndomain: x\n", ".c.yaml": "{", "d.txt": "{"})
	env := testEnv(t)
	env.Workflow = func(context.Context, string, Run, func(Event) error) (Result, error) { return Result{}, nil }
	set, err := Load(dir, env)
	if err != nil {
		t.Fatal(err, fieldsOf(err))
	}
	defer set.Close()
	file := filepath.Join(dir, "a.yaml")
	want := []Info{
		{"exec", "exec", file, []GraphInfo{{"poet", 4 * time.Minute}}},
		{"http", "http", file, []GraphInfo{{"poet", 5 * time.Minute}}},
		{"langgraph", "langgraph", file, []GraphInfo{{"poet", time.Hour}}},
		{"open", "langgraph", file, nil},
		{"workflow", "workflow", "", nil},
	}
	if diff := cmp.Diff(want, set.Describe()); diff != "" {
		t.Error(diff)
	}
	for _, id := range []string{"exec:poet", "http:poet", "langgraph:poet", "open:anything", "workflow:mail-to-sheet"} {
		executor, name, err := set.Lookup(id)
		if err != nil || executor == nil || name != strings.Split(id, ":")[1] {
			t.Errorf("%s: %v, %s, %v", id, executor, name, err)
		}
	}
	for id, hint := range map[string]string{
		"langgraf:poet": "Did you mean langgraph?", "nobody:poet": "The executors are exec, http, langgraph, open, workflow.",
		"http:poets": "Did you mean poet?", "http:painter": "Its graphs are poet.",
	} {
		_, _, err := set.Lookup(id)
		e, ok := errors.AsType[*pawl.Error](err)
		if !ok || !errors.Is(err, pawl.ErrNotFound) || e.Hint != hint {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, _, err := set.Lookup("poet"); !errors.Is(err, pawl.ErrInvalid) {
		t.Error(err)
	}
	if got := set.Redact("x-api-key: lsv2-abcdef"); got != "x-api-key: [secret LANGGRAPH_KEY]" {
		t.Error(got)
	}
}

func TestNothingIsConfigured(t *testing.T) {
	set, err := Load("", Env{})
	if err != nil || set.Describe() != nil {
		t.Fatal(set, err)
	}
	for _, id := range []string{"workflow:x", "exec:x"} {
		if _, _, err := set.Lookup(id); !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func fieldsOf(err error) []string {
	e, _ := errors.AsType[*pawl.Error](err)
	var fields []string
	for _, f := range e.Fields {
		fields = append(fields, f.String())
	}
	return fields
}

func TestLoadTellsEveryFault(t *testing.T) {
	dir := folder(t, map[string]string{
		"a.yaml": "# first\nkind: executor\nname: one\ntype: htp\n---\nkind: executor\nname: workflow\ntype: http\ngraphs: {a: {url: 'http://x', tiemout: 5m}}\n" +
			"---\nkind: executor\ntype: langgraph\nurl: ${NONE}\n---\nkind: executor\nname: 9x\ntype: exec\ngraphs: {a: {command: [sh]}}\n",
		"b.yaml": "kind: executor\nname: two\ntype: langgraph\nurl: http://x\n---\nkind: executor\nname: two\ntype: langgraph\nurl: http://x\n---\n- list\n---\nname: x\n",
		"c.yaml": "kind: [\n", "d.yaml": "\xff", "e.yaml": strings.Repeat("# long\n", 40000),
	})
	_, err := Load(dir, testEnv(t))
	if !errors.Is(err, pawl.ErrInvalid) {
		t.Fatal(err)
	}
	var got []string
	for _, field := range fieldsOf(err) {
		got = append(got, strings.ReplaceAll(field, dir+string(filepath.Separator), ""))
	}
	want := []string{
		`a.yaml:4:7: unknown type "htp". Did you mean http?`,
		"a.yaml:7:7: the name workflow belongs to the workflows of this server",
		`a.yaml:9:31: unknown field "tiemout". Did you mean timeout?`,
		"a.yaml:11:1: name is missing",
		"a.yaml:13:6: url: the environment variable NONE is not set",
		`a.yaml:16:7: "9x" is not a name: it must begin with a letter and have letters, digits, _ and - only, at most 64`,
		"b.yaml:7:7: the executor two is already defined at b.yaml:2:7",
		"b.yaml:11:1: a definition is a list of fields and values, such as kind: source",
		"b.yaml:13:1: kind is missing: it says what is defined, such as kind: source",
	}
	if len(got) != len(want)+3 {
		t.Fatalf("%d faults: %s", len(got), strings.Join(got, "\n"))
	}
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Error(diff)
	}
	for i, place := range []string{"c.yaml:1:", "d.yaml: the file is not UTF-8", "e.yaml: the file cannot be read: it has more than"} {
		if !strings.HasPrefix(got[len(want)+i], place) {
			t.Errorf("%s is not at %s", got[len(want)+i], place)
		}
	}
	if _, err := Load(filepath.Join(dir, "nowhere"), testEnv(t)); !errors.Is(err, pawl.ErrInvalid) {
		t.Error(err)
	}
}

// context 3.20: secrets do not come back in what is recorded.
func TestSecretsDoNotComeBack(t *testing.T) {
	answer := `{"ok":true,"output":{"key":"lsv2-abcdef"},"traceId":"lsv2-abcdef","usage":3}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != "lsv2-abcdef" {
			t.Error("the key is not sent")
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	dir := folder(t, map[string]string{"a.yaml": "kind: executor\nname: http\ntype: http\nheaders: {x-api-key: '${LANGGRAPH_KEY}'}\ngraphs: {poet: {url: '" + server.URL + "'}}\n"})
	set, err := Load(dir, testEnv(t))
	if err != nil {
		t.Fatal(fieldsOf(err))
	}
	poet, _, err := set.Lookup("http:poet")
	if err != nil {
		t.Fatal(err)
	}
	run := func() Result {
		t.Helper()
		result, err := poet.Run(t.Context(), Run{RunID: "r1", Attempt: 1, GraphID: "http:poet", Key: "k"}, func(Event) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	if result := run(); !result.OK || string(result.Output) != `{"key":"[secret LANGGRAPH_KEY]"}` || result.TraceID != "[secret LANGGRAPH_KEY]" || result.Interrupt != nil {
		t.Errorf("%+v, %s", result, result.Output)
	}
	answer = `{"ok":false,"error":{"message":"lsv2-abcdef is wrong"}}`
	if result := run(); result.Message != "[secret LANGGRAPH_KEY] is wrong" || result.Output != nil {
		t.Errorf("%+v", result)
	}
}

func TestWorkflowsAreGraphs(t *testing.T) {
	begun := make(chan struct{})
	env := Env{Workflow: func(ctx context.Context, name string, r Run, emit func(Event) error) (Result, error) {
		switch name {
		case "quick":
			return Result{OK: true, Output: r.Input}, emit(Event{Kind: KindProgress, Text: "done"})
		case "broken":
			return Result{}, io.ErrUnexpectedEOF
		}
		close(begun)
		<-ctx.Done()
		return Result{}, ctx.Err()
	}}
	set, err := Load("", env)
	if err != nil {
		t.Fatal(err)
	}
	run := func(name string) (Result, error) {
		executor, _, err := set.Lookup("workflow:" + name)
		if err != nil {
			t.Fatal(err)
		}
		return executor.Run(t.Context(), Run{RunID: name, Input: json.RawMessage(`1`)}, func(Event) error { return nil })
	}
	if result, err := run("quick"); err != nil || !result.OK || string(result.Output) != "1" {
		t.Errorf("%+v, %v", result, err)
	}
	if _, err := run("broken"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	go func() {
		<-begun
		executor, _, _ := set.Lookup("workflow:slow")
		_ = executor.Cancel(context.Background(), Run{RunID: "slow"})
	}()
	if result, err := run("slow"); err != nil || result.Code != "aborted" {
		t.Errorf("%+v, %v", result, err)
	}
}
