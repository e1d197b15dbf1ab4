package sqltool

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type object = map[string]any

// t0 is some instant.
var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// both runs a test on SQLite and on PostgreSQL. The databases are empty.
func both(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, liteURL(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, pgtest.URL(t)) })
}

// liteURL is that of an empty file.
func liteURL(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "base.db")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return "sqlite:" + name
}

// environment is that of a process that may call local servers.
func environment(t *testing.T) connector.Env {
	t.Helper()
	client, err := outbound.New(outbound.Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return connector.Env{HTTP: client, Getenv: func(string) string { return "" }}
}

// define makes a connection out of a definition, whose faults it returns.
func define(t *testing.T, env connector.Env, folder, text string) (d *Database, ok bool, faults string) {
	t.Helper()
	doc, err := definition.ReadSettings(filepath.Join(folder, "c.yaml"), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s := connector.NewSettings(doc, env)
	connection, ok := New(s)
	s.Unknown()
	var all []string
	for _, fault := range s.Fields() {
		all = append(all, strings.TrimPrefix(fault.String(), filepath.Join(folder, "c.yaml")+":"))
	}
	return connection.(*Database), ok, strings.Join(all, "\n")
}

// open makes a connection that works. More are lines of the definition.
func open(t *testing.T, url string, more ...string) *Database {
	t.Helper()
	d, ok, faults := define(t, environment(t), t.TempDir(), "name: crm\nurl: "+url+"\n"+strings.Join(more, "\n"))
	if !ok || faults != "" {
		t.Fatalf("the definition has faults: %s", faults)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func callOf(t *testing.T, method, key, sql string, params ...any) connector.Call {
	t.Helper()
	args := object{"sql": sql}
	if params != nil {
		args["params"] = params
	}
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return connector.Call{Method: method, Key: key, Args: raw}
}

// do makes a call that works.
func do(t *testing.T, d *Database, c connector.Call) object {
	t.Helper()
	result, err := d.Call(t.Context(), c)
	if err != nil {
		t.Fatalf("%s(%s): %v", c.Method, c.Args, err)
	}
	return decode(t, result)
}

// query reads rows.
func query(t *testing.T, d *Database, sql string, params ...any) []any {
	t.Helper()
	return do(t, d, callOf(t, "query", "", sql, params...))["rows"].([]any)
}

// fail makes a call that does not work.
func fail(t *testing.T, d *Database, c connector.Call) *connector.Error {
	t.Helper()
	return failIn(t, t.Context(), d, c)
}

func failIn(t *testing.T, ctx context.Context, d *Database, c connector.Call) *connector.Error {
	t.Helper()
	result, err := d.Call(ctx, c)
	e, ok := errors.AsType[*connector.Error](err)
	if !ok {
		t.Fatalf("%s(%s) = %s, %v; want a *connector.Error", c.Method, c.Args, result, err)
	}
	return e
}

// reconcile asks about a call, with an answer.
func reconcile(t *testing.T, d *Database, c connector.Call) connector.Answer {
	t.Helper()
	answer, err := d.Reconcile(t.Context(), c)
	if err != nil {
		t.Fatalf("Reconcile(%s): %v", c.Key, err)
	}
	return answer
}

func decode(t *testing.T, raw json.RawMessage) object {
	t.Helper()
	var result object
	if err := json.Unmarshal(raw, &result); err != nil {
		t.Fatalf("decode %q: %v", raw, err)
	}
	return result
}

// setUp runs statements through exec of a connection of its own.
func setUp(t *testing.T, url string, statements ...string) {
	t.Helper()
	d := open(t, url, "track: false")
	for _, sql := range statements {
		do(t, d, callOf(t, "exec", "", sql))
	}
}

func checkFault(t *testing.T, e *connector.Error, class pawl.Class, code string) {
	t.Helper()
	if e.Class != class || e.Code != code || !e.NotApplied {
		t.Errorf("error is class %s, code %s, not applied %v (%v); want %s, %s, true", e.Class, e.Code, e.NotApplied, e, class, code)
	}
}

func same(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
