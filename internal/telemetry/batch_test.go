package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// collector is one that a test holds up or breaks.
type collector struct {
	hold chan struct{} // nil: it answers at once
	err  error
	got  int
}

func (c *collector) ExportSpans(ctx context.Context, list []sdk.ReadOnlySpan) error {
	if c.hold != nil {
		select {
		case <-c.hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c.got += len(list)
	return c.err
}

func (*collector) Shutdown(context.Context) error { return nil }

// spans ends n spans.
func spans(b *batcher, n int) {
	tracer := sdk.NewTracerProvider(sdk.WithSpanProcessor(b)).Tracer("")
	for range n {
		_, s := tracer.Start(context.Background(), "x")
		s.End()
	}
}

func (b *batcher) counted(outcome string) int {
	return int(testutil.ToFloat64(b.count.WithLabelValues(outcome)))
}

func TestSpansAreSentInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &collector{}
		b := newBatcher(to, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
		spans(b, 3)
		if err := b.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-b.stopped
		if to.got != 3 || b.counted("sent") != 3 || b.counted("dropped") != 0 {
			t.Errorf("%d arrived, %d counted", to.got, b.counted("sent"))
		}
		if err := b.Shutdown(t.Context()); err != nil {
			t.Errorf("again: %v", err)
		}
	})
}

// A collector that does not answer holds nobody up: what does not fit is dropped
// and counted, and the end waits no longer than it is told to.
func TestSlowCollectorHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &collector{hold: make(chan struct{})}
		b := newBatcher(to, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
		spans(b, batchLength)
		synctest.Wait() // it is being sent
		spans(b, queueLength+7)
		if n := b.counted("dropped"); n != 7 {
			t.Errorf("%d were dropped, want 7", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.ForceFlush(ctx); err == nil {
			t.Error("the flush is said to be done")
		}
		close(to.hold)
		if err := b.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-b.stopped
		if to.got != batchLength+queueLength {
			t.Errorf("%d arrived", to.got)
		}
	})
}

func TestCollectorThatRefusesIsCountedAndToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		to := &collector{err: errors.New("401")}
		b := newBatcher(to, slog.New(slog.NewTextHandler(&said, nil)), prometheus.NewRegistry())
		for range 3 {
			spans(b, 2)
			if err := b.ForceFlush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		_ = b.Shutdown(t.Context())
		<-b.stopped
		if b.counted("failed") != 6 || strings.Count(said.String(), "cannot be sent") != 1 {
			t.Errorf("%d counted, said %q", b.counted("failed"), said.String())
		}
	})
}

func TestWhatNamesACollector(t *testing.T) {
	both := Wants{Spans: true, Numbers: true}
	for name, tt := range map[string]struct {
		endpoint string
		env      map[string]string
		wanted   Wants
		wrong    string
	}{
		"nothing":        {},
		"the setting":    {endpoint: "http://127.0.0.1:4318", wanted: both},
		"with a path":    {endpoint: "https://otel.example.com/otlp/", wanted: both},
		"the variable":   {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, wanted: both},
		"traces alone":   {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, wanted: Wants{Spans: true}},
		"metrics alone":  {env: map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c:4318/v1/metrics"}, wanted: Wants{Numbers: true}},
		"disabled":       {endpoint: "http://c", env: map[string]string{"OTEL_SDK_DISABLED": "TRUE"}},
		"headers alone":  {env: map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "a=hunter2"}},
		"headers":        {endpoint: "http://c", env: map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20hunter2,x=y"}, wanted: both},
		"http protocol":  {endpoint: "http://c", env: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, wanted: both},
		"no URL":         {endpoint: "c:4318", wrong: "not the URL"},
		"no host":        {endpoint: "http://:4318", wrong: "not the URL"},
		"a password":     {endpoint: "http://u:hunter2@c", wrong: "not the URL"},
		"a query":        {endpoint: "http://c/?key=hunter2", wrong: "not the URL"},
		"odd variable":   {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "ftp://hunter2"}, wrong: "OTEL_EXPORTER_OTLP_ENDPOINT is not"},
		"grpc":           {endpoint: "http://c", env: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, wrong: "OTEL_EXPORTER_OTLP_PROTOCOL"},
		"odd headers":    {endpoint: "http://c", env: map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "hunter2"}, wrong: "OTEL_EXPORTER_OTLP_HEADERS"},
		"nameless value": {endpoint: "http://c", env: map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "=hunter2"}, wrong: "OTEL_EXPORTER_OTLP_HEADERS"},
	} {
		wanted, err := Wanted(tt.endpoint, func(n string) string { return tt.env[n] })
		if tt.wrong == "" && (err != nil || wanted != tt.wanted) || tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)) {
			t.Errorf("%s: %v, %v", name, wanted, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: a secret is told: %v", name, err)
		}
	}
}

// A collector that is named for spans alone, or for numbers alone, is sent nothing else,
// and neither is another one.
func TestOnlyWhatACollectorIsNamedForIsSent(t *testing.T) {
	for what, path := range map[string]string{"TRACES": "/v1/traces", "METRICS": "/v1/metrics"} {
		var mu sync.Mutex
		asked := map[string]bool{}
		s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			asked[r.URL.Path] = true
		}))
		t.Cleanup(s.Close)
		for _, other := range []string{"TRACES", "METRICS"} {
			t.Setenv("OTEL_EXPORTER_OTLP_"+other+"_ENDPOINT", "")
		}
		t.Setenv("OTEL_EXPORTER_OTLP_"+what+"_ENDPOINT", s.URL+path)
		wants, err := Wanted("", os.Getenv)
		if err != nil {
			t.Fatal(err)
		}
		e, err := New(t.Context(), Config{Wants: wants, Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry()})
		if err != nil {
			t.Fatal(err)
		}
		_, span := e.Start(t.Context(), "x")
		span.End()
		if err := e.Close(t.Context()); err != nil {
			t.Error(what, err)
		}
		mu.Lock()
		if !maps.Equal(asked, map[string]bool{path: true}) || e.On() != wants.Spans {
			t.Errorf("named for %s, it was asked for %v", what, asked)
		}
		mu.Unlock()
	}
}
