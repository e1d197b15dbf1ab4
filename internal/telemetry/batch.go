package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

const (
	queueLength   = 4096            // spans that wait for the collector
	batchLength   = 512             // spans that are sent together
	batchWait     = 2 * time.Second // for others to be sent with
	exportTimeout = 10 * time.Second
	complainEvery = time.Minute
)

// batcher sends spans in batches, on a goroutine of its own. Ending a span never
// waits.
type batcher struct {
	to    sdk.SpanExporter
	log   *slog.Logger
	queue chan sdk.ReadOnlySpan
	flush chan chan struct{}
	count *prometheus.CounterVec

	stop    chan struct{}
	once    sync.Once
	stopped chan struct{}
}

func newBatcher(to sdk.SpanExporter, log *slog.Logger, reg prometheus.Registerer) *batcher {
	b := &batcher{
		to: to, log: log, queue: make(chan sdk.ReadOnlySpan, queueLength), flush: make(chan chan struct{}), stop: make(chan struct{}), stopped: make(chan struct{}),
		count: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pawl_otlp_spans_total", Help: "Spans by what became of them: sent to the collector, refused by it, dropped because it is slow or away.",
		}, []string{"outcome"}),
	}
	reg.MustRegister(b.count)
	for _, outcome := range []string{"sent", "failed", "dropped"} {
		b.count.WithLabelValues(outcome)
	}
	go b.run()
	return b
}

// OnStart implements sdk.SpanProcessor.
func (b *batcher) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd implements sdk.SpanProcessor.
func (b *batcher) OnEnd(s sdk.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	select {
	case b.queue <- s:
	default:
		b.count.WithLabelValues("dropped").Inc()
	}
}

// ForceFlush implements sdk.SpanProcessor.
func (b *batcher) ForceFlush(ctx context.Context) error {
	done := make(chan struct{})
	select {
	case b.flush <- done:
	case <-b.stopped:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// Shutdown implements sdk.SpanProcessor: it sends what waits, as far as there is
// time.
func (b *batcher) Shutdown(ctx context.Context) error {
	err := b.ForceFlush(ctx)
	b.once.Do(func() { close(b.stop) })
	return err
}

func (b *batcher) run() {
	defer close(b.stopped)
	var batch []sdk.ReadOnlySpan
	var complained time.Time
	send := func() {
		if len(batch) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), exportTimeout)
		err := b.to.ExportSpans(ctx, batch)
		cancel()
		outcome := "sent"
		if err != nil {
			outcome = "failed"
			if time.Since(complained) > complainEvery {
				complained = time.Now()
				b.log.Warn("spans cannot be sent to the collector", "err", err)
			}
		}
		b.count.WithLabelValues(outcome).Add(float64(len(batch)))
		batch = nil
	}
	tick := time.NewTicker(batchWait)
	defer tick.Stop()
	for {
		select {
		case s := <-b.queue:
			if batch = append(batch, s); len(batch) == batchLength {
				send()
			}
		case <-tick.C:
			send()
		case done := <-b.flush:
			for range len(b.queue) {
				if batch = append(batch, <-b.queue); len(batch) == batchLength {
					send()
				}
			}
			send()
			close(done)
		case <-b.stop:
			return
		}
	}
}
