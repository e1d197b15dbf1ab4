package workflow

import (
	"context"
	"errors"
	"fmt"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/partitionstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// Why a run now is refused.
const (
	ReasonRunActive  = "run_active"
	ReasonBackingOff = "backing_off"
	ReasonFixing     = "fixing"
	ReasonPaused     = lane.ReasonPaused
	ReasonUndeployed = "not_deployed"
)

// RunNow asks for a run of every producer of a workflow, in the caller's
// transaction; consumers run because of what they publish (A-12..A-18). It is
// refused, with a reason and without any effect, unless the lane is idle and
// healthy.
func (s *Service) RunNow(ctx context.Context, tx *store.Tx, name, by string) error {
	const op = "run workflow"
	if err := lane.RefuseHalted(ctx, tx, op); err != nil {
		return err
	}
	w, err := workflowstore.In(tx).HoldWorkflow(ctx, name)
	if err != nil {
		return err
	}
	v, err := s.load(ctx, tx, w.ID)
	if err != nil {
		return err
	}
	if w.Desired == desiredPaused {
		known, err := runstore.In(tx).GetLane(ctx, pawl.KindWorkflow, w.Lane)
		if err != nil {
			return err
		}
		return lane.RefusePaused(op, refOf(name), known.Pause)
	}
	if err := v.refuseRunNow(op); err != nil {
		return err
	}
	n, err := workflowstore.In(tx).RequestProducers(ctx, w.ID)
	if err != nil {
		return err
	}
	if n == 0 {
		return lane.Refuse(op, ReasonUndeployed, fmt.Sprintf("workflow %q has no producers that could run", name), "Publish an event instead: its consumers run when there is one.")
	}
	if err := tx.Audit(ctx, by, "workflow.run", "workflow:"+name, nil); err != nil {
		return err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(name), What: "requested"})
	return s.arm(ctx, tx, w, tx.Now)
}

func (v *view) refuseRunNow(op string) error {
	name := v.workflow.Name
	word, issue := v.status()
	switch {
	case word == run.Stopped:
		return lane.Refuse(op, ReasonPaused, fmt.Sprintf("workflow %q is %s", name, v.workflow.Desired), "Resume it first: pawl resume workflow "+name)
	case v.newest.Status == pawl.StatusActive:
		return lane.Refuse(op, ReasonRunActive, fmt.Sprintf("a run of workflow %q is active", name), "Wait until it has ended.")
	case issue == run.IssueBackingOff:
		return lane.Refuse(op, ReasonBackingOff, fmt.Sprintf("workflow %q is backing off after a failure", name), "It is retried automatically; pawl why workflow "+name+" shows when.")
	case issue == run.IssueFixing:
		return lane.Refuse(op, ReasonFixing, fmt.Sprintf("the script of workflow %q is being fixed", name), "")
	case run.Halts(v.newest, v.exhausted()):
		return lane.Refuse(op, ReasonPaused, fmt.Sprintf("workflow %q is halted: %s", name, v.sentence(issue)), "pawl why workflow "+name+" shows what to do.")
	}
	return nil
}

// Pause stops a workflow from starting anything, in the caller's transaction.
// A run that has sent nothing yet is cancelled and what it reserved is
// released; one that has goes on to its end. Of one that is paused, what was said
// about it is replaced. It reports whether anything changed.
func (s *Service) Pause(ctx context.Context, tx *store.Tx, name, by string, terms lane.PauseTerms) (bool, error) {
	w, err := workflowstore.In(tx).HoldWorkflow(ctx, name)
	if err != nil || w.Desired == desiredArchived {
		return false, err
	}
	changed, err := s.setPaused(ctx, tx, w, by, terms)
	if err != nil {
		return false, err
	}
	if w.Desired == desiredActive {
		changed, err = true, s.cancelActive(ctx, tx, w)
	}
	if err != nil || !changed {
		return false, err
	}
	if err := s.settleLane(ctx, tx, w.ID); err != nil {
		return false, err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(name), What: "paused"})
	return true, tx.Audit(ctx, by, "workflow.pause", "workflow:"+name, lane.AuditPause(terms))
}

// endRun cancels a run for good, and with it the question that it asked.
func (s *Service) endRun(ctx context.Context, tx *store.Tx, r runstore.Run) (runstore.Run, error) {
	cancelled, err := s.ledger.Cancel(ctx, tx, r)
	if err != nil {
		return runstore.Run{}, err
	}
	return cancelled, mutationstore.In(tx).DropApproval(ctx, r.ID)
}

// cancelActive cancels the active runs of a workflow of which nothing was sent yet.
func (s *Service) cancelActive(ctx context.Context, tx *store.Tx, w workflowstore.Workflow) error {
	lanes, err := s.lanesOf(ctx, tx, w)
	if err != nil {
		return err
	}
	for _, lane := range lanes {
		if err := s.cancelActiveIn(ctx, tx, lane); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) cancelActiveIn(ctx context.Context, tx *store.Tx, lane string) error {
	r, err := runstore.In(tx).ActiveRun(ctx, pawl.KindWorkflow, lane)
	if errors.Is(err, pawl.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	switch _, err := s.endRun(ctx, tx, r); {
	case err == nil:
		tx.AfterCommit(func() { s.withdraw(r.ID) })
		return nil
	case errors.Is(err, pawl.ErrConflict), errors.Is(err, pawl.ErrLeaseLost): // it goes on, or is recovered
		return nil
	default:
		return err
	}
}

// Resume lets a workflow run again, in the caller's transaction. It also says
// that whatever halted its newest run is mended, once; what is unknown about a
// call stays unknown, and a question stays asked (context 3.7.6). It reports
// whether anything changed.
func (s *Service) Resume(ctx context.Context, tx *store.Tx, name, by string) (bool, error) {
	w, err := workflowstore.In(tx).HoldWorkflow(ctx, name)
	if err != nil {
		return false, err
	}
	v, err := s.load(ctx, tx, w.ID)
	if err != nil {
		return false, err
	}
	halted := v.resumable()
	parts, err := s.resumeParts(ctx, tx, w)
	if err != nil {
		return false, err
	}
	if w.Desired == desiredActive && !halted && len(parts) == 0 {
		return false, nil
	}
	if w.Desired != desiredActive {
		if err := s.setActive(ctx, tx, w); err != nil {
			return false, err
		}
	}
	if halted {
		if err := setCleared(ctx, tx, v); err != nil {
			return false, err
		}
	}
	if err := tx.Audit(ctx, by, "workflow.resume", "workflow:"+name, nil); err != nil {
		return false, err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(name), What: "resumed"})
	for _, p := range parts {
		if p.workflow, err = workflowstore.In(tx).GetWorkflow(ctx, w.ID); err != nil {
			return false, err
		}
		if err := s.changedView(ctx, tx, p); err != nil {
			return false, err
		}
	}
	return true, s.changed(ctx, tx, w)
}

// resumable reports whether the newest run stopped for something that a person can say
// is mended.
func (v *view) resumable() bool {
	return v.newest.Status != pawl.StatusActive && run.Halts(v.newest, v.exhausted()) && !v.waitsForAnswer() && !run.Unresolved(v.newest.Ledger)
}

// resumeParts says the same of every partition of a workflow, and lets those go on of
// which a run was rejected. It returns them.
func (s *Service) resumeParts(ctx context.Context, tx *store.Tx, w workflowstore.Workflow) (list []*view, err error) {
	parts, err := s.openParts(ctx, tx, w)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		v, err := s.loadPart(ctx, tx, w, p.ID)
		if err != nil {
			return nil, err
		}
		switch {
		case p.RejectedRun != "":
			err = partitionstore.In(tx).SetRejected(ctx, w.ID, p.ID, "")
		case v.resumable() && !v.cleared():
			err = setCleared(ctx, tx, v)
		default:
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// Delete removes a workflow, in the caller's transaction: its name is free and
// nothing of it runs again; what it did can still be read. It is refused while
// a run cannot be cancelled or a call has no known outcome.
func (s *Service) Delete(ctx context.Context, tx *store.Tx, name, by string) error {
	const op = "delete workflow"
	w, err := workflowstore.In(tx).HoldWorkflow(ctx, name)
	if err != nil {
		return err
	}
	if err := s.cancelActive(ctx, tx, w); err != nil {
		return err
	}
	views, err := s.allViews(ctx, tx, w)
	if err != nil {
		return err
	}
	for _, v := range views {
		switch {
		case v.newest.Status == pawl.StatusActive:
			return lane.Refuse(op, ReasonRunActive, fmt.Sprintf("a run of workflow %q is active and has sent something already", name), "Try again when it has ended.")
		case run.Unresolved(v.newest.Ledger):
			return lane.Refuse(op, "outcome_unknown", fmt.Sprintf("the outcome of a call of workflow %q is unknown", name), "Resolve run "+v.row.ID+" first.")
		}
		if err := s.endWaiting(ctx, tx, v); err != nil {
			return err
		}
	}
	if w.Partitioned {
		if err := partitionstore.In(tx).Close(ctx, w.ID); err != nil {
			return err
		}
	}
	if err := workflowstore.In(tx).DeleteWorkflow(ctx, w); err != nil {
		return err
	}
	if err := s.cfg.Needs.Declare(ctx, tx, pawl.KindWorkflow, w.Lane, nil); err != nil {
		return err
	}
	tx.AfterCommit(func() { s.forget(w.ID) })
	s.cfg.Emit(tx, lane.Change{Ref: refOf(name), What: "deleted"})
	return tx.Audit(ctx, by, "workflow.delete", "workflow:"+name, nil)
}

// allViews reads the view of a workflow and those of its partitions that may have
// something left to do.
func (s *Service) allViews(ctx context.Context, tx *store.Tx, w workflowstore.Workflow) ([]*view, error) {
	own, err := s.load(ctx, tx, w.ID)
	if err != nil {
		return nil, err
	}
	parts, err := s.openParts(ctx, tx, w)
	if err != nil {
		return nil, err
	}
	list := []*view{own}
	for _, p := range parts {
		v, err := s.loadPart(ctx, tx, w, p.ID)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// endWaiting ends a run that waits for a person, and takes back what it asks:
// nobody can answer for a workflow that is gone.
func (s *Service) endWaiting(ctx context.Context, tx *store.Tx, v *view) error {
	if v.newest.Status != pawl.StatusPausedApproval {
		return nil
	}
	_, err := s.endRun(ctx, tx, v.row)
	if errors.Is(err, pawl.ErrConflict) { // its call happened: it stays as it is, and asks nothing any more
		return mutationstore.In(tx).DropApproval(ctx, v.row.ID)
	}
	return err
}

// SkipInput gives up an input, in the caller's transaction: its pending events
// are skipped; a run that took one of them is cancelled if nothing was sent,
// and else finishes (context 3.2.6). It reports whether anything changed.
func (s *Service) SkipInput(ctx context.Context, tx *store.Tx, inputID, by string) (bool, error) {
	input, err := eventstore.In(tx).GetInput(ctx, inputID)
	if err != nil {
		return false, err
	}
	w, err := workflowstore.In(tx).GetWorkflow(ctx, input.WorkflowID)
	if err != nil {
		return false, err
	}
	if _, err := workflowstore.In(tx).HoldWorkflow(ctx, w.Name); err != nil && !errors.Is(err, pawl.ErrNotFound) {
		return false, err
	}
	changed, err := eventstore.In(tx).SkipInput(ctx, inputID, by)
	if err != nil || !changed {
		return false, err
	}
	if err := s.cancelTakers(ctx, tx, w, inputID); err != nil {
		return false, err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(w.Name), What: "skipped", Detail: ChangeDetail{Input: inputID}})
	if err := tx.Audit(ctx, by, "input.skip", "input:"+inputID, map[string]string{"workflow": w.Name, "title": input.Title}); err != nil {
		return false, err
	}
	return true, s.changed(ctx, tx, w)
}

// cancelTakers cancels the runs that took events of an input, and one that may
// be about to: its prepare can have seen them, and would fail for what is no
// fault of the script. It is called once the input is skipped, so that nobody
// takes another one meanwhile.
func (s *Service) cancelTakers(ctx context.Context, tx *store.Tx, w workflowstore.Workflow, inputID string) error {
	runs, err := eventstore.In(tx).RunsHolding(ctx, inputID)
	if err != nil {
		return err
	}
	lanes, err := s.lanesOf(ctx, tx, w)
	if err != nil {
		return err
	}
	for _, lane := range lanes {
		active, err := runstore.In(tx).ActiveRun(ctx, pawl.KindWorkflow, lane)
		switch {
		case err == nil && active.Phase == pawl.PhasePreparing:
			runs = append(runs, active.ID)
		case err != nil && !errors.Is(err, pawl.ErrNotFound):
			return err
		}
	}
	for _, id := range runs {
		if err := s.cancelRun(ctx, tx, w, id); err != nil {
			return err
		}
	}
	return nil
}

// cancelRun cancels a run that has sent nothing; another one goes on.
func (s *Service) cancelRun(ctx context.Context, tx *store.Tx, w workflowstore.Workflow, runID string) error {
	r, err := runstore.In(tx).GetRun(ctx, runID)
	if err != nil {
		return err
	}
	_, err = s.endRun(ctx, tx, r)
	if err == nil {
		tx.AfterCommit(func() { s.withdraw(runID) })
		if _, part := runstore.BaseLane(r.Lane); part != "" {
			if err := s.settlePart(ctx, tx, w, part); err != nil {
				return err
			}
		}
		return workflowstore.In(tx).TouchWorkflow(ctx, w.ID) // events are pending again
	}
	if errors.Is(err, pawl.ErrConflict) || errors.Is(err, pawl.ErrLeaseLost) {
		return nil
	}
	return err
}

// CancelRun ends a run for good, in the caller's transaction, as long as
// nothing was sent. The lane then goes on with whatever is due.
func (s *Service) CancelRun(ctx context.Context, tx *store.Tx, r runstore.Run, by string) (runstore.Run, error) {
	w, err := workflowstore.In(tx).WorkflowByLane(ctx, r.Lane)
	if err != nil {
		return runstore.Run{}, err
	}
	cancelled, err := s.endRun(ctx, tx, r)
	if errors.Is(err, pawl.ErrLeaseLost) { // nobody executes it; it is recovered first
		return runstore.Run{}, lane.Refuse("cancel run", "recovering", fmt.Sprintf("run %s was interrupted and is about to be recovered", r.ID), "Try again in a moment.")
	}
	if err != nil {
		return runstore.Run{}, err
	}
	tx.AfterCommit(func() { s.withdraw(r.ID) })
	if err := workflowstore.In(tx).TouchWorkflow(ctx, w.ID); err != nil { // events are pending again
		return runstore.Run{}, err
	}
	if err := tx.Audit(ctx, by, "run.cancel", "run:"+r.ID, map[string]string{"workflow": w.Name}); err != nil {
		return runstore.Run{}, err
	}
	v, err := s.loadLaneOf(ctx, tx, w, r.Lane)
	if err != nil {
		return runstore.Run{}, err
	}
	return cancelled, s.changedView(ctx, tx, v)
}
