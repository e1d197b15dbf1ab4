package workflow

import (
	"context"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// rest is how the lane stands when no run of it is active.
func (v *view) rest() lane.Rest {
	s := v.standing()
	return lane.RestOf(s.state, s.issue, s.cause, s.sentence, s.of.row.ID)
}

// settleLane writes how a lane stands, in the transaction that changed it.
func (s *Service) settleLane(ctx context.Context, tx *store.Tx, workflowID string) error {
	v, err := s.load(ctx, tx, workflowID)
	if err == nil && v.workflow.Partitioned { // two partitions may change at once
		if err = runstore.In(tx).HoldLane(ctx, pawl.KindWorkflow, v.workflow.Lane); err == nil {
			v, err = s.load(ctx, tx, workflowID)
		}
	}
	if err != nil {
		return err
	}
	known, err := runstore.In(tx).GetLane(ctx, pawl.KindWorkflow, v.workflow.Lane)
	if err != nil {
		return pawl.IgnoreNotFound(err) // it is deleted, and what it began comes to its end
	}
	ref := refOf(v.workflow.Name)
	told, err := s.cfg.Settle(ctx, tx, ref, known, v.rest())
	if told != "" {
		s.cfg.Emit(tx, lane.Change{Ref: ref, What: told, Run: v.row.ID})
	}
	return err
}

// changed is for commands: it writes how the lane stands and lets its owner look
// at it.
func (s *Service) changed(ctx context.Context, tx *store.Tx, w workflowstore.Workflow) error {
	if err := s.settleLane(ctx, tx, w.ID); err != nil {
		return err
	}
	return s.arm(ctx, tx, w, tx.Now)
}

// settled is what the owner of a lane knows of its row.
type settled struct {
	revision int64 // of the workflow then: commands write the row too
	state    run.State
	cause    string
}

// settleOnce writes how a lane stands when there is nothing to do, unless its
// owner knows that the row says so.
func (e *session) settleOnce(ctx context.Context, v *view) error {
	if v.part != nil {
		return nil // it does so when it leaves its place
	}
	r := v.rest()
	now := settled{revision: v.workflow.Revision, state: r.State}
	if r.Attention != nil {
		now.cause = r.Attention.Cause
	}
	if e.memory.settled == now && !v.workflow.Partitioned { // whose partitions write the row too
		return nil
	}
	var known runstore.Lane
	err := e.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		known, err = runstore.In(tx).GetLane(ctx, pawl.KindWorkflow, v.workflow.Lane)
		return pawl.IgnoreNotFound(err)
	})
	if err == nil && !r.SaidBy(known) {
		err = e.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.Fence(ctx, e.claim.Fence()); err != nil {
				return err
			}
			return e.settleLane(ctx, tx, v.workflow.ID)
		})
	}
	if err == nil {
		e.memory.settled = now
	}
	return err
}
