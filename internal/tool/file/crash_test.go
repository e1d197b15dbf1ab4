package file

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/tool/connector"
)

// scenario is a mutation of a folder that may have the file already.
type scenario struct {
	name   string
	before string // what is in the file; "-" if it is missing
	call   func(t *testing.T) connector.Call
	after  string // what is in the file once the call is applied
	result object
}

const target = "sub/log.txt"

func scenarios() []scenario {
	appendLine := func(t *testing.T) connector.Call {
		return callOf(t, "append", "key", object{"path": target, "line": "new"})
	}
	writeText := func(t *testing.T) connector.Call {
		return callOf(t, "write", "key", object{"path": target, "text": "new"})
	}
	return []scenario{
		{"append to a new file", "-", appendLine, "new\n", object{"path": target, "offset": 0.0, "size": 4.0}},
		{"append to an empty file", "", appendLine, "new\n", object{"path": target, "offset": 0.0, "size": 4.0}},
		{"append to a file", "old\n", appendLine, "old\nnew\n", object{"path": target, "offset": 4.0, "size": 8.0}},
		{"append what is there already", "new\n", appendLine, "new\nnew\n", object{"path": target, "offset": 4.0, "size": 8.0}},
		{"write a new file", "-", writeText, "new", object{"path": target, "size": 3.0}},
		{"write over a file", "old\n", writeText, "new", object{"path": target, "size": 3.0}},
		{"write what is there already", "new", writeText, "new", object{"path": target, "size": 3.0}},
	}
}

func (s scenario) open(t *testing.T) (*Folder, string) {
	t.Helper()
	f, dir := open(t)
	if s.before != "-" {
		put(t, s.before, dir, target)
	}
	return f, dir
}

// check asks a new process about the call and compares the answer with the
// file. It returns the answer.
func (s scenario) check(t *testing.T, dir string) connector.State {
	t.Helper()
	f, call := reopen(t, dir), s.call(t)
	answer := reconcile(t, f, call)
	before := strings.TrimPrefix(s.before, "-")
	got := textOf(t, dir, target)
	switch answer.State {
	case connector.Applied:
		if got != s.after {
			t.Errorf("applied, but the file has %q, want %q", got, s.after)
		}
		if diff := cmp.Diff(s.result, decode(t, answer.Result)); diff != "" {
			t.Errorf("the result is not that of the method: %s", diff)
		}
	case connector.NotApplied:
		if got != before {
			t.Errorf("not applied, but the file has %q, want %q", got, before)
		}
	default:
		t.Fatalf("the answer is %v", answer)
	}
	s.checkAgain(t, f, dir, answer)
	return answer.State
}

// checkAgain asks and calls once more, which changes nothing.
func (s scenario) checkAgain(t *testing.T, f *Folder, dir string, first connector.Answer) {
	t.Helper()
	call, before := s.call(t), textOf(t, dir, target)
	if diff := cmp.Diff(first, reconcile(t, f, call)); diff != "" {
		t.Errorf("the second answer differs: %s", diff)
	}
	if first.State == connector.Applied {
		if diff := cmp.Diff(s.result, do(t, f, call)); diff != "" {
			t.Errorf("the result of calling again differs: %s", diff)
		}
	} else if e := fail(t, f, call); e.Code != "withdrawn" || !e.NotApplied {
		t.Errorf("calling again after not applied: %v", e)
	}
	if got := textOf(t, dir, target); got != before {
		t.Errorf("calling again changed the file from %q to %q", before, got)
	}
	for _, folder := range []string{calls, stage} {
		if left, err := os.ReadDir(filepath.Join(dir, folder)); err != nil || len(left) > 0 {
			t.Errorf("%s is left with %v, %v", folder, left, err)
		}
	}
}

// context 3.6: after a crash between any two steps the answer is what the file
// says, and both answers occur.
func TestReconcileAfterACrashAtEveryStep(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			seen := map[connector.State]int{}
			for n := 1; ; n++ {
				f, dir := s.open(t)
				crashAt(f, n)
				call := s.call(t)
				step := runToCrash(func() { do(t, f, call) })
				if step == "" {
					break
				}
				t.Run(fmt.Sprintf("%d %s", n, step), func(t *testing.T) { seen[s.check(t, dir)]++ })
			}
			if seen[connector.Applied] < 3 || seen[connector.NotApplied] < 4 {
				t.Errorf("the answers were %v: the steps do not cover the call", seen)
			}
		})
	}
}

// context 3.6: answering can crash as well, at every step, after every crash.
func TestReconcileAfterACrashOfReconcile(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for n, crash := 1, true; crash; n++ {
				crash = false
				for m := 1; ; m++ {
					f, dir := s.open(t)
					crashAt(f, n)
					call := s.call(t)
					first := runToCrash(func() { do(t, f, call) })
					if first == "" {
						break
					}
					crash = true
					second := reopen(t, dir)
					crashAt(second, m)
					then := runToCrash(func() { reconcile(t, second, call) })
					if then == "" {
						break
					}
					t.Run(fmt.Sprintf("%s, %s", first, then), func(t *testing.T) { s.check(t, dir) })
				}
			}
		})
	}
}

// A crash within the write itself leaves a part of the data.
func TestPartOfAnAppendIsCutBack(t *testing.T) {
	line := "a line of some length"
	for _, before := range []string{"", "old\n"} {
		for n := range len(line) + 2 {
			f, dir := open(t)
			put(t, before, dir, "log")
			call := callOf(t, "append", "key", object{"path": "log", "line": line})
			crashBefore(t, f, call, "append the data")
			put(t, before+(line + "\n")[:n], dir, "log")

			// Whoever comes next, for whatever reason, finds no part of it.
			next := reopen(t, dir)
			do(t, next, callOf(t, "append", "other", object{"path": "log", "line": "next"}))
			answer := reconcile(t, next, call)
			want, state := before+"next\n", connector.NotApplied
			if n == len(line)+1 {
				want, state = before+line+"\nnext\n", connector.Applied
			}
			if got := textOf(t, dir, "log"); got != want || answer.State != state {
				t.Errorf("with %d bytes written: %s and %q, want %s and %q", n, answer.State, got, state, want)
			}
		}
	}
}

// crashBefore makes a call crash before the step of that name.
func crashBefore(t *testing.T, f *Folder, call connector.Call, step string) {
	t.Helper()
	f.step = func(name string) error {
		if name == step {
			panic(crashed{name})
		}
		return nil
	}
	if got := runToCrash(func() { do(t, f, call) }); got != step {
		t.Fatalf("the call has no step %q", step)
	}
}

// What came after a crash does not blur what was before it.
func TestOpenCallIsSettledBeforeTheNextMutation(t *testing.T) {
	for _, s := range scenarios() {
		for _, next := range []string{"append", "write"} {
			for n := 1; ; n++ {
				f, dir := s.open(t)
				crashAt(f, n)
				call := s.call(t)
				step := runToCrash(func() { do(t, f, call) })
				if step == "" {
					break
				}
				other := reopen(t, dir)
				do(t, other, callOf(t, next, "next", object{"path": target, "text": "NEXT"}))
				answer := reconcile(t, other, call)
				want := strings.TrimPrefix(s.before, "-") + "NEXT"
				if answer.State == connector.Applied {
					want = s.after + "NEXT"
				}
				if next == "write" {
					want = "NEXT"
				}
				if got := textOf(t, dir, target); answer.State == connector.Later || got != want {
					t.Errorf("%s, crash before %q, then %s: %s and %q, want %q", s.name, step, next, answer.State, got, want)
				}
			}
		}
	}
}

func TestReconcileOfACallThatNeverCame(t *testing.T) {
	f, dir := open(t)
	call := callOf(t, "append", "key", object{"path": "log", "line": "late"})
	if got := reconcile(t, f, call).State; got != connector.NotApplied {
		t.Fatalf("answer is %s", got)
	}
	// A process that was stopped for a while makes it now.
	if e := fail(t, reopen(t, dir), call); e.Code != "withdrawn" || !e.NotApplied {
		t.Errorf("the late call: %v", e)
	}
	if got := textOf(t, dir, "log"); got != "" {
		t.Errorf("the late call was made: %q", got)
	}
	for _, wrong := range []connector.Call{{Method: "append"}, {Method: "read", Key: "k"}} {
		if answer, err := f.Reconcile(t.Context(), wrong); err == nil {
			t.Errorf("Reconcile(%v) = %v", wrong, answer)
		}
	}
}

func TestSameKeyIsAppliedOnce(t *testing.T) {
	f, dir := open(t)
	call := callOf(t, "append", "key", object{"path": "log", "line": "x"})
	first := do(t, f, call)
	do(t, f, callOf(t, "append", "other", object{"path": "log", "line": "y"}))
	for range 3 {
		if diff := cmp.Diff(first, do(t, reopen(t, dir), call)); diff != "" {
			t.Error(diff)
		}
	}
	if got := textOf(t, dir, "log"); got != "x\ny\n" {
		t.Errorf("the file has %q", got)
	}
}
