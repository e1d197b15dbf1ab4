package web

import (
	"encoding/json"
	"time"
)

// What the API answers about sources, as far as pages show it.

type sourceAnswer struct {
	laneAnswer
	Table     string `json:"table"`
	Host      string `json:"host"`
	Freshness struct {
		LastSuccessAt time.Time `json:"lastSuccessAt"`
		LastAttemptAt time.Time `json:"lastAttemptAt"`
		Failed        bool      `json:"failed"`
	} `json:"freshness"`
	Totals struct {
		Rows     int `json:"rows"`
		Failures int `json:"failures"`
	} `json:"totals"`
	LastRun *runAnswer `json:"lastRun"`
	Quota   struct {
		Limited      bool      `json:"limited"`
		Limit        int       `json:"limit"`
		Left         int       `json:"left"`
		ResetAt      time.Time `json:"resetAt"`
		BlockedUntil time.Time `json:"blockedUntil"`
	} `json:"quota"`
	Retries struct {
		Count  int       `json:"count"`
		Max    int       `json:"max"`
		NextAt time.Time `json:"nextAt"`
	} `json:"retries"`
	Definition    json.RawMessage `json:"definition"`
	VersionNumber int             `json:"versionNumber"`
	Pagination    string          `json:"pagination"`
	Mark          json.RawMessage `json:"mark"`
	RequestedAt   time.Time       `json:"requestedAt"`
	Gates         []gateAnswer    `json:"gates"`
	UpdatedAt     time.Time       `json:"updatedAt"`
}

// Fetching is the run that is under way, or nil.
func (s sourceAnswer) Fetching() *runAnswer {
	if s.LastRun != nil && s.LastRun.Status == "active" {
		return s.LastRun
	}
	return nil
}

type gateAnswer struct {
	Name  string    `json:"name"`
	Open  bool      `json:"open"`
	Text  string    `json:"text"`
	Until time.Time `json:"until"`
}

// progressAnswer is how far a run of a source has come.
type progressAnswer struct {
	Pages       int       `json:"pages"`
	Requests    int       `json:"requests"`
	Bytes       int       `json:"bytes"`
	RowsRead    int       `json:"rowsRead"`
	RowsNew     int       `json:"rowsNew"`
	RowsChanged int       `json:"rowsChanged"`
	RowsSame    int       `json:"rowsSame"`
	Rejects     int       `json:"rejects"`
	Note        string    `json:"note"`
	UpdatedAt   time.Time `json:"updatedAt"`
}

// Written is how many rows it changed in the table.
func (p progressAnswer) Written() int { return p.RowsNew + p.RowsChanged }

type rejectAnswer struct {
	ID        string    `json:"id"`
	RunID     string    `json:"runId"`
	Page      int       `json:"page"`
	Row       int       `json:"row"`
	Reason    string    `json:"reason"`
	Raw       string    `json:"raw"`
	CreatedAt time.Time `json:"createdAt"`
}
