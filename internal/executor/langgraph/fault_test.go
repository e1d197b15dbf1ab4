package langgraph

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/executor/runner"
)

const keyed = "headers: {x-api-key: '${LANGGRAPH_KEY}'}"

func TestStubRunsToItsEnd(t *testing.T) {
	s, b := newStub(t), &book{}
	r := runOf(t, `{"q":1}`)
	result := must(t, connect(t, s.URL, keyed), r, b)
	if !result.OK || result.TraceID != "r1" || !strings.Contains(string(result.Output), `"answer":42`) {
		t.Errorf("%+v, %s", result, result.Output)
	}
	want := []runner.Usage{{Unit: "m1", Model: "tiny", InputTokens: 3, CachedTokens: 1, OutputTokens: 2}, {Unit: "message-2", InputTokens: 1}}
	if diff := cmp.Diff(want, b.usage); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"node work", `{"tick":1}`}, b.progress); diff != "" {
		t.Error(diff)
	}
	if s.headers.Get("X-Api-Key") != "lsv2-secret" {
		t.Error("the headers of the definition are not sent")
	}
	order := []string{"GET threads/runs", "POST threads", "POST threads/runs", "GET threads/runs/stream", "GET threads/run", "GET threads/state"}
	if diff := cmp.Diff(order, s.asked); diff != "" {
		t.Error(diff)
	}
}

// DESIGN 8: what is remembered is stored before the call that it protects.
func TestNothingIsStartedThatCannotBeRemembered(t *testing.T) {
	s := newStub(t)
	full := errors.New("the disk is full")
	b := &book{see: func(runner.Event) error { return full }}
	if _, err := connect(t, s.URL).Run(t.Context(), runOf(t, `{}`), b.emit); !errors.Is(err, full) || s.started() != 0 {
		t.Errorf("%v, and %d runs", err, s.started())
	}
}

// A server that refuses before a run began: nothing is unknown.
func TestRefusalsBeforeTheStart(t *testing.T) {
	tests := map[string]struct {
		route  string
		answer http.HandlerFunc
		code   string
		retry  bool
		wait   time.Duration
	}{
		"401":            {"GET threads/runs", says(401, "who is lsv2-secret?"), runner.CodeInternal, false, 0},
		"403":            {"POST threads", says(403, ""), runner.CodeInternal, false, 0},
		"429":            {"POST threads", says(429, "", "Retry-After", "7"), runner.CodeRateLimit, true, 7 * time.Second},
		"500":            {"POST threads", says(500, "<html>"), runner.CodeInternal, true, 0},
		"garbage":        {"GET threads/runs", says(200, "<html>"), runner.CodeInternal, true, 0},
		"no run, 400":    {"POST threads/runs", says(400, `{"success":false}`), runner.CodeInvalidRequest, false, 0},
		"no run, 404":    {"POST threads/runs", says(404, `No assistant found for "demo".`), runner.CodeNotFound, false, 0},
		"no run, 422":    {"POST threads/runs", says(422, "Thread is already running a task."), runner.CodeInvalidRequest, false, 0},
		"no run, 429":    {"POST threads/runs", says(429, ""), runner.CodeRateLimit, true, 0},
		"no such thread": {"POST threads", says(409, "Thread already exists"), runner.CodeInternal, true, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, b := newStub(t), &book{}
			s.fail(test.route, test.answer)
			p, r := connect(t, s.URL, keyed), runOf(t, `{}`)
			result := must(t, p, r, b)
			if result.OK || result.Unknown || result.Code != test.code || result.Retry != test.retry || result.RetryAfter != test.wait || s.started() != 0 {
				t.Errorf("%+v, and %d runs", result, s.started())
			}
			r.Attempt, r.Remote = 2, b.remote()
			if result := must(t, p, r, b); !result.OK || s.started() != 1 {
				t.Errorf("the next attempt: %+v, and %d runs", result, s.started())
			}
		})
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	s := newStub(t)
	s.Close()
	b := &book{}
	if result := must(t, connect(t, s.URL), runOf(t, `{}`), b); result.Code != runner.CodeInternal || !result.Retry || result.Unknown || b.remote() != nil {
		t.Errorf("%+v, remembered is %s", result, b.remote())
	}
}

// The answer to the start is lost or means nothing: the run is looked for, and
// never asked for twice in one go.
func TestLostAnswerToTheStart(t *testing.T) {
	broken := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for name, answer := range map[string]http.HandlerFunc{"502": says(502, ""), "cut": broken, "page": says(200, "<html>"), "nothing": says(200, "{}")} {
		t.Run(name, func(t *testing.T) {
			s, b := newStub(t), &book{}
			s.fail("POST threads/runs", answer)
			p, r := connect(t, s.URL), runOf(t, `{}`)
			result, err := p.Run(t.Context(), r, b.emit)
			if m := b.memory(t); err == nil || m.Thread == "" || m.Run != "" || m.Settled || strings.Count(strings.Join(s.asked, ","), "POST threads/runs") != 1 {
				t.Errorf("%+v, %v, remembered is %+v after %v", result, err, m, s.asked)
			}
			r.Remote = b.remote()
			if result := must(t, p, r, b); !result.OK || s.started() != 1 {
				t.Errorf("asked again: %+v, and %d runs", result, s.started())
			}
			s.threads = map[string]bool{} // a restart without a memory
			r.Remote = b.remotes[0]
			if result := must(t, p, r, &book{}); !result.Unknown || result.Retry || s.started() != 1 {
				t.Errorf("after a restart: %+v, and %d runs", result, s.started())
			}
		})
	}
}

func TestStreamGoesOnWhereItBroke(t *testing.T) {
	s, b := newStub(t), &book{}
	s.stream = strings.Repeat("event: custom\ndata: 1\nid: 7\n\n", 1) + "event: custom\ndata: {\"half\":"
	s.fail("GET threads/run", says(502, ""), says(200, `{"run_id":"r1","status":"running"}`), says(200, `<html>`))
	if result := must(t, connect(t, s.URL), runOf(t, `{}`), b); !result.OK || !slices.Equal(s.lastIDs, []string{"-1", "7", "7", "7"}) || slices.Contains(b.progress, `{"half":`) {
		t.Errorf("%+v after streams from %v", result, s.lastIDs)
	}
}

func TestKeyThatIsRefusedWhileFollowing(t *testing.T) {
	s, b := newStub(t), &book{}
	s.fail("GET threads/run", says(401, ""))
	result, err := connect(t, s.URL).Run(t.Context(), runOf(t, `{}`), b.emit)
	if err == nil || result.OK || b.memory(t).Run != "r1" || b.memory(t).Settled {
		t.Errorf("%+v, %v, remembered is %s", result, err, b.remote())
	}
}

// How a run ended is told by its status and its state together.
func TestEndsOfRuns(t *testing.T) {
	const asks = `{"values":{},"next":["gate"],"tasks":[{"interrupts":[{"id":"i1","value":{"q":"go on?"}}]}]}`
	failure := func(code, message string) runner.Result { return runner.Failure(code, message) }
	aborted := runner.Final(runner.CodeAborted, "the run was cancelled")
	tests := map[string]struct {
		status, state, stream string
		want                  runner.Result
	}{
		"asks":                {statusSuccess, asks, "", runner.Result{Interrupt: json.RawMessage(`[{"id":"i1","value":{"q":"go on?"}}]`)}},
		"asks, interrupted":   {statusInterrupted, asks, "", runner.Result{Interrupt: json.RawMessage(`[{"id":"i1","value":{"q":"go on?"}}]`)}},
		"asks, in the values": {statusSuccess, `{"values":{"a":1,"__interrupt__":[{"value":1}]}}`, "", runner.Result{Interrupt: json.RawMessage(`[{"value":1}]`)}},
		"stops before a node": {statusSuccess, `{"values":{},"next":["gate"]}`, "", runner.Result{Interrupt: json.RawMessage(`[{"value":{"next":["gate"]}}]`)}},
		"cancelled":           {statusInterrupted, `{"values":{}}`, "", aborted},
		"took too long":       {statusTimeout, `{"values":{}}`, "", failure(runner.CodeTimeout, "the server ended the run because it took too long")},
		"failed, by the state": {statusError, `{"values":{},"next":["x"],"tasks":[{"error":"{\"message\":\"boom\",\"name\":\"Error\"}"}]}`, "",
			failure(runner.CodeInternal, "boom")},
		"failed, by the stream": {statusError, `{"values":{}}`, "event: error\ndata: {\"error\":\"Error\",\"message\":\"bang\"}\n\n", failure(runner.CodeInternal, "bang")},
		"failed, with success": {statusSuccess, `{"values":{"__error__":{"error":"Error","message":"{\"message\":\"within\"}"}}}`, "",
			failure(runner.CodeInternal, "within")},
		"failed, without a word": {statusError, `{"values":null}`, "", failure(runner.CodeInternal, "the graph failed and did not say why")},
		"something new":          {"rolled_back", `{"values":{}}`, "", failure(runner.CodeInternal, "the run ended as rolled_back")},
		"a list":                 {statusSuccess, `{"values":[1]}`, "", runner.Result{OK: true, Output: json.RawMessage(`[1]`)}},
		"another run came after": {statusSuccess, `{"values":{"of":"r9"},"metadata":{"run_id":"r9"}}`, "", runner.Result{OK: true, Output: json.RawMessage(`{"of":"r1"}`)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, b := newStub(t), &book{}
			s.status, s.state, s.stream = test.status, test.state, test.stream
			s.history = `[{"values":{"of":"r9"},"metadata":{"run_id":"r9"}},{"values":{"of":"r1"},"metadata":{"run_id":"r1"}},{"values":{},"metadata":{"run_id":"r1"}}]`
			result := must(t, connect(t, s.URL), runOf(t, `{}`), b)
			test.want.TraceID = "r1"
			if diff := cmp.Diff(test.want, result); diff != "" {
				t.Error(diff)
			}
			if !b.memory(t).Settled {
				t.Error("the end is not remembered")
			}
		})
	}
}

func TestThreadsAreStable(t *testing.T) {
	// Runs of servers are found by these ids, so they must never change.
	if got := threadOf("run-1", 1); got != "bbe05909-a012-5ffb-9950-df2b6ca83715" {
		t.Error(got)
	}
	if threadOf("run-1", 1) != threadOf("run-1", 0) || threadOf("run-1", 2) == threadOf("run-1", 1) || threadOf("run-2", 1) == threadOf("run-1", 1) {
		t.Error("threads are mixed up")
	}
}

func TestDefinitionFaults(t *testing.T) {
	for text, want := range map[string]string{
		"name: x":                                        "url is missing",
		"url: ftp://x":                                   "must begin with https:// or http://",
		"url: http://a:b@x":                              "put credentials into headers",
		"url: http://x\ntimeout: 0s":                     "timeout must be from",
		"url: http://x\ngraphs: {'a b': {}}":             "must begin with a letter or digit",
		"url: http://x\nheaders: {Last-Event-ID: x}":     "is set by Pawl",
		"url: http://x\ngraphs: {a: {asistant: x}}":      `unknown field "asistant". Did you mean assistant?`,
		"url: http://x\nheaders: {x-api-key: \"a\\nb\"}": "holds a line break",
	} {
		s := settingsOf(t, nil, text)
		_, ok := New(s)
		found := slices.ContainsFunc(s.Fields(), func(f pawl.Field) bool { return strings.Contains(f.String(), want) })
		if ok || !found {
			t.Errorf("%s: %v", text, s.Fields())
		}
	}
}
