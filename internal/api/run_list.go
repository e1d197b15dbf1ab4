package api

import (
	"context"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

type listRunsInput struct {
	PageInput
	Kind   string `query:"kind" enum:"workflow,source,schedule" doc:"Only runs of this kind."`
	Lane   string `query:"lane" doc:"Only runs of the workflow, source or schedule with this name; say the kind, too, if there are several."`
	Status string `query:"status" enum:"active,paused:transient,paused:approval,paused:reconciliation,failed:logic,failed:internal,committed,crashed,cancelled" doc:"Only runs with this status."`
}

const runCursor = "run"

func (a *API) listRuns(ctx context.Context, in *listRunsInput) (*pageOutput[client.Run], error) {
	at, id, err := in.placeInTime(runCursor)
	if err != nil {
		return nil, err
	}
	var f faults
	if in.Lane != "" {
		f.add("/lane", textFault(in.Lane, maxName), "")
	}
	if err := f.problem(); err != nil {
		return nil, err
	}
	out := &pageOutput[client.Run]{}
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		filter, err := a.runFilter(ctx, tx, in)
		if err != nil {
			return err
		}
		runs, next, err := runstore.In(tx).ListRuns(ctx, filter, store.Place{CreatedAt: at, ID: id}, in.Limit)
		if err != nil {
			return err
		}
		items, err := a.runsWithCalls(ctx, tx, runs)
		cursor := ""
		if next.ID != "" {
			cursor = timeCursor(next.CreatedAt, next.ID)
		}
		out.Body = pageOf(items, runCursor, cursor)
		return err
	})
	return out, err
}

// runFilter turns the name of a lane into that of its runs. Without a kind it is
// that of the first kind in which the two differ; else all runs of that lane.
func (a *API) runFilter(ctx context.Context, tx *store.Tx, in *listRunsInput) (runstore.RunFilter, error) {
	filter := runstore.RunFilter{Kind: pawl.Kind(in.Kind), Lane: in.Lane}
	if in.Lane != "" {
		for _, k := range a.kinds {
			if in.Kind != "" && in.Kind != string(k.Kind()) {
				continue
			}
			found, ok, err := k.Find(ctx, tx, viewerOf(ctx, k.Kind()), in.Lane)
			if err != nil {
				return filter, err
			}
			if ok && found.Lane != in.Lane {
				filter = found
				break
			}
		}
	}
	filter.Status, filter.Viewer = pawl.Status(in.Status), access.Reach(callOf(ctx).token, schedulesResource)
	return filter, nil
}

func (a *API) runsWithCalls(ctx context.Context, tx *store.Tx, runs []runstore.Run) ([]client.Run, error) {
	ids := make([]string, len(runs))
	for i := range runs {
		ids[i] = runs[i].ID
	}
	calls, err := mutationstore.In(tx).MutationsOfRuns(ctx, ids)
	if err != nil {
		return nil, err
	}
	progress, err := progressOf(ctx, tx, runs...)
	if err != nil {
		return nil, err
	}
	out := make([]client.Run, len(runs))
	for i := range runs {
		out[i] = a.runOf(&runs[i], calls[runs[i].ID])
		out[i].Progress = progress[runs[i].ID]
	}
	return out, nil
}
