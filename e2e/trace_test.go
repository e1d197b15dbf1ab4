package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metricpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spanpb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// collector is a collector of OpenTelemetry.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	spans   []*spanpb.Span
	service []string
	numbers map[string]bool
	keys    []string
	hold    chan struct{} // nil: it answers at once
}

func newCollector(t *testing.T) *collector {
	c := &collector{numbers: map[string]bool{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		hold := c.hold
		c.mu.Unlock()
		if hold != nil {
			select {
			case <-hold:
			case <-r.Context().Done():
			}
			return
		}
		body := r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			zip, err := gzip.NewReader(r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			body = zip
		}
		raw, err := io.ReadAll(body)
		if err == nil {
			err = c.take(r, raw)
		}
		if err != nil {
			t.Error(err)
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) take(r *http.Request, raw []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys = append(c.keys, r.Header.Get("X-Key"))
	switch r.URL.Path {
	case "/v1/traces":
		var got tracepb.ExportTraceServiceRequest
		if err := proto.Unmarshal(raw, &got); err != nil {
			return err
		}
		for _, of := range got.ResourceSpans {
			for _, a := range of.Resource.Attributes {
				c.service = append(c.service, a.Key+"="+a.Value.GetStringValue())
			}
			for _, scope := range of.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
	case "/v1/metrics":
		var got metricpb.ExportMetricsServiceRequest
		if err := proto.Unmarshal(raw, &got); err != nil {
			return err
		}
		for _, of := range got.ResourceMetrics {
			for _, scope := range of.ScopeMetrics {
				for _, m := range scope.Metrics {
					c.numbers[m.Name] = true
				}
			}
		}
	default:
		return fmt.Errorf("asked for %s", r.URL.Path)
	}
	return nil
}

// find returns the spans with a name.
func (c *collector) find(name string) (list []*spanpb.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.Name == name {
			list = append(list, s)
		}
	}
	return list
}

func attributeOf(s *spanpb.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

// traced asks for something as a part of a trace.
func (s *server) traced(path string, what map[string]any, parent string) {
	s.t.Helper()
	body, err := json.Marshal(what)
	if err != nil {
		s.t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, s.url+path, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token())
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("traceparent", parent)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		s.t.Fatalf("%s answered %d", path, resp.StatusCode)
	}
}

// parents notes the traceparent of what it is called with.
func parents(t *testing.T) (*httptest.Server, func() []string) {
	var mu sync.Mutex
	var list []string
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, r.Header.Get("traceparent"))
	}))
	t.Cleanup(s.Close)
	return s, func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(list) }
}

const (
	aTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	aSpan   = "00f067aa0ba902b7"
	aParent = "00-" + aTrace + "-" + aSpan + "-01"
)

func traceOf(event int) string { return fmt.Sprintf("abcd%028x", event) }

// A job is a part of the trace of whoever asked for it: its span, the call that it
// makes, and what the called one is told. A run has a span with its phases. Numbers
// are sent, too, and all of it with the headers that were named.
func TestTracesReachTheCollector(t *testing.T) {
	t.Parallel()
	pgtest.BothEmpty(t, func(t *testing.T, url string) {
		c := newCollector(t)
		called, told := parents(t)
		m := newStall(t)
		s := serveOld(t, url, m)
		s.args = append(s.args, "--otlp-endpoint", c.URL)
		s.env = []string{"OTEL_EXPORTER_OTLP_HEADERS=x-key=hunter2", "OTEL_METRIC_EXPORT_INTERVAL=500"}
		s.start()
		s.deploy(clerk)
		s.traced("/api/v1/jobs", post(called.URL), aParent)
		s.eventually("the call is made", func() bool { return len(told()) == 1 })
		s.eventually("numbers come", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.numbers["pawl_queue_finished_total"] || c.numbers["pawl_queue_finished"]
		})
		const published = 20 // most of them come while the lane is at work
		for i := range published {
			s.traced("/api/v1/workflows/clerk/events", map[string]any{"topic": "order", "messageId": fmt.Sprint("o-", i), "payload": 1}, "00-"+traceOf(i)+"-"+aSpan+"-01")
		}
		s.eventually("all is done", func() bool { return len(s.lines()) == published && s.lane().Status == "Idle" })
		s.must("PUT", "/api/v1/sources/prices", m.source(), nil)
		s.eventually("a source has fetched", func() bool { return len(s.rows()) > 0 })
		s.stop() // what waits is sent

		jobs, calls := c.find("job http"), c.find("POST "+strings.TrimPrefix(called.URL, "http://"))
		if len(jobs) != 1 || len(calls) != 1 {
			t.Fatalf("%d jobs and %d calls", len(jobs), len(calls))
		}
		j, call := jobs[0], calls[0]
		if hex.EncodeToString(j.TraceId) != aTrace || hex.EncodeToString(j.ParentSpanId) != aSpan || !bytes.Equal(call.TraceId, j.TraceId) || !bytes.Equal(call.ParentSpanId, j.SpanId) {
			t.Errorf("job %v\ncall %v", j, call)
		}
		if want := "00-" + aTrace + "-" + hex.EncodeToString(call.SpanId) + "-01"; told()[0] != want {
			t.Errorf("the called one was told %s, want %s", told()[0], want)
		}
		runs := c.find("run workflow")
		if len(runs) == 0 {
			t.Fatal("there is no run")
		}
		for i := range published {
			in := 0
			for _, r := range runs {
				if hex.EncodeToString(r.TraceId) == traceOf(i) && attributeOf(r, "pawl.handler") == "enter" {
					in++
				}
			}
			if in != 1 {
				t.Errorf("%d runs are in the trace of event %d", in, i)
			}
		}
		phases := 0
		for _, r := range runs {
			if attributeOf(r, "pawl.lane") != "clerk" || attributeOf(r, "pawl.status") != "committed" || r.EndTimeUnixNano < r.StartTimeUnixNano || len(r.ParentSpanId) == 0 {
				t.Errorf("run %v", r)
			}
			for _, name := range []string{"preparing", "mutating", "emitting"} {
				for _, p := range c.find("phase " + name) {
					if bytes.Equal(p.ParentSpanId, r.SpanId) {
						phases++
					}
				}
			}
		}
		if phases < 3 {
			t.Errorf("%d phases of %d runs", phases, len(runs))
		}
		rows := c.find("rows prices")
		if len(rows) == 0 || !slices.ContainsFunc(c.find("job pawl.source"), func(j *spanpb.Span) bool { return bytes.Equal(j.SpanId, rows[0].ParentSpanId) }) || attributeOf(rows[0], "pawl.run") == "" {
			t.Errorf("rows %v", rows)
		}
		fetches := c.find("GET " + strings.TrimPrefix(m.URL, "http://"))
		if len(fetches) == 0 {
			t.Error("there is no call of a source")
		}
		for _, call := range fetches {
			if !slices.ContainsFunc(c.find("run source"), func(r *spanpb.Span) bool {
				return bytes.Equal(r.SpanId, call.ParentSpanId) && attributeOf(r, "pawl.run") == attributeOf(call, "pawl.run")
			}) {
				t.Errorf("the call is no part of a run: %v", call)
			}
		}
		if !slices.Contains(c.service, "service.name=pawl") || !slices.Contains(c.keys, "hunter2") || slices.Contains(c.keys, "") {
			t.Errorf("service %v, keys %v", c.service, c.keys)
		}
		if strings.Contains(s.log.String(), "hunter2") {
			t.Error("a header is in the log")
		}
	})
}

// Without a collector traces of others are passed on all the same; what cannot be
// read is ignored.
func TestTracesArePassedOnWithoutACollector(t *testing.T) {
	t.Parallel()
	pgtest.BothEmpty(t, func(t *testing.T, url string) {
		called, told := parents(t)
		s := serve(t, url)
		for i, parent := range []string{aParent, "00-nonsense", "'; drop table jobs; --" + strings.Repeat("x", 4000), ""} {
			s.traced("/api/v1/jobs", post(called.URL), parent)
			s.eventually("it is called", func() bool { return len(told()) == i+1 })
		}
		if got := told(); !slices.Equal(got, []string{aParent, "", "", ""}) {
			t.Errorf("told %q", got)
		}
	})
}

// Lines of the log that are about a run have its id, and the id of the trace that it is a
// part of; what stopped a run is told without debugging, of every kind.
func TestLinesOfTheLogNameRunsAndTraces(t *testing.T) {
	t.Parallel()
	pgtest.BothEmpty(t, func(t *testing.T, url string) {
		m := newStall(t)
		s := serveOld(t, url, m)
		s.args = append(s.args, "--log-format", "json", "--log-level", "debug")
		s.start()
		s.deploy(clerk)
		s.traced("/api/v1/workflows/clerk/events", map[string]any{"topic": "order", "messageId": "o-1", "payload": 1}, aParent)
		s.eventually("the event is consumed", func() bool { return len(s.lines()) == 1 && s.lane().Status == "Idle" })
		away := "http://" + freeAddr(t)
		var made struct{ ID string }
		if status := s.call("POST", "/api/v1/schedules", map[string]any{"name": "ping", "cron": "0 9 1 1 *", "timezone": "UTC", "run": map[string]any{"url": away}}, &made); status != http.StatusCreated {
			t.Fatalf("make a schedule: %d", status)
		}
		s.must("POST", "/api/v1/schedules/"+made.ID+"/run", nil, nil)
		line := func(want map[string]any) (found map[string]any) {
			for text := range strings.SplitSeq(s.log.String(), "\n") {
				var l map[string]any
				if json.Unmarshal([]byte(text), &l) != nil || l["run"] == "" {
					continue
				}
				same := true
				for k, v := range want {
					same = same && l[k] == v
				}
				if same {
					found = l
				}
			}
			return found
		}
		s.eventually("it fails", func() bool { return line(map[string]any{"kind": "schedule", "what": "stopped"}) != nil })
		for _, want := range []map[string]any{
			{"level": "INFO", "what": "stopped", "kind": "schedule", "lane": "ping", "status": "failed:internal", "code": "internal"},
			{"level": "DEBUG", "what": "begun", "kind": "workflow", "lane": "clerk", "handler": "enter"}, // of the trace of whoever woke the lane
			{"level": "DEBUG", "what": "committed", "kind": "workflow", "lane": "clerk", "handler": "enter", "status": "committed", "trace": aTrace},
		} {
			if line(want) == nil {
				t.Errorf("there is no line with %v", want)
			}
		}
	})
}

// A collector that is away, or does not answer, costs no job and no time.
func TestACollectorThatIsAwayCostsNothing(t *testing.T) {
	t.Parallel()
	slow := newCollector(t)
	slow.hold = make(chan struct{})
	defer close(slow.hold)
	for name, endpoint := range map[string]string{"away": "http://" + freeAddr(t), "slow": slow.URL} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t)
			s := serveOld(t, "sqlite:.pawl/pawl.db", newStall(t))
			s.args = append(s.args, "--otlp-endpoint", endpoint)
			s.start()
			begin := time.Now()
			for range 200 {
				s.enqueue(post(u.URL))
			}
			s.eventually("all jobs are done", func() bool { return u.total() == 200 })
			if took := time.Since(begin); took > 30*time.Second {
				t.Errorf("200 jobs took %v", took)
			}
			begin = time.Now()
			s.stop()
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("the end took %v", took)
			}
		})
	}
}
