package api

import (
	"cmp"
	"context"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/partitionstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/workflow"
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

type listPartitionsInput struct {
	WorkflowPath
	PageInput
	State string `query:"state" enum:"attention,held,working,waiting" doc:"Which ones; absent: attention. attention: they need a person. held: they are held up by something that needs nobody. working: they are at work. waiting: they wait for a place."`
}

const partitionCursor = "partition"

func (a *API) listPartitions(ctx context.Context, in *listPartitionsInput) (*pageOutput[client.Partition], error) {
	at, place, err := in.placeInTime(partitionCursor)
	if err != nil {
		return nil, err
	}
	id, handler, _ := strings.Cut(place, "/")
	state := cmp.Or(in.State, partitionstore.SortAttention)
	out := &pageOutput[client.Partition]{}
	err = a.ofWorkflow(ctx, in.Name, func(ctx context.Context, tx *store.Tx, w workflowstore.Workflow) error {
		list, err := a.workflows.Partitions(ctx, tx, w, state, partitionstore.Cursor{Since: at, ID: id, Handler: handler}, in.Limit+1)
		if err != nil {
			return err
		}
		out.Body = cutPage(list, in.Limit, partitionCursor, func(p workflow.PartitionNow) string {
			c := partitionstore.CursorOf(state, p.Partition)
			return timeCursor(c.Since, c.ID+"/"+c.Handler)
		}, func(p workflow.PartitionNow) client.Partition {
			return client.Partition{
				ID: p.ID, Name: client.NullString(p.Name), Handler: p.Handler, State: state, Issue: client.NullString(p.Sentence),
				Since: client.At(partitionstore.CursorOf(state, p.Partition).Since), NextAt: client.At(p.NextAt), RunID: client.NullString(p.RunID),
			}
		})
		return nil
	})
	return out, err
}

func partitionCounts(c *partitionstore.Counts) *client.PartitionCounts {
	if c == nil {
		return nil
	}
	return &client.PartitionCounts{Working: c.Working, Waiting: c.Waiting, Attention: c.Attention, Held: c.HeldUp}
}
