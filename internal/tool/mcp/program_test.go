package mcp

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// The class of a tool is the worse of what its server and its operator say.
func TestToolsAreMethodsWithTheWorseClass(t *testing.T) {
	r := newRig(t)
	c := r.open(r.program("plain", "tools: {look: {class: mutation}, note: {class: read}, nonsense: {class: read}}"))
	classes := map[string]bool{}
	for _, m := range c.Methods() {
		classes[m.Name] = m.Mutation
		if m.Reconciles {
			t.Errorf("%s reconciles, and no MCP server can", m.Name)
		}
	}
	for name, mutation := range map[string]bool{
		"look": true, "say it/twice": false, "note": true, "key": true, "look-badly": false, "note-badly": true,
	} {
		if got, there := classes[name]; !there || got != mutation {
			t.Errorf("%s is there: %v, a mutation: %v; want %v", name, there, got, mutation)
		}
	}
	warnings := strings.Join(r.log.level(slog.LevelWarn), "")
	if !strings.Contains(warnings, `"tool":"note"`) || !strings.Contains(warnings, `"tool":"nonsense"`) || strings.Contains(warnings, `"tool":"look"`) {
		t.Errorf("the log warns of: %s", warnings)
	}
}

func TestResultIsStructuredContentOrTheListOfContents(t *testing.T) {
	r := newRig(t)
	c := r.open(r.program("plain"))
	for _, test := range []struct{ tool, arguments, want string }{
		{"look", `{"text":"a"}`, `{"saw":"a"}`},
		{"say it/twice", `{"text":"a"}`, `{"content":[{"type":"text","text":"a"},{"type":"text","text":"a"}],"text":"a\na"}`},
		{"note", ` {"text":"n"} `, `{"noted":"n"}`},
		{"key", `null`, `{"key":"key-1"}`},
		{"look", `{"text":"s3cret-key-value"}`, `{"saw":"[secret THE_KEY]"}`},
	} {
		if got := must(t, c, test.tool, test.arguments); got != test.want {
			t.Errorf("%s(%s) = %s; want %s", test.tool, test.arguments, got, test.want)
		}
	}
	if diff := cmp.Diff([]string{"n"}, r.done()); diff != "" {
		t.Error(diff)
	}
	answer, err := c.Reconcile(t.Context(), connector.Call{Method: "note", Key: "key-1"})
	if answer.State != connector.Later || err == nil {
		t.Errorf("Reconcile() = %v, %v", answer, err)
	}
}

// Context 3.5.7: what did not happen is stated only where it is known.
func TestFailedCallsAreClassedByWhatIsKnown(t *testing.T) {
	r := newRig(t)
	c := r.open(r.program("plain"))
	for _, test := range []struct {
		tool, arguments string
		class           pawl.Class
		code            string
		notApplied      bool
	}{
		{"look", `{"text":5}`, pawl.ClassLogic, "bad_arguments", true},
		{"look", `{}`, pawl.ClassLogic, "bad_arguments", true},
		{"look", `[1]`, pawl.ClassLogic, "bad_arguments", true},
		{"note", `{"text":"a","more":1}`, pawl.ClassLogic, "bad_arguments", true},
		{"note", `{"text":"` + strings.Repeat("x", largestArguments) + `"}`, pawl.ClassLogic, "bad_arguments", true},
		{"nobody", `{}`, pawl.ClassLogic, "unknown_method", true},
		{"look-badly", `{}`, pawl.ClassLogic, "tool_error", true},
		{"note-badly", `{}`, pawl.ClassIndeterminate, "tool_error", false},
		{"look-code", `{"code":-32602}`, pawl.ClassLogic, "bad_arguments", true},
		{"note-code", `{"code":-32602}`, pawl.ClassLogic, "bad_arguments", true},
		{"note-code", `{"code":-32601}`, pawl.ClassLogic, "unknown_method", true},
		{"look-code", `{"code":-32603}`, pawl.ClassLogic, "tool_error", true},
		{"note-code", `{"code":-32603}`, pawl.ClassIndeterminate, "tool_error", false},
		{"note-code", `{"code":-32000}`, pawl.ClassIndeterminate, "tool_error", false},
		{"note-code", `{"code":-32004}`, pawl.ClassIndeterminate, "server_ended", false}, // as the SDK says that it is closed
	} {
		_, fault := call(t.Context(), c, test.tool, test.arguments)
		if fault == nil || fault.Class != test.class || fault.Code != test.code || fault.NotApplied != test.notApplied {
			t.Errorf("%s(%.40s) = %+v; want %s %s, not applied %v", test.tool, test.arguments, fault, test.class, test.code, test.notApplied)
		}
		if strings.Contains(fault.Error(), "s3cret") {
			t.Errorf("%s tells a secret: %v", test.tool, fault)
		}
	}
	if done := r.done(); len(done) > 0 {
		t.Errorf("calls that were refused were made: %v", done)
	}
}

func TestMutationWithoutAKeyIsRefused(t *testing.T) {
	r := newRig(t)
	c := r.open(r.program("plain"))
	_, err := c.Call(t.Context(), connector.Call{Method: "note", Args: json.RawMessage(`{"text":"a"}`)})
	if err == nil || len(r.done()) > 0 {
		t.Errorf("Call() = %v, done %v", err, r.done())
	}
}

func TestAnswersHaveALimit(t *testing.T) {
	r := newRig(t)
	c := r.open(r.program("bulky"))
	must(t, c, "look", `{"bytes":2000000}`) // it is in the result twice
	_, fault := call(t.Context(), c, "look", `{"bytes":2200000}`)
	wantFault(t, fault, pawl.ClassLogic, "too_large", true)
	_, fault = call(t.Context(), c, "note", `{"bytes":2200000}`)
	wantFault(t, fault, pawl.ClassIndeterminate, "too_large", false)
	_, fault = call(t.Context(), c, "note", `{"bytes":17000000}`) // more than one message may have
	wantFault(t, fault, pawl.ClassIndeterminate, "too_large", false)
	must(t, c, "look", `{"bytes":1}`)
}

// The server gets what its definition lists, PATH and an empty home.
func TestEnvironmentOfAProgramIsScrubbed(t *testing.T) {
	t.Setenv("SOMEBODY_ELSES_KEY", "do-not-tell")
	r := newRig(t)
	c := r.open(r.program("plain"))
	type view struct {
		Environment []string
		Dir         string
	}
	look := func(c *Connection) (v view) {
		t.Helper()
		if err := json.Unmarshal([]byte(must(t, c, "environment", "")), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	got := look(c)
	var names []string
	home := ""
	for _, variable := range got.Environment {
		name, value, _ := strings.Cut(variable, "=")
		names = append(names, name)
		if name == "HOME" {
			home = value
		}
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"API_KEY", "GORACE", "HOME", "NOTES", "PATH", roleVariable}, names); diff != "" {
		t.Error(diff)
	}
	if entries, err := os.ReadDir(home); err != nil || len(entries) > 0 || home == os.Getenv("HOME") {
		t.Errorf("the home %s has %v, %v", home, entries, err)
	}
	if real, err := filepath.EvalSymlinks(r.dir); err != nil || got.Dir != real {
		t.Errorf("it runs in %s; want %s, %v", got.Dir, real, err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(home); !os.IsNotExist(err) {
		t.Errorf("the home is still there: %v", err)
	}
	if err := os.Mkdir(filepath.Join(r.dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if moved := look(r.open(r.program("plain", "dir: sub"))); !strings.HasSuffix(moved.Dir, "/sub") {
		t.Errorf("with dir it runs in %s", moved.Dir)
	}
}

// What a program says where nobody expects it neither harms nor floods.
func TestOutputOfAProgramGoesToTheLogInBounds(t *testing.T) {
	r := newRig(t)
	c := r.open(r.program("chatty"))
	must(t, c, "look", `{"text":"a"}`)
	debug := strings.Join(r.log.level(slog.LevelDebug), "")
	if !strings.Contains(debug, "hello from the server, my key is [secret THE_KEY]") || !strings.Contains(debug, "not a message") {
		t.Errorf("the log has: %.2000s", debug)
	}
	if lines := strings.Count(debug, "the MCP server says"); lines > mostLines+1 {
		t.Errorf("the log has %d lines", lines)
	}
	if len(debug) > 2*mostLines*longestLine || strings.Contains(r.log.String(), "s3cret") {
		t.Errorf("the log has %d bytes", len(debug))
	}
}
