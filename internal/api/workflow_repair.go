package api

import (
	"context"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

type listRepairsInput struct {
	WorkflowPath
	PageInput
}

const repairCursor = "repair"

func (a *API) listRepairs(ctx context.Context, in *listRepairsInput) (*pageOutput[client.Repair], error) {
	at, id, err := in.placeInTime(repairCursor)
	if err != nil {
		return nil, err
	}
	out := &pageOutput[client.Repair]{}
	err = a.ofWorkflow(ctx, in.Name, func(ctx context.Context, tx *store.Tx, w workflowstore.Workflow) error {
		list, err := workflowstore.In(tx).ListRepairs(ctx, w.ID, store.Place{CreatedAt: at, ID: id}, in.Limit+1)
		if err != nil {
			return err
		}
		base := map[string]string{}
		for _, r := range list {
			if base[r.BaseVersion] != "" {
				continue
			}
			v, err := workflowstore.In(tx).GetWorkflowVersion(ctx, w.ID, r.BaseVersion)
			if err != nil {
				return err
			}
			base[r.BaseVersion] = v.Source
		}
		cursor := func(r workflowstore.Repair) string { return timeCursor(r.CreatedAt, r.ID) }
		out.Body = cutPage(list, in.Limit, repairCursor, cursor, func(r workflowstore.Repair) client.Repair {
			return client.Repair{
				ID: r.ID, RunID: r.RunID, State: r.State, Reason: client.NullString(r.Reason), Explanation: client.NullString(r.Explanation), Repairer: r.Repairer,
				Script: client.NullString(r.Script), BaseScript: client.NullString(base[r.BaseVersion]), CreatedAt: client.At(r.CreatedAt),
			}
		})
		return nil
	})
	return out, err
}
