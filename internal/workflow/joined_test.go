package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/telemetry"
)

func traceparent(n int) string { return fmt.Sprintf("00-%032x-00f067aa0ba902b7-01", n) }

// traced publishes an event as a part of a trace.
func (k *kit) traced(w workflowstore.Workflow, id, trace string) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) error {
		_, _, err := k.s.PublishExternal(telemetry.Request(ctx, trace), tx, w.Name, ExternalEvent{Topic: "in", MessageID: id, Payload: json.RawMessage(`1`)}, "tester")
		return err
	})
}

// committedTraces are the traces of the runs that committed, as they are told to whoever
// observes them; of those that took events.
func (k *kit) committedTraces() (list []string) {
	for _, e := range k.events {
		if e.Run.Phase == "committed" && e.Run.Handler == "order" && len(e.Run.PrepareResult) > 0 {
			list = append(list, e.Run.Trace)
		}
	}
	return list
}

// Every call is a part of the trace of the event that it is made for, also if the lane was
// at work for another one when that came.
func TestCallsAreInTheTraceOfTheirEvent(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", orderDefinition())
		k.settle(w)
		k.traced(w, "a", traceparent(1))
		k.traced(w, "b", traceparent(2))
		k.traced(w, "b", traceparent(3)) // it is the same
		k.traced(w, "c", "")
		k.traced(w, "d", "nonsense")
		k.settle(w)
		if want := []string{traceparent(1), traceparent(3), "", ""}; !slices.Equal(k.desk.traces, want) {
			t.Errorf("%q, want %q", k.desk.traces, want)
		}
		if got := k.committedTraces(); !slices.Contains(got, traceparent(1)) || !slices.Contains(got, traceparent(3)) {
			t.Errorf("runs are observed in %q", got)
		}
	})
}

// A run that goes on after a person approved, in a process that did not prepare it, is
// still a part of the trace of its event.
func TestAnApprovedCallIsInTheTraceOfItsEvent(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", askDefinition())
		k.traced(w, "a", traceparent(1))
		k.work(w)
		r := k.newest(w)
		pass(time.Hour)
		k.start("n2")
		if err := k.person(func(ctx context.Context, tx *store.Tx) error { return k.s.Approve(ctx, tx, r.ID, "", false, "ann") }); err != nil {
			t.Fatal(err)
		}
		k.settle(w)
		if want := []string{traceparent(1)}; !slices.Equal(k.desk.traces, want) {
			t.Errorf("%q, want %q", k.desk.traces, want)
		}
	})
}
