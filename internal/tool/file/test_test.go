package file

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

func tryOut(t *testing.T, ctx context.Context, f *Folder) *connector.Error {
	t.Helper()
	saw, err := f.Test(ctx)
	if err == nil {
		t.Fatalf("Test = %q; want an error", saw)
	}
	e, ok := errors.AsType[*connector.Error](err)
	if !ok {
		t.Fatalf("%v is not a *connector.Error", err)
	}
	return e
}

func TestTestWritesAndLeavesNothing(t *testing.T) {
	f, dir := open(t)
	put(t, "x", dir, "a/b")
	put(t, "y", dir, "c")
	if saw, err := f.Test(t.Context()); err != nil || saw != "The folder can be read and written; there are 2 names in it." {
		t.Errorf("Test = %q, %v", saw, err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, stage)); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestTestTellsWhatMutationsWouldMeet(t *testing.T) {
	f, dir := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.turn <- struct{}{}
	checkFault(t, tryOut(t, ctx, f), pawl.ClassTransient, "interrupted", true)
	<-f.turn
	asOrdinaryUser(t, dir, func() {
		if err := os.Chmod(filepath.Join(dir, stage), 0o500); err != nil {
			t.Error(err)
		}
		checkFault(t, tryOut(t, t.Context(), f), pawl.ClassPermission, "no_access", true)
		if err := os.Chmod(filepath.Join(dir, stage), 0o700); err != nil {
			t.Error(err)
		}
	})
	// The bookkeeping is evidence: that it is gone must stay visible.
	if err := os.RemoveAll(filepath.Join(dir, books)); err != nil {
		t.Fatal(err)
	}
	checkFault(t, tryOut(t, t.Context(), f), pawl.ClassPrecondition, "no_books", false)
	if _, err := os.Stat(filepath.Join(dir, books)); err == nil {
		t.Error("Test made the bookkeeping anew")
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	checkFault(t, tryOut(t, t.Context(), f), pawl.ClassPrecondition, "no_folder", true)
}
