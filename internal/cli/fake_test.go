package cli

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fake is a server that answers like a Pawl server, from a script.
type fake struct {
	t      *testing.T
	server *httptest.Server

	mu     sync.Mutex
	asked  []string            // method, path and query of each request
	bodies []string            // of the requests that had one
	answer map[string]fakeJSON // by method and path
	status map[string]int      // by path, where a refusal is no problem
	stream http.HandlerFunc
}

type fakeJSON struct {
	status int
	body   string
}

func newFake(t *testing.T, answers map[string]fakeJSON) *fake {
	t.Helper()
	f := &fake{t: t, answer: answers}
	f.server = httptest.NewServer(f)
	t.Cleanup(f.server.Close)
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer right" {
		problem(w, 401, "unauthorized", "who are you?")
		return
	}
	if r.URL.Path == "/api/v1/stream" && f.stream != nil {
		f.stream(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, r.Method+" "+r.URL.RequestURI())
	if len(body) > 0 {
		f.bodies = append(f.bodies, string(body))
	}
	a, ok := f.answer[r.Method+" "+r.URL.Path]
	switch {
	case !ok:
		problem(w, 404, "not_found", "there is no such thing")
	case a.status >= 400 && strings.HasPrefix(a.body, "{"):
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	case a.status >= 400:
		problem(w, a.status, a.body, "refused because of "+a.body)
	case f.status[r.URL.Path] != 0:
		w.WriteHeader(f.status[r.URL.Path])
		_, _ = io.WriteString(w, a.body)
	default:
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	}
}

func problem(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "code": code, "detail": detail})
}

// call is a command that talks to this server.
func (f *fake) call() call {
	return call{env: map[string]string{"PAWL_URL": f.server.URL, "PAWL_TOKEN": "right"}}
}

func (f *fake) run(args ...string) result { f.t.Helper(); return f.call().run(f.t, args...) }

// set changes an answer while somebody asks.
func (f *fake) set(request string, answer fakeJSON) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer[request] = answer
}

// await waits until something was asked so often.
func (f *fake) await(ctx context.Context, request string, times int) {
	f.t.Helper()
	for strings.Count(f.requests(), request) < times {
		select {
		case <-ctx.Done():
			f.t.Fatalf("%s was not asked %d times:\n%s", request, times, f.requests())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// sent are the bodies so far.
func (f *fake) sent() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.bodies)
}

// requests are what was asked so far.
func (f *fake) requests() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.asked, "\n")
}
