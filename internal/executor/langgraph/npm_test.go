package langgraph

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/npmtest"
)

// npmServer is the folder of the LangGraph server that others wrote, in the
// version that testdata pins. Its packages name each other's versions more narrowly
// than they need.
func npmServer(t *testing.T) string {
	t.Helper()
	return npmtest.Install(t, os.DirFS("testdata/langgraph"), "--legacy-peer-deps")
}

// langServer is a LangGraph server in a process of its own.
type langServer struct {
	t       *testing.T
	folder  string
	dir     string // where its state is
	address string
	process *exec.Cmd
}

// startServer starts a server with an empty state on a free port.
func startServer(t *testing.T) *langServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &langServer{t: t, folder: npmServer(t), dir: t.TempDir(), address: listener.Addr().String()}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *langServer) url() string { return "http://" + s.address }

func (s *langServer) start() {
	s.t.Helper()
	_, port, _ := strings.Cut(s.address, ":")
	s.process = exec.Command("node", filepath.Join(s.folder, "serve.mjs"), port)
	s.process.Dir = s.dir
	s.process.Env = append(os.Environ(), "LANGSMITH_TRACING=false")
	s.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if _, err := s.process.StdinPipe(); err != nil { // it ends with this process, should the tests be killed
		s.t.Fatal(err)
	}
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	probe := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	eventually(s.t, "the server answers", func() bool {
		resp, err := probe.Get(s.url() + "/ok")
		if err != nil {
			return false
		}
		_ = resp.Body.Close() // only the status counts
		return resp.StatusCode == http.StatusOK
	})
}

// kill ends the server as a crash would.
func (s *langServer) kill() {
	_ = syscall.Kill(-s.process.Process.Pid, syscall.SIGKILL)
	_ = s.process.Wait()
}

// runs are the runs of a thread that the server has.
func (s *langServer) runs(thread string) []serverRun {
	s.t.Helper()
	var runs []serverRun
	if problem := connect(s.t, s.url()).askFor(runner.Run{}).call(s.t.Context(), http.MethodGet, "/threads/"+thread+"/runs?limit=100", nil, &runs); problem != nil {
		s.t.Fatal(problem.result.Message)
	}
	return runs
}

// eventually waits for something that happens in another process.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	limit, tick := time.After(testLimit), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-limit:
			t.Fatalf("it never came true that %s", what)
		case <-tick.C:
		}
	}
}

// C-36, C-37, lessons 55 and 56, on the server that people run. The tests
// share it, for it needs a second to start.
func TestRealServer(t *testing.T) {
	s := startServer(t)
	tests := map[string]func(*testing.T, *langServer){
		"a run ends with its output":                realRun,
		"a failure is told and tried again":         realFailure,
		"a question is answered by a person":        realInterrupt,
		"a cancelled run is aborted":                realCancel,
		"a run whose time is over is ended":         realTimeout,
		"a run is taken over after a stop":          realTakeover,
		"a run whose answer got lost is found":      realLostAnswer,
		"an assistant that is not there":            realNoAssistant,
		"a run that goes on is not started again":   realNoSecondStart,
		"a broken stream goes on where it left off": realBrokenStream,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			own := *s
			own.t = t
			test(t, &own)
		})
	}
}

func realRun(t *testing.T, s *langServer) {
	p, b := connect(t, s.url()), &book{}
	r := runOf(t, `{"input":{"ticks":2,"usage":true}}`)
	result := must(t, p, r, b)
	var output struct {
		Steps []string `json:"steps"`
		Total int      `json:"total"`
	}
	if err := json.Unmarshal(result.Output, &output); err != nil || !result.OK || output.Total != 2 || !slices.Equal(output.Steps, []string{"parse", "work", "gate:auto"}) {
		t.Errorf("%+v, %s", result, result.Output)
	}
	want := []runner.Usage{{Unit: "m1", Model: "tiny-1", InputTokens: 10, OutputTokens: 4}, {Unit: "m2", Model: "tiny-1", InputTokens: 7}}
	if diff := cmp.Diff(want, b.usage); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"node parse", `{"tick":0}`, `{"tick":1}`, "node work", "node gate"}, b.progress); diff != "" {
		t.Error(diff)
	}
	m := b.memory(t)
	if len(b.remotes) != 3 || m.Thread != threadOf(r.RunID, 1) || m.Run != result.TraceID || !m.Settled {
		t.Errorf("remembered is %s", b.remotes)
	}

	// The same once more, with and without what is remembered: nothing is started.
	for _, remote := range []json.RawMessage{b.remote(), b.remotes[1], b.remotes[0], nil} {
		r.Remote = remote
		if again := must(t, p, r, &book{}); !again.OK || again.TraceID != result.TraceID {
			t.Errorf("with %s: %+v", remote, again)
		}
	}
	if runs := s.runs(m.Thread); len(runs) != 1 || runs[0].Metadata[metaRun] != r.RunID || runs[0].Metadata[metaKey] != r.Key {
		t.Errorf("the server has %+v", runs)
	}
}

func realFailure(t *testing.T, s *langServer) {
	p, b := connect(t, s.url()), &book{}
	r := runOf(t, `{"input":{"ticks":1,"fail":true}}`)
	result := must(t, p, r, b)
	if result.OK || result.Code != runner.CodeInternal || result.Message != "boom: asked to fail" || !result.Retry || result.Unknown {
		t.Errorf("%+v", result)
	}
	first := b.memory(t)
	r.Attempt, r.Remote, r.Input = 2, b.remote(), json.RawMessage(`{"input":{"ticks":1}}`)
	result = must(t, p, r, b)
	if second := b.memory(t); !result.OK || second.Thread == first.Thread || !strings.Contains(string(result.Output), `"parse"`) || strings.Count(string(result.Output), `"parse"`) != 1 {
		t.Errorf("%+v, %s; %+v after %+v", result, result.Output, second, first)
	}
}

func realInterrupt(t *testing.T, s *langServer) {
	p, b := connect(t, s.url()), &book{}
	r := runOf(t, `{"input":{"ticks":1,"approve":true,"usage":true}}`)
	result := must(t, p, r, b)
	if result.OK || result.Code != "" || !strings.Contains(string(result.Interrupt), `"question":"go on?"`) {
		t.Fatalf("%+v, %s", result, result.Interrupt)
	}
	r.Remote = b.remote()
	if again := must(t, p, r, &book{}); string(again.Interrupt) != string(result.Interrupt) {
		t.Errorf("asked again, it is %+v", again)
	}

	r.Resume = json.RawMessage(`{"ok":true}`)
	answered := &book{}
	result = must(t, p, r, answered)
	if !result.OK || !strings.Contains(string(result.Output), `gate:{\"ok\":true}`) || len(answered.usage) != 2 {
		t.Errorf("%+v, %s, %v", result, result.Output, answered.usage)
	}
	// The answer is given once, whatever was forgotten of it.
	for _, remote := range []json.RawMessage{r.Remote, answered.remotes[0], answered.remotes[1]} {
		r.Remote = remote
		if again := must(t, p, r, &book{}); !again.OK || again.TraceID != result.TraceID {
			t.Errorf("with %s: %+v", remote, again)
		}
	}
	if runs := s.runs(b.memory(t).Thread); len(runs) != 2 {
		t.Errorf("the server has %+v", runs)
	}
}

// begun runs a graph in the background until it ticks.
func begun(t *testing.T, ctx context.Context, p *Provider, r runner.Run, b *book) (result <-chan runner.Result, fault <-chan error) {
	t.Helper()
	ticks := make(chan struct{}, 1)
	b.see = func(e runner.Event) error {
		if strings.Contains(e.Text, "tick") {
			select {
			case ticks <- struct{}{}:
			default:
			}
		}
		return nil
	}
	results, faults := make(chan runner.Result, 1), make(chan error, 1)
	go func() {
		result, err := p.Run(ctx, r, b.emit)
		results <- result
		faults <- err
	}()
	select {
	case <-ticks:
	case <-time.After(testLimit):
		t.Fatal("the graph does not tick")
	}
	return results, faults
}

func realCancel(t *testing.T, s *langServer) {
	for _, place := range []string{"here", "elsewhere"} {
		p, b := connect(t, s.url()), &book{}
		r := runOf(t, `{"input":{"ticks":100000}}`)
		r.RunID, r.Key = r.RunID+place, r.Key+place
		results, faults := begun(t, t.Context(), p, r, b)
		canceller := p
		if place == "elsewhere" {
			canceller = connect(t, s.url())
		} else {
			r.Remote = b.remote()
		}
		if err := canceller.Cancel(t.Context(), r); err != nil {
			t.Errorf("%s: %v", place, err)
		}
		if result, err := <-results, <-faults; err != nil || result.Code != runner.CodeAborted || result.Retry || result.Unknown {
			t.Errorf("%s: %+v, %v", place, result, err)
		}
		if runs := s.runs(b.memory(t).Thread); len(runs) != 1 || runs[0].isActive() {
			t.Errorf("%s: the server has %+v", place, runs)
		}
		if err := canceller.Cancel(t.Context(), r); err != nil {
			t.Errorf("%s, again: %v", place, err)
		}
	}
	r := runOf(t, `{}`)
	r.RunID = "never begun"
	if err := connect(t, s.url()).Cancel(t.Context(), r); err != nil {
		t.Error(err)
	}
}

func realTimeout(t *testing.T, s *langServer) {
	p, b := connect(t, s.url()), &book{}
	r := runOf(t, `{"input":{"ticks":100000}}`)
	r.Timeout = 700 * time.Millisecond
	result := must(t, p, r, b)
	if result.Code != runner.CodeTimeout || !result.Retry || result.Unknown {
		t.Errorf("%+v", result)
	}
	if runs := s.runs(b.memory(t).Thread); len(runs) != 1 || runs[0].isActive() {
		t.Errorf("the server has %+v", runs)
	}
}

func realTakeover(t *testing.T, s *langServer) {
	p, b := connect(t, s.url()), &book{}
	r := runOf(t, `{"input":{"ticks":100}}`)
	stopping := errors.New("the process stops")
	ctx, stop := context.WithCancelCause(t.Context())
	results, faults := begun(t, ctx, p, r, b)
	stop(stopping)
	if result, err := <-results, <-faults; !errors.Is(err, stopping) {
		t.Fatalf("%+v, %v", result, err)
	}
	r.Remote = b.remote()
	result := must(t, connect(t, s.url()), r, &book{})
	if m := b.memory(t); !result.OK || m.Settled || m.Run != result.TraceID || len(s.runs(m.Thread)) != 1 {
		t.Errorf("%+v after %+v", result, m)
	}
}

// behind puts a proxy in front of the server; change may spoil what goes
// through, and then answers itself.
func behind(t *testing.T, s *langServer, spoil func(w http.ResponseWriter, r *http.Request, server http.Handler) bool) string {
	t.Helper()
	target, err := url.Parse(s.url())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	transport := &http.Transport{}
	proxy.Transport, proxy.FlushInterval = transport, -1
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !spoil(w, r, proxy) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		front.Close()
		transport.CloseIdleConnections()
	})
	return front.URL
}

func realLostAnswer(t *testing.T, s *langServer) {
	var starts atomic.Int32
	address := behind(t, s, func(_ http.ResponseWriter, r *http.Request, server http.Handler) bool {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/runs") {
			return false
		}
		starts.Add(1)
		server.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler) // the connection ends without an answer
	})
	b := &book{}
	result := must(t, connect(t, address), runOf(t, `{"input":{"ticks":1}}`), b)
	if m := b.memory(t); !result.OK || starts.Load() != 1 || len(s.runs(m.Thread)) != 1 {
		t.Errorf("%+v after %d starts", result, starts.Load())
	}
}

func realNoAssistant(t *testing.T, s *langServer) {
	p := connect(t, s.url(), "graphs: {demo: {assistant: nobody}}")
	if result := must(t, p, runOf(t, `{}`), &book{}); result.Code != runner.CodeNotFound || result.Retry || result.Unknown || !strings.Contains(result.Message, "nobody") {
		t.Errorf("%+v", result)
	}
}

// A run of the attempt before goes on: it is followed instead.
func realNoSecondStart(t *testing.T, s *langServer) {
	p, b := connect(t, s.url()), &book{}
	r := runOf(t, `{"input":{"ticks":100}}`)
	results, faults := begun(t, t.Context(), p, r, b)
	r.Attempt = 2
	second := must(t, connect(t, s.url()), r, &book{})
	if first, err := <-results, <-faults; err != nil || !first.OK || !second.OK || first.TraceID != second.TraceID {
		t.Errorf("%+v and %+v, %v", first, second, err)
	}
}

func realBrokenStream(t *testing.T, s *langServer) {
	var streams atomic.Int32
	address := behind(t, s, func(w http.ResponseWriter, r *http.Request, server http.Handler) bool {
		if !strings.HasSuffix(r.URL.Path, "/stream") || streams.Add(1) > 2 {
			return false
		}
		ctx, cancel := context.WithTimeout(r.Context(), 150*time.Millisecond)
		defer cancel()
		server.ServeHTTP(w, r.WithContext(ctx))
		return true
	})
	b := &book{}
	result := must(t, connect(t, address), runOf(t, `{"input":{"ticks":100,"usage":true}}`), b)
	if !result.OK || streams.Load() < 2 || len(b.usage) != 2 {
		t.Errorf("%+v after %d streams, %v", result, streams.Load(), b.usage)
	}
	var ticks []string
	for _, text := range b.progress {
		if strings.Contains(text, "tick") {
			ticks = append(ticks, text)
		}
	}
	if len(ticks) != 100 || !slices.IsSortedFunc(ticks, func(a, b string) int { return len(a) - len(b) }) {
		t.Errorf("there are %d ticks: %v", len(ticks), ticks)
	}
}

// langgraph.md: the state of a killed server is gone, and with it the run.
func TestRunOfAKilledServerIsUnknown(t *testing.T) {
	s := startServer(t)
	p, b := connect(t, s.url()), &book{}
	r := runOf(t, `{"input":{"ticks":100000}}`)
	results, faults := begun(t, t.Context(), p, r, b)
	s.kill()
	s.start()
	if result, err := <-results, <-faults; err != nil || !result.Unknown || result.Retry || result.OK {
		t.Errorf("%+v, %v", result, err)
	}
	for _, remote := range b.remotes { // also when only the request is remembered
		r.Remote = remote
		if result := must(t, p, r, &book{}); !result.Unknown || result.Retry {
			t.Errorf("with %s: %+v", remote, result)
		}
	}
}
