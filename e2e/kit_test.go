package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// binary is the program under test, built once: with the flags in GOFLAGS, so
// that make test watches it for races, too, and compiles nothing twice.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "pawl-e2e-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "pawl")
	build := exec.Command("go", "build", "-o", binary, "github.com/pawlrun/pawl/cmd/pawl")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		os.Exit(1)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	pgtest.Main(m)
}

// server is a running pawl serve.
type server struct {
	t    *testing.T
	dir  string // working directory, with .pawl in it
	url  string
	args []string
	env  []string // beside that of the test
	cmd  *exec.Cmd
	log  *logBuffer
	done chan struct{}
}

// logBuffer keeps what a process says.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // only its number was wanted
	return l.Addr().String()
}

// serve starts a server on the database in a fresh folder and waits until it
// is ready.
func serve(t *testing.T, database string) *server {
	t.Helper()
	addr := freeAddr(t)
	s := &server{t: t, dir: t.TempDir(), url: "http://" + addr, log: &logBuffer{}}
	s.args = []string{"serve", "--addr", addr, "--database", database, "--allow-private", "127.0.0.1/32"}
	s.start()
	t.Cleanup(func() {
		s.kill()
		if strings.Contains(s.log.String(), "WARNING: DATA RACE") {
			t.Error("the server has a data race")
		}
		if t.Failed() {
			t.Logf("log of %s:\n%s", s.url, s.log)
		}
	})
	return s
}

func (s *server) start() {
	s.t.Helper()
	s.launch()
	s.eventually("the server is ready", func() bool { return s.status("/readyz") == http.StatusOK })
}

func (s *server) launch() { s.t.Helper(); s.launchWith(s.log) }

// launchWith starts it with its messages going to w.
func (s *server) launchWith(w io.Writer) {
	s.t.Helper()
	s.cmd = exec.Command(binary, s.args...)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = s.dir, s.log, w
	s.cmd.Env = append(os.Environ(), s.env...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.done = make(chan struct{})
	go func(c *exec.Cmd, done chan struct{}) { _ = c.Wait(); close(done) }(s.cmd, s.done)
}

// kill ends it with SIGKILL.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

// stop ends it as Ctrl-C would, and returns its exit code.
func (s *server) stop() int {
	s.t.Helper()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(60 * time.Second):
		s.t.Fatal("the server does not stop")
	}
	return s.cmd.ProcessState.ExitCode()
}

func (s *server) eventually(what string, cond func() bool) {
	s.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(60 * time.Second)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			s.t.Fatalf("did not happen: %s", what)
		}
	}
}

func (s *server) token() string {
	b, err := os.ReadFile(filepath.Join(s.dir, ".pawl", "admin.token"))
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// call makes a request and decodes the answer into out, if given.
func (s *server) call(method, path string, body, out any) int {
	s.t.Helper()
	status, err := s.tryCall(method, path, body, out)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return status
}

func (s *server) tryCall(method, path string, body, out any) (int, error) {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return 0, err
		}
		r = bytes.NewReader(b)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, r)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+s.token())
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	if out == nil {
		return resp.StatusCode, nil
	}
	return resp.StatusCode, json.NewDecoder(resp.Body).Decode(out)
}

// status asks without a token; 0 is no answer.
func (s *server) status(path string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return 0
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

type job struct {
	ID         string    `json:"id"`
	State      string    `json:"state"`
	RunAt      time.Time `json:"runAt"`
	StartedAt  time.Time `json:"startedAt"`
	FinishedAt time.Time `json:"finishedAt"`
	Attempt    int       `json:"attempt"`
	LastError  string    `json:"lastError"`
}

// enqueue adds a job and returns it.
func (s *server) enqueue(body map[string]any) job {
	s.t.Helper()
	var j job
	if status := s.call("POST", "/api/v1/jobs", body, &j); status != http.StatusCreated {
		s.t.Fatalf("enqueue answered %d", status)
	}
	return j
}

func (s *server) job(id string) job {
	s.t.Helper()
	var j job
	if status := s.call("GET", "/api/v1/jobs/"+id, nil, &j); status != http.StatusOK {
		s.t.Fatalf("job %s: %d", id, status)
	}
	return j
}

// upstream counts calls by their Idempotency-Key.
type upstream struct {
	*httptest.Server
	mu     sync.Mutex
	calls  map[string]int
	at     map[string]time.Time
	active map[string]int // by path
	most   map[string]int // highest number at once, by path
	hold   chan struct{}  // calls to /hold wait for it
}

func newUpstream(t *testing.T) *upstream {
	u := &upstream{calls: map[string]int{}, at: map[string]time.Time{}, active: map[string]int{}, most: map[string]int{}, hold: make(chan struct{})}
	u.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // an answer before the end of a large body cuts the connection
		u.mu.Lock()
		key := r.Header.Get("Idempotency-Key")
		u.calls[key]++
		u.at[key] = time.Now()
		u.active[r.URL.Path]++
		u.most[r.URL.Path] = max(u.most[r.URL.Path], u.active[r.URL.Path])
		u.mu.Unlock()
		if r.URL.Path == "/hold" {
			select {
			case <-u.hold:
			case <-r.Context().Done():
			}
		}
		u.mu.Lock()
		u.active[r.URL.Path]--
		u.mu.Unlock()
	}))
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) got(key string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.calls["job-"+key]
}

func (u *upstream) total() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.calls)
}

func post(url string) map[string]any {
	return map[string]any{"task": "http", "payload": map[string]any{"url": url}}
}

func with(m map[string]any, key string, value any) map[string]any {
	m[key] = value
	return m
}
