package file

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// open makes a connection to a new folder and returns the folder too.
func open(t *testing.T) (*Folder, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "root")
	return reopen(t, dir), dir
}

// reopen is what a new process does.
func reopen(t *testing.T, dir string) *Folder {
	t.Helper()
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func callOf(t *testing.T, method, key string, args any) connector.Call {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return connector.Call{Method: method, Key: key, Args: raw}
}

type object = map[string]any

// do makes a call that works.
func do(t *testing.T, f *Folder, c connector.Call) object {
	t.Helper()
	result, err := f.Call(t.Context(), c)
	if err != nil {
		t.Fatalf("%s(%s): %v", c.Method, c.Args, err)
	}
	return decode(t, result)
}

// fail makes a call that does not work.
func fail(t *testing.T, f *Folder, c connector.Call) *connector.Error {
	t.Helper()
	result, err := f.Call(t.Context(), c)
	e, ok := errors.AsType[*connector.Error](err)
	if !ok {
		t.Fatalf("%s(%s) = %s, %v; want a *connector.Error", c.Method, c.Args, result, err)
	}
	return e
}

// reconcile asks about a call, with an answer.
func reconcile(t *testing.T, f *Folder, c connector.Call) connector.Answer {
	t.Helper()
	answer, err := f.Reconcile(t.Context(), c)
	if err != nil {
		t.Fatalf("Reconcile(%s): %v", c.Key, err)
	}
	return answer
}

// noAnswer asks about a call, without an answer.
func noAnswer(t *testing.T, ctx context.Context, f *Folder, c connector.Call) {
	t.Helper()
	answer, err := f.Reconcile(ctx, c)
	if e, ok := errors.AsType[*connector.Error](err); !ok || e.NotApplied {
		t.Errorf("Reconcile(%s) = %v, %v; want an error that says nothing about the call", c.Key, answer, err)
	}
}

func decode(t *testing.T, raw json.RawMessage) object {
	t.Helper()
	var result object
	if err := json.Unmarshal(raw, &result); err != nil {
		t.Fatalf("decode %q: %v", raw, err)
	}
	return result
}

// textOf is what is in a file; empty if it is missing.
func textOf(t *testing.T, elements ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elements...))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

func put(t *testing.T, text string, elements ...string) {
	t.Helper()
	name := filepath.Join(elements...)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func checkFault(t *testing.T, e *connector.Error, class pawl.Class, code string, notApplied bool) {
	t.Helper()
	if e.Class != class || e.Code != code || e.NotApplied != notApplied {
		t.Errorf("error is class %s, code %s, not applied %v (%v); want %s, %s, %v", e.Class, e.Code, e.NotApplied, e, class, code, notApplied)
	}
}

// crashed is what a step panics with to end a call as a killed process would:
// what follows is not done, and locks are released.
type crashed struct{ step string }

// crashAt makes the nth step from now on crash.
func crashAt(f *Folder, n int) {
	f.step = func(name string) error {
		if n--; n == 0 {
			panic(crashed{name})
		}
		return nil
	}
}

// runToCrash returns the name of the step at which action crashed, or empty.
func runToCrash(action func()) (step string) {
	defer func() {
		if c, ok := recover().(crashed); ok {
			step = c.step
		}
	}()
	action()
	return ""
}
