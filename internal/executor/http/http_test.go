package httpexec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "tok-4f9a-z7"

func settingsOf(t *testing.T, text string, allow ...string) *connector.Settings {
	t.Helper()
	prefixes, err := outbound.ParsePrefixes(allow)
	if err != nil {
		t.Fatal(err)
	}
	client, err := outbound.New(outbound.Config{AllowPrivate: prefixes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	doc, err := definition.ReadSettings("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	env := connector.Env{HTTP: client, Getenv: func(string) string { return token }}
	return connector.NewSettings(doc, env)
}

// connect makes a provider with the graph poet at this address.
func connect(t *testing.T, url string, allow ...string) *Provider {
	t.Helper()
	if allow == nil {
		allow = []string{"127.0.0.0/8"}
	}
	s := settingsOf(t, "headers: {Authorization: 'Bearer ${TOKEN}'}\ngraphs: {poet: {url: '"+url+"', timeout: 300ms}}\n", allow...)
	p, ok := New(s)
	s.Unknown()
	if !ok || len(s.Fields()) > 0 {
		t.Fatal(s.Fields())
	}
	return p.(*Provider)
}

func poet() runner.Run {
	return runner.Run{RunID: "r1", Attempt: 1, ScheduleID: "s1", ScheduledFor: time.Unix(0, 0), GraphID: "http:poet", Name: "poet", Input: json.RawMessage(`{"topic":"autumn"}`), Key: "s1:1970"}
}

func says(status int, text string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

func ignore(runner.Event) error { return nil }

func TestRequestIsTheOneOfTheSurface(t *testing.T) {
	var keys []string
	var body string
	var header http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		body, header = string(raw), r.Header
		keys = append(keys, r.Method+" "+r.URL.String()+" "+r.Header.Get("Idempotency-Key"))
		if len(keys) == 1 {
			_, _ = io.WriteString(w, `{"ok":false,"interrupt":{"q":"go on?"}}`)
			return
		}
		_, _ = io.WriteString(w, `{"ok":true,"output":{"poem":"leaves"},"traceId":"t1","usage":[{"unit":"u1","costUsd":0.25}]}`)
	}))
	t.Cleanup(server.Close)
	p, r := connect(t, server.URL+"/poet?x=1"), poet()
	var events []runner.Event
	emit := func(e runner.Event) error {
		events = append(events, e)
		return nil
	}
	result, err := p.Run(t.Context(), r, emit)
	if err != nil || string(result.Interrupt) != `{"q":"go on?"}` {
		t.Fatalf("%+v, %v", result, err)
	}
	if header.Get("Authorization") != "Bearer "+token || header.Get("Content-Type") != "application/json" || !strings.Contains(body, `"graphId":"http:poet"`) {
		t.Errorf("%v, %s", header, body)
	}
	r.Remote, r.Resume = result.Remote, json.RawMessage(`{"ok":true}`)
	events = nil
	result, err = p.Run(t.Context(), r, emit)
	if err != nil || !result.OK || string(result.Output) != `{"poem":"leaves"}` || result.TraceID != "t1" || !strings.Contains(body, `"resume":{"ok":true}`) {
		t.Errorf("%+v, %v, %s", result, err, body)
	}
	if diff := cmp.Diff([]string{"POST /poet?x=1 s1:1970", "POST /poet?x=1 s1:1970:resume-1"}, keys); diff != "" {
		t.Error(diff)
	}
	if len(events) != 2 || events[1].Usage.Cost != 2_500_000 || !strings.Contains(string(result.Remote), "over") {
		t.Errorf("%+v, %s", events, result.Remote)
	}
}

// surface, Connection: what an answer means, for executors whose servers
// honour the key.
func TestAnswers(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"ok":true`)
	}
	refuse := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	huge := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(largestAnswer+1))
		w.WriteHeader(http.StatusOK)
	}
	tests := map[string]struct {
		answer http.HandlerFunc
		code   string
		retry  bool
		wait   time.Duration
	}{
		"failed, final":   {says(200, `{"ok":false,"error":{"code":"invalid_request","message":"no topic"}}`), runner.CodeInvalidRequest, false, 0},
		"failed, passing": {says(200, `{"ok":false,"error":{"code":"rate_limit","message":"slow"}}`), runner.CodeRateLimit, true, 0},
		"401":             {says(401, `{"error":{"message":"who?"}}`), runner.CodeInternal, false, 0},
		"403":             {says(403, ""), runner.CodeInternal, false, 0},
		"404":             {says(404, "no poet"), runner.CodeNotFound, false, 0},
		"408":             {says(408, ""), runner.CodeRateLimit, true, 0},
		"409":             {says(409, ""), runner.CodeInternal, true, 0},
		"400":             {says(400, ""), runner.CodeInvalidRequest, false, 0},
		"422":             {says(422, ""), runner.CodeInvalidRequest, false, 0},
		"429":             {says(429, "", "Retry-After", "9"), runner.CodeRateLimit, true, 9 * time.Second},
		"429, for ever":   {says(429, "", "Retry-After", "999999999"), runner.CodeRateLimit, true, time.Hour},
		"500":             {says(500, "<html>"+token), runner.CodeInternal, true, 0},
		"503":             {says(503, "", "Retry-After", "3"), runner.CodeInternal, true, 3 * time.Second},
		"garbage":         {says(200, "<html>"), runner.CodeInternal, true, 0},
		"nothing":         {says(204, ""), runner.CodeInternal, true, 0},
		"hang":            {hang, runner.CodeTimeout, true, 0},
		"cut":             {cut, runner.CodeInternal, true, 0},
		"refuse":          {refuse, runner.CodeInternal, true, 0},
		"huge":            {huge, runner.CodeInternal, true, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.answer)
			t.Cleanup(server.Close)
			result, err := connect(t, server.URL).Run(t.Context(), poet(), ignore)
			if err != nil || result.OK || result.Unknown || result.Code != test.code || result.Retry != test.retry || result.RetryAfter != test.wait {
				t.Errorf("%+v, %v", result, err)
			}
			if result.Message == "" || strings.Contains(result.Message, token) {
				t.Errorf("the message is %q", result.Message)
			}
		})
	}
}

func TestCallsThatCannotBeMade(t *testing.T) {
	server := httptest.NewServer(says(200, `{"ok":true}`))
	server.Close()
	if result, err := connect(t, server.URL).Run(t.Context(), poet(), ignore); err != nil || result.Code != runner.CodeInternal || !result.Retry {
		t.Errorf("nobody listens: %+v, %v", result, err)
	}
	if result, err := connect(t, server.URL, "10.0.0.0/8").Run(t.Context(), poet(), ignore); err != nil || result.Code != runner.CodeInternal || result.Retry || !strings.Contains(result.Message, "--allow-private") {
		t.Errorf("a private address: %+v, %v", result, err)
	}
	r := poet()
	r.Name = "painter"
	if result, err := connect(t, server.URL).Run(t.Context(), r, ignore); err != nil || result.Code != runner.CodeNotFound || result.Retry {
		t.Errorf("no such graph: %+v, %v", result, err)
	}
	full := errors.New("the disk is full")
	if _, err := connect(t, server.URL).Run(t.Context(), poet(), func(runner.Event) error { return full }); !errors.Is(err, full) {
		t.Error(err)
	}
}

func TestCancelAndStopEndTheWait(t *testing.T) {
	arrived := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	p := connect(t, server.URL)
	p.graphs["poet"] = graph{url: p.graphs["poet"].url, timeout: time.Minute}
	stopping := errors.New("the process stops")
	for _, cancelled := range []bool{true, false} {
		ctx, stop := context.WithCancelCause(t.Context())
		go func() {
			<-arrived
			if !cancelled {
				stop(stopping)
			} else if err := p.Cancel(t.Context(), poet()); err != nil {
				t.Error(err)
			}
		}()
		result, err := p.Run(ctx, poet(), ignore)
		if cancelled && (err != nil || result.Code != runner.CodeAborted || result.Retry) {
			t.Errorf("cancelled: %+v, %v", result, err)
		}
		if !cancelled && !errors.Is(err, stopping) {
			t.Errorf("stopped: %+v, %v", result, err)
		}
		stop(nil)
	}
}

func TestDefinitionFaults(t *testing.T) {
	for text, want := range map[string]string{
		"name: x":                                        "graphs is missing",
		"graphs: {poet: {}}":                             "url is missing",
		"graphs: {poet: {url: nope}}":                    "must begin with https:// or http://",
		"graphs: {'*': {url: 'http://x'}}":               "must begin with a letter or digit",
		"graphs: {poet: {url: 'http://x', timeout: 30}}": "is not a length of time",
		"graphs: {poet: {url: 'http://x'}}\nheaders: {idempotency-key: x}":   "is set by Pawl",
		"graphs: {poet: {url: 'http://x', headers: {'a b': x}}}":             "is not the name of a header",
		"graphs: {poet: {url: 'http://x', headers: {a: \"x\\ny${TOKEN}\"}}}": "holds a line break",
	} {
		s := settingsOf(t, text)
		_, ok := New(s)
		found := slices.ContainsFunc(s.Fields(), func(f pawl.Field) bool {
			return strings.Contains(f.String(), want) && !strings.Contains(f.String(), token)
		})
		if ok || !found {
			t.Errorf("%s: %v", text, s.Fields())
		}
	}
}
