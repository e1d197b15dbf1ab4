package api

import (
	"context"
	"errors"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/workflow"
)

// isCurrent reports whether a run is the newest of a workflow that is there.
// Only such a run can be decided about.
func isCurrent(ctx context.Context, tx *store.Tx, r *store.Run) (bool, error) {
	w, err := tx.WorkflowByLane(ctx, r.Lane)
	if errors.Is(err, pawl.ErrNotFound) {
		return false, nil
	}
	if err != nil || !w.DeletedAt.IsZero() {
		return false, err
	}
	newest, err := tx.NewestRun(ctx, r.Kind, r.Lane)
	return newest.ID == r.ID, err
}

// actionsOf are what workflow.Service would accept for a run of a workflow, by
// the same rules. asked is the state of its last question, empty if there was
// none. An answer may come too late all the same: what counts is the state at
// the time of the request.
func actionsOf(r *store.Run, calls []store.Mutation, asked store.ApprovalState, current bool) []client.RunAction {
	out := []client.RunAction{}
	view, open, ok := viewOf(r, calls)
	if !ok { // the ledger contradicts itself, so nothing is let through
		return out
	}
	add := func(name string, accepted bool) {
		if accepted {
			out = append(out, client.RunAction{Name: name})
		}
	}
	if current {
		waits := r.Status == pawl.StatusPausedApproval
		repaired := r.Status == pawl.StatusFailedLogic && asked == store.ApprovalPending // a script waits, not a call
		if r.ErrorClass != "" {                                                          // for an account or a permission, not for an answer
			asked = ""
		}
		pending := waits && asked == store.ApprovalPending
		add("approve", pending || repaired || waits && asked == "")
		add("reject", repaired || waits && run.CanCancel(view))
		if r.Status == pawl.StatusPausedReconciliation && open != nil && open.State == pawl.MutationIndeterminate {
			out = append(out, client.RunAction{Name: "resolve", Outcomes: outcomesOf(open)})
		}
		// Whether retries are used up makes no difference to runs of workflows.
		add("resume", !pending && !run.Unresolved(view.Ledger) && run.Halts(view, false))
	}
	add("cancel", run.CanCancel(view))
	return out
}

// outcomesOf are what a person can say about a call of which nobody knows what
// became of it.
func outcomesOf(open *store.Mutation) []string {
	out := []string{string(workflow.Happened), string(workflow.DidNotHappen), string(workflow.SkipIt)}
	if open.CanReconcile {
		out = append(out, string(workflow.TryAgain))
	}
	return out
}

// viewOf is a run as the rules see it, and its call without a known outcome.
func viewOf(r *store.Run, calls []store.Mutation) (view run.Run, open *store.Mutation, ok bool) {
	view = run.Run{ID: r.ID, RetryOf: r.RetryOf, Type: r.HandlerType, Phase: r.Phase, Status: r.Status, Class: r.ErrorClass}
	states := make([]pawl.MutationState, len(calls))
	for i := range calls {
		states[i] = calls[i].State
		if run.Unresolved(calls[i].State) {
			open = &calls[i]
			view.CanReconcile = open.CanReconcile
		}
	}
	view.Ledger, ok = run.LedgerOf(states)
	return view, open, ok
}
