package workflow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// A proposal that waits for a person is a question like any other, about the run
// that failed. No connection can have its name.
const (
	proposalTool   = "pawl:auto-fix"
	proposalMethod = "deploy"
	// proposalTime is how long it can be answered. It ends before that when
	// another version is deployed.
	proposalTime = 365 * 24 * time.Hour
)

// proposalHash names what is approved: this script in the place of that one.
func proposalHash(r workflowstore.Repair) string {
	sum := sha256.Sum256([]byte(r.BaseVersion + "\n" + r.Script))
	return hex.EncodeToString(sum[:])
}

// propose lets a proposal wait for a person, with the doubt that there is.
func (e *session) propose(ctx context.Context, tx *store.Tx, v *view, r workflowstore.Repair) error {
	r.State = workflowstore.RepairProposed
	if err := workflowstore.In(tx).AddRepair(ctx, r); err != nil {
		return err
	}
	_, err := mutationstore.In(tx).InsertApproval(ctx, mutationstore.Approval{
		WorkflowID: e.id, RunID: v.row.ID, Tool: proposalTool, Method: proposalMethod, Hash: proposalHash(r), PhaseAt: tx.Now, ExpiresAt: tx.Now.Add(proposalTime),
		Arguments: e.cfg.Tools.Redact(asJSON(map[string]string{"doubt": r.Reason, "explanation": r.Explanation, "script": r.Script})),
		Title:     "May a repaired script come into force?",
	})
	if err != nil {
		return err
	}
	e.cfg.Emit(tx, lane.Change{Ref: refOf(v.workflow.Name), What: "asked", Run: v.row.ID})
	return e.settleView(ctx, tx, v)
}

// proposalFor reads the proposal that waits for a person because a run failed,
// as a question; nil if there is none.
func proposalFor(ctx context.Context, tx *store.Tx, r runstore.Run) (*mutationstore.Approval, error) {
	if r.Status != pawl.StatusFailedLogic {
		return nil, nil //nolint:nilnil // nothing is proposed
	}
	a, err := mutationstore.In(tx).NewestApproval(ctx, r.ID)
	if errors.Is(err, pawl.ErrNotFound) || err == nil && a.Tool != proposalTool {
		return nil, nil //nolint:nilnil // nothing was asked
	}
	return &a, err
}

// proposed reports whether a repaired script waits for a person.
func (v *view) proposed() bool {
	return v.row.Status == pawl.StatusFailedLogic && v.waitsForAnswer()
}

// approveProposal puts a proposal in force that a person agreed to, in the
// caller's transaction. It stays confined: they saw its text, and what its text
// can reach is held at the call.
func (s *Service) approveProposal(ctx context.Context, tx *store.Tx, v *view, hash string, always bool, by string) error {
	const op = "approve run"
	if always {
		return lane.Refuse(op, "once", "a repaired script is approved once", "Leave always out.")
	}
	if hash != "" && hash != v.asked.Hash {
		return lane.Refuse(op, "changed", "the proposal is not the one you saw", "Review it again.")
	}
	r, err := waiting(ctx, tx, v.row.ID)
	if err != nil {
		return err
	}
	if v.workflow.Version != r.BaseVersion || proposalHash(r) != v.asked.Hash {
		return lane.Refuse(op, "changed", "another version was deployed meanwhile", "")
	}
	version, err := s.activate(ctx, tx, v.workflow, r, by)
	if err != nil {
		return err
	}
	if err := mutationstore.In(tx).MoveApproval(ctx, v.asked.ID, mutationstore.ApprovalPending, mutationstore.ApprovalUsed, by); err != nil {
		return err
	}
	if err := workflowstore.In(tx).DecideRepair(ctx, v.row.ID, workflowstore.RepairActivated, version, "", by); err != nil {
		return err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(v.workflow.Name), What: "approved", Run: v.row.ID})
	if err := s.settleView(ctx, tx, v); err != nil {
		return err
	}
	return tx.Audit(ctx, by, "run.approve", "run:"+v.row.ID, map[string]string{"workflow": v.workflow.Name, "tool": proposalTool, "version": version, "hash": v.asked.Hash})
}

// rejectProposal ends a proposal. The run stays as it is: the script failed.
func (s *Service) rejectProposal(ctx context.Context, tx *store.Tx, v *view, by string) error {
	if err := mutationstore.In(tx).MoveApproval(ctx, v.asked.ID, mutationstore.ApprovalPending, mutationstore.ApprovalRejected, by); err != nil {
		return err
	}
	if err := workflowstore.In(tx).DecideRepair(ctx, v.row.ID, workflowstore.RepairRejected, "", "a person refused it", by); err != nil {
		return err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(v.workflow.Name), What: "rejected", Run: v.row.ID})
	if err := tx.Audit(ctx, by, "run.reject", "run:"+v.row.ID, map[string]string{"workflow": v.workflow.Name, "tool": proposalTool}); err != nil {
		return err
	}
	return s.changedView(ctx, tx, v) // people are told that it needs a script
}

// waiting reads the proposal that waits because of a run.
func waiting(ctx context.Context, tx *store.Tx, runID string) (workflowstore.Repair, error) {
	list, err := workflowstore.In(tx).RepairsOfRuns(ctx, []string{runID})
	if err != nil {
		return workflowstore.Repair{}, err
	}
	for _, r := range list {
		if r.State == workflowstore.RepairProposed {
			return r, nil
		}
	}
	return workflowstore.Repair{}, lane.Refuse("approve run", "decided", "the proposal does not wait any more", "")
}

// dropProposal ends a proposal that came to nothing, because the run is retried
// without it.
func dropProposal(ctx context.Context, tx *store.Tx, r runstore.Run) error {
	if r.Status != pawl.StatusFailedLogic {
		return nil
	}
	if err := mutationstore.In(tx).DropApproval(ctx, r.ID); err != nil {
		return err
	}
	return workflowstore.In(tx).DecideRepair(ctx, r.ID, workflowstore.RepairRejected, "", "the run was tried again without it", "")
}
