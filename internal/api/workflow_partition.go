package api

import (
	"context"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/partitionstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// partitionOf is the name of the partition that a run is of; empty if it is of none, or
// of one that is forgotten.
func partitionOf(ctx context.Context, tx *store.Tx, r *runstore.Run) (string, error) {
	lane, part := runstore.BaseLane(r.Lane)
	if r.Kind != pawl.KindWorkflow || part == "" {
		return "", nil
	}
	w, err := workflowstore.In(tx).WorkflowByLane(ctx, lane)
	if err != nil {
		return "", pawl.IgnoreNotFound(err)
	}
	p, err := partitionstore.In(tx).Get(ctx, w.ID, part)
	return p.Name, pawl.IgnoreNotFound(err)
}
