package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/quota"
	"github.com/pawlrun/pawl/internal/source"
	"github.com/pawlrun/pawl/internal/store"
)

// SourceSummary is a source as lists show it.
type SourceSummary struct {
	Lane
	Table     string           `json:"table" example:"prices" doc:"Where its rows go."`
	Host      string           `json:"host" example:"api.example.com" doc:"Where they come from, and whose limit counts."`
	Freshness SourceFreshness  `json:"freshness" doc:"How old its rows are."`
	Totals    SourceTotals     `json:"totals" doc:"Of all its runs since it was made."`
	LastRun   Maybe[SourceRun] `json:"lastRun" doc:"Its newest run; null if it never ran."`
	Quota     SourceQuota      `json:"quota" doc:"How often its host may still be called."`
	Retries   SourceRetries    `json:"retries" doc:"What it has spent on failures in this period."`
}

// SourceFreshness is how old the rows of a source are.
type SourceFreshness struct {
	LastSuccessAt *Instant `json:"lastSuccessAt" nullable:"true" doc:"When a whole fetch was last committed."`
	LastAttemptAt *Instant `json:"lastAttemptAt" nullable:"true" doc:"When a fetch last began."`
	Failed        bool     `json:"failed" doc:"The last attempt did not succeed."`
}

// SourceTotals are sums over all runs of a source.
type SourceTotals struct {
	Rows     int64 `json:"rows" doc:"Rows that were written."`
	Failures int64 `json:"failures" doc:"Fetches that failed."`
}

// SourceQuota is how often a host may still be called.
type SourceQuota struct {
	Limited      bool     `json:"limited" doc:"A provider limits the calls."`
	Limit        *int     `json:"limit" doc:"Calls in a window; null without a limit."`
	Left         *int     `json:"left" doc:"Calls that are left in this window; null without a limit."`
	ResetAt      *Instant `json:"resetAt" nullable:"true" doc:"When the window ends."`
	BlockedUntil *Instant `json:"blockedUntil" nullable:"true" doc:"The host asked not to be called before."`
}

// SourceRetries is what a source has spent on failures.
type SourceRetries struct {
	Count  int      `json:"count" doc:"Failures of this period."`
	Max    int      `json:"max" doc:"With so many it waits for the next period."`
	NextAt *Instant `json:"nextAt" nullable:"true" doc:"It backs off until then."`
}

// Source is everything about one source.
type Source struct {
	SourceSummary
	Definition    json.RawMessage `json:"definition" doc:"In force, with all defaults filled in."`
	Version       string          `json:"version" doc:"A hash of the definition."`
	VersionNumber int             `json:"versionNumber" example:"3" doc:"Counts the definitions that were applied."`
	Pagination    string          `json:"pagination" example:"cursor" doc:"How it gets from page to page, in words."`
	Mark          json.RawMessage `json:"mark" doc:"How far the incremental cursor has come; null if there is none."`
	RequestedAt   *Instant        `json:"requestedAt" nullable:"true" doc:"When somebody asked for a run that has not begun yet."`
	DueAt         *Instant        `json:"dueAt" nullable:"true" doc:"When its schedule lets it run."`
	Gates         []Gate          `json:"gates" nullable:"false" doc:"The conditions of running; it runs when all are open."`
	Recent        []SourceRun     `json:"recent" nullable:"false" doc:"Its last runs, the newest first."`
	CreatedAt     Instant         `json:"createdAt"`
	UpdatedAt     Instant         `json:"updatedAt"`
}

func sourceSummary(d *source.Details, now time.Time) SourceSummary {
	out := SourceSummary{
		Lane: sourceLane(&d.Lane, now), Table: d.Definition.Table, Host: d.Definition.Host(),
		Freshness: SourceFreshness{instantOf(d.State.LastSuccessAt), instantOf(d.State.LastAttemptAt), d.State.LastFailed},
		Totals:    SourceTotals{d.State.RowsTotal, d.State.FailuresTotal},
		Quota:     sourceQuota(d.Quota),
		Retries:   SourceRetries{d.Retries, d.Definition.Budget().MaxRetries, instantOf(d.NextRetry)},
	}
	if d.Newest.ID != "" {
		last := SourceRun{RunSummary: runSummary(&d.Newest)}
		if d.Last.RunID == d.Newest.ID {
			last.Progress.Value = runProgress(&d.Last)
		}
		out.LastRun.Value = &last
	}
	return out
}

func sourceQuota(a quota.Allowance) SourceQuota {
	out := SourceQuota{Limited: a.Limited, ResetAt: instantOf(a.ResetAt), BlockedUntil: instantOf(a.BlockedUntil)}
	if a.Limited {
		out.Limit, out.Left = &a.Limit, &a.Left
	}
	return out
}

func sourceOf(d *source.Details, recent []SourceRun, now time.Time) Source {
	return Source{
		SourceSummary: sourceSummary(d, now), Definition: d.Source.Definition, Version: d.Source.Version, VersionNumber: d.Source.Number,
		Pagination: d.Definition.Pagination(), Mark: d.State.Mark, RequestedAt: instantOf(d.State.RequestedAt), DueAt: instantOf(d.DueAt),
		Gates: sourceGates(d.Gates), Recent: recent, CreatedAt: Instant{d.Source.CreatedAt}, UpdatedAt: Instant{d.Source.UpdatedAt},
	}
}

// SourcePath is the input of requests about one source.
type SourcePath struct {
	Name string `path:"name" example:"prices-aapl" doc:"The source's name."`
}

type listSourcesOutput struct{ Body Page[SourceSummary] }

const sourceCursor = "source"

func (a *API) listSources(ctx context.Context, in *PageInput) (*listSourcesOutput, error) {
	after, err := in.place(sourceCursor)
	if err != nil {
		return nil, err
	}
	if after != "" && textFault(after, maxName) != "" {
		return nil, badCursor()
	}
	list, next, err := a.sources.List(ctx, after, in.Limit)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	items := make([]SourceSummary, len(list))
	for i := range list {
		items[i] = sourceSummary(&list[i], now)
	}
	return &listSourcesOutput{pageOf(items, sourceCursor, next)}, nil
}

type sourceOutput struct {
	ETag string `header:"ETag" doc:"Of the definition; send it in If-Match to change what you saw."`
	Body Source
}

func (a *API) getSource(ctx context.Context, in *SourcePath) (*sourceOutput, error) {
	s, err := a.describeSource(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	return &sourceOutput{tagOf(s.Version), s}, nil
}

func (a *API) describeSource(ctx context.Context, name string) (Source, error) {
	if textFault(name, maxName) != "" {
		return Source{}, a.noSource(ctx, name)
	}
	d, err := a.sources.Describe(ctx, name)
	if err != nil {
		return Source{}, a.aboutSource(ctx, name, err)
	}
	var recent []SourceRun
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		recent, err = recentRuns(ctx, tx, &d.Source)
		return err
	})
	if err != nil {
		return Source{}, err
	}
	return sourceOf(&d, recent, time.Now()), nil
}

// ofSource reads what belongs to a source, in one transaction.
func (a *API) ofSource(ctx context.Context, name string, read func(ctx context.Context, tx *store.Tx, s store.Source) error) error {
	if textFault(name, maxName) != "" {
		return a.noSource(ctx, name)
	}
	err := a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		s, err := tx.SourceByName(ctx, name)
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

func (a *API) noSource(ctx context.Context, name string) error {
	e := &pawl.Error{Code: pawl.CodeNotFound, Op: "find source", Msg: fmt.Sprintf("there is no source %q", name), Hint: "pawl get sources lists them."}
	var names []string
	err := a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		list, err := tx.ListSources(ctx, "", namesToCompare)
		names = nil
		for _, s := range list {
			names = append(names, s.Name)
		}
		return err
	})
	if near := pawl.Nearest(name, names); err == nil && near != "" { // without a hint it is still the answer
		e.Hint = fmt.Sprintf("Did you mean %q? ", near) + e.Hint
	}
	return e
}
