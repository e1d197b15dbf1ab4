package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// unknownOutcome brings a run to where only a person knows what happened.
func unknownOutcome(k *kit, name string) (workflowstore.Workflow, runstore.Run) {
	k.t.Helper()
	w := k.deploy(name, "1", orderDefinition())
	k.settle(w)
	k.publish(w, "in", "a")
	k.desk.answer = func(tool.Call) error { return errors.New("the line broke") }
	k.desk.inquiry = func(tool.Call) (bool, bool) { return false, false }
	k.settle(w)
	k.desk.answer, k.desk.inquiry = nil, nil
	return w, k.newest(w)
}

func (k *kit) resolve(r runstore.Run, o Outcome, result string) error {
	k.t.Helper()
	return k.person(func(ctx context.Context, tx *store.Tx) error {
		return k.s.Resolve(ctx, tx, r.ID, o, json.RawMessage(result), "ann")
	})
}

// context 3.7: each answer of a person leads where it must, and a
// second one is refused.
func TestPeopleSayWhatBecameOfACall(t *testing.T) {
	for _, test := range []struct {
		outcome Outcome
		result  string
		orders  int // at the desk afterwards: the lost one, and a repeated one
		event   eventstore.EventStatus
		told    string // what next was told
	}{
		{Happened, `{"number":7}`, 1, eventstore.EventConsumed, `{"status":"applied","result":{"number":7}}`},
		{Happened, ``, 1, eventstore.EventConsumed, `{"status":"applied","result":null}`},
		{DidNotHappen, ``, 2, eventstore.EventConsumed, `{"status":"applied","result":{"number":2}}`},
		{SkipIt, ``, 1, eventstore.EventSkipped, `{"status":"skipped"}`},
		{TryAgain, ``, 1, eventstore.EventConsumed, `{"status":"applied","result":{"number":"asked"}}`},
	} {
		t.Run(string(test.outcome)+test.result, func(t *testing.T) {
			inTime(t, func(t *testing.T, k *kit) {
				w, r := unknownOutcome(k, "shop")
				if r.Status != pawl.StatusPausedReconciliation || r.Phase != pawl.PhaseMutating {
					t.Fatalf("the run is %s at %s", r.Status, r.Phase)
				}
				if d, err := k.s.Describe(t.Context(), "shop"); err != nil || d.Issue != run.IssueOutcomeUnknown || d.State != run.NeedsAttention {
					t.Errorf("people see %s, %s (%v)", d.State, d.Issue, err)
				}
				if err := k.resolve(r, "maybe", ""); !errors.Is(err, pawl.ErrInvalid) {
					t.Errorf("an unknown word: %v", err)
				}
				if err := k.person(func(ctx context.Context, tx *store.Tx) error { return k.s.ResumeRun(ctx, tx, r.ID, "ann") }); refusalOf(err) != "conflict outcome_unknown" {
					t.Errorf("resuming bypasses the unknown outcome: %v", err)
				}
				if err := k.resolve(r, test.outcome, test.result); err != nil {
					t.Fatal(err)
				}
				if err := k.resolve(r, test.outcome, test.result); !errors.Is(err, pawl.ErrConflict) {
					t.Errorf("a second click: %v", err)
				}
				k.settle(w)
				if n := len(k.desk.things()); n != test.orders {
					t.Errorf("%d orders, not %d", n, test.orders)
				}
				if got := k.statuses(w, "in")["a"]; got != test.event {
					t.Errorf("the event is %s, not %s", got, test.event)
				}
				k.read(func(ctx context.Context, tx *store.Tx) error {
					events, err := eventstore.In(tx).EventsByMessage(ctx, w.ID, "out", []string{"out-a"})
					if err != nil || len(events) != 1 {
						t.Fatalf("next published %d events (%v)", len(events), err)
					}
					if diff := cmp.Diff(test.told, string(events[0].Payload)); diff != "" {
						t.Errorf("next was told (-want +got):\n%s", diff)
					}
					if len(events[0].CausedBy) != 1 {
						t.Errorf("the cause was lost: %v", events[0].CausedBy)
					}
					return nil
				})
			})
		})
	}
}
