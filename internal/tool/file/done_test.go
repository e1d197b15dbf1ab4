package file

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/tool/connector"
)

func TestRecordOfFinishedCallsIsBounded(t *testing.T) {
	f, dir := open(t)
	var text strings.Builder
	n := 0
	for ; text.Len() < longestDone; n++ {
		text.WriteString(record{outcome: applied, offset: int64(n), size: int64(n)}.line(digest(fmt.Sprint(n))))
	}
	put(t, text.String(), dir, doneFile)
	ask := func(i int) connector.State {
		return reconcile(t, f, callOf(t, "append", fmt.Sprint(i), object{"path": "log"})).State
	}
	if got := ask(n - 1); got != connector.Applied {
		t.Errorf("the newest call is %s", got)
	}
	info, err := os.Stat(filepath.Join(dir, doneFile))
	if err != nil || info.Size() > longestDone/2 || info.Size() < longestDone/2-200 {
		t.Errorf("the record has %d bytes (%v), want the half of %d", info.Size(), err, longestDone)
	}
	for _, i := range []int{n - 2, n - 11_000, n/2 + 1000} {
		if got := ask(i); got != connector.Applied {
			t.Errorf("call %d of %d is %s", i, n, got)
		}
	}
	if left, err := os.ReadDir(filepath.Join(dir, stage)); err != nil || len(left) > 0 {
		t.Errorf("stage is left with %v, %v", left, err)
	}
}

func TestLongestLineOfTheRecord(t *testing.T) {
	const most = 1<<63 - 1
	line := record{outcome: withdrawn, offset: most, size: most}.line(digest("x"))
	if len(line) > 92 || longestDone/2/92 < 11_000 {
		t.Errorf("a line has %d bytes, so the record keeps %d calls", len(line), longestDone/2/len(line))
	}
}

// A crash can leave any part of the last line; it counts for nothing, and the
// next line is not spoilt by it, not even one about the same call.
func TestTornLineOfTheRecordDoesNotCount(t *testing.T) {
	line := record{outcome: applied, offset: 12, size: 34}.line(digest("torn"))
	for n := range len(line) - 1 {
		f, dir := open(t)
		put(t, line[:n], dir, doneFile)
		call := callOf(t, "append", "torn", object{"path": "log", "text": "x"})
		do(t, f, call)
		do(t, f, call)
		if answer := reconcile(t, f, call); answer.State != connector.Applied || textOf(t, dir, "log") != "x" {
			t.Errorf("after %q: %s, and the file has %q", line[:n], answer.State, textOf(t, dir, "log"))
		}
	}
	if r, known := find([]byte(strings.Repeat("\x00", 200)+line), digest("torn")); !known || r.size != 34 {
		t.Errorf("a line after zeros is %v, %v", r, known)
	}
}

// Power can fail before the removal of a call is durable. The record counts,
// for the file has changed since.
func TestCallThatReappearsIsDone(t *testing.T) {
	f, dir := open(t)
	name := filepath.Join(dir, calls, digest("key"))
	kept := ""
	f.step = func(step string) error {
		if step == "drop the call" && kept == "" {
			kept = textOf(t, name)
		}
		return nil
	}
	call := callOf(t, "append", "key", object{"path": "log", "line": "x"})
	do(t, f, call)
	do(t, f, callOf(t, "write", "other", object{"path": "log", "text": "y"}))
	put(t, kept, name)
	before := textOf(t, dir, doneFile)
	if answer := reconcile(t, f, call); kept == "" || answer.State != connector.Applied {
		t.Errorf("answer is %s about %q", answer.State, kept)
	}
	if after := textOf(t, dir, doneFile); after != before {
		t.Errorf("the record became %q", after)
	}
	if _, err := os.Stat(name); err == nil {
		t.Error("the call stays open")
	}
}

// An open call that cannot be understood was complete once, so nobody knows.
func TestDamagedCallIsLost(t *testing.T) {
	f, dir := open(t)
	call := callOf(t, "append", "key", object{"path": "log", "line": "x"})
	put(t, `{"method":"app`, dir, calls, digest("key"))
	if got := reconcile(t, f, call).State; got != connector.Later {
		t.Errorf("answer is %s", got)
	}
}
