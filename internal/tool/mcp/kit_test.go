package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawlrun/pawl"
	document "github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// roleVariable makes the test binary a server instead.
const roleVariable = "PAWL_TEST_MCP_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		beServer(role)
		return
	}
	goleak.VerifyTestMain(m)
}

// rig is a connection with the folder that its definition is in.
type rig struct {
	t   *testing.T
	dir string
	log *logBook
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return &rig{t: t, dir: t.TempDir(), log: &logBook{}}
}

// program is a definition whose server is the test binary in a role.
func (r *rig) program(role string, more ...string) string {
	r.t.Helper()
	binary, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	lines := append([]string{
		"kind: connection", "name: it", "type: mcp", fmt.Sprintf("command: [%q, -test.run=^$]", binary), // no tests within tests, whatever happens to the role
		"env: {" + roleVariable + ": " + role + ", NOTES: " + r.notes() + ", GORACE: atexit_sleep_ms=0, API_KEY: \"${THE_KEY}\"}",
	}, more...)
	return strings.Join(lines, "\n")
}

// notes is the file that the server writes down in what it did.
func (r *rig) notes() string { return filepath.Join(r.dir, "notes") }

// done are the lines of that file.
func (r *rig) done() []string {
	text, err := os.ReadFile(r.notes())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// settings parses a definition.
func (r *rig) settings(text string, checkOnly bool) *connector.Settings {
	r.t.Helper()
	doc, err := document.ReadSettings(filepath.Join(r.dir, "it.yaml"), []byte(text))
	if err != nil {
		r.t.Fatal(err)
	}
	client, err := outbound.New(outbound.Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(client.Close)
	env := connector.Env{
		HTTP: client, CheckOnly: checkOnly, Log: slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Getenv: func(name string) string { return map[string]string{"THE_KEY": "s3cret-key-value"}[name] },
	}
	return connector.NewSettings(doc, env)
}

// open makes the connection and starts it. It is closed when the test ends.
func (r *rig) open(definition string) *Connection {
	r.t.Helper()
	s := r.settings(definition, false)
	made, ok := New(s)
	if !ok {
		r.t.Fatalf("the definition is not valid: %v", s.Fields())
	}
	c := made.(*Connection)
	r.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			r.t.Errorf("Close() = %v", err)
		}
	})
	c.Start()
	return c
}

// call calls a tool, with a key if it is a mutation.
func call(ctx context.Context, c *Connection, tool, arguments string) (json.RawMessage, *connector.Error) {
	made := connector.Call{Method: tool, Args: json.RawMessage(arguments)}
	for _, m := range c.Methods() {
		if m.Name == tool && m.Mutation {
			made.Key = "key-1"
		}
	}
	result, err := c.Call(ctx, made)
	if err == nil {
		return result, nil
	}
	fault, ok := errors.AsType[*connector.Error](err)
	if !ok {
		fault = &connector.Error{Class: "not a connector.Error", Msg: err.Error()}
	}
	return result, fault
}

// must is a call that works.
func must(t *testing.T, c *Connection, tool, arguments string) string {
	t.Helper()
	result, fault := call(t.Context(), c, tool, arguments)
	if fault != nil {
		t.Fatalf("%s(%s) = %+v", tool, arguments, fault)
	}
	return string(result)
}

// wantFault checks what is certain about a failed call.
func wantFault(t *testing.T, fault *connector.Error, class pawl.Class, code string, notApplied bool) {
	t.Helper()
	if fault == nil {
		t.Fatalf("the call worked; want %s %s", class, code)
	}
	if fault.Class != class || fault.Code != code || fault.NotApplied != notApplied {
		t.Fatalf("the call failed with %s %s, not applied %v: %v; want %s %s, %v", fault.Class, fault.Code, fault.NotApplied, fault, class, code, notApplied)
	}
}

// eventually waits for something that happens in another process.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	limit, tick := time.After(20*time.Second), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-limit:
			t.Fatalf("it never came true that %s", what)
		case <-tick.C:
		}
	}
}

// gone reports whether there is no process of this number, not even one that
// nobody waited for.
func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// logBook keeps the lines of a log.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// level returns the lines of one level.
func (b *logBook) level(level slog.Level) (lines []string) {
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, `"level":"`+level.String()+`"`) {
			lines = append(lines, line)
		}
	}
	return lines
}
