package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/telemetry"
)

// mostRuns are the runs whose spans are open at once. What is beyond has none.
const mostRuns = 10_000

// closeTime is how long the end of the process waits for the collector.
const closeTime = 3 * time.Second

// tracing makes spans of what the parts of a server tell: of jobs, of runs with
// their phases, and of calls. A job is a part of the trace of whoever asked for it;
// the run that it makes and the calls that it sends are parts of the job.
type tracing struct {
	export *telemetry.Exporter // nil: only traces of others are passed on

	mu    sync.Mutex
	lanes map[string]oteltrace.SpanContext // of jobs that run, by their lane; guarded by mu
	runs  map[string]*openRun              // by id; guarded by mu
}

// openRun is the span of a run that goes on.
type openRun struct {
	ctx   context.Context //nolint:containedctx // what its phases are parts of
	span  oteltrace.Span
	phase pawl.Phase
	since time.Time // of the phase
	begun time.Time
	trace string // the traceparent of its events; empty: it is a part of its job
	stays bool   // it takes no events any more that make it a part of another trace
}

func newTracing() *tracing {
	return &tracing{lanes: map[string]oteltrace.SpanContext{}, runs: map[string]*openRun{}}
}

func (s *server) buildTracing(ctx context.Context, registry *prometheus.Registry) error {
	if s.tracing == nil {
		s.tracing = newTracing()
	}
	wanted, err := telemetry.Wanted(s.cfg.OTLPEndpoint, os.Getenv)
	if err != nil || wanted == (telemetry.Wants{}) {
		return err
	}
	s.tracing.export, err = telemetry.New(ctx, telemetry.Config{
		Endpoint: s.cfg.OTLPEndpoint, Wants: wanted, Version: s.cfg.Version, Instance: s.identity.id, Log: s.log, Registry: registry,
	})
	return err
}

func (s *server) closeTracing() {
	if s.tracing == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := s.tracing.export.Close(ctx); err != nil {
		s.log.Warn("what was traced last could not be sent", "err", err)
	}
}

// task makes every run of a job a span, in the trace of whoever asked for it. The
// kind is that of the runs that it makes, if any.
func (t *tracing) task(name string, kind pawl.Kind, of queue.Task) queue.Task {
	run := of.Run
	of.Run = func(ctx context.Context, j *queue.Job) error {
		if j.Trace != "" {
			ctx = telemetry.With(ctx, j.Trace)
		}
		if !t.export.On() {
			return run(ctx, j)
		}
		ctx, span := t.export.Start(ctx, "job "+name, oteltrace.WithSpanKind(oteltrace.SpanKindConsumer), oteltrace.WithAttributes(
			attribute.String("pawl.task", name), attribute.Int64("pawl.job", j.ID), attribute.String("pawl.lane", j.Lane), attribute.Int("pawl.attempt", j.Attempt+1)))
		defer span.End()
		if lane := laneOfJob(kind, j); lane != "" {
			t.enter(lane, span.SpanContext())
			defer t.leave(lane)
		}
		err := run(ctx, j)
		if err != nil && !queue.IsSnooze(err) {
			span.SetStatus(codes.Error, "") // what happened can hold what others said; it is in the job
		}
		return err
	}
	return of
}

// laneOfJob is the lane whose runs a job of a kind makes, as its runs name it: by a
// name in its payload, else by the queue's lane; empty if it makes none.
func laneOfJob(kind pawl.Kind, j *queue.Job) string {
	if kind == "" {
		return ""
	}
	var of struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(j.Payload, &of); err != nil || of.Name == "" {
		of.Name = strings.TrimPrefix(j.Lane, string(kind)+":")
	}
	return string(kind) + ":" + of.Name
}

func (t *tracing) enter(lane string, sc oteltrace.SpanContext) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lanes[lane] = sc
}

func (t *tracing) leave(lane string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.lanes, lane)
}

// run makes spans of a run and of its phases.
func (t *tracing) run(e ledger.Event) {
	if t == nil || !t.export.On() { // a server that was not built whole
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &e.Run
	open := t.runs[r.ID]
	if open == nil {
		if r.Status != pawl.StatusActive || len(t.runs) >= mostRuns {
			return // it ended before it was seen, or waits
		}
		open = &openRun{phase: r.Phase, since: r.UpdatedAt, begun: r.UpdatedAt}
		t.start(open, r)
		t.runs[r.ID] = open
	} else if r.Trace != open.trace && r.Trace != "" {
		t.start(open, r) // what is not ended is never sent
	}
	open.stays = r.HandlerType != pawl.HandlerConsumer || r.Phase != pawl.PhasePreparing
	over := r.Status != pawl.StatusActive
	if r.Phase != open.phase || over {
		_, phase := t.export.Start(open.ctx, "phase "+string(open.phase), oteltrace.WithTimestamp(open.since), oteltrace.WithAttributes(attribute.String("pawl.run", r.ID)))
		phase.End(oteltrace.WithTimestamp(r.UpdatedAt))
		open.phase, open.since = r.Phase, r.UpdatedAt
	}
	if !over {
		return
	}
	open.span.SetAttributes(attribute.String("pawl.status", string(r.Status)), attribute.String("pawl.phase", string(r.Phase)))
	if r.ErrorCode != "" {
		open.span.SetAttributes(attribute.String("pawl.error.code", r.ErrorCode), attribute.String("pawl.error.class", string(r.ErrorClass)))
		open.span.SetStatus(codes.Error, "")
	}
	open.span.End(oteltrace.WithTimestamp(r.UpdatedAt))
	delete(t.runs, r.ID)
}

// start begins the span of a run: in the trace of its events, or else in that of the
// job that makes it. The caller holds mu.
func (t *tracing) start(open *openRun, r *runstore.Run) {
	ctx := context.Background()
	var links []oteltrace.Link
	sc, ok := t.lanes[string(r.Kind)+":"+r.Lane]
	switch {
	case r.Trace != "":
		ctx = telemetry.With(ctx, r.Trace)
		if ok {
			links = append(links, oteltrace.Link{SpanContext: sc})
		}
	case ok:
		ctx = oteltrace.ContextWithSpanContext(ctx, sc)
	}
	open.trace = r.Trace
	open.ctx, open.span = t.export.Start(ctx, "run "+string(r.Kind), oteltrace.WithTimestamp(open.begun), oteltrace.WithLinks(links...), oteltrace.WithAttributes(
		attribute.String("pawl.run", r.ID), attribute.String("pawl.kind", string(r.Kind)), attribute.String("pawl.lane", r.Lane), attribute.String("pawl.handler", r.Handler),
		attribute.String("pawl.trigger", r.Trigger), attribute.Int("pawl.attempt", r.Attempt)))
}

// served makes every request that others send a span in their trace.
func (t *tracing) served(name string, to http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := telemetry.With(r.Context(), r.Header.Get(telemetry.Header))
		if t == nil || !t.export.On() { // a server that was not built whole
			to.ServeHTTP(w, r.WithContext(ctx))
			return
		}
		ctx, span := t.export.Start(ctx, r.Method+" "+name, oteltrace.WithSpanKind(oteltrace.SpanKindServer), oteltrace.WithAttributes(attribute.String("http.request.method", r.Method)))
		defer span.End()
		to.ServeHTTP(w, r.WithContext(ctx))
	})
}

// call makes a span of a request, and tells whoever is called which trace it is a
// part of. It is made for outbound.Config.
func (t *tracing) call(ctx context.Context, hop *http.Request) func(*http.Response, error) {
	if !t.export.On() {
		telemetry.Pass(ctx, hop.Header)
		return func(*http.Response, error) {}
	}
	run := telemetry.RunOf(ctx)
	ctx, span := t.export.Start(t.within(ctx, run), hop.Method+" "+hop.URL.Host, oteltrace.WithSpanKind(oteltrace.SpanKindClient), oteltrace.WithAttributes(
		attribute.String("http.request.method", hop.Method), attribute.String("server.address", hop.URL.Hostname()), attribute.String("url.scheme", hop.URL.Scheme)))
	if run != "" {
		span.SetAttributes(attribute.String("pawl.run", run))
	}
	telemetry.Pass(ctx, hop.Header)
	return func(resp *http.Response, err error) {
		if resp != nil {
			span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
			if resp.StatusCode >= http.StatusBadRequest {
				span.SetStatus(codes.Error, "")
			}
		}
		if e, ok := errors.AsType[*outbound.Error](err); ok {
			span.SetAttributes(attribute.String("error.type", string(e.Kind)))
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// within makes what is done for a run a part of its span, if that is open and stays in
// its trace.
func (t *tracing) within(ctx context.Context, run string) context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	if open := t.runs[run]; open != nil && open.stays {
		return oteltrace.ContextWithSpanContext(ctx, open.span.SpanContext())
	}
	return ctx
}

// traceOf is the trace of a run whose span is open; empty if it has none.
func (t *tracing) traceOf(run string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if open := t.runs[run]; open != nil {
		return open.span.SpanContext().TraceID().String()
	}
	return ""
}

// logs gives lines of a log the trace that they belong to: that of their context,
// or that of the run that they name.
func (t *tracing) logs(to slog.Handler) slog.Handler { return &tracedLog{to, t, ""} }

type tracedLog struct {
	slog.Handler
	of  *tracing
	run string // that all lines are about, if any
}

// Handle implements slog.Handler.
func (h *tracedLog) Handle(ctx context.Context, r slog.Record) error {
	if sc := oteltrace.SpanContextFromContext(ctx); sc.IsValid() {
		r.AddAttrs(slog.String("trace", sc.TraceID().String()))
	} else if h.of.export.On() {
		run := h.run
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "run" {
				run = a.Value.String()
			}
			return run == ""
		})
		if id := h.of.traceOf(run); id != "" {
			r.AddAttrs(slog.String("trace", id))
		}
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *tracedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	run := h.run
	for _, a := range attrs {
		if a.Key == "run" {
			run = a.Value.String()
		}
	}
	return &tracedLog{h.Handler.WithAttrs(attrs), h.of, run}
}

// WithGroup implements slog.Handler.
func (h *tracedLog) WithGroup(name string) slog.Handler {
	return &tracedLog{h.Handler.WithGroup(name), h.of, h.run}
}
