package api

import (
	"context"
	"errors"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/quota"
	"github.com/pawlrun/pawl/internal/source"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
)

func (a *API) sourceSummary(d *source.Details, now time.Time) client.SourceSummary {
	out := client.SourceSummary{
		Lane: laneOf(&d.Lane, now), Table: d.Definition.Table, Host: d.Definition.Host(),
		Freshness: client.SourceFreshness{LastSuccessAt: client.At(d.State.LastSuccessAt), LastAttemptAt: client.At(d.State.LastAttemptAt), Failed: d.State.LastFailed},
		Totals:    client.SourceTotals{Rows: d.State.RowsTotal, Failures: d.State.FailuresTotal},
		Quota:     sourceQuota(d.Quota),
		Retries:   client.SourceRetries{Count: d.Retries, Max: d.Definition.Budget().MaxRetries, NextAt: client.At(d.NextRetry)},
	}
	if d.Newest.ID != "" {
		last := client.SourceRun{RunSummary: a.runSummary(&d.Newest)}
		if d.Last.RunID == d.Newest.ID {
			last.Progress = runProgress(&d.Last)
		}
		out.LastRun = &last
	}
	return out
}

func sourceQuota(a quota.Allowance) client.SourceQuota {
	out := client.SourceQuota{Limited: a.Limited, ResetAt: client.At(a.ResetAt), BlockedUntil: client.At(a.BlockedUntil)}
	if a.Limited {
		out.Limit, out.Left = &a.Limit, &a.Left
	}
	return out
}

func (a *API) sourceOf(d *source.Details, recent []client.SourceRun, now time.Time) client.Source {
	return client.Source{
		SourceSummary: a.sourceSummary(d, now), Definition: d.Source.Definition, Version: d.Source.Version, VersionNumber: d.Source.Number,
		Pagination: d.Definition.Pagination(), Mark: d.State.Mark, RequestedAt: client.At(d.State.RequestedAt), DueAt: client.At(d.DueAt),
		Gates: gatesOf(d.Gates), Recent: recent, CreatedAt: client.At(d.Source.CreatedAt), UpdatedAt: client.At(d.Source.UpdatedAt),
	}
}

// SourcePath is the input of requests about one source.
type SourcePath struct {
	Name string `path:"name" example:"prices-aapl" doc:"The source's name."`
}

const sourceCursor = "source"

func (a *API) listSources(ctx context.Context, in *PageInput) (*pageOutput[client.SourceSummary], error) {
	after, err := in.place(sourceCursor)
	if err != nil {
		return nil, err
	}
	if after != "" && textFault(after, maxName) != "" {
		return nil, badCursor()
	}
	list, next, err := a.sources.ListDetails(ctx, lane.Query{After: lane.Place{Name: after}, Limit: in.Limit})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	items := make([]client.SourceSummary, len(list))
	for i := range list {
		items[i] = a.sourceSummary(&list[i], now)
	}
	return &pageOutput[client.SourceSummary]{pageOf(items, sourceCursor, next.Name)}, nil
}

type sourceOutput struct {
	ETag string `header:"ETag" doc:"Of the definition; send it in If-Match to change what you saw."`
	Body client.Source
}

func (a *API) getSource(ctx context.Context, in *SourcePath) (*sourceOutput, error) {
	s, err := a.describeSource(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	return &sourceOutput{tagOf(s.Version), s}, nil
}

func (a *API) describeSource(ctx context.Context, name string) (client.Source, error) {
	if textFault(name, maxName) != "" {
		return client.Source{}, a.noSource(ctx, name)
	}
	d, err := a.sources.Describe(ctx, name)
	if err != nil {
		return client.Source{}, a.aboutSource(ctx, name, err)
	}
	var recent []client.SourceRun
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		recent, err = a.recentRuns(ctx, tx, &d.Source)
		return err
	})
	if err != nil {
		return client.Source{}, err
	}
	return a.sourceOf(&d, recent, time.Now()), nil
}

// ofSource reads what belongs to a source, in one transaction.
func (a *API) ofSource(ctx context.Context, name string, read func(ctx context.Context, tx *store.Tx, s sourcestore.Source) error) error {
	if textFault(name, maxName) != "" {
		return a.noSource(ctx, name)
	}
	err := a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		s, err := sourcestore.In(tx).SourceByName(ctx, name)
		if err != nil {
			return err
		}
		return read(ctx, tx, s)
	})
	return a.aboutSource(ctx, name, err)
}

// aboutSource adds what was probably meant to the error of a source that is
// not there; other errors stay as they are.
func (a *API) aboutSource(ctx context.Context, name string, err error) error {
	if errors.Is(err, pawl.ErrNotFound) {
		return a.noSource(ctx, name)
	}
	return err
}

func (a *API) noSource(ctx context.Context, name string) error { return a.noLane(ctx, a.sources, name) }
