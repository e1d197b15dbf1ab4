package execprog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/pawlrun/pawl/internal/executor/process.startGuard.func1"),
		goleak.IgnoreAnyFunction("github.com/pawlrun/pawl/internal/executor/process.start.func1.1")) // they last as long as the process
}

func settingsOf(t *testing.T, dir, text string) *connector.Settings {
	t.Helper()
	doc, err := definition.ReadSettings(filepath.Join(dir, "x.yaml"), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	env := connector.Env{Getenv: func(name string) string { return map[string]string{"KEY": "the-key"}[name] }}
	return connector.NewSettings(doc, env)
}

// rig is a provider whose graph poet is a shell script.
type rig struct {
	*Provider
	dir    string
	events []runner.Event
}

func newRig(t *testing.T, script string, more ...string) *rig {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "poet.sh"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := "graphs: {poet: {command: [./poet.sh, two words], " + strings.Join(append(more, "timeout: 20s"), ", ") + "}}"
	s := settingsOf(t, dir, text)
	p, ok := New(s)
	s.Unknown()
	if !ok || len(s.Fields()) > 0 {
		t.Fatal(s.Fields())
	}
	return &rig{Provider: p.(*Provider), dir: dir}
}

func (r *rig) emit(e runner.Event) error {
	r.events = append(r.events, e)
	return nil
}

func (r *rig) remote() json.RawMessage {
	for _, e := range slices.Backward(r.events) {
		if e.Kind == runner.KindRemote {
			return e.Remote
		}
	}
	return nil
}

func poet() runner.Run {
	return runner.Run{RunID: "r1", Attempt: 1, GraphID: "exec:poet", Name: "poet", Input: json.RawMessage(`{"topic":"autumn"}`), Key: "s1:1970"}
}

func TestProgramIsToldAndAnswers(t *testing.T) {
	t.Setenv("SOMEBODY_ELSES_KEY", "do-not-tell")
	r := newRig(t, `
echo "reading" >&2
cat > body
printf '%s|%s|%s|%s' "$PAWL_IDEMPOTENCY_KEY" "$API_KEY" "$SOMEBODY_ELSES_KEY" "$1" > told
echo '{"ok":true,"output":{"poem":"leaves"},"usage":[{"unit":"u1","costUsd":0.1}]}'
`, "env: {API_KEY: '${KEY}'}")
	result, err := r.Run(t.Context(), poet(), r.emit)
	if err != nil || !result.OK || string(result.Output) != `{"poem":"leaves"}` {
		t.Fatalf("%+v, %v", result, err)
	}
	body, _ := os.ReadFile(filepath.Join(r.dir, "body"))
	told, _ := os.ReadFile(filepath.Join(r.dir, "told"))
	if string(body) != `{"runId":"r1","attempt":1,"graphId":"exec:poet","input":{"topic":"autumn"}}` || string(told) != "s1:1970|the-key||two words" {
		t.Errorf("it was told %s and %s", body, told)
	}
	var kinds []string
	for _, e := range r.events {
		kinds = append(kinds, e.Kind+e.Text)
	}
	if diff := cmp.Diff([]string{"remote", "progressreading", "usage"}, kinds); diff != "" {
		t.Error(diff)
	}
}

func TestEndsOfPrograms(t *testing.T) {
	tests := map[string]struct {
		script, code, message string
		retry                 bool
	}{
		"failure":            {`echo '{"ok":false,"error":{"code":"invalid_request","message":"no topic"}}'`, runner.CodeInvalidRequest, "no topic", false},
		"failure, exit 3":    {`echo '{"ok":false,"error":{"code":"invalid_request","message":"no topic"}}'; exit 3`, runner.CodeInvalidRequest, "no topic", false},
		"exit 3":             {`echo "half a" >&2; printf 'line' >&2; exit 3`, runner.CodeInternal, "the program ended with exit status 3: line", true},
		"exit 3 after all":   {`echo '{"ok":true}'; exit 3`, runner.CodeInternal, "the program ended with exit status 3", true},
		"killed":             {`kill -9 $$`, runner.CodeInternal, "the program ended with signal: killed", true},
		"garbage":            {`echo poem`, runner.CodeInternal, "the output of the program is not an object with ok: true or false", true},
		"nothing":            {`true`, runner.CodeInternal, "the output of the program is not an object with ok: true or false", true},
		"endless":            {`exec yes`, runner.CodeInternal, errTooMuch.Error(), false},
		"question":           {`echo '{"ok":false,"interrupt":[1]}'`, "", "", false},
		"does not read, but": {`exec <&-; echo '{"ok":false,"error":{"code":"not_found","message":"x"}}'`, runner.CodeNotFound, "x", false},
	}
	for name, test := range tests {
		for _, idempotent := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", idempotent ", idempotent), func(t *testing.T) {
				r := newRig(t, "echo >> starts\n"+test.script, fmt.Sprint("idempotent: ", idempotent))
				result, err := r.Run(t.Context(), poet(), r.emit)
				if err != nil || result.OK || result.Unknown || result.Code != test.code || result.Message != test.message || result.Retry != (test.retry && idempotent) {
					t.Errorf("%+v, %v", result, err)
				}
				later := poet()
				later.Attempt, later.Remote = 2, result.Remote
				again, err := r.Run(t.Context(), later, r.emit)
				starts, _ := os.ReadFile(filepath.Join(r.dir, "starts"))
				switch {
				case err != nil, idempotent && (len(starts) != 2 || again.Message != test.message):
					t.Errorf("the second attempt: %+v, %v, %d starts", again, err, len(starts))
				case !idempotent && (len(starts) != 1 || again.OK || again.Retry || again.Unknown):
					t.Errorf("it was started %d times: %+v", len(starts), again)
				}
			})
		}
	}
}

// A program that asked is started again with the answer, because it asked for
// that; the key and the input go with it.
func TestAnswerStartsTheProgramThatAsked(t *testing.T) {
	r := newRig(t, `echo "$PAWL_IDEMPOTENCY_KEY" >> keys
if grep -q resume; then echo '{"ok":true}'; else echo '{"ok":false,"interrupt":{"q":1}}'; fi`)
	result, err := r.Run(t.Context(), poet(), r.emit)
	if err != nil || result.Interrupt == nil {
		t.Fatalf("%+v, %v", result, err)
	}
	run := poet()
	run.Remote, run.Resume = result.Remote, json.RawMessage(`"yes"`)
	if result, err = r.Run(t.Context(), run, r.emit); err != nil || !result.OK {
		t.Errorf("%+v, %v", result, err)
	}
	run.Remote = r.remote() // as it was while the answer was on its way
	if result, err = r.Run(t.Context(), run, r.emit); err != nil || !result.Unknown {
		t.Errorf("taken over: %+v, %v", result, err)
	}
	if keys, _ := os.ReadFile(filepath.Join(r.dir, "keys")); string(keys) != "s1:1970\ns1:1970:resume-1\n" {
		t.Errorf("the keys are %q", keys)
	}
}

// eventually waits for something that happens in another process.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	limit, tick := time.After(20*time.Second), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-limit:
			t.Fatalf("it never came true that %s", what)
		case <-tick.C:
		}
	}
}

// child is the number of the process that a script wrote to the file child.
func (r *rig) child(t *testing.T) (pid int) {
	t.Helper()
	eventually(t, "the program has started", func() bool {
		text, _ := os.ReadFile(filepath.Join(r.dir, "child"))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return pid > 0
	})
	return pid
}

func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	state, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Contains(string(state), ") Z ") // nobody waited for it
}

// A program and what it started are ended together, also when they are deaf.
func TestProgramsAreEndedWithTheirGroup(t *testing.T) {
	const deaf = "trap '' TERM; sleep 1000 & echo $! > part; mv part child; wait"
	const leaves = "sleep 1000 & echo $! > part; mv part child; echo '{\"ok\":true}'"
	stopping := errors.New("the process stops")
	tests := map[string]struct {
		script string
		stop   func(r *rig, run runner.Run, end context.CancelCauseFunc)
		code   string
		err    error
	}{
		"timeout":    {deaf, nil, runner.CodeTimeout, nil},
		"cancelled":  {deaf, func(r *rig, run runner.Run, _ context.CancelCauseFunc) { _ = r.Cancel(context.Background(), run) }, runner.CodeAborted, nil},
		"stopped":    {deaf, func(_ *rig, _ runner.Run, end context.CancelCauseFunc) { end(stopping) }, "", stopping},
		"left alone": {leaves, nil, "", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, run := newRig(t, test.script), poet()
			ctx, end := context.WithCancelCause(t.Context())
			defer end(nil)
			if name == "timeout" {
				run.Timeout = 500 * time.Millisecond
			}
			stopped := make(chan int, 1)
			go func() {
				pid := r.child(t)
				if test.stop != nil {
					test.stop(r, run, end)
				}
				stopped <- pid
			}()
			result, err := r.Run(ctx, run, r.emit)
			if !errors.Is(err, test.err) || result.Code != test.code {
				t.Errorf("%+v, %v", result, err)
			}
			pid := <-stopped
			eventually(t, "what the program started is gone", func() bool { return gone(pid) })

			// Of a program that was at work when the process stopped, nobody knows.
			run.Remote, run.Timeout = r.remote(), 0
			if test.err == nil {
				return
			}
			if result, err := r.Run(t.Context(), run, r.emit); err != nil || !result.Unknown || result.Retry {
				t.Errorf("taken over: %+v, %v", result, err)
			}
		})
	}
}

func TestIdempotentProgramIsStartedAgain(t *testing.T) {
	r, run := newRig(t, `echo '{"ok":true}'`, "idempotent: true"), poet()
	run.Remote = json.RawMessage(`{"attempt":1,"state":"going"}`)
	if result, err := r.Run(t.Context(), run, r.emit); err != nil || !result.OK {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestProgramThatIsGone(t *testing.T) {
	r := newRig(t, "true")
	if err := os.Remove(filepath.Join(r.dir, "poet.sh")); err != nil {
		t.Fatal(err)
	}
	result, err := r.Run(t.Context(), poet(), r.emit)
	if err != nil || result.Code != runner.CodeInternal || result.Retry || strings.Contains(result.Message, r.dir) {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestFaultOfTheStoreEndsTheProgram(t *testing.T) {
	full := errors.New("the disk is full")
	r := newRig(t, "echo words >&2; sleep 1000")
	_, err := r.Run(t.Context(), poet(), func(e runner.Event) error {
		if e.Kind == runner.KindProgress {
			return full
		}
		return nil
	})
	if !errors.Is(err, full) {
		t.Error(err)
	}
}

func TestDefinitionFaults(t *testing.T) {
	for text, want := range map[string]string{
		"name: x":                                            "graphs is missing",
		"graphs: {poet: {}}":                                 "command is missing",
		"graphs: {poet: {command: sh}}":                      "command must be a list of texts",
		"graphs: {poet: {command: [nope-99]}}":               "is not there, or is not a program",
		"graphs: {poet: {command: [sh, '${KEY}']}}":          "put secrets into env",
		"graphs: {poet: {command: [sh], env: {'A B': x}}}":   "is not the name of an environment variable",
		"graphs: {poet: {command: [sh], idempotent: maybe}}": "must be true or false",
	} {
		s := settingsOf(t, t.TempDir(), text)
		_, ok := New(s)
		if ok || !slices.ContainsFunc(s.Fields(), func(f pawl.Field) bool { return strings.Contains(f.String(), want) }) {
			t.Errorf("%s: %v", text, s.Fields())
		}
	}
}
