package client

import "encoding/json"

// SourceSummary is a source as lists show it.
type SourceSummary struct {
	Lane
	Table     string          `json:"table" example:"prices" doc:"Where its rows go."`
	Host      string          `json:"host" example:"api.example.com" doc:"Where they come from, and whose limit counts."`
	Freshness SourceFreshness `json:"freshness" doc:"How old its rows are."`
	Totals    SourceTotals    `json:"totals" doc:"Of all its runs since it was made."`
	LastRun   *SourceRun      `json:"lastRun" doc:"Its newest run; null if it never ran."`
	Quota     SourceQuota     `json:"quota" doc:"How often its host may still be called."`
	Retries   SourceRetries   `json:"retries" doc:"What it has spent on failures in this period."`
}

// SourceFreshness is how old the rows of a source are.
type SourceFreshness struct {
	LastSuccessAt Instant `json:"lastSuccessAt" nullable:"true" doc:"When a whole fetch was last committed."`
	LastAttemptAt Instant `json:"lastAttemptAt" nullable:"true" doc:"When a fetch last began."`
	Failed        bool    `json:"failed" doc:"The last attempt did not succeed."`
}

// SourceTotals are sums over all runs of a source.
type SourceTotals struct {
	Rows     int64 `json:"rows" doc:"Rows that were written."`
	Failures int64 `json:"failures" doc:"Fetches that failed."`
}

// SourceQuota is how often a host may still be called.
type SourceQuota struct {
	Limited      bool    `json:"limited" doc:"A provider limits the calls."`
	Limit        *int    `json:"limit" doc:"Calls in a window; null without a limit."`
	Left         *int    `json:"left" doc:"Calls that are left in this window; null without a limit."`
	ResetAt      Instant `json:"resetAt" nullable:"true" doc:"When the window ends."`
	BlockedUntil Instant `json:"blockedUntil" nullable:"true" doc:"The host asked not to be called before."`
}

// SourceRetries is what a source has spent on failures.
type SourceRetries struct {
	Count  int     `json:"count" doc:"Failures of this period."`
	Max    int     `json:"max" doc:"With so many it waits for the next period."`
	NextAt Instant `json:"nextAt" nullable:"true" doc:"It backs off until then."`
}

// Source is everything about one source.
type Source struct {
	SourceSummary
	Definition    json.RawMessage `json:"definition" doc:"In force, with all defaults filled in."`
	Version       string          `json:"version" doc:"A hash of the definition."`
	VersionNumber int             `json:"versionNumber" example:"3" doc:"Counts the definitions that were applied."`
	Pagination    string          `json:"pagination" example:"cursor" doc:"A description of its pagination."`
	Mark          json.RawMessage `json:"mark" doc:"How far the incremental cursor has come; null if there is none."`
	RequestedAt   Instant         `json:"requestedAt" nullable:"true" doc:"When a run was requested that has not started yet."`
	DueAt         Instant         `json:"dueAt" nullable:"true" doc:"When its schedule lets it run."`
	Gates         []Gate          `json:"gates" nullable:"false" doc:"The conditions of running; it runs when all are open."`
	Recent        []SourceRun     `json:"recent" nullable:"false" doc:"Its last runs, the newest first."`
	CreatedAt     Instant         `json:"createdAt"`
	UpdatedAt     Instant         `json:"updatedAt"`
}

// SourceRun is a run of a source with what it did.
type SourceRun struct {
	RunSummary
	Progress *RunProgress `json:"progress" doc:"What it has done so far; null if it has not begun."`
}

// RunProgress is how far a run of a source has come. It is brought up to date
// with every page.
type RunProgress struct {
	SourceProgress
	Note      NullString `json:"note" example:"It continues after 3 pages of an earlier attempt." doc:"What is worth knowing about it."`
	UpdatedAt Instant    `json:"updatedAt"`
}

// SourceProgress is what a run of a source has done so far.
type SourceProgress struct {
	Pages       int64 `json:"pages"`
	Requests    int64 `json:"requests"`
	Bytes       int64 `json:"bytes"`
	RowsRead    int64 `json:"rowsRead"`
	RowsNew     int64 `json:"rowsNew"`
	RowsChanged int64 `json:"rowsChanged"`
	RowsSame    int64 `json:"rowsSame" doc:"Rows that were there already, as they are."`
	Rejects     int64 `json:"rejects"`
}

// SourceRow is a row, by the names of its columns.
type SourceRow map[string]any

// Reject is a row of the outside that did not fit.
type Reject struct {
	ID        string  `json:"id" example:"17"`
	RunID     string  `json:"runId" format:"uuid" doc:"The run that met it."`
	Page      int     `json:"page" doc:"Of the run, from 1."`
	Row       int     `json:"row" doc:"Of the page, from 1."`
	Reason    string  `json:"reason" example:"close: \"n/a\" is no number"`
	Raw       string  `json:"raw" doc:"As it came, cut if it is long."`
	Times     int     `json:"times" example:"3" doc:"How often it was met, in this run and earlier ones."`
	CreatedAt Instant `json:"createdAt" doc:"When it was last met."`
}

// SourceVersion is a definition as it was applied.
type SourceVersion struct {
	Version    string          `json:"version" doc:"A hash of the definition."`
	Number     int             `json:"number" example:"3" doc:"Counts the definitions of a source."`
	CreatedAt  Instant         `json:"createdAt"`
	CreatedBy  NullString      `json:"createdBy" doc:"The user who applied it."`
	Active     bool            `json:"active" doc:"Whether it is the active one."`
	Definition json.RawMessage `json:"definition,omitempty" doc:"If it was asked for."`
}

// AppliedSource is what applying a definition did.
type AppliedSource struct {
	Name          string          `json:"name" example:"prices-aapl"`
	What          string          `json:"what" enum:"created,updated,unchanged"`
	DryRun        bool            `json:"dryRun" doc:"Nothing was changed; what shows what would be."`
	Version       string          `json:"version" doc:"A hash of the definition."`
	VersionNumber int             `json:"versionNumber" example:"3" doc:"Counts the definitions that were applied."`
	Definition    json.RawMessage `json:"definition" doc:"With all defaults filled in."`
	Previous      json.RawMessage `json:"previous" doc:"The previous definition; null for a new source."`
}

// DeletedSource is what deleting a source did.
type DeletedSource struct {
	Name string `json:"name" example:"prices-aapl"`
	Rows int64  `json:"rows" doc:"Rows that were deleted from its table."`
}

// ResetRequest says how much is forgotten.
type ResetRequest struct {
	All bool `json:"all,omitempty" doc:"Forget also how far the incremental cursor has come, so that everything is fetched again."`
}
