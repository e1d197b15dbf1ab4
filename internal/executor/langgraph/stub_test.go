package langgraph

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// stub answers as a LangGraph server does, from a recording of one, and can be
// told to misbehave: faults answer in place of a route until they are used up.
type stub struct {
	*httptest.Server
	mu      sync.Mutex
	threads map[string]bool
	runs    map[string][]serverRun // by thread
	asked   []string               // "METHOD route", without ids
	lastIDs []string               // of the streams
	headers http.Header            // of the last request
	faults  map[string][]http.HandlerFunc

	status, state, history, stream string // of every run
}

const (
	okState = `{"values":{"answer":42,"messages":[{"id":"m1","usage_metadata":{"input_tokens":3,"input_token_details":{"cache_read":1},"output_tokens":2},"response_metadata":{"model":"tiny"}},
		{"usage_metadata":{"input_tokens":1,"output_tokens":-1}},{"id":"h","content":"hello"}]},"next":[],"tasks":[],"metadata":{}}`
	okStream = "event: metadata\ndata: {\ndata:   \"run_id\": \"x\"\ndata: }\nid: 0\n\n" +
		": heartbeat\n\nevent: updates\ndata: {\"work\":\ndata: {\"messages\":[{\"id\":\"m1\",\"usage_metadata\":{\"input_tokens\":3,\"input_token_details\":{\"cache_read\":1},\"output_tokens\":2},\"response_metadata\":{\"model\":\"tiny\"}}]}}\nid: 1\n\n" +
		"event: custom\r\ndata: {\"tick\": 1}\r\nid: 2\r\n\r\n"
)

func newStub(t *testing.T) *stub {
	t.Helper()
	s := &stub{threads: map[string]bool{}, runs: map[string][]serverRun{}, faults: map[string][]http.HandlerFunc{}, status: statusSuccess, state: okState, history: "[]", stream: okStream}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

// fail makes the next answers of a route, such as "POST threads/runs".
func (s *stub) fail(route string, answers ...http.HandlerFunc) { s.faults[route] = answers }

// says answers with a status and a text.
func says(status int, text string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, text)
	}
}

func (s *stub) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var names []string
	for i, part := range parts {
		if i%2 == 0 || i > 3 {
			names = append(names, part)
		}
	}
	if len(parts) == 4 && parts[2] == "runs" {
		names = []string{"threads", "run"}
	}
	if len(parts) == 2 {
		names = []string{"thread"}
	}
	route := r.Method + " " + strings.Join(names, "/")
	s.asked, s.headers = append(s.asked, route), r.Header
	if len(s.faults[route]) > 0 {
		answer := s.faults[route][0]
		s.faults[route] = s.faults[route][1:]
		answer(w, r)
		return
	}
	s.answer(w, r, route, append(parts, "", "", ""))
}

func (s *stub) answer(w http.ResponseWriter, r *http.Request, route string, parts []string) {
	var body struct {
		ThreadID string         `json:"thread_id"`
		Metadata map[string]any `json:"metadata"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	thread := parts[1]
	if thread != "" && !s.threads[thread] {
		http.Error(w, "Thread with ID "+thread+" not found", http.StatusNotFound)
		return
	}
	switch route {
	case "POST threads":
		s.threads[body.ThreadID] = true
		tell(w, map[string]any{"thread_id": body.ThreadID})
	case "GET threads/runs":
		tell(w, append([]serverRun{}, s.runs[thread]...))
	case "POST threads/runs":
		tell(w, s.add(thread, body.Metadata))
	case "GET threads/run":
		tell(w, serverRun{RunID: parts[3], Status: s.status})
	case "GET threads/runs/stream":
		s.lastIDs = append(s.lastIDs, r.Header.Get("Last-Event-ID"))
		_, _ = fmt.Fprint(w, s.stream)
	case "GET threads/state":
		_, _ = fmt.Fprint(w, s.state)
	case "GET threads/history":
		_, _ = fmt.Fprint(w, s.history)
	case "GET thread", "PATCH thread":
		_, _ = fmt.Fprint(w, `{"metadata":{}}`)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// add starts a run. The caller holds the lock.
func (s *stub) add(thread string, metadata map[string]any) serverRun {
	run := serverRun{RunID: fmt.Sprintf("r%d", len(s.runs[thread])+1), Status: s.status, CreatedAt: time.Now().Format(time.RFC3339Nano), Metadata: metadata}
	s.runs[thread] = append(s.runs[thread], run)
	return run
}

// started is how many runs there are.
func (s *stub) started() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, runs := range s.runs {
		n += len(runs)
	}
	return n
}

func tell(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "text/plain") // as the real one does at times
	_ = json.NewEncoder(w).Encode(value)
}
