package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// house is a real server that a test started with pawl serve.
type house struct {
	call
	t   *testing.T
	url string
	api *client.Client
	end func() result
}

// serve starts a server in a fresh folder on a free port.
func serve(t *testing.T, flags ...string) *house {
	t.Helper()
	h := &house{t: t, call: call{dir: t.TempDir(), env: map[string]string{}}}
	p, stdout, stderr := h.process(t, append([]string{"serve", "--addr", "127.0.0.1:0", "--log-level", "error"}, flags...)...)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- Run(ctx, p) }()
	h.end = func() result {
		cancel()
		return result{<-ended, stdout.String(), stderr.String()}
	}
	waiting, enough := context.WithTimeout(t.Context(), 20*time.Second)
	defer enough()
	stderr.await(waiting, t, "url=")
	h.url = regexp.MustCompile(`url=(\S+)`).FindStringSubmatch(stderr.String())[1]
	h.env["PAWL_URL"] = h.url
	token, err := os.ReadFile(filepath.Join(h.dir, ".pawl", "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	if h.api, err = client.New(client.Config{URL: h.url, Token: strings.TrimSpace(string(token))}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.api.Close)
	return h
}

func (h *house) add(spec client.JobRequest) client.Job {
	h.t.Helper()
	j, err := h.api.Enqueue(h.t.Context(), spec)
	if err != nil {
		h.t.Fatal(err)
	}
	return j
}

func (h *house) pawl(args ...string) result { h.t.Helper(); return h.run(h.t, args...) }

func TestServeAnswersCommandsUntilItIsStopped(t *testing.T) {
	h := serve(t)
	later := h.add(client.JobRequest{Task: "log", Payload: json.RawMessage(`{"message":"later"}`), RunAt: pawl.FormatTime(time.Now().Add(time.Hour)), Key: "k", Lane: "l"})

	r := h.pawl("get", "jobs", "--state", "scheduled", "--task", "log")
	r.expect(t, pawl.ExitDone)
	if !strings.Contains(r.stdout, later.ID) || !strings.Contains(r.stdout, "in 1h") && !strings.Contains(r.stdout, "in 59m") {
		t.Errorf("get:\n%s", r.stdout)
	}
	var one map[string]any
	if err := json.Unmarshal([]byte(h.pawl("get", "job", later.ID, "-o", "json").stdout), &one); err != nil || one["key"] != "k" {
		t.Errorf("get one: %v, %v", one, err)
	}
	if r := h.pawl("describe", "job", later.ID); !strings.Contains(r.stdout, "It waits for its time") || !strings.Contains(r.stdout, `"message": "later"`) {
		t.Errorf("describe: %+v", r)
	}
	h.pawl("retry", "job", later.ID).expect(t, pawl.ExitRefused)
	h.pawl("delete", "job", later.ID).expect(t, pawl.ExitDone)
	h.pawl("delete", "job", "1").expect(t, pawl.ExitNotFound)
	h.pawl("get", "jobs", "--state", "odd").expect(t, pawl.ExitFailed, "/state")

	r = h.end()
	r.expect(t, pawl.ExitDone)
	if r.stdout != "" {
		t.Errorf("serve writes to stdout: %s", r.stdout)
	}
	h.pawl("get", "jobs").expect(t, pawl.ExitUnreachable, "Start it with: pawl serve")
}

func TestFailedJobCanBeRetried(t *testing.T) {
	h := serve(t)
	defer h.end()
	// Loopback is refused unless it was allowed, and that is for good.
	j := h.add(client.JobRequest{Task: "http", Payload: json.RawMessage(`{"url":"` + h.url + `/healthz"}`)})
	h.settle(j.ID, client.JobFailed)
	if r := h.pawl("describe", "job", j.ID); !strings.Contains(r.stdout, "failed for good") || !strings.Contains(r.stdout, "private") && !strings.Contains(r.stdout, "loopback") {
		t.Errorf("describe: %+v", r)
	}
	h.pawl("retry", "job", j.ID).expect(t, pawl.ExitDone)
	h.settle(j.ID, client.JobFailed)
}

// settle waits until a job is in a state. It asks again and again, because the
// stream tells of an end before the row does.
func (h *house) settle(id, state string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 20*time.Second)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		if j, err := h.api.Job(ctx, id); err == nil && j.State == state {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			h.t.Fatalf("job %s is not %s", id, state)
		}
	}
}

func TestTokensOfARealServer(t *testing.T) {
	h := serve(t)
	defer h.end()
	made := h.pawl("token", "create", "robot", "--scope", "jobs:read", "--expires", "90d", "-o", "json")
	made.expect(t, pawl.ExitDone)
	var token struct{ ID, Token string }
	if err := json.Unmarshal([]byte(made.stdout), &token); err != nil || token.Token == "" {
		t.Fatalf("create: %+v", made)
	}
	if r := h.pawl("token", "list"); !strings.Contains(r.stdout, "robot") || !strings.Contains(r.stdout, "admin.token") {
		t.Errorf("list:\n%s", r.stdout)
	}
	h.pawl("get", "jobs", "--token", token.Token).expect(t, pawl.ExitDone)
	h.pawl("token", "create", "more", "--token", token.Token).expect(t, pawl.ExitNotAllowed)
	h.pawl("token", "revoke", token.ID).expect(t, pawl.ExitDone)
	h.pawl("get", "jobs", "--token", token.Token).expect(t, pawl.ExitNotAllowed)
	if plain := h.pawl("token", "create", "plain"); strings.Count(plain.stdout, "\n") != 1 || plain.code != pawl.ExitDone {
		t.Errorf("create: %+v", plain)
	}
}

func TestWatchShowsChangesAsTheyCome(t *testing.T) {
	h := serve(t)
	defer h.end()
	h.add(client.JobRequest{Task: "log", RunAt: pawl.FormatTime(time.Now().Add(time.Hour)), Lane: "before"})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	p, stdout, stderr := h.process(t, "get", "jobs", "--task", "log", "-w")
	ended := make(chan int, 1)
	go func() { ended <- Run(ctx, p) }()
	stdout.await(ctx, t, "before")
	h.add(client.JobRequest{Task: "log", Lane: "while"})
	stdout.await(ctx, t, "succeeded")
	cancel()
	if code := <-ended; code != pawl.ExitDone {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if text := stdout.String(); strings.Count(text, "ID ") != 1 || !strings.Contains(text, "while") {
		t.Errorf("got:\n%s", text)
	}
}

func TestSecondServerOnTheSameDataIsRefused(t *testing.T) {
	h := serve(t)
	defer h.end()
	r := h.pawl("serve", "--addr", "127.0.0.1:0")
	if r.code == pawl.ExitDone || !strings.Contains(r.stderr, "error: ") {
		t.Errorf("got %+v", r)
	}
}

func TestBannerTellsAPersonWhatToDoNext(t *testing.T) {
	c := call{terminal: true, env: map[string]string{"NO_COLOR": "1"}, dir: t.TempDir()}
	p, _, stderr := c.process(t, "serve", "--addr", "127.0.0.1:0", "--data", "d", "--log-level", "error")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- Run(ctx, p) }()
	waiting, enough := context.WithTimeout(t.Context(), 20*time.Second)
	defer enough()
	stderr.await(waiting, t, "Ctrl-C")
	cancel()
	<-ended
	for _, words := range []string{"listens on http://127.0.0.1:", "token      in ", "admin.token", "pawl get jobs -w --server http://127.0.0.1:", "--data "} {
		if !strings.Contains(stderr.String(), words) {
			t.Errorf("the banner lacks %q:\n%s", words, stderr)
		}
	}
}

// A second server in the same folder says that there is one, and which.
func TestSecondServerSaysThatThereIsOne(t *testing.T) {
	h := serve(t)
	addr := strings.TrimPrefix(h.url, "http://")
	h.pawl("serve", "--addr", addr).expect(t, pawl.ExitRefused, "Pawl runs here already: process", addr, "stop it first")
	// In another folder it is the port that is taken.
	call{}.run(t, "serve", "--addr", addr).expect(t, pawl.ExitRefused, "cannot listen on "+addr, "Another process has it")
}
