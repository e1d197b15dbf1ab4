package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	prombridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	pawl "github.com/pawlrun/pawl"
)

// Config says where to send what.
type Config struct {
	Endpoint string // of the collector, for HTTP; empty: the standard variables say it

	Wants Wants

	Version  string
	Instance string // the id of this node

	Log      *slog.Logger
	Registry *prometheus.Registry // the numbers that are sent, and where those of the export are kept
}

// scope is what makes the spans.
const scope = "github.com/pawlrun/pawl"

// Exporter sends spans and numbers. A nil *Exporter sends nothing.
type Exporter struct {
	spans   *sdk.TracerProvider      // nil: none are sent
	numbers *sdkmetric.MeterProvider // nil: none are sent
	tracer  oteltrace.Tracer
}

// Wants are what a collector is named for.
type Wants struct{ Spans, Numbers bool }

// Wanted reports what a collector is named for, and fails if what is named cannot
// be used. It tells the names of variables and never their values, which can hold
// keys.
func Wanted(endpoint string, getenv func(string) string) (w Wants, err error) {
	bad := func(msg, hint string) error {
		return &pawl.Error{Code: pawl.CodeInvalid, Op: "read configuration", Msg: "otlpEndpoint: " + msg, Hint: hint}
	}
	const example = "Use http://HOST:4318 or https://HOST."
	if endpoint != "" && !usableURL(endpoint) {
		return w, bad("not the URL of a collector", example)
	}
	w = Wants{Spans: endpoint != "", Numbers: endpoint != ""}
	for name, of := range map[string]Wants{"OTEL_EXPORTER_OTLP_ENDPOINT": {true, true}, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": {Spans: true}, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": {Numbers: true}} {
		if value := getenv(name); value != "" {
			if !usableURL(value) {
				return Wants{}, bad(name+" is not the URL of a collector", example)
			}
			w = Wants{w.Spans || of.Spans, w.Numbers || of.Numbers}
		}
	}
	if w == (Wants{}) || strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return Wants{}, nil
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL"} {
		if p := getenv(name); p != "" && p != "http/protobuf" {
			return Wants{}, bad(name+" names a protocol that pawl does not speak", "Use http/protobuf, and the port of the collector for HTTP, which is mostly 4318.")
		}
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS"} {
		for pair := range strings.SplitSeq(getenv(name), ",") {
			if key, _, found := strings.Cut(pair, "="); strings.TrimSpace(pair) != "" && (!found || strings.TrimSpace(key) == "") {
				return Wants{}, bad(name+" is not a list of NAME=VALUE, separated by commas", "Write special characters of values as in URLs: %2C is a comma.")
			}
		}
	}
	return w, nil
}

func usableURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// New starts to send. Nothing is asked of the collector yet: it may be away.
func New(ctx context.Context, cfg Config) (*Exporter, error) {
	// The SDK quotes malformed headers in its own log, keys included; ours has what
	// counts.
	otel.SetLogger(logr.Discard())
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { cfg.Log.Warn("numbers cannot be sent to the collector", "err", err) }))
	about, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "pawl"), attribute.String("service.version", cmp.Or(cfg.Version, "dev")), attribute.String("service.instance.id", cfg.Instance),
	), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("export: %w", err)
	}
	e := &Exporter{}
	if cfg.Wants.Spans {
		options := []otlptracehttp.Option{otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: false})}
		if cfg.Endpoint != "" {
			options = append(options, otlptracehttp.WithEndpointURL(strings.TrimRight(cfg.Endpoint, "/")+"/v1/traces"))
		}
		spans, err := otlptracehttp.New(ctx, options...)
		if err != nil {
			return nil, fmt.Errorf("export spans: %w", err)
		}
		batches := newBatcher(spans, cfg.Log, cfg.Registry) //nolint:contextcheck // it goes on until it is closed
		e.spans = sdk.NewTracerProvider(sdk.WithResource(about), sdk.WithSpanProcessor(batches))
		e.tracer = e.spans.Tracer(scope)
	}
	if cfg.Wants.Numbers {
		options := []otlpmetrichttp.Option{otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{Enabled: false})}
		if cfg.Endpoint != "" {
			options = append(options, otlpmetrichttp.WithEndpointURL(strings.TrimRight(cfg.Endpoint, "/")+"/v1/metrics"))
		}
		numbers, err := otlpmetrichttp.New(ctx, options...)
		if err != nil {
			return nil, fmt.Errorf("export numbers: %w", err)
		}
		e.numbers = sdkmetric.NewMeterProvider(sdkmetric.WithResource(about), sdkmetric.WithReader(
			sdkmetric.NewPeriodicReader(numbers, sdkmetric.WithProducer(prombridge.NewMetricProducer(prombridge.WithGatherer(cfg.Registry))))))
	}
	return e, nil
}

// Close sends what waits, as far as the context gives it time.
func (e *Exporter) Close(ctx context.Context) error {
	if e == nil {
		return nil
	}
	var failed []error
	if e.spans != nil {
		failed = append(failed, e.spans.Shutdown(ctx))
	}
	if e.numbers != nil {
		failed = append(failed, e.numbers.Shutdown(ctx))
	}
	return errors.Join(failed...)
}

// On reports whether spans are sent.
func (e *Exporter) On() bool { return e != nil && e.tracer != nil }

// Start begins a span.
func (e *Exporter) Start(ctx context.Context, name string, options ...oteltrace.SpanStartOption) (context.Context, oteltrace.Span) {
	if !e.On() {
		return ctx, oteltrace.SpanFromContext(context.Background()) // one that does nothing
	}
	return e.tracer.Start(ctx, name, options...)
}
