package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Context 3.5.6: what was under way when the server crashed is not known to
// have failed.
func TestCrashDuringAMutationIsUnknownAndTheNextCallReconnects(t *testing.T) {
	r := newRig(t)
	c := r.open(r.program("plain"))
	_, fault := call(t.Context(), c, "note-and-crash", `{"text":"once"}`)
	wantFault(t, fault, pawl.ClassIndeterminate, "server_ended", false)
	must(t, c, "note", `{"text":"twice"}`)
	if diff := cmp.Diff([]string{"once", "twice"}, r.done()); diff != "" {
		t.Error(diff)
	}
}

func TestReadDuringACrashIsTransient(t *testing.T) {
	r := newRig(t)
	c := r.open(r.program("plain"))
	pid := processOf(t, c).Pid
	done := make(chan *connector.Error)
	go func() {
		_, fault := call(context.Background(), c, "look-slowly", `{"text":"begun"}`)
		done <- fault
	}()
	eventually(t, "the call is under way", func() bool { return len(r.done()) > 0 })
	kill(t, pid)
	wantFault(t, <-done, pawl.ClassTransient, "server_ended", true)
}

func TestTimeoutOfAMutationIsUnknown(t *testing.T) {
	r := newRig(t)
	c := r.open(r.program("plain", "timeout: 1s"))
	_, fault := call(t.Context(), c, "look-slowly", `{"text":"read"}`)
	wantFault(t, fault, pawl.ClassTransient, "timeout", true)
	_, fault = call(t.Context(), c, "note-slowly", `{"text":"write"}`)
	wantFault(t, fault, pawl.ClassIndeterminate, "timeout", false)
	eventually(t, "the server is told that nobody waits", func() bool {
		return strings.Contains(strings.Join(r.done(), " "), "write-cancelled")
	})
	must(t, c, "look", `{"text":"the same session"}`)
	if strings.Contains(r.log.String(), "anew") {
		t.Error("a session that answers was dropped")
	}
}

func TestCancelledCallIsInterrupted(t *testing.T) {
	r := newRig(t)
	c := r.open(r.program("plain"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan *connector.Error)
	go func() {
		_, fault := call(ctx, c, "note-slowly", `{"text":"begun"}`)
		done <- fault
	}()
	eventually(t, "the call is under way", func() bool { return len(r.done()) > 0 })
	cancel()
	wantFault(t, <-done, pawl.ClassIndeterminate, "interrupted", false)
	_, fault := call(ctx, c, "note", `{"text":"never"}`)
	wantFault(t, fault, pawl.ClassTransient, "interrupted", true)
	if strings.Contains(strings.Join(r.done(), " "), "never") {
		t.Error("a call that was cancelled before was made")
	}
}

// A server that does not read its input holds nobody longer than the timeout,
// and is replaced.
func TestDeafServerIsReplaced(t *testing.T) {
	r := newRig(t)
	c := r.open(r.program("deaf", "timeout: 3s"))                       // which starting it is a part of
	arguments := fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 1<<20)) // more than a pipe holds
	began := time.Now()
	_, fault := call(t.Context(), c, "note", arguments)
	wantFault(t, fault, pawl.ClassIndeterminate, "timeout", false) // it got a part of the message
	if took := time.Since(began); took > 9*time.Second {
		t.Errorf("the call took %s", took)
	}
	eventually(t, "the server is started again", func() bool { return len(r.done()) > 1 })
	_, fault = call(t.Context(), c, "look", `{}`) // fits into the pipe, and is never answered
	wantFault(t, fault, pawl.ClassTransient, "timeout", true)
	eventually(t, "it is started again after a ping", func() bool { return len(r.done()) > 2 })
}

func TestServerThatWantsToBeGreetedFirstIsGreeted(t *testing.T) {
	r := newRig(t)
	c := r.open(r.program("strict"))
	if got := must(t, c, "look", ""); got != `{"content":[],"text":""}` {
		t.Error(got)
	}
}

// A call that finds the pipe closed was not made, so it is made again.
func TestCallAfterACrashReachesTheNextServer(t *testing.T) {
	r := newRig(t)
	c := r.open(r.program("plain"))
	for range 3 {
		pid := processOf(t, c).Pid
		kill(t, pid)
		eventually(t, "the server is gone", func() bool { return gone(pid) })
		must(t, c, "note", `{"text":"a"}`)
	}
	if done := r.done(); len(done) != 3 {
		t.Errorf("it was done %d times", len(done))
	}
}

// Closing leaves nothing behind: no server, no process of it, no zombie.
func TestCloseEndsTheProcessGroup(t *testing.T) {
	r := newRig(t)
	c := r.open(r.program("plain"))
	var pids struct{ Child, Pid int }
	if err := json.Unmarshal([]byte(must(t, c, "spawn", "")), &pids); err != nil {
		t.Fatal(err)
	}
	if gone(pids.Child) || gone(pids.Pid) {
		t.Fatal("there is nothing to end")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if !gone(pids.Pid) {
		t.Error("the server is still there")
	}
	eventually(t, "its child is gone", func() bool { return orphanGone(pids.Child) })
	_, fault := call(t.Context(), c, "look", `{"text":"a"}`)
	wantFault(t, fault, pawl.ClassTransient, "closed", true)
	if err := c.Close(); err != nil {
		t.Errorf("the second Close() = %v", err)
	}
}

func TestCrashTakesTheProcessGroupWithIt(t *testing.T) {
	r := newRig(t)
	c := r.open(r.program("plain"))
	var pids struct{ Child, Pid int }
	if err := json.Unmarshal([]byte(must(t, c, "spawn", "")), &pids); err != nil {
		t.Fatal(err)
	}
	kill(t, pids.Pid)
	eventually(t, "the server answers again", func() bool {
		_, fault := call(t.Context(), c, "look", `{"text":"again"}`)
		return fault == nil
	})
	eventually(t, "its child is gone", func() bool { return orphanGone(pids.Child) })
	if !gone(pids.Pid) {
		t.Error("the server is a zombie")
	}
}

func TestStubbornProgramIsKilled(t *testing.T) {
	r := newRig(t)
	c := r.open(r.program("stubborn"))
	pid := processOf(t, c).Pid
	began := time.Now()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 2*endGrace || !gone(pid) {
		t.Errorf("it took %s, and is gone: %v", took, gone(pid))
	}
}

func TestCloseInterruptsCalls(t *testing.T) {
	r := newRig(t)
	c := r.open(r.program("plain"))
	done := make(chan *connector.Error)
	go func() {
		_, fault := call(context.Background(), c, "note-slowly", `{"text":"begun"}`)
		done <- fault
	}()
	eventually(t, "the call is under way", func() bool { return len(r.done()) > 0 })
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	wantFault(t, <-done, pawl.ClassIndeterminate, "closed", false)
}

// A server that does not come up is no fault of the definition: what was
// pinned is known, and calls say that it is down.
func TestServerThatIsDownIsTransient(t *testing.T) {
	r := newRig(t)
	down := r.open(r.program("crash"))
	if methods := down.Methods(); len(methods) > 0 {
		t.Errorf("it has the methods %v", methods)
	}
	if saw, err := down.Test(t.Context()); err == nil {
		t.Errorf("Test() = %q", saw)
	}
	warnings := strings.Join(r.log.level(slog.LevelWarn), "")
	if !strings.Contains(warnings, "I cannot live like this") || !strings.Contains(warnings, "exit status 3") || strings.Contains(warnings, "s3cret") {
		t.Errorf("the log warns of: %s", warnings)
	}
	up := r.open(r.program("plain"))
	if saw, err := up.Test(t.Context()); err != nil || !strings.HasPrefix(saw, "The server has ") || strings.Contains(saw, "blocked") {
		t.Errorf("Test() = %q, %v", saw, err)
	}
	want := up.Methods()
	down = r.open(r.program("crash"))
	if diff := cmp.Diff(want, down.Methods()); diff != "" {
		t.Error(diff)
	}
	_, fault := call(t.Context(), down, "note", `{"text":"a"}`)
	wantFault(t, fault, pawl.ClassTransient, codeHandshake, true)
	began := time.Now()
	_, fault = call(t.Context(), down, "note", `{"text":"a"}`)
	wantFault(t, fault, pawl.ClassTransient, codeHandshake, true)
	if took := time.Since(began); took > patience/2 {
		t.Errorf("a call waits %s for a server that does not come up", took)
	}
}

func TestCheckingADefinitionStartsNothing(t *testing.T) {
	r := newRig(t)
	s := r.settings(strings.Replace(r.program("plain"), "command: [", "command: [not-installed-here, ", 1), true)
	made, ok := New(s)
	if !ok {
		t.Fatal(s.Fields())
	}
	if methods := made.Methods(); len(methods) > 0 {
		t.Errorf("it has the methods %v", methods)
	}
	if err := made.(*Connection).Close(); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(r.dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("it left %v, %v", entries, err)
	}
}

// processOf asks a server for its process.
func processOf(t *testing.T, c *Connection) (p struct{ Pid int }) {
	t.Helper()
	if err := json.Unmarshal([]byte(must(t, c, "environment", "")), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func kill(t *testing.T, pid int) {
	t.Helper()
	process, err := os.FindProcess(pid)
	if err == nil {
		err = process.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// orphanGone reports whether a process whose parent died has ended. In a
// container nobody may wait for it, so that a zombie counts as well.
func orphanGone(pid int) bool {
	status, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "stat"))
	return gone(pid) || err == nil && strings.Contains(string(status), ") Z ")
}
