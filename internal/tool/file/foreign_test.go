package file

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// context 3.5: what cannot be told is never called not applied, nor applied.
func TestOtherProgramsMakeACrashedAppendUnclear(t *testing.T) {
	tests := map[string]func(t *testing.T, name string){
		"moved away": func(t *testing.T, name string) { move(t, name, name+".1") },
		"replaced by another file": func(t *testing.T, name string) {
			move(t, name, name+".1")
			put(t, "old\nnew\n", name)
		},
		"replaced by a folder": func(t *testing.T, name string) {
			move(t, name, name+".1")
			put(t, "", name, "x")
		},
		"replaced by a link": func(t *testing.T, name string) {
			move(t, name, name+".1")
			if err := os.Symlink(name+".1", name); err != nil {
				t.Fatal(err)
			}
		},
		"shortened":   func(t *testing.T, name string) { put(t, "ol", name) },
		"overwritten": func(t *testing.T, name string) { put(t, "old\nother", name) },
		"prolonged":   func(t *testing.T, name string) { put(t, "old\nneX", name) },
	}
	for name, change := range tests {
		for _, step := range []string{"append the data", "record the outcome"} {
			f, dir := open(t)
			put(t, "old\n", dir, "log")
			call := callOf(t, "append", "key", object{"path": "log", "line": "new"})
			crashBefore(t, f, call, step)
			change(t, filepath.Join(dir, "log"))
			next := reopen(t, dir)
			for range 2 {
				if answer := reconcile(t, next, call); answer.State != connector.Later {
					t.Errorf("%s before %q: answer is %s", name, step, answer.State)
				}
			}
			checkFault(t, fail(t, next, call), pawl.ClassIndeterminate, "unclear", false)
			do(t, next, callOf(t, "append", "other", object{"path": "other", "line": "x"})) // others go on
		}
	}
}

func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func TestCrashedWriteIsClearWhateverOthersDo(t *testing.T) {
	for step, want := range map[string]connector.State{"replace the file": connector.NotApplied, "sync the folder": connector.Applied} {
		for name, change := range map[string]func(name string) error{
			"taken away": os.RemoveAll,
			"changed":    func(name string) error { return os.WriteFile(name, []byte("other"), 0o644) },
		} {
			f, dir := open(t)
			put(t, "old", dir, "sub/file")
			call := callOf(t, "write", "key", object{"path": "sub/file", "text": "new"})
			crashBefore(t, f, call, step)
			if err := change(filepath.Join(dir, "sub/file")); err != nil {
				t.Fatal(err)
			}
			if answer := reconcile(t, reopen(t, dir), call); answer.State != want {
				t.Errorf("%s before %q: answer is %s, want %s", name, step, answer.State, want)
			}
		}
	}
}

func TestAppendOfAnotherProgramIsNotOverwritten(t *testing.T) {
	f, dir := open(t)
	put(t, "old\n", dir, "log")
	f.step = func(name string) error {
		if name == "append the data" {
			put(t, "old\ntheirs\n", dir, "log")
		}
		return nil
	}
	got := do(t, f, callOf(t, "append", "key", object{"path": "log", "line": "ours"}))
	if text := textOf(t, dir, "log"); text != "old\ntheirs\nours\n" || got["offset"] != 11.0 || got["size"] != 16.0 {
		t.Errorf("the file has %q, the result is %v", text, got)
	}
}

// Without its evidence Reconcile guesses nothing.
func TestReconcileWithoutBookkeepingIsLater(t *testing.T) {
	f, dir := open(t)
	call := callOf(t, "append", "key", object{"path": "log", "line": "x"})
	do(t, f, call)
	if err := os.RemoveAll(filepath.Join(dir, books)); err != nil {
		t.Fatal(err)
	}
	noAnswer(t, t.Context(), f, call)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	noAnswer(t, t.Context(), f, call)
	for _, call := range everyMethod(t, "x") {
		checkFault(t, fail(t, f, call), pawl.ClassPrecondition, "no_folder", true)
	}
}
