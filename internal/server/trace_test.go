package server

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	oteltrace "go.opentelemetry.io/otel/trace"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/telemetry"
)

// A call is a part of the run that makes it, once the run cannot leave its trace any more
// for that of the events that it takes.
func TestCallsArePartsOfRuns(t *testing.T) {
	collector := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(collector.Close)
	export, err := telemetry.New(t.Context(), telemetry.Config{Endpoint: collector.URL, Wants: telemetry.Wants{Spans: true}, Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = export.Close(t.Context()) })
	tr := newTracing()
	tr.export = export
	tell := func(id string, of pawl.HandlerType, phase pawl.Phase, status pawl.Status, trace string) {
		tr.run(ledger.Event{Run: runstore.Run{ID: id, Kind: pawl.KindWorkflow, HandlerType: of, Phase: phase, Status: status, Trace: trace}})
	}
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	within := func(id string) (in string) {
		if sc := oteltrace.SpanContextFromContext(tr.within(t.Context(), id)); sc.IsValid() {
			in = sc.TraceID().String()
		}
		return in
	}
	tell("c", pawl.HandlerConsumer, pawl.PhasePreparing, pawl.StatusActive, "")
	if got := within("c"); got != "" {
		t.Errorf("while it prepares its calls are parts of %s", got)
	}
	tell("c", pawl.HandlerConsumer, pawl.PhaseMutating, pawl.StatusActive, "00-"+trace+"-00f067aa0ba902b7-01")
	if got := within("c"); got != trace {
		t.Errorf("its calls are parts of %q", got)
	}
	tell("c", pawl.HandlerConsumer, pawl.PhaseCommitted, pawl.StatusCommitted, "00-"+trace+"-00f067aa0ba902b7-01")
	tell("p", pawl.HandlerProducer, pawl.PhaseExecuting, pawl.StatusActive, "")
	if within("c") != "" || within("") != "" || within("p") == "" {
		t.Errorf("calls are parts of %q, %q and %q", within("c"), within(""), within("p"))
	}
}
