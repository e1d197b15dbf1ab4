package workflow

import (
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// A ledger that contradicts itself lets nobody do anything.
func TestContradictoryLedgerOffersNothing(t *testing.T) {
	run := &runstore.Run{Kind: pawl.KindWorkflow, HandlerType: pawl.HandlerConsumer, Phase: pawl.PhaseMutating, Status: pawl.StatusPausedReconciliation}
	calls := []mutationstore.Mutation{{State: pawl.MutationApplied}, {State: pawl.MutationIndeterminate}}
	if got := actionsOf(run, calls, "", true); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if got := actionsOf(run, calls[1:], "", true); len(got) != 1 || got[0].Name != "resolve" {
		t.Errorf("%v", got)
	}
}
