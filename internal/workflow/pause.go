package workflow

import (
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// ContinueName is the task that ends what holds a workflow back until a time.
const ContinueName = lane.ContinuePrefix + string(pawl.KindWorkflow)

// setPaused notes that a person wants a workflow to rest, and what they said about it.
// It reports whether they said something new.
func (s *Service) setPaused(ctx context.Context, tx *store.Tx, w workflowstore.Workflow, by string, terms lane.PauseTerms) (bool, error) {
	known, err := runstore.In(tx).GetLane(ctx, pawl.KindWorkflow, w.Lane)
	if err != nil {
		return false, err
	}
	changed, err := lane.Pause(ctx, tx, s.jobs, known, terms, by)
	if err != nil || w.Desired == desiredPaused {
		return changed, err
	}
	return changed, workflowstore.In(tx).SetWorkflowDesired(ctx, w.ID, desiredPaused)
}

// setActive notes that a workflow is meant to run again.
func (s *Service) setActive(ctx context.Context, tx *store.Tx, w workflowstore.Workflow) error {
	known, err := runstore.In(tx).GetLane(ctx, pawl.KindWorkflow, w.Lane)
	if err != nil {
		return err
	}
	if err := lane.Unpause(ctx, tx, known); err != nil {
		return err
	}
	return workflowstore.In(tx).SetWorkflowDesired(ctx, w.ID, desiredActive)
}

// proceed ends the pause of a workflow whose time has come, or tells when it will. What
// came meanwhile is done as after Resume; what halted its newest run is not said to be
// mended by that.
func (s *Service) proceed(ctx context.Context, key string) (again time.Time, err error) {
	if err := s.cfg.fault("continuing"); err != nil {
		return time.Time{}, err
	}
	err = s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		again = time.Time{}
		w, err := workflowstore.In(tx).WorkflowByLane(ctx, key)
		if err == nil {
			w, err = workflowstore.In(tx).HoldWorkflow(ctx, w.Name)
		}
		if err != nil || w.Lane != key { // it is deleted
			return pawl.IgnoreNotFound(err)
		}
		known, err := runstore.In(tx).GetLane(ctx, pawl.KindWorkflow, key)
		switch until := known.Pause.Until; {
		case err != nil || until.IsZero() || w.Desired != desiredPaused:
			return pawl.IgnoreNotFound(err)
		case until.After(tx.Now): // it was paused anew
			again = until
			return nil
		}
		if err := s.setActive(ctx, tx, w); err != nil {
			return err
		}
		if err := tx.Audit(ctx, lane.Continued, "workflow.resume", "workflow:"+w.Name, lane.AuditPauseOver(known.Pause)); err != nil {
			return err
		}
		s.cfg.Emit(tx, lane.Change{Ref: refOf(w.Name), What: "resumed"})
		return s.changed(ctx, tx, w)
	})
	if err != nil {
		return time.Time{}, err
	}
	return again, s.cfg.fault("continued")
}
