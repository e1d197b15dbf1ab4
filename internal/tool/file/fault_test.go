package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// context 3.8: the class comes from the number of the error.
func TestClassOfSystemErrors(t *testing.T) {
	tests := []struct {
		err   error
		class pawl.Class
		code  string
	}{
		{syscall.EACCES, pawl.ClassPermission, "no_access"},
		{syscall.EPERM, pawl.ClassPermission, "no_access"},
		{syscall.EROFS, pawl.ClassPermission, "no_access"},
		{syscall.ENOSPC, pawl.ClassTransient, "disk_full"},
		{syscall.EDQUOT, pawl.ClassTransient, "disk_full"},
		{syscall.EIO, pawl.ClassTransient, "disk_fault"},
		{syscall.EMFILE, pawl.ClassTransient, "unavailable"},
		{syscall.ESTALE, pawl.ClassTransient, "unavailable"},
		{syscall.ENOENT, pawl.ClassLogic, "not_found"},
		{syscall.EISDIR, pawl.ClassLogic, "not_a_file"},
		{syscall.ENOTDIR, pawl.ClassLogic, "not_a_folder"},
		{syscall.ENAMETOOLONG, pawl.ClassLogic, "bad_path"},
		{syscall.EFBIG, pawl.ClassLogic, "too_large"},
		{syscall.EXDEV, pawl.ClassPrecondition, "other_disk"},
		{syscall.ENOTTY, pawl.ClassInternal, "internal"},
		{errors.New("permission denied"), pawl.ClassInternal, "internal"}, // text means nothing
	}
	for _, test := range tests {
		wrapped := fmt.Errorf("wrapped: %w", &os.PathError{Op: "open", Path: "secret/place", Err: test.err})
		e := pathFault(wrapped, "read", "a")
		checkFault(t, e, test.class, test.code, true)
		if strings.Contains(e.Error(), "secret/place") {
			t.Errorf("the error tells a path of the host: %v", e)
		}
		if book := bookFault(wrapped); book.Class == pawl.ClassLogic {
			t.Errorf("a fault in the bookkeeping is blamed on the script: %v", book)
		}
	}
}

// effect is the step from which on nobody can say that nothing happened.
var effect = map[string]string{"append": "sync the data", "write": "sync the folder"}

// context 3.5: an error of any step is not applied only if nothing was begun,
// and what Reconcile says then agrees.
func TestErrorAtEveryStep(t *testing.T) {
	for _, s := range scenarios() {
		for _, number := range []syscall.Errno{syscall.EACCES, syscall.ENOSPC, syscall.EIO} {
			for n, begun := 1, false; ; n++ {
				f, dir := s.open(t)
				at := failAt(f, n, number)
				call := s.call(t)
				_, err := f.Call(t.Context(), call)
				if *at == "" {
					break
				}
				begun = begun || *at == effect[call.Method]
				e, failed := errors.AsType[*connector.Error](err)
				state := s.check(t, dir)
				if !failed { // it happened, and only the record failed
					if state != connector.Applied {
						t.Errorf("%s, %v at %q: done, but %s", s.name, number, *at, state)
					}
					continue
				}
				if e.NotApplied && state != connector.NotApplied {
					t.Errorf("%s, %v at %q: called not applied, but %s", s.name, number, *at, state)
				}
				if e.NotApplied == begun {
					t.Errorf("%s, %v at %q: not applied is %v", s.name, number, *at, e.NotApplied)
				}
				if want := systemFault(number, "").Class; e.Class != want {
					t.Errorf("%s, %v at %q: class is %s, want %s", s.name, number, *at, e.Class, want)
				}
			}
		}
	}
}

// failAt makes the nth step fail, and all after it.
func failAt(f *Folder, n int, err error) *string {
	at := new(string)
	f.step = func(name string) error {
		if n--; n > 0 {
			return nil
		}
		if *at == "" {
			*at = name
		}
		return err
	}
	return at
}

// An outcome that cannot be recorded is not forgotten either.
func TestFullDiskKeepsTheCallOpen(t *testing.T) {
	f, dir := open(t)
	put(t, "", dir, "log")
	call := callOf(t, "append", "key", object{"path": "log", "line": "x"})
	full := func(name string) error {
		if name == "record the outcome" {
			return syscall.ENOSPC
		}
		return nil
	}
	f.step = full
	do(t, f, call)
	checkFault(t, fail(t, f, callOf(t, "append", "other", object{"path": "log", "line": "y"})), pawl.ClassTransient, "disk_full", true)
	noAnswer(t, t.Context(), f, call)
	if answer := reconcile(t, reopen(t, dir), call); answer.State != connector.Applied {
		t.Errorf("answer is %s", answer.State)
	}
	if got := textOf(t, dir, "log"); got != "x\n" {
		t.Errorf("the file has %q", got)
	}
}

// context 3.6: as long as a call cannot be settled, nobody says that it did not
// happen; what is known about others is told.
func TestCallThatCannotBeSettledIsLater(t *testing.T) {
	f, dir := open(t)
	other := callOf(t, "append", "other", object{"path": "log", "line": "x"})
	do(t, f, other)
	call := callOf(t, "append", "key", object{"path": "log", "line": "y"})
	crashBefore(t, f, call, "record the outcome")
	f.step = func(name string) error {
		if name == "sync the file as found" {
			return syscall.EIO
		}
		return nil
	}
	noAnswer(t, t.Context(), f, call)
	if answer := reconcile(t, f, other); answer.State != connector.Applied {
		t.Errorf("answer about the other is %s", answer.State)
	}
	if answer := reconcile(t, reopen(t, dir), call); answer.State != connector.Applied {
		t.Errorf("answer on a healthy disk is %s", answer.State)
	}
}

// context 3.8: the end of the context is transient, and nothing was done.
func TestEndOfTheContextIsTransient(t *testing.T) {
	f, dir := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, call := range everyMethod(t, "a") {
		_, err := f.Call(ctx, call)
		e, _ := errors.AsType[*connector.Error](err)
		checkFault(t, e, pawl.ClassTransient, "interrupted", true)
	}
	// The lock is taken by another process, or by another connection.
	h, err := reopen(t, dir).hold(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer h.release()
	waiting, stop := context.WithTimeout(t.Context(), 1)
	defer stop()
	if _, err := f.hold(waiting, true); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for the lock: %v", err)
	}
	noAnswer(t, waiting, f, callOf(t, "append", "k", nil))
}

func TestPermissionIsToldByClass(t *testing.T) {
	f, dir := open(t)
	for name, mode := range map[string]os.FileMode{"readonly": 0o444, "closed": 0} {
		put(t, "x", dir, name)
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	asOrdinaryUser(t, dir, func() {
		do(t, f, callOf(t, "read", "", object{"path": "readonly"}))
		for _, call := range []connector.Call{
			callOf(t, "read", "", object{"path": "closed"}),
			callOf(t, "append", "a", object{"path": "readonly", "text": "y"}),
			callOf(t, "write", "w", object{"path": "readonly", "text": "y"}),
		} {
			e := fail(t, f, call)
			checkFault(t, e, pawl.ClassPermission, "no_access", true)
			if !strings.Contains(e.Msg, `closed"`) && !strings.Contains(e.Msg, `readonly"`) {
				t.Errorf("something else is not allowed: %v", e)
			}
		}
	})
	if got := textOf(t, dir, "readonly"); got != "x" {
		t.Errorf("the file has %q", got)
	}
}

// A folder that cannot be changed can be read from.
func TestReadOnlyFolderCanBeRead(t *testing.T) {
	f, dir := open(t)
	put(t, "x", dir, "file")
	if err := os.RemoveAll(filepath.Join(dir, books)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	asOrdinaryUser(t, dir, func() {
		f = reopen(t, dir)
		do(t, f, callOf(t, "read", "", object{"path": "file"}))
		do(t, f, callOf(t, "list", "", nil))
		checkFault(t, fail(t, f, callOf(t, "append", "a", object{"path": "file", "text": "y"})), pawl.ClassPermission, "no_access", true)
	})
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}
