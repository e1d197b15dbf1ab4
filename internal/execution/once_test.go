package execution

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/executor"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/store"
)

// executorOf is the executor that a definition describes.
func executorOf(t *testing.T, dir, definition, graphID string) runner.Executor {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "executor.yaml"), []byte(definition), 0o600); err != nil {
		t.Fatal(err)
	}
	allow, err := outbound.ParsePrefixes([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	client, err := outbound.New(outbound.Config{AllowPrivate: allow})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	set, err := executor.Load(dir, executor.Env{Getenv: os.Getenv, HTTP: client})
	if err != nil {
		t.Fatal(err)
	}
	exec, _, err := set.Lookup(graphID)
	if err != nil {
		t.Fatal(err)
	}
	return exec
}

// program is an executor whose graph writes a line at each start and then does
// what the script says.
func program(t *testing.T, script, more string) (exec runner.Executor, starts func() int) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "poet.sh"), []byte("#!/bin/sh\necho >> starts\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	exec = executorOf(t, dir, "kind: executor\nname: local\ntype: exec\ngraphs: {poet: {command: [./poet.sh], timeout: 20s"+more+"}}\n", "local:poet")
	return exec, func() int {
		text, _ := os.ReadFile(filepath.Join(dir, "starts"))
		return len(text)
	}
}

// surface-2, section 1: a program that does not say that it may be started twice
// is started once, on whichever side of its start, or of its end, the process
// dies, and whoever takes over tells what is known.
func TestACrashStartsNoProgramTwice(t *testing.T) {
	tests := map[string]struct {
		dies           func(r runner.Run, e runner.Event) bool // before the event is stored
		after          func(r runner.Run, e runner.Event) bool // after it
		atEnd          bool                                    // the program has ended, and its outcome is not written
		starts         int
		ok, idempotent bool
	}{
		"before the start is noted": {dies: isRemote, starts: 1, ok: true},
		"before the start":          {after: isRemote, starts: 0},
		"while it runs":             {dies: isProgress, starts: 1},
		"after its end":             {atEnd: true, starts: 1},
		"while it runs, idempotent": {dies: isProgress, starts: 2, ok: true, idempotent: true},
		"after its end, idempotent": {atEnd: true, starts: 2, ok: true, idempotent: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, k *kit) {
				more := ""
				if test.idempotent {
					more = ", idempotent: true"
				}
				exec, starts := program(t, `echo at work >&2; echo '{"ok":true}'`, more)
				hang, dead := make(chan struct{}), make(chan struct{}, 1)
				die := func() error {
					dead <- struct{}{}
					<-hang
					return errors.New("it is dead")
				}
				k.fake.run = func(ctx context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
					if len(k.fake.asked()) > 1 {
						return exec.Run(ctx, r, emit)
					}
					result, err := exec.Run(ctx, r, func(e runner.Event) error {
						if test.dies != nil && test.dies(r, e) {
							return die()
						}
						err := emit(e)
						if test.after != nil && test.after(r, e) {
							return die()
						}
						return err
					})
					if test.atEnd {
						return runner.Result{}, die()
					}
					return result, err
				}
				old := begin(k, k.s, "k")
				<-dead
				k.expire("k")
				answer, err := k.service("node-2").Run(t.Context(), "k", graph, k.request(`{}`))
				if err != nil || answer.OK != test.ok || answer.Unknown == test.ok || answer.Retry {
					t.Errorf("taken over: %+v, %v", answer, err)
				}
				close(hang)
				<-old
				if n := starts(); n != test.starts {
					t.Errorf("the program was started %d times, want %d", n, test.starts)
				}
			})
		})
	}
}

func isRemote(_ runner.Run, e runner.Event) bool   { return e.Kind == runner.KindRemote }
func isProgress(_ runner.Run, e runner.Event) bool { return e.Kind == runner.KindProgress }

// keeper is a server that honours keys as the docs ask it to: what was answered
// under a key is answered again, and starts nothing.
type keeper struct {
	*httptest.Server
	mu      sync.Mutex
	begins  func(n int, body map[string]json.RawMessage) (status int, answer string)
	started []string // keys, in order; guarded by mu
	bodies  []map[string]json.RawMessage
	kept    map[string]string
}

func newKeeper(t *testing.T, begins func(n int, body map[string]json.RawMessage) (int, string)) *keeper {
	k := &keeper{begins: begins, kept: map[string]string{}}
	k.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k.mu.Lock()
		defer k.mu.Unlock()
		key := r.Header.Get("Idempotency-Key")
		if kept, known := k.kept[key]; known {
			_, _ = w.Write([]byte(kept))
			return
		}
		var body map[string]json.RawMessage
		_ = json.NewDecoder(r.Body).Decode(&body)
		k.started, k.bodies = append(k.started, key), append(k.bodies, body)
		status, answer := k.begins(len(k.started), body)
		if status == http.StatusOK {
			k.kept[key] = answer
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(k.Close)
	return k
}

// X-69, surface, Executor: with an executor that honours keys, a slot can be
// tried again, both answers of a person reach it, and it is told its input each
// time. The first start has exactly the key of the slot; what got no answer of
// the graph comes again under its own key.
func TestAnExecutorThatHonoursKeysCanBeTriedAgain(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		server := newKeeper(t, func(n int, body map[string]json.RawMessage) (int, string) {
			switch n {
			case 1:
				return http.StatusServiceUnavailable, "starting"
			case 2, 5:
				return http.StatusOK, `{"ok":false,"interrupt":{"q":"go on?"}}`
			case 3: // the first answer: not now
				return http.StatusBadGateway, ""
			case 4:
				return http.StatusOK, `{"ok":false,"error":{"code":"internal","message":"no luck"}}`
			}
			return http.StatusOK, `{"ok":true,"output":` + string(body["resume"]) + `}`
		})
		exec := executorOf(t, t.TempDir(), "kind: executor\nname: http\ntype: http\ngraphs: {poet: {url: '"+server.URL+"'}}\n", "http:poet")
		k.fake.run = exec.Run
		ask := func(attempt int) contract.RunAnswerV1 {
			t.Helper()
			req := k.request(`{"topic":"autumn"}`)
			req.Attempt = attempt
			answer, err := k.s.Run(t.Context(), "s:1", graph, req)
			if err != nil {
				t.Fatal(err)
			}
			return answer
		}
		answered := func(q contract.RunAnswerV1, text string) contract.RunAnswerV1 {
			t.Helper()
			if q.QuestionID == "" {
				t.Fatalf("it asks nothing: %+v", q)
			}
			answer, err := k.s.Resume(t.Context(), "s:1", q.QuestionID, []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			return answer
		}
		if a := ask(1); a.OK || !a.Retry {
			t.Fatalf("%+v", a)
		}
		if a := answered(ask(2), `"one"`); a.OK || !a.Retry { // a 502 to the answer
			t.Fatalf("%+v", a)
		}
		if a := ask(3); a.OK || !a.Retry || a.ErrorMessage != "no luck" {
			t.Fatalf("%+v", a)
		}
		if a := answered(ask(4), `"two"`); !a.OK || string(a.Output) != `"two"` {
			t.Fatalf("%+v", a)
		}
		want := []string{"s:1", "s:1", "s:1:resume-1", "s:1:resume-1", "s:1:attempt-4", "s:1:attempt-4:resume-1"}
		if diff := cmp.Diff(want, server.started); diff != "" {
			t.Error(diff)
		}
		for i, body := range server.bodies {
			if got := string(body["input"]); got != `{"topic":"autumn"}` {
				t.Errorf("call %d was told the input %s", i+1, got)
			}
		}
		if one := string(server.bodies[3]["resume"]); one != `"one"` {
			t.Errorf("the repeated answer is %s", one)
		}
	})
}

// A question is not lost, and not asked twice, if the process dies once the
// program has asked: what it asked and that it asked are one write.
func TestAQuestionAndItsMemoryAreOneWrite(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		exec, starts := program(t, `if grep -q resume; then echo '{"ok":true}'; else echo '{"ok":false,"interrupt":{"q":1}}'; fi`, "")
		k.fake.run = exec.Run
		asks := k.mustRun("k")
		if asks.QuestionID == "" || k.count(`select count(*) from execution_requests where remote like '%asks%'`) != 1 {
			t.Fatalf("%+v", asks)
		}
		later := k.service("node-2")
		if answer, err := later.Resume(t.Context(), "k", asks.QuestionID, []byte(`"yes"`)); err != nil || !answer.OK {
			t.Errorf("%+v, %v", answer, err)
		}
		if n := starts(); n != 2 {
			t.Errorf("%d starts", n)
		}
		var held string
		k.write(func(ctx context.Context, tx *store.Tx) error {
			return tx.QueryRow(ctx, `select remote from execution_requests`).Scan(&held)
		})
		if strings.Contains(held, "autumn") {
			t.Errorf("the input is kept after the end: %s", held)
		}
		if _, err := later.Resume(t.Context(), "k", "", []byte(`"yes"`)); err != nil && !errors.Is(err, pawl.ErrConflict) {
			t.Error(err)
		}
	})
}
