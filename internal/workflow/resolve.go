package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/partitionstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// What people can say about a run. Each is refused unless the run is in the
// state that it is about, so a second click does no harm (context 3.7.7).

// Outcome is what a person knows about a call of which nobody else does.
type Outcome string

// The outcomes.
const (
	Happened     Outcome = "happened"
	DidNotHappen Outcome = "did-not-happen"
	SkipIt       Outcome = "skip"
	TryAgain     Outcome = "try-again"
)

// openRun reads a run that is the newest of its lane, with all that belongs to
// it, and keeps others from answering meanwhile.
func (s *Service) openRun(ctx context.Context, tx *store.Tx, op, runID string) (*view, error) {
	r, err := runstore.In(tx).GetRun(ctx, runID)
	if err != nil {
		return nil, err
	}
	if r.Kind != pawl.KindWorkflow {
		return nil, lane.Refuse(op, "", "it is not a run of a workflow", "")
	}
	w, err := workflowstore.In(tx).WorkflowByLane(ctx, r.Lane)
	if err != nil {
		return nil, err
	}
	if _, err := workflowstore.In(tx).HoldWorkflow(ctx, w.Name); err != nil {
		return nil, err
	}
	v, err := s.loadLaneOf(ctx, tx, w, r.Lane)
	if err != nil {
		return nil, err
	}
	if v.row.ID != runID {
		return nil, lane.Refuse(op, "history", fmt.Sprintf("run %s is over; the newest run of %s is %s", runID, w.Name, v.row.ID), "")
	}
	return v, nil
}

// loadLaneOf reads the view of the lane that a run of a workflow is in.
func (s *Service) loadLaneOf(ctx context.Context, tx *store.Tx, w workflowstore.Workflow, lane string) (*view, error) {
	if _, part := runstore.BaseLane(lane); part != "" {
		return s.loadPart(ctx, tx, w, part)
	}
	return s.load(ctx, tx, w.ID)
}

func (v *view) is(op string, status pawl.Status) error {
	if v.row.Status == status {
		return nil
	}
	return lane.Refuse(op, "", fmt.Sprintf("run %s is %s, not %s", v.row.ID, v.row.Status, status), "pawl describe run "+v.row.ID+" shows its state.")
}

// SeenNothing is said instead of the id of a question by somebody who was shown
// none, only that a run waits.
const SeenNothing = "none"

// Seen refuses a decision that is made about another question than the one that
// the run asks now, in the caller's transaction: asked is the id of the one that
// was shown. It stays the same until the transaction ends.
func (s *Service) Seen(ctx context.Context, tx *store.Tx, runID, asked string) error {
	const op = "decide about run"
	v, err := s.openRun(ctx, tx, op, runID)
	if err != nil {
		return err
	}
	open := SeenNothing
	if v.asked != nil {
		open = v.asked.ID
	}
	if asked != open {
		return lane.Refuse(op, "changed", "the question is not the one you saw", "Review it again.")
	}
	return nil
}

// Approve lets a run make the call that it asked for, in the caller's
// transaction; always also approves all later calls of that method by the
// workflow. hash, if it is given, must be that of the question that was seen.
// A run that waits for an account or a permission is resumed.
func (s *Service) Approve(ctx context.Context, tx *store.Tx, runID, hash string, always bool, by string) error {
	const op = "approve run"
	v, err := s.openRun(ctx, tx, op, runID)
	if err != nil {
		return err
	}
	if v.proposed() {
		return s.approveProposal(ctx, tx, v, hash, always, by)
	}
	if err := v.is(op, pawl.StatusPausedApproval); err != nil {
		return err
	}
	if v.asked == nil {
		return s.grant(ctx, tx, v, by)
	}
	switch {
	case v.asked.State == mutationstore.ApprovalExpired, v.asked.State == mutationstore.ApprovalPending && !v.waitsForAnswer():
		return lane.Refuse(op, "expired", "the question has expired", "Resume the run: it asks again.")
	case v.asked.State != mutationstore.ApprovalPending:
		return lane.Refuse(op, "decided", fmt.Sprintf("the question is already %s", v.asked.State), "")
	case hash != "" && hash != v.asked.Hash:
		return lane.Refuse(op, "changed", "the call is not the one you saw", "Review it again.")
	}
	if err := mutationstore.In(tx).MoveApproval(ctx, v.asked.ID, mutationstore.ApprovalPending, mutationstore.ApprovalApproved, by); err != nil {
		return err
	}
	if always {
		if err := mutationstore.In(tx).AddApprovalRule(ctx, v.workflow.ID, v.asked.Tool, v.asked.Method, by); err != nil {
			return err
		}
	}
	detail := map[string]any{"workflow": v.workflow.Name, "tool": v.asked.Tool, "method": v.asked.Method, "hash": v.asked.Hash, "always": always}
	if err := tx.Audit(ctx, by, "run.approve", "run:"+runID, detail); err != nil {
		return err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(v.workflow.Name), What: "approved", Run: runID})
	return s.changedView(ctx, tx, v)
}

// grant lets a run go on that waits for an account or a permission. If it is
// one that Pawl itself refused, the workflow has it from now on.
func (s *Service) grant(ctx context.Context, tx *store.Tx, v *view, by string) error {
	if v.row.ErrorCode == codeNotGranted {
		granted, err := workflowstore.In(tx).GrantRights(ctx, v.workflow.ID, v.row.ID, by)
		if err != nil {
			return err
		}
		for _, r := range granted {
			detail := map[string]string{"run": v.row.ID, "tool": r.Tool, "method": r.Method}
			if err := tx.Audit(ctx, by, "workflow.grant", "workflow:"+v.workflow.Name, detail); err != nil {
				return err
			}
		}
	}
	return s.clear(ctx, tx, v, "run.approve", by)
}

// Reject ends a run that waits for a person, in the caller's transaction: what
// it reserved is released and the workflow is paused. A repaired script
// that waits is refused, and nothing else changes.
func (s *Service) Reject(ctx context.Context, tx *store.Tx, runID, by string) (runstore.Run, error) {
	const op = "reject run"
	v, err := s.openRun(ctx, tx, op, runID)
	if err != nil {
		return runstore.Run{}, err
	}
	if v.proposed() {
		return v.row, s.rejectProposal(ctx, tx, v, by)
	}
	if err := v.is(op, pawl.StatusPausedApproval); err != nil {
		return runstore.Run{}, err
	}
	if v.asked != nil && v.asked.State == mutationstore.ApprovalPending {
		if err := mutationstore.In(tx).MoveApproval(ctx, v.asked.ID, mutationstore.ApprovalPending, mutationstore.ApprovalRejected, by); err != nil {
			return runstore.Run{}, err
		}
	}
	cancelled, err := s.endRun(ctx, tx, v.row)
	if err != nil {
		return runstore.Run{}, err
	}
	if v.part != nil {
		err = partitionstore.In(tx).SetRejected(ctx, v.workflow.ID, v.part.ID, runID)
	} else if v.workflow.Desired == desiredActive {
		if _, err := s.setPaused(ctx, tx, v.workflow, by, lane.PauseTerms{Note: "run " + runID + " was rejected"}); err != nil {
			return runstore.Run{}, err
		}
	}
	if err == nil {
		err = s.settleView(ctx, tx, v)
	}
	if err != nil {
		return runstore.Run{}, err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(v.workflow.Name), What: "rejected", Run: runID})
	return cancelled, tx.Audit(ctx, by, "run.reject", "run:"+runID, map[string]string{"workflow": v.workflow.Name})
}

// ResumeRun says that what stopped a run is mended, in the caller's
// transaction. It bypasses no question and no unknown outcome.
func (s *Service) ResumeRun(ctx context.Context, tx *store.Tx, runID, by string) error {
	const op = "resume run"
	v, err := s.openRun(ctx, tx, op, runID)
	if err != nil {
		return err
	}
	switch {
	case v.newest.Status == pawl.StatusActive || !run.Halts(v.newest, v.exhausted()):
		return lane.Refuse(op, "", fmt.Sprintf("run %s is %s and needs nothing", runID, v.row.Status), "")
	}
	if err := v.decideInstead(op); err != nil {
		return err
	}
	return s.clear(ctx, tx, v, "run.resume", by)
}

// decideInstead refuses to resume a run that waits for a word that
// resuming does not say, and tells which.
func (v *view) decideInstead(op string) error {
	switch {
	case v.newest.Status == pawl.StatusActive:
		return nil
	case v.open != nil && v.open.State != pawl.MutationIndeterminate:
		return lane.Refuse(op, "reconciling", "the outcome of its call is being checked", "Wait until that is known; pawl why workflow "+v.workflow.Name+" shows when.")
	case run.Unresolved(v.newest.Ledger):
		return lane.Refuse(op, "outcome_unknown", "the outcome of its call is unknown", "Record what happened: pawl resolve "+v.row.ID+" --outcome happened|did-not-happen|skip")
	case v.waitsForAnswer() && !v.proposed():
		return lane.Refuse(op, "approval", "it is waiting for your approval", "pawl approve "+v.row.ID)
	}
	return nil
}

// clear notes that a person mended what stopped the newest run.
func (s *Service) clear(ctx context.Context, tx *store.Tx, v *view, action, by string) error {
	if err := setCleared(ctx, tx, v); err != nil {
		return err
	}
	if err := tx.Audit(ctx, by, action, "run:"+v.row.ID, map[string]string{"workflow": v.workflow.Name}); err != nil {
		return err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(v.workflow.Name), What: "resumed", Run: v.row.ID})
	return s.changedView(ctx, tx, v)
}

// setCleared lets the newest run go on, once. A question whose time is over
// makes room for the one that the run will ask.
func setCleared(ctx context.Context, tx *store.Tx, v *view) error {
	if v.asked != nil && v.asked.State == mutationstore.ApprovalPending {
		if err := mutationstore.In(tx).MoveApproval(ctx, v.asked.ID, mutationstore.ApprovalPending, mutationstore.ApprovalExpired, ""); err != nil {
			return err
		}
	}
	note := func() error { return workflowstore.In(tx).SetWorkflowCleared(ctx, v.workflow.ID, v.row.ID) }
	if v.part != nil {
		note = func() error { return partitionstore.In(tx).SetCleared(ctx, v.workflow.ID, v.part.ID, v.row.ID) }
	}
	if err := note(); err != nil {
		return err
	}
	return runstore.In(tx).ClearRetry(ctx, pawl.KindWorkflow, v.lane())
}

// Resolve records what a person knows about a call, in the caller's
// transaction (context 3.7.1..4). result is what next is told, for Happened.
func (s *Service) Resolve(ctx context.Context, tx *store.Tx, runID string, o Outcome, result json.RawMessage, by string) error {
	const op = "resolve run"
	v, err := s.openRun(ctx, tx, op, runID)
	if err != nil {
		return err
	}
	if err := v.is(op, pawl.StatusPausedReconciliation); err != nil {
		return err
	}
	if v.open == nil || v.open.State != pawl.MutationIndeterminate {
		return lane.Refuse(op, "reconciling", "the outcome of the call is still being checked", "Wait until it gives up; pawl why workflow "+v.workflow.Name+" shows when.")
	}
	if err := s.resolve(ctx, tx, v, o, result, by); err != nil {
		return err
	}
	detail := map[string]any{"workflow": v.workflow.Name, "outcome": o, "tool": v.open.Tool, "method": v.open.Method}
	if err := tx.Audit(ctx, by, "run.resolve", "run:"+runID, detail); err != nil {
		return err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(v.workflow.Name), What: "resolved", Run: runID})
	return s.changedView(ctx, tx, v)
}

func (s *Service) resolve(ctx context.Context, tx *store.Tx, v *view, o Outcome, result json.RawMessage, by string) error {
	const op = "resolve run"
	move := func(c mutationstore.MutationChange) error {
		c.ResolvedBy = by
		return mutationstore.In(tx).MoveMutation(ctx, v.open.ID, pawl.MutationIndeterminate, c)
	}
	record := func(result json.RawMessage) error {
		_, err := s.ledger.Advance(ctx, tx, v.row, ledger.Checkpoint{MutationResult: result}, pawl.PhaseMutated)
		return err
	}
	switch o {
	case Happened:
		told, err := appliedResult(result)
		if err != nil {
			return &pawl.Error{Code: pawl.CodeInvalid, Op: op, Msg: "the result is not JSON", Fields: []pawl.Field{{Pointer: "/result", Message: "must be JSON"}}}
		}
		return errors.Join(move(mutationstore.MutationChange{To: pawl.MutationApplied, Result: orNullJSON(result)}), record(told))
	case DidNotHappen:
		return move(mutationstore.MutationChange{To: pawl.MutationFailed})
	case SkipIt:
		if err := move(mutationstore.MutationChange{To: pawl.MutationSkipped}); err != nil {
			return err
		}
		if _, err := eventstore.In(tx).SkipReservedEvents(ctx, v.row.ID); err != nil {
			return err
		}
		return record(json.RawMessage(`{"status":"skipped"}`))
	case TryAgain:
		if !v.open.CanReconcile {
			return lane.Refuse(op, "cannot_ask", fmt.Sprintf("%s.%s cannot report the outcome of a call", v.open.Tool, v.open.Method), "Check it yourself and record what happened.")
		}
		if err := mutationstore.In(tx).MoveMutation(ctx, v.open.ID, pawl.MutationIndeterminate, mutationstore.MutationChange{To: pawl.MutationNeedsReconcile}); err != nil {
			return err
		}
		return mutationstore.In(tx).ReconcileLater(ctx, v.open.ID, 0, tx.Now)
	}
	return &pawl.Error{
		Code: pawl.CodeInvalid, Op: op, Msg: "unknown outcome", Hint: "Use happened, did-not-happen, skip or try-again.",
		Fields: []pawl.Field{{Pointer: "/outcome", Message: fmt.Sprintf("%q is none", o)}},
	}
}
