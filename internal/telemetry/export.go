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

	Version  string
	Instance string // the id of this node

	Log      *slog.Logger
	Registry *prometheus.Registry // the numbers that are sent, and where those of the export are kept
}

// scope is what makes the spans.
const scope = "github.com/pawlrun/pawl"

// Exporter sends spans and numbers. A nil *Exporter sends nothing.
type Exporter struct {
	spans   *sdk.TracerProvider
	numbers *sdkmetric.MeterProvider
	tracer  oteltrace.Tracer
}

// Wanted reports whether a collector is named, and fails if what is named cannot
// be used. It tells the names of variables and never their values, which can hold
// keys.
func Wanted(endpoint string, getenv func(string) string) (bool, error) {
	bad := func(msg, hint string) error {
		return &pawl.Error{Code: pawl.CodeInvalid, Op: "read configuration", Msg: "otlpEndpoint: " + msg, Hint: hint}
	}
	const example = "Use http://HOST:4318 or https://HOST."
	named := endpoint != ""
	if named && !usableURL(endpoint) {
		return false, bad("not the URL of a collector", example)
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"} {
		if value := getenv(name); value != "" {
			if !usableURL(value) {
				return false, bad(name+" is not the URL of a collector", example)
			}
			named = true
		}
	}
	if !named || strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL"} {
		if p := getenv(name); p != "" && p != "http/protobuf" {
			return false, bad(name+" names a protocol that pawl does not speak", "Use http/protobuf, and the port of the collector for HTTP, which is mostly 4318.")
		}
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS"} {
		for pair := range strings.SplitSeq(getenv(name), ",") {
			if key, _, found := strings.Cut(pair, "="); strings.TrimSpace(pair) != "" && (!found || strings.TrimSpace(key) == "") {
				return false, bad(name+" is not a list of NAME=VALUE, separated by commas", "Write special characters of values as in URLs: %2C is a comma.")
			}
		}
	}
	return true, nil
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
	spanOptions := []otlptracehttp.Option{otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: false})}
	numberOptions := []otlpmetrichttp.Option{otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{Enabled: false})}
	if cfg.Endpoint != "" {
		base := strings.TrimRight(cfg.Endpoint, "/")
		spanOptions = append(spanOptions, otlptracehttp.WithEndpointURL(base+"/v1/traces"))
		numberOptions = append(numberOptions, otlpmetrichttp.WithEndpointURL(base+"/v1/metrics"))
	}
	spans, err := otlptracehttp.New(ctx, spanOptions...)
	if err != nil {
		return nil, fmt.Errorf("export spans: %w", err)
	}
	numbers, err := otlpmetrichttp.New(ctx, numberOptions...)
	if err != nil {
		return nil, fmt.Errorf("export numbers: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "pawl"), attribute.String("service.version", cmp.Or(cfg.Version, "dev")), attribute.String("service.instance.id", cfg.Instance),
	), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("export: %w", err)
	}
	batches := newBatcher(spans, cfg.Log, cfg.Registry) //nolint:contextcheck // it goes on until it is closed
	e := &Exporter{
		spans: sdk.NewTracerProvider(sdk.WithResource(about), sdk.WithSpanProcessor(batches)),
		numbers: sdkmetric.NewMeterProvider(sdkmetric.WithResource(about), sdkmetric.WithReader(
			sdkmetric.NewPeriodicReader(numbers, sdkmetric.WithProducer(prombridge.NewMetricProducer(prombridge.WithGatherer(cfg.Registry)))))),
	}
	e.tracer = e.spans.Tracer(scope)
	return e, nil
}

// Close sends what waits, as far as the context gives it time.
func (e *Exporter) Close(ctx context.Context) error {
	if e == nil {
		return nil
	}
	return errors.Join(e.spans.Shutdown(ctx), e.numbers.Shutdown(ctx))
}

// On reports whether anything is sent.
func (e *Exporter) On() bool { return e != nil }

// Start begins a span.
func (e *Exporter) Start(ctx context.Context, name string, options ...oteltrace.SpanStartOption) (context.Context, oteltrace.Span) {
	if e == nil {
		return ctx, oteltrace.SpanFromContext(context.Background()) // one that does nothing
	}
	return e.tracer.Start(ctx, name, options...)
}
