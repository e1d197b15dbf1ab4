package workflow

import (
	"context"
	"fmt"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
)

// Holdings are what runs of workflows hold: the events they reserved and the
// calls they made. It is the part that this kind plays in internal/ledger.
type Holdings struct{}

// Mutation sums up the calls of a run.
func (Holdings) Mutation(ctx context.Context, tx *store.Tx, runID string) (ledger.Mutation, error) {
	rows, err := mutationstore.In(tx).RunMutations(ctx, runID)
	if err != nil {
		return ledger.Mutation{}, err
	}
	sum, ok := sumOf(rows)
	if !ok {
		return sum, fmt.Errorf("run %s made more than one call that did not fail", runID)
	}
	return sum, nil
}

// sumOf sums up calls; ok is false if they contradict each other.
func sumOf(rows []mutationstore.Mutation) (sum ledger.Mutation, ok bool) {
	states := make([]pawl.MutationState, len(rows))
	for i, m := range rows {
		states[i] = m.State
		if run.Unresolved(m.State) {
			sum.CanReconcile = m.CanReconcile
		}
	}
	sum.State, ok = run.LedgerOf(states)
	return sum, ok
}

// Settle moves events and the open call as a transition decided.
func (Holdings) Settle(ctx context.Context, tx *store.Tx, s ledger.Settlement) error {
	if s.Mutation != pawl.MutationNone {
		if err := moveOpen(ctx, tx, s.RunID, s.Mutation); err != nil {
			return err
		}
	}
	var err error
	switch s.Reservations {
	case run.ReservationsRelease:
		_, err = eventstore.In(tx).ReleaseEvents(ctx, s.RunID)
	case run.ReservationsConsumed:
		err = eventstore.In(tx).ConsumeEvents(ctx, s.RunID)
	case run.ReservationsTransfer:
		if _, err = eventstore.In(tx).TransferEvents(ctx, s.RunID, s.Successor); err == nil {
			err = mutationstore.In(tx).TransferMutation(ctx, s.RunID, s.Successor)
		}
	case run.ReservationsNone, run.ReservationsKeep:
	}
	return err
}

// moveOpen moves the call of which nobody knows what became of it. One that
// can be asked for is asked for at once: whoever made the call is gone and
// could not.
func moveOpen(ctx context.Context, tx *store.Tx, runID string, to pawl.MutationState) error {
	m, err := openMutation(ctx, tx, runID)
	if err != nil || m == nil || m.State == to {
		return err
	}
	if err := mutationstore.In(tx).MoveMutation(ctx, m.ID, m.State, mutationstore.MutationChange{To: to}); err != nil {
		return err
	}
	if to != pawl.MutationNeedsReconcile {
		return nil
	}
	return mutationstore.In(tx).ReconcileLater(ctx, m.ID, m.ReconcileAttempts, tx.Now)
}

// openMutation reads the unresolved call of a run, or nil.
func openMutation(ctx context.Context, tx *store.Tx, runID string) (*mutationstore.Mutation, error) {
	rows, err := mutationstore.In(tx).RunMutations(ctx, runID)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if run.Unresolved(rows[i].State) {
			return &rows[i], nil
		}
	}
	return nil, nil //nolint:nilnil // mostly there is none
}
