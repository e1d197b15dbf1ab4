package mcp

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl"
)

// site is a server on the network whose manners tests can change.
type site struct {
	*httptest.Server
	t       *testing.T
	handler atomic.Pointer[http.Handler]
	meddle  atomic.Pointer[func(http.ResponseWriter, *http.Request, string) bool] // answers in place of the server if it returns true
	calls   atomic.Int32                                                          // of tools
	posts   atomic.Int32
}

func (r *rig) site(options *sdk.StreamableHTTPOptions) *site {
	r.t.Helper()
	r.t.Setenv("NOTES", r.notes())
	s := &site{t: r.t}
	s.restart(options)
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	r.t.Cleanup(s.Close)
	return s
}

// restart forgets all sessions.
func (s *site) restart(options *sdk.StreamableHTTPOptions) {
	server := newServer("plain")
	var handler http.Handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, options)
	s.handler.Store(&handler)
	s.t.Cleanup(func() { // those that nobody ended
		for session := range server.Sessions() {
			_ = session.Close()
		}
	})
}

func (s *site) serve(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	if req.Method == http.MethodPost {
		s.posts.Add(1)
	}
	if strings.Contains(string(body), `"tools/call"`) {
		s.calls.Add(1)
	}
	if meddle := s.meddle.Load(); meddle != nil && (*meddle)(w, req, string(body)) {
		return
	}
	(*s.handler.Load()).ServeHTTP(w, req)
}

// misbehave makes the site answer on its own where the function returns true.
func (s *site) misbehave(meddle func(w http.ResponseWriter, req *http.Request, body string) bool) {
	s.meddle.Store(&meddle)
}

// onCalls makes the site answer calls of tools on its own.
func (s *site) onCalls(answer func(http.ResponseWriter, *http.Request)) {
	s.misbehave(func(w http.ResponseWriter, req *http.Request, body string) bool {
		if !strings.Contains(body, `"tools/call"`) {
			return false
		}
		answer(w, req)
		return true
	})
}

// old makes the site one of the time when every session began with initialize.
func old(w http.ResponseWriter, _ *http.Request, body string) bool {
	if !strings.Contains(body, "server/discover") {
		return false
	}
	http.Error(w, "Bad Request: no session", http.StatusBadRequest)
	return true
}

func (r *rig) network(url string, more ...string) string {
	return strings.Join(append([]string{"kind: connection", "name: it", "type: mcp", "url: " + url + "/mcp"}, more...), "\n")
}

func TestServerOnTheNetworkIsCalled(t *testing.T) {
	type options = sdk.StreamableHTTPOptions
	for name, test := range map[string]struct {
		options options
		old     bool
	}{
		"stream":     {options: options{}},
		"json":       {options: options{JSONResponse: true}},
		"stateless":  {options: options{Stateless: true}}, // the protocol without initialize
		"old stream": {options: options{}, old: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			s := r.site(&test.options)
			s.misbehave(func(w http.ResponseWriter, req *http.Request, body string) bool {
				if req.Header.Get("Authorization") != "Bearer s3cret-key-value" {
					t.Errorf("%s without the header of the operator", req.Method)
				}
				return test.old && old(w, req, body)
			})
			c := r.open(r.network(s.URL, `headers: {Authorization: "Bearer ${THE_KEY}", Content-Type: "text/plain"}`))
			if got := must(t, c, "look", `{"text":"a"}`); got != `{"saw":"a"}` {
				t.Error(got)
			}
			must(t, c, "note", `{"text":"n"}`)
			if diff := cmp.Diff([]string{"n"}, r.done()); diff != "" {
				t.Error(diff)
			}
			if session := c.live.client.ID(); (session == "") != test.options.Stateless {
				t.Errorf("the session is %q", session)
			}
		})
	}
}

func TestPrivateAddressIsRefused(t *testing.T) {
	r := newRig(t)
	s := r.site(nil)
	// The guard lets 127.0.0.0/8 through here; ::ffff would be the same.
	c := r.open(r.network(strings.Replace(s.URL, "127.0.0.1", "[::1]", 1)))
	_, fault := call(t.Context(), c, "look", `{"text":"a"}`)
	wantFault(t, fault, pawl.ClassPermission, "blocked", true)
	if !strings.Contains(fault.Hint, "--allow-private") || s.posts.Load() > 0 {
		t.Errorf("the hint is %q, and the server got %d requests", fault.Hint, s.posts.Load())
	}
}

func TestStatusOfTheHandshakeIsClassed(t *testing.T) {
	for status, want := range map[int]pawl.Class{401: pawl.ClassAuth, 403: pawl.ClassPermission, 404: pawl.ClassTransient, 500: pawl.ClassTransient, 429: pawl.ClassTransient} {
		r := newRig(t)
		s := r.site(nil)
		s.misbehave(func(w http.ResponseWriter, _ *http.Request, _ string) bool {
			w.Header().Set("Retry-After", "100")
			http.Error(w, "no", status)
			return true
		})
		c := r.open(r.network(s.URL))
		_, fault := call(t.Context(), c, "look", `{}`)
		if fault == nil || fault.Class != want || !fault.NotApplied || status == 429 && fault.RetryAfter < 90*time.Second {
			t.Errorf("%d is %+v; want %s", status, fault, want)
		}
	}
}

// Context 3.8: the table of package outbound, and what is lost is unknown.
func TestFailuresOfTheNetworkAreClassedByWhatIsKnown(t *testing.T) {
	status := func(code int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", code) }
	}
	breaks := func(w http.ResponseWriter, _ *http.Request) {
		if connection, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = connection.Close()
		}
	}
	stops := func(w http.ResponseWriter, _ *http.Request) { // an answer that ends before it came
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
	}
	floods := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(bytes.Repeat([]byte(" "), largestMessage+1))
	}
	for _, test := range []struct {
		name       string
		answer     func(http.ResponseWriter, *http.Request)
		tool       string
		class      pawl.Class
		code       string
		notApplied bool
	}{
		{"500 of a mutation", status(500), "note", pawl.ClassIndeterminate, "http_500", false},
		{"500 of a read", status(500), "look", pawl.ClassTransient, "http_500", true},
		{"401 of a mutation", status(401), "note", pawl.ClassAuth, "http_401", true},
		{"403 of a mutation", status(403), "note", pawl.ClassPermission, "http_403", true},
		{"429 of a mutation", status(429), "note", pawl.ClassTransient, "http_429", true},
		{"broken mutation", breaks, "note", pawl.ClassIndeterminate, "broken", false},
		{"broken read", breaks, "look", pawl.ClassTransient, "broken", true},
		{"stopped mutation", stops, "note", pawl.ClassIndeterminate, "server_ended", false},
		{"stopped read", stops, "look", pawl.ClassTransient, "server_ended", true},
		{"flooded mutation", floods, "note", pawl.ClassIndeterminate, "too_large", false},
		{"flooded read", floods, "look", pawl.ClassLogic, "too_large", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t)
			s := r.site(nil)
			c := r.open(r.network(s.URL))
			s.onCalls(test.answer)
			_, fault := call(t.Context(), c, test.tool, `{"text":"a"}`)
			wantFault(t, fault, test.class, test.code, test.notApplied)
			if calls := s.calls.Load(); calls != 1 {
				t.Errorf("the server got the call %d times", calls)
			}
			s.misbehave(func(http.ResponseWriter, *http.Request, string) bool { return false })
			must(t, c, "look", `{"text":"again"}`)
		})
	}
}

// A server that was started anew does not know the session any more. What it
// did not do is done in a new one.
func TestLostSessionIsMadeAnew(t *testing.T) {
	r := newRig(t)
	s := r.site(nil)
	s.misbehave(old)
	c := r.open(r.network(s.URL))
	must(t, c, "note", `{"text":"first"}`)
	s.restart(nil)
	must(t, c, "note", `{"text":"second"}`)
	if diff := cmp.Diff([]string{"first", "second"}, r.done()); diff != "" {
		t.Error(diff)
	}
}

// A server on the network does not tell that its tools change.
func TestOldListOfToolsIsAskedForAgain(t *testing.T) {
	r := newRig(t)
	c := r.open(r.network(r.site(nil).URL))
	must(t, c, "reshape", `{}`)
	must(t, c, "note", `{"text":"a"}`)
	c.live.turn <- struct{}{}
	c.live.listed = c.live.listed.Add(-listAge)
	<-c.live.turn
	_, fault := call(t.Context(), c, "look", `{"text":"a"}`)
	wantFault(t, fault, pawl.ClassPermission, "tool_changed", true)
}

func TestTimeoutOnTheNetworkIsUnknown(t *testing.T) {
	for _, options := range []*sdk.StreamableHTTPOptions{nil, {JSONResponse: true}} {
		r := newRig(t)
		c := r.open(r.network(r.site(options).URL, "timeout: 1s"))
		_, fault := call(t.Context(), c, "note-slowly", `{"text":"a"}`)
		wantFault(t, fault, pawl.ClassIndeterminate, "timeout", false)
		eventually(t, "the server is told that nobody waits", func() bool {
			return cmp.Equal([]string{"a", "a-cancelled"}, r.done())
		})
	}
}

func TestServerThatIsNotThereIsTransient(t *testing.T) {
	r := newRig(t)
	s := r.site(nil)
	c := r.open(r.network(s.URL))
	_ = s.Listener.Close()
	s.CloseClientConnections()
	_, fault := call(t.Context(), c, "note", `{"text":"a"}`)
	wantFault(t, fault, pawl.ClassTransient, "connect", true)
}
