package client

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"
)

// SourcesPath is where sources are.
const SourcesPath = "/api/v1/sources"

// SourcePath is where a source is, or something below it.
func SourcePath(name string, below ...string) string {
	return SourcesPath + "/" + strings.Join(append([]string{url.PathEscape(name)}, below...), "/")
}

// Source is something that is fetched into a table. Lists tell of it up to its
// retries.
type Source struct {
	Lane
	Table     string `json:"table"`
	Host      string `json:"host"` // whose limit counts
	Freshness struct {
		LastSuccessAt time.Time `json:"lastSuccessAt"`
		LastAttemptAt time.Time `json:"lastAttemptAt"`
		Failed        bool      `json:"failed"` // the last attempt
	} `json:"freshness"`
	Totals struct {
		Rows     int64 `json:"rows"` // written since it was made
		Failures int64 `json:"failures"`
	} `json:"totals"`
	LastRun *Run        `json:"lastRun"`
	Quota   SourceQuota `json:"quota"`
	Retries struct {
		Count  int       `json:"count"`
		Max    int       `json:"max"`
		NextAt time.Time `json:"nextAt"`
	} `json:"retries"`

	Definition  json.RawMessage `json:"definition"`
	Pagination  string          `json:"pagination"` // in words
	Mark        json.RawMessage `json:"mark"`       // of the incremental cursor
	RequestedAt time.Time       `json:"requestedAt"`
	DueAt       time.Time       `json:"dueAt"`
	Gates       []Gate          `json:"gates"`
	Recent      []Run           `json:"recent"`
	CreatedAt   time.Time       `json:"createdAt"`
	UpdatedAt   time.Time       `json:"updatedAt"`
}

// SourceQuota is how often a host may still be called.
type SourceQuota struct {
	Limited      bool      `json:"limited"`
	Limit        int       `json:"limit"`
	Left         int       `json:"left"`
	ResetAt      time.Time `json:"resetAt"`
	BlockedUntil time.Time `json:"blockedUntil"`
}

// Progress is what a run of a source has done so far.
type Progress struct {
	Pages       int64  `json:"pages"`
	Requests    int64  `json:"requests"`
	Bytes       int64  `json:"bytes"`
	RowsRead    int64  `json:"rowsRead"`
	RowsNew     int64  `json:"rowsNew"`
	RowsChanged int64  `json:"rowsChanged"`
	RowsSame    int64  `json:"rowsSame"`
	Rejects     int64  `json:"rejects"`
	Note        string `json:"note"`
}

// Reject is a row of the outside that did not fit.
type Reject struct {
	ID        string    `json:"id"`
	Source    string    `json:"source"` // added by the commands
	RunID     string    `json:"runId"`
	Page      int       `json:"page"`
	Row       int       `json:"row"`
	Reason    string    `json:"reason"`
	Raw       string    `json:"raw"`
	CreatedAt time.Time `json:"createdAt"`
}

// AppliedSource is what applying a definition did.
type AppliedSource struct {
	Name       string          `json:"name"`
	What       string          `json:"what"` // created, updated or unchanged
	Definition json.RawMessage `json:"definition"`
	Previous   json.RawMessage `json:"previous"` // null if it is new
}

// DeletedSource is what deleting a source did.
type DeletedSource struct {
	Rows int64 `json:"rows"` // that were deleted
}
