package repair

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
)

// programWord makes the tests' own program a repairer.
const programWord = "repair-program"

// programMain is that repairer, in one of its ways to behave.
func programMain(mode string, args []string) int {
	switch mode {
	case "repair":
		var e Evidence
		if err := json.NewDecoder(os.Stdin).Decode(&e); err != nil {
			return 3
		}
		fmt.Fprintln(os.Stderr, "saw "+e.Error)
		_, _ = fmt.Fprintf(os.Stdout, "// %d reads, %d attempts\n%s", len(e.Reads), len(e.Attempts), fixed)
	case "environment":
		_, _ = fmt.Fprintln(os.Stdout, strings.Join(os.Environ(), "\n"))
	case "huge":
		for {
			if _, err := fmt.Fprintln(os.Stdout, strings.Repeat("x", 64<<10)); err != nil {
				stay() // does not care
			}
		}
	case "fail":
		fmt.Fprintln(os.Stderr, strings.Repeat("noise\n", 10_000)+"no credit for "+os.Getenv("REPAIR_TOKEN"))
		return 4
	case "silent":
	case "hang":
		stay()
	case "parent": // starts a child that would outlive it
		child := exec.Command(os.Args[0], programWord, "child", args[0])
		child.Stdout = os.Stdout
		if child.Start() != nil {
			return 5
		}
		stay()
	case "child":
		conn, err := net.Dial("tcp", args[0])
		if err != nil {
			return 6
		}
		_, _ = io.Copy(io.Discard, conn) // until the test closes it
	}
	return 0
}

// stay waits for a signal that no test sends.
func stay() {
	never := make(chan os.Signal, 1)
	signal.Notify(never, os.Interrupt)
	<-never
}

func program(t *testing.T, timeout time.Duration, mode string, args ...string) Repairer {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return mustNew(t, Config{
		Kind: KindCommand, Command: append([]string{own, programWord, mode}, args...),
		Env: []string{"REPAIR_TOKEN=token-of-the-operator"}, Timeout: timeout,
	}, nil)
}

// a logic failure is handed to a program of the operator.
func TestCommandGetsTheEvidenceAndGivesAScript(t *testing.T) {
	got, err := program(t, 0, "repair").Propose(t.Context(), sample())
	if err != nil {
		t.Fatal(err)
	}
	want := Proposal{Script: "// 2 reads, 1 attempts\n" + fixed, Explanation: "saw " + sample().Error}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCommandSeesNothingOfTheServersEnvironment(t *testing.T) {
	t.Setenv("PAWL_SECRET", "hidden")
	got, err := program(t, 0, "environment").Propose(t.Context(), sample())
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(got.Script) {
		name, _, _ := strings.Cut(line, "=")
		if name != "PATH" && name != "REPAIR_TOKEN" && strings.TrimSpace(line) != "" {
			t.Errorf("the command sees %s", line)
		}
	}
	if !strings.Contains(got.Script, "REPAIR_TOKEN=token-of-the-operator") {
		t.Error("the command does not see what it was given")
	}
}

func TestCommandsThatGiveNoScript(t *testing.T) {
	tests := []struct {
		mode     string
		timeout  time.Duration
		class    pawl.Class
		rejected bool
		words    string
	}{
		{"huge", 0, pawl.ClassInternal, true, "more than 512 KiB"},
		{"silent", 0, pawl.ClassInternal, true, "is empty"},
		{"fail", 0, pawl.ClassInternal, false, "exit status 4: "},
		{"hang", 200 * time.Millisecond, pawl.ClassTransient, false, "ended after 200ms"},
	}
	for _, tt := range tests {
		t.Run(tt.mode, func(t *testing.T) {
			_, err := program(t, tt.timeout, tt.mode).Propose(t.Context(), sample())
			e := mustFail(t, err, tt.class, tt.rejected, tt.words)
			if len(e.Msg) > 1000 || strings.Contains(e.Msg, "token-of-the-operator") {
				t.Errorf("the error says too much: %s", e.Msg)
			}
			if tt.mode == "fail" && !strings.Contains(e.Msg, "no credit for ***") {
				t.Errorf("the error lacks the end of what the command said: %s", e.Msg)
			}
		})
	}
}

func TestCommandThatDoesNotExist(t *testing.T) {
	r := mustNew(t, Config{Kind: KindCommand, Command: []string{"no-such-program-of-pawl"}}, nil)
	_, err := r.Propose(t.Context(), sample())
	wantError(t, err, pawl.ClassInternal, false, "cannot be started")
}

func TestWhatACommandStartedEndsWithIt(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	ctx, cancel := context.WithCancelCause(t.Context())
	shutdown := errors.New("shutdown")
	ended := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		cancel(shutdown) // the child lives
		if err == nil {
			_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
			_, err = conn.Read(make([]byte, 1))
			_ = conn.Close()
		}
		ended <- err
	}()
	_, err = program(t, 0, "parent", listener.Addr().String()).Propose(ctx, sample())
	wantError(t, err, pawl.ClassTransient, false, "given up")
	if !errors.Is(err, shutdown) {
		t.Errorf("%v does not say why", err)
	}
	if err := <-ended; !errors.Is(err, io.EOF) {
		t.Errorf("the child still lives: %v", err)
	}
}
