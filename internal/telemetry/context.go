package telemetry

import (
	"context"
	"encoding/hex"
	"net/http"
	"strings"

	oteltrace "go.opentelemetry.io/otel/trace"
)

// Header is the header that names the trace of a call.
const Header = "Traceparent"

// longest is the most bytes of a header that are looked at: later versions of the
// format may be longer than this one, which has 55.
const longest = 512

// Parse reads a traceparent. What is malformed is no trace: the format asks those
// who get it to go on without.
func Parse(text string) (sc oteltrace.SpanContext, ok bool) {
	if len(text) > longest {
		return sc, false
	}
	parts := strings.Split(text, "-")
	if len(parts) < 4 || len(parts[0]) != 2 || len(parts[1]) != 32 || len(parts[2]) != 16 || len(parts[3]) != 2 {
		return sc, false
	}
	if parts[0] == "ff" || parts[0] == "00" && len(parts) != 4 || strings.ToLower(text) != text {
		return sc, false
	}
	var version, flags [1]byte
	var cfg oteltrace.SpanContextConfig
	for _, f := range []struct {
		to   []byte
		from string
	}{{version[:], parts[0]}, {cfg.TraceID[:], parts[1]}, {cfg.SpanID[:], parts[2]}, {flags[:], parts[3]}} {
		if _, err := hex.Decode(f.to, []byte(f.from)); err != nil {
			return sc, false
		}
	}
	cfg.TraceFlags, cfg.Remote = oteltrace.TraceFlags(flags[0])&oteltrace.FlagsSampled, true
	sc = oteltrace.NewSpanContext(cfg)
	return sc, sc.IsValid()
}

// Clean is a traceparent as it is kept: itself if it can be read, else empty.
func Clean(text string) string {
	sc, ok := Parse(text)
	if !ok {
		return ""
	}
	return format(sc)
}

func format(sc oteltrace.SpanContext) string {
	return "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + "-" + sc.TraceFlags().String()
}

// With makes what is done with the context a part of the trace of whoever asked
// for it.
func With(ctx context.Context, traceparent string) context.Context {
	sc, ok := Parse(traceparent)
	if !ok {
		return ctx
	}
	return oteltrace.ContextWithRemoteSpanContext(ctx, sc)
}

// requested is the key of what Request keeps.
type requested struct{}

// Request notes the trace of whoever asks for something that is done later. What is
// asked for by itself, in the course of something else, begins a trace of its own:
// else a lane that goes on for years would be one trace.
func Request(ctx context.Context, traceparent string) context.Context {
	if traceparent = Clean(traceparent); traceparent == "" {
		return ctx
	}
	return context.WithValue(ctx, requested{}, traceparent)
}

// Requested is the traceparent that was noted; empty if none was.
func Requested(ctx context.Context) string {
	text, _ := ctx.Value(requested{}).(string)
	return text
}

// Begin begins a span beneath that of the context. In work that has none it does nothing.
func Begin(ctx context.Context, name string, options ...oteltrace.SpanStartOption) (context.Context, oteltrace.Span) {
	return oteltrace.SpanFromContext(ctx).TracerProvider().Tracer(scope).Start(ctx, name, options...)
}

// run is the key of what InRun keeps.
type run struct{}

// InRun notes the run that something is done for.
func InRun(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, run{}, id)
}

// RunOf is the run that was noted; empty if none was.
func RunOf(ctx context.Context) string {
	id, _ := ctx.Value(run{}).(string)
	return id
}

// Same makes what is done with a context a part of the trace and the run of another one,
// and of nothing else of it.
func Same(ctx, as context.Context) context.Context {
	if id := RunOf(as); id != "" {
		ctx = InRun(ctx, id)
	}
	if span := oteltrace.SpanFromContext(as); span.SpanContext().IsValid() {
		return oteltrace.ContextWithSpan(ctx, span)
	}
	return ctx
}

// Pass tells the trace of the context to whoever is called, unless the caller has
// told one already.
func Pass(ctx context.Context, h http.Header) {
	sc := oteltrace.SpanContextFromContext(ctx)
	if sc.IsValid() && h.Get(Header) == "" {
		h.Set(Header, format(sc))
	}
}
