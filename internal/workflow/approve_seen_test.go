package workflow

import (
	"context"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// What was approved is bound to where it goes: a connection that leads elsewhere
// by the time of the call is asked about again, with the new address.
func TestApprovalHoldsForTheAddressThatWasShown(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.desk.place = "POST https://bank.example.com/pay"
		w := k.deploy("shop", "1", askDefinition())
		k.publish(w, "in", "a")
		k.work(w)
		first := k.approvalOf(w)
		if first.Address != k.desk.place {
			t.Errorf("the question shows %q", first.Address)
		}
		k.desk.place = "POST https://elsewhere.example.com/pay"
		if err := k.person(func(ctx context.Context, tx *store.Tx) error {
			return k.s.Approve(ctx, tx, first.RunID, first.Hash, false, "ann")
		}); err != nil {
			t.Fatal(err)
		}
		k.work(w)
		second := k.approvalOf(w)
		if n := len(k.desk.things()); n != 0 || second.ID == first.ID || second.Address != k.desk.place || k.newest(w).Status != pawl.StatusPausedApproval {
			t.Errorf("%d calls were made; it is asked %+v", n, second)
		}
	})
}

// A decision is about the question that was shown, and about no later one of the
// same run.
func TestADecisionIsAboutTheQuestionThatWasSeen(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", askDefinition())
		k.publish(w, "in", "a")
		k.settle(w) // the question expires
		first := k.approvalOf(w)
		seen := func(id string) error {
			return k.person(func(ctx context.Context, tx *store.Tx) error { return k.s.Seen(ctx, tx, first.RunID, id) })
		}
		if err := k.person(func(ctx context.Context, tx *store.Tx) error { return k.s.ResumeRun(ctx, tx, first.RunID, "ann") }); err != nil {
			t.Fatal(err)
		}
		k.work(w)
		second := k.approvalOf(w)
		if second.ID == first.ID || second.Hash != first.Hash {
			t.Fatalf("it did not ask the same again: %+v, %+v", first, second)
		}
		for _, stale := range []string{first.ID, SeenNothing} {
			if err := seen(stale); refusalOf(err) != "conflict changed" {
				t.Errorf("having seen %s: %v", stale, err)
			}
		}
		if err := seen(second.ID); err != nil {
			t.Errorf("having seen the question: %v", err)
		}
	})
}

func (k *kit) approvalOf(w workflowstore.Workflow) (a mutationstore.Approval) {
	k.t.Helper()
	if err := k.db.Read(k.t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		a, err = mutationstore.In(tx).NewestApproval(ctx, k.newest(w).ID)
		return err
	}); err != nil {
		k.t.Fatal(err)
	}
	return a
}
