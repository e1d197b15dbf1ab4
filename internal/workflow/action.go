package workflow

import (
	"context"
	"errors"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// Actions implements lane.Kind, by the rules that the commands go by. An answer
// may come too late all the same: what counts is the state at the time of the
// request.
func (s *Service) Actions(ctx context.Context, tx *store.Tx, r *runstore.Run) ([]lane.Action, error) {
	calls, err := mutationstore.In(tx).RunMutations(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	asked, err := mutationstore.In(tx).NewestApproval(ctx, r.ID)
	if err := pawl.IgnoreNotFound(err); err != nil {
		return nil, err
	}
	current, err := isCurrent(ctx, tx, r)
	if err != nil {
		return nil, err
	}
	return actionsOf(r, calls, asked.State, current), nil
}

// isCurrent reports whether a run is the newest of a workflow that is there.
// Only such a run can be decided about.
func isCurrent(ctx context.Context, tx *store.Tx, r *runstore.Run) (bool, error) {
	w, err := workflowstore.In(tx).WorkflowByLane(ctx, r.Lane)
	if errors.Is(err, pawl.ErrNotFound) {
		return false, nil
	}
	if err != nil || !w.DeletedAt.IsZero() {
		return false, err
	}
	newest, err := runstore.In(tx).NewestRun(ctx, r.Kind, r.Lane)
	return newest.ID == r.ID, err
}

// actionsOf are what can be done about a run. asked is the state of its last
// question, empty if there was none.
func actionsOf(r *runstore.Run, calls []mutationstore.Mutation, asked mutationstore.ApprovalState, current bool) (out []lane.Action) {
	sum, ok := sumOf(calls)
	if !ok { // the ledger contradicts itself, so nothing is let through
		return nil
	}
	view := run.Run{ID: r.ID, RetryOf: r.RetryOf, Type: r.HandlerType, Phase: r.Phase, Status: r.Status, Class: r.ErrorClass, Ledger: sum.State, CanReconcile: sum.CanReconcile}
	add := func(name string, accepted bool) {
		if accepted {
			out = append(out, lane.Action{Name: name})
		}
	}
	if current {
		waits := r.Status == pawl.StatusPausedApproval
		repaired := r.Status == pawl.StatusFailedLogic && asked == mutationstore.ApprovalPending // a script waits, not a call
		if r.ErrorClass != "" {                                                                  // for an account or a permission, not for an answer
			asked = ""
		}
		pending := waits && asked == mutationstore.ApprovalPending
		add("approve", pending || repaired || waits && asked == "")
		add("reject", repaired || waits && run.CanCancel(view))
		if r.Status == pawl.StatusPausedReconciliation && sum.State == pawl.MutationIndeterminate {
			out = append(out, lane.Action{Name: "resolve", Outcomes: outcomesOf(sum.CanReconcile)})
		}
		// Whether retries are used up makes no difference to runs of workflows.
		add("resume", !pending && !run.Unresolved(view.Ledger) && run.Halts(view, false))
	}
	add("cancel", run.CanCancel(view))
	return out
}

// outcomesOf are what a person can say about a call of which nobody knows what
// became of it.
func outcomesOf(canReconcile bool) []string {
	out := []string{string(Happened), string(DidNotHappen), string(SkipIt)}
	if canReconcile {
		out = append(out, string(TryAgain))
	}
	return out
}
