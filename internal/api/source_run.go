package api

import (
	"context"
	"fmt"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
)

func runProgress(r *sourcestore.SourceRun) *client.RunProgress {
	return &client.RunProgress{SourceProgress: sourceProgress(r.SourceProgress), Note: client.NullString(r.Note), UpdatedAt: client.At(r.UpdatedAt)}
}

// progressOf reads how far runs have come, by their ids; those of other kinds
// and those that have not begun have none.
func progressOf(ctx context.Context, tx *store.Tx, runs ...runstore.Run) (map[string]*client.RunProgress, error) {
	var ids []string
	for i := range runs {
		if runs[i].Kind == pawl.KindSource {
			ids = append(ids, runs[i].ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil //nolint:nilnil // an empty map
	}
	found, err := sourcestore.In(tx).SourceRuns(ctx, ids)
	out := map[string]*client.RunProgress{}
	for id, r := range found {
		out[id] = runProgress(&r)
	}
	return out, err
}

// recentShown is how many runs are shown with their source.
const recentShown = 20

// recentRuns reads the last runs of a source. Those of an earlier one of that
// name are left out.
func (a *API) recentRuns(ctx context.Context, tx *store.Tx, s *sourcestore.Source) ([]client.SourceRun, error) {
	runs, _, err := runstore.In(tx).ListRuns(ctx, runstore.RunFilter{Kind: pawl.KindSource, Lane: s.Name}, store.Place{}, recentShown)
	if err != nil {
		return nil, err
	}
	progress, err := progressOf(ctx, tx, runs...)
	if err != nil {
		return nil, err
	}
	out := []client.SourceRun{}
	for i := range runs {
		if !runs[i].CreatedAt.Before(s.CreatedAt) {
			out = append(out, client.SourceRun{RunSummary: a.runSummary(&runs[i]), Progress: progress[runs[i].ID]})
		}
	}
	return out, nil
}

// askedOnly refuses to decide about a run that never asks.
func askedOnly(r *runstore.Run) error {
	if r.Kind != pawl.KindSource {
		return nil
	}
	return &pawl.Error{
		Code: pawl.CodeConflict, Op: "answer run", Msg: fmt.Sprintf("run %s is a run of source %q, which asks no questions", r.ID, r.Lane),
		Hint: fmt.Sprintf("pawl why source %s shows what it is waiting for.", r.Lane),
	}
}
