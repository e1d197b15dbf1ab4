package api

import (
	"context"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/store"
)

type listRunsInput struct {
	PageInput
	Kind   string `query:"kind" enum:"workflow,source,schedule" doc:"Only runs of this kind."`
	Lane   string `query:"lane" doc:"Only runs of the workflow, source or schedule with this name; say the kind, too, if there are several."`
	Status string `query:"status" enum:"active,paused:transient,paused:approval,paused:reconciliation,failed:logic,failed:internal,committed,crashed,cancelled" doc:"Only runs with this status."`
}

type listRunsOutput struct{ Body client.Page[client.Run] }

const runCursor = "run"

func (a *API) listRuns(ctx context.Context, in *listRunsInput) (*listRunsOutput, error) {
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
	out := &listRunsOutput{}
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		filter, err := a.runFilter(ctx, tx, in)
		if err != nil {
			return err
		}
		runs, next, err := tx.ListRuns(ctx, filter, store.Place{CreatedAt: at, ID: id}, in.Limit)
		if err != nil {
			return err
		}
		items, err := runsWithCalls(ctx, tx, runs)
		cursor := ""
		if next.ID != "" {
			cursor = timeCursor(next.CreatedAt, next.ID)
		}
		out.Body = pageOf(items, runCursor, cursor)
		return err
	})
	return out, err
}

// runFilter turns the name of a workflow into its lane: an earlier workflow of
// that name had another one.
func (a *API) runFilter(ctx context.Context, tx *store.Tx, in *listRunsInput) (store.RunFilter, error) {
	filter := store.RunFilter{Kind: pawl.Kind(in.Kind), Lane: in.Lane, Status: pawl.Status(in.Status)}
	filter.Viewer = access.Reach(callOf(ctx).token, schedulesResource)
	if in.Lane == "" || filter.Kind == pawl.KindSource {
		return filter, nil
	}
	if filter.Kind != pawl.KindSchedule {
		lane, err := a.workflows.LaneOf(ctx, tx, in.Lane)
		if err != nil || lane != in.Lane || filter.Kind != "" {
			filter.Lane = lane
			return filter, err
		}
	}
	filter, _, err := a.scheduleFilter(ctx, tx, filter)
	return filter, err
}

func runsWithCalls(ctx context.Context, tx *store.Tx, runs []store.Run) ([]client.Run, error) {
	ids := make([]string, len(runs))
	for i := range runs {
		ids[i] = runs[i].ID
	}
	calls, err := tx.MutationsOfRuns(ctx, ids)
	if err != nil {
		return nil, err
	}
	progress, err := progressOf(ctx, tx, runs...)
	if err != nil {
		return nil, err
	}
	out := make([]client.Run, len(runs))
	for i := range runs {
		out[i] = runOf(&runs[i], calls[runs[i].ID])
		out[i].Progress = progress[runs[i].ID]
	}
	return out, nil
}
