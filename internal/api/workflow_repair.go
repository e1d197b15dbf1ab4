package api

import (
	"context"

	"github.com/pawlrun/pawl/internal/store"
)

// Repair is a script that was proposed after a script failed.
type Repair struct {
	ID          string  `json:"id"`
	RunID       string  `json:"runId" doc:"The run that failed."`
	State       string  `json:"state" enum:"activated,rejected,failed,proposed" doc:"activated: it came into force. rejected: it was refused. failed: there was none. proposed: it waits for a person; approve or reject the run."`
	Reason      *string `json:"reason" doc:"Why it did not come into force, or not by itself."`
	Explanation *string `json:"explanation" doc:"What the repairer says about it; not to be trusted."`
	Repairer    string  `json:"repairer"`
	Script      *string `json:"script" doc:"What was proposed."`
	BaseScript  *string `json:"baseScript" doc:"The script that failed."`
	CreatedAt   Instant `json:"createdAt"`
}

type listRepairsInput struct {
	WorkflowPath
	PageInput
}

type listRepairsOutput struct{ Body Page[Repair] }

const repairCursor = "repair"

func (a *API) listRepairs(ctx context.Context, in *listRepairsInput) (*listRepairsOutput, error) {
	at, id, err := in.placeInTime(repairCursor)
	if err != nil {
		return nil, err
	}
	out := &listRepairsOutput{}
	err = a.ofWorkflow(ctx, in.Name, func(ctx context.Context, tx *store.Tx, w store.Workflow) error {
		list, err := tx.ListRepairs(ctx, w.ID, store.Place{CreatedAt: at, ID: id}, in.Limit+1)
		if err != nil {
			return err
		}
		base := map[string]*string{}
		for _, r := range list {
			if base[r.BaseVersion] != nil {
				continue
			}
			v, err := tx.GetWorkflowVersion(ctx, w.ID, r.BaseVersion)
			if err != nil {
				return err
			}
			base[r.BaseVersion] = &v.Source
		}
		cursor := func(r store.Repair) string { return timeCursor(r.CreatedAt, r.ID) }
		out.Body = cutPage(list, in.Limit, repairCursor, cursor, func(r store.Repair) Repair {
			return Repair{
				ID: r.ID, RunID: r.RunID, State: r.State, Reason: orNull(r.Reason), Explanation: orNull(r.Explanation), Repairer: r.Repairer,
				Script: orNull(r.Script), BaseScript: base[r.BaseVersion], CreatedAt: Instant{r.CreatedAt},
			}
		})
		return nil
	})
	return out, err
}
