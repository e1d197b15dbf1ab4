package plain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/executor/runner"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/pawlrun/pawl/internal/executor/process.startGuard.func1"),
		goleak.IgnoreAnyFunction("github.com/pawlrun/pawl/internal/executor/process.start.func1.1")) // they last as long as the process
}

// kit runs things.
type kit struct {
	t *testing.T
	*Provider
	mu     sync.Mutex
	events []runner.Event // guarded by mu
}

func newKit(t *testing.T) *kit {
	t.Helper()
	getenv := func(name string) string {
		return map[string]string{"PATH": os.Getenv("PATH"), "HOME": "/somewhere", "API_TOKEN": "hush-hush-hush", "LONG_TOKEN": strings.Repeat("hush-", 40), "OTHER": "not for it"}[name]
	}
	k := &kit{t: t, Provider: New(Env{Getenv: getenv, HTTP: caller(t)})}
	k.grace = 300 * time.Millisecond
	return k
}

func (k *kit) emit(e runner.Event) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.events = append(k.events, e)
	return nil
}

func (k *kit) shown() (list []client.PlainOutput) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.events {
		var o client.PlainOutput
		if e.Kind == runner.KindOutput && json.Unmarshal(e.Output, &o) == nil {
			list = append(list, o)
		}
	}
	return list
}

func runOf(what client.PlainRun) runner.Run {
	graph, input := work.Graph(what)
	_, name, _ := strings.Cut(graph, ":")
	return runner.Run{
		RunID: "r", Attempt: 1, ScheduleID: "s", Schedule: "nightly", Timezone: "Europe/Berlin", GraphID: graph, Name: name, Input: input, Key: "s:at",
		ScheduledFor: time.Date(2030, 1, 31, 2, 0, 0, 0, time.UTC),
	}
}

func (k *kit) run(what client.PlainRun) (runner.Result, client.PlainOutput) {
	k.t.Helper()
	return k.runIn(k.t.Context(), what)
}

func (k *kit) runIn(ctx context.Context, what client.PlainRun) (runner.Result, client.PlainOutput) {
	k.t.Helper()
	result, err := k.Run(ctx, runOf(what), k.emit)
	if err != nil {
		k.t.Fatal(err)
	}
	var o client.PlainOutput
	if result.Output != nil {
		if err := json.Unmarshal(result.Output, &o); err != nil {
			k.t.Fatal(err)
		}
	}
	return result, o
}

func shell(script string) client.PlainRun {
	return client.PlainRun{Command: []string{"/bin/sh", "-c", script}}
}

// surface-2, 1: a command gets its slot, where things are and what its definition
// names, and nothing else of the server's.
func TestACommandsEnvironmentIsNamed(t *testing.T) {
	k := newKit(t)
	result, o := k.run(client.PlainRun{Command: []string{"env"}, Dir: t.TempDir(), Env: map[string]string{"MODE": "full", "TOKEN": "Bearer ${API_TOKEN}", "TZ": "UTC"}})
	got := strings.Split(strings.TrimSpace(o.Stdout), "\n")
	slices.Sort(got)
	want := []string{
		"HOME=/somewhere", "LANG=C.UTF-8", "MODE=full", "PATH=" + os.Getenv("PATH"), "PAWL_ATTEMPT=1", "PAWL_IDEMPOTENCY_KEY=s:at", "PAWL_RUN_ID=r",
		"PAWL_SCHEDULE=nightly", "PAWL_SCHEDULED_FOR=2030-01-31T02:00:00.000Z", "TOKEN=Bearer [secret API_TOKEN]", "TZ=UTC",
	}
	if !result.OK || !slices.Equal(got, want) {
		t.Errorf("%+v\n%s", result, strings.Join(got, "\n"))
	}
}

// How a command ends is told: exit 0 is success, anything else a failure that is
// known, so that another attempt may follow.
func TestHowACommandEnds(t *testing.T) {
	plainFile := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(plainFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/no/such/shell\n"), 0o700); err != nil { //nolint:gosec // it is to be executed
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		run  client.PlainRun
		ok   bool
		code string
		say  string
		exit int
	}{
		{"well", shell("echo fine"), true, "", "", 0},
		{"with a code", shell("echo first; echo no space left >&2; exit 3"), false, runner.CodeInternal, "exit code 3: no space left", 3},
		{"by a signal", shell("kill -9 $$"), false, runner.CodeInternal, "the signal killed", -1},
		{"not there", client.PlainRun{Command: []string{"no-such-program"}}, false, runner.CodeNotFound, `there is no program "no-such-program"`, -1},
		{"not there by its path", client.PlainRun{Command: []string{"/no/such"}}, false, runner.CodeNotFound, `there is no program "/no/such"`, -1},
		{"not executable", client.PlainRun{Command: []string{plainFile}}, false, runner.CodeNotFound, "is not executable", -1},
		{"a folder", client.PlainRun{Command: []string{t.TempDir()}}, false, runner.CodeNotFound, "is not executable", -1},
		{"no folder to run in", client.PlainRun{Command: []string{"true"}, Dir: "/no/such"}, false, runner.CodeNotFound, `there is no folder "/no/such"`, -1},
		{"a file to run in", client.PlainRun{Command: []string{"true"}, Dir: plainFile}, false, runner.CodeNotFound, "there is no folder", -1},
		{"no interpreter", client.PlainRun{Command: []string{script}}, false, runner.CodeInternal, "the interpreter that", -1},
		{"no variable", client.PlainRun{Command: []string{"true"}, Env: map[string]string{"X": "${NOT_SET}"}}, false, runner.CodeInvalidRequest, "NOT_SET is not set", -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			result, o := newKit(t).run(c.run)
			if result.OK != c.ok || result.Code != c.code || !strings.Contains(result.Message, c.say) || result.Unknown || result.Retry == c.ok {
				t.Errorf("%+v", result)
			}
			if code := o.ExitCode; (code == nil) != (c.exit < 0) || code != nil && *code != c.exit {
				t.Errorf("%+v", o)
			}
		})
	}
}

// What a command writes is kept from its end, bounded, readable, and without
// secrets, wherever it is cut.
func TestWhatACommandWritesIsBounded(t *testing.T) {
	k := newKit(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	result, o := k.run(shell(`head -c 500000000 /dev/zero | tr '\0' x; echo; echo the end`))
	runtime.ReadMemStats(&after)
	if !result.OK || len(o.Stdout) > kept || !strings.HasSuffix(o.Stdout, "x\nthe end\n") || o.StdoutBytes != 500_000_009 || !o.Truncated {
		t.Errorf("%v %d of %d: ...%s", result.OK, len(o.Stdout), o.StdoutBytes, o.Stdout[max(0, len(o.Stdout)-20):])
	}
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 32<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	_, o = k.run(shell(`printf 'caf\303\251 \377\000\033[1m\r\n' >&2`))
	if o.Stderr != "caf\u00e9 \\xff\\u0000\\u001b[1m\n" {
		t.Errorf("%q", o.Stderr)
	}
	for cut := range 12 { // so that the cut falls into every part of the secret
		what := shell(fmt.Sprintf(`printf '%s'; yes "$TOKEN" | head -n 600`, strings.Repeat("y", 17*cut)))
		what.Env = map[string]string{"TOKEN": "${LONG_TOKEN}"}
		if _, o = k.run(what); strings.Contains(o.Stdout, "hush-") || !strings.Contains(o.Stdout, "[secret LONG_TOKEN]") {
			t.Fatalf("after %d bytes: %.80q", 17*cut, o.Stdout)
		}
	}
}

// alive reports whether a process is there.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func gone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); alive(pid); {
		if time.Now().After(end) {
			t.Errorf("process %d is still there", pid)
			return
		}
		runtime.Gosched()
	}
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatalf("no process id: %q", text)
	}
	return n
}

// A command that forks, ignores the signal or closes its output ends with its
// group: when its time is over, when it is cancelled, and when it ends itself.
func TestTheGroupOfACommandEnds(t *testing.T) {
	k := newKit(t)
	stubborn := shell(`trap '' TERM; (trap '' TERM; exec sleep 600) & echo $!; wait`)
	stubborn.Timeout = "1s"
	began := time.Now()
	result, o := k.run(stubborn)
	if result.OK || result.Code != runner.CodeTimeout || !result.Retry || !strings.Contains(result.Message, "did not end within 1s") || time.Since(began) < time.Second+k.grace {
		t.Errorf("after %s: %+v", time.Since(began), result)
	}
	gone(t, number(t, o.Stdout))

	result, o = k.run(shell(`sleep 600 >/dev/null 2>&1 & echo $!`)) // it leaves something behind
	if !result.OK {
		t.Errorf("%+v", result)
	}
	gone(t, number(t, o.Stdout))

	result, o = k.run(shell(`sleep 600 & echo $!`)) // and that holds the output open
	if !result.OK {
		t.Errorf("%+v", result)
	}
	gone(t, number(t, o.Stdout))

	polite := shell(`trap 'echo bye; exit 0' TERM; echo $$; while :; do sleep 0.05; done`)
	before := len(k.shown())
	go func() {
		for len(k.shown()) == before {
			runtime.Gosched()
		}
		_ = k.Cancel(context.Background(), runOf(polite))
	}()
	result, o = k.run(polite)
	if result.Code != runner.CodeAborted || result.Retry || !strings.HasSuffix(o.Stdout, "bye\n") {
		t.Errorf("%+v %q", result, o.Stdout)
	}
}

// What a command writes is shown while it runs.
func TestACommandIsShownWhileItRuns(t *testing.T) {
	k := newKit(t)
	done := filepath.Join(t.TempDir(), "done")
	go func() {
		for {
			if list := k.shown(); len(list) > 0 && list[0].Stdout == "half way\n" {
				break
			}
			runtime.Gosched()
		}
		_ = os.WriteFile(done, nil, 0o600)
	}()
	result, o := k.run(shell(`echo half way; while [ ! -e ` + done + ` ]; do sleep 0.05; done; echo there`))
	if !result.OK || o.Stdout != "half way\nthere\n" {
		t.Errorf("%+v %+v", result, o)
	}
}

// A command that was running when its process ended is not started again: nobody
// knows how far it came. One that may be started twice is, and so is one of
// another attempt.
func TestACommandIsStartedOncePerAttempt(t *testing.T) {
	k := newKit(t)
	file := filepath.Join(t.TempDir(), "starts")
	r := runOf(shell("echo x >> " + file))
	starts := func() int {
		text, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.Count(string(text), "x")
	}
	died := fmt.Errorf("the process died")
	remember := func(e runner.Event) error {
		if e.Kind == runner.KindRemote {
			r.Remote = e.Remote
			return died
		}
		return nil
	}
	if _, err := k.Run(t.Context(), r, remember); !errors.Is(err, died) || starts() != 0 {
		t.Fatalf("%v, %d starts", err, starts())
	}
	result, err := k.Run(t.Context(), r, k.emit)
	if err != nil || !result.Unknown || result.Retry || starts() != 0 {
		t.Errorf("%+v %v, %d starts", result, err, starts())
	}
	r.Idempotent = true
	if result, err := k.Run(t.Context(), r, k.emit); err != nil || !result.OK || starts() != 1 {
		t.Errorf("%+v %v, %d starts", result, err, starts())
	}
	r.Idempotent, r.Attempt = false, 2
	if result, err := k.Run(t.Context(), r, k.emit); err != nil || !result.OK || starts() != 2 {
		t.Errorf("%+v %v, %d starts", result, err, starts())
	}
}

// A server that stops ends its commands and says that it does not know.
func TestACommandEndsWithTheServer(t *testing.T) {
	k := newKit(t)
	ctx, stop := context.WithCancelCause(t.Context())
	stops := fmt.Errorf("the server stops")
	go func() {
		for len(k.shown()) == 0 {
			runtime.Gosched()
		}
		stop(stops)
	}()
	_, err := k.Run(ctx, runOf(shell("echo $$; exec sleep 600")), k.emit)
	if !errors.Is(err, stops) {
		t.Errorf("%v", err)
	}
	gone(t, number(t, k.shown()[0].Stdout))
}
