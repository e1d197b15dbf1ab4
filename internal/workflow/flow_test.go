package workflow

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
)

// ..A-105, A-135, X-03: every event leads to one run with one
// order, and what next publishes reaches the next consumer with its causes.
func TestEventsFlowThroughConsumersOnce(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", orderDefinition())
		k.publish(w, "in", "a", "b", "c")
		if until := k.work(w); !until.IsZero() {
			t.Errorf("nothing can become due by itself, but the lane wants to be woken at %v", until)
		}
		if diff := cmp.Diff([]string{"a", "b", "c"}, k.desk.things()); diff != "" {
			t.Errorf("orders (-want +got):\n%s", diff)
		}
		for topic, ids := range map[string][]string{"in": {"a", "b", "c"}, "out": {"out-a", "out-b", "out-c"}} {
			got := k.statuses(w, topic)
			for _, id := range ids {
				if got[id] != eventstore.EventConsumed {
					t.Errorf("event %s of %s is %q, not consumed", id, topic, got[id])
				}
			}
		}
		for _, r := range k.runs(w) {
			if r.Status != pawl.StatusCommitted || r.Phase != pawl.PhaseCommitted {
				t.Errorf("run %s of %s is %s at %s", r.ID, r.Handler, r.Status, r.Phase)
			}
		}
		k.read(func(ctx context.Context, tx *store.Tx) error {
			inputs, err := eventstore.In(tx).ListInputs(ctx, w.ID, "", eventstore.InputCursor{}, 10)
			for _, i := range inputs {
				if i.Status != eventstore.InputDone {
					t.Errorf("input %s is %s", i.Title, i.Status)
				}
				calls, err := mutationstore.In(tx).MutationsOfInput(ctx, i.ID)
				if err != nil || len(calls) != 1 || calls[0].State != pawl.MutationApplied {
					t.Errorf("input %s has the calls %v (%v), not one that was applied", i.Title, calls, err)
				}
				events, err := eventstore.In(tx).ListEvents(ctx, w.ID, eventstore.EventFilter{Topic: "out", InputID: i.ID}, 0, 10)
				if err != nil || len(events) != 1 {
					t.Errorf("input %s caused %d events of out (%v), not one", i.Title, len(events), err)
				}
			}
			return err
		})
	})
}
