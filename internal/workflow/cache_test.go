package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// loads counts how often a declaration is read and parsed.
type loads struct{ n int }

func (l *loads) of(name string) func() (workflowstore.WorkflowVersion, error) {
	return func() (workflowstore.WorkflowVersion, error) {
		l.n++
		return workflowstore.WorkflowVersion{Config: json.RawMessage(fmt.Sprintf(`{"name":%q}`, name))}, nil
	}
}

// one version is parsed once; another one replaces it;
// invalidate and clear make the next read parse again.
func TestDeclarationsAreParsedOnceAVersion(t *testing.T) {
	var cache configCache
	var l loads
	read := func(workflow, version, want string, parsed int) {
		t.Helper()
		got, err := cache.get(workflow, version, l.of(workflow+version))
		if err != nil || got.Name != want || l.n != parsed {
			t.Errorf("%s of %s is %q after %d parses (%v); want %q after %d", version, workflow, got.Name, l.n, err, want, parsed)
		}
	}
	read("w", "1", "w1", 1)
	read("w", "1", "w1", 1)
	read("x", "1", "x1", 2)
	read("w", "2", "w2", 3)
	read("w", "2", "w2", 3)
	read("x", "1", "x1", 3) // another workflow's edit evicts nothing
	cache.invalidate("w")
	read("w", "2", "w2", 4)
	read("x", "1", "x1", 4)
	cache.clear()
	read("x", "1", "x1", 5)
	read("w", "2", "w2", 6)
}

// A declaration that cannot be read is an error each time and is not kept.
func TestUnreadableDeclarationIsNotKept(t *testing.T) {
	var cache configCache
	gone := errors.New("gone")
	if _, err := cache.get("w", "1", func() (workflowstore.WorkflowVersion, error) { return workflowstore.WorkflowVersion{}, gone }); !errors.Is(err, gone) {
		t.Errorf("it says %v", err)
	}
	if _, err := cache.get("w", "1", func() (workflowstore.WorkflowVersion, error) {
		return workflowstore.WorkflowVersion{Config: json.RawMessage(`{`)}, nil
	}); err == nil {
		t.Error("half a declaration is taken")
	}
	var l loads
	if _, err := cache.get("w", "1", l.of("w")); err != nil || l.n != 1 {
		t.Errorf("after the faults it is parsed %d times (%v)", l.n, err)
	}
}

// Compiled scripts are bounded, and those that were used last stay.
func TestProgramsUsedLastAreKept(t *testing.T) {
	cache := newProgramCache(2 * (&script.Program{}).Size())
	for _, key := range []string{"a", "b"} {
		cache.put(key, &script.Program{File: key})
	}
	if _, ok := cache.get("a"); !ok {
		t.Fatal("a is gone before the cache is full")
	}
	cache.put("c", &script.Program{File: "c"})
	cache.put("a", &script.Program{File: "other"}) // known: stays as it is, and counts as used
	cache.put("d", &script.Program{File: "d"})
	for key, want := range map[string]bool{"a": true, "b": false, "c": false, "d": true} {
		p, ok := cache.get(key)
		if ok != want || ok && p.File != key {
			t.Errorf("%s is kept: %v", key, ok)
		}
	}
}
