package client

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"
)

// Where schedules and what belongs to them are.
const (
	SchedulesPath = "/api/v1/schedules"
	GrantsPath    = "/api/v1/grants"
	BackfillsPath = "/api/v1/backfills"
	ReceiptsPath  = "/api/v1/billing/receipts"
	AccountsPath  = "/api/v1/billing/accounts"
)

// SchedulePath is where a schedule is, by its id, or something below it.
func SchedulePath(id string, below ...string) string {
	return SchedulesPath + "/" + strings.Join(append([]string{url.PathEscape(id)}, below...), "/")
}

// NamedSchedulePath is where a schedule is applied.
func NamedSchedulePath(name string) string { return SchedulesPath + "/by-name/" + url.PathEscape(name) }

// USD is an amount of money as it is written; empty is none.
type USD = json.Number

// Schedule is when a graph runs, and with what.
type Schedule struct {
	ID                string            `json:"id"`
	Name              string            `json:"name"`
	OwnerUserID       string            `json:"ownerUserId"`
	ExecutionGrantID  string            `json:"executionGrantId"`
	GraphID           string            `json:"graphId"`
	Input             json.RawMessage   `json:"input"`
	Cron              string            `json:"cron"`
	Timezone          string            `json:"timezone"`
	ConcurrencyPolicy string            `json:"concurrencyPolicy"`
	Enabled           bool              `json:"enabled"`
	Labels            map[string]string `json:"labels"`
	Issue             string            `json:"issue"` // why it was switched off by itself
	NextRunAt         time.Time         `json:"nextRunAt"`
	LastRunAt         time.Time         `json:"lastRunAt"`
	CreatedAt         time.Time         `json:"createdAt"`
	UpdatedAt         time.Time         `json:"updatedAt"`
}

// AppliedSchedule is what applying a definition did.
type AppliedSchedule struct {
	What     string          `json:"what"` // created, updated or unchanged
	Schedule json.RawMessage `json:"schedule"`
	Previous json.RawMessage `json:"previous"` // absent if it is new
}

// DeletedSchedule is what deleting a schedule did.
type DeletedSchedule struct {
	ID           string `json:"id"`
	GrantRevoked bool   `json:"grantRevoked"`
}

// NextInstants is when a schedule comes due.
type NextInstants struct {
	Schedule string `json:"schedule"` // in words
	Enabled  bool   `json:"enabled"`
	Items    []struct {
		At          time.Time `json:"at"`
		Local       string    `json:"local"`
		ClockChange string    `json:"clockChange"`
	} `json:"items"`
}

// Slot is one instant of a schedule and what became of it.
type Slot struct {
	ID           string    `json:"id"`
	Schedule     string    `json:"schedule"` // its name; added by the commands
	ScheduleID   string    `json:"scheduleId"`
	RunID        string    `json:"runId"`
	ScheduledFor time.Time `json:"scheduledFor"`
	StartedAt    time.Time `json:"startedAt"`
	CompletedAt  time.Time `json:"completedAt"`
	Status       string    `json:"status"`
	Disposition  string    `json:"disposition"`
	AttemptCount int       `json:"attemptCount"`
	TraceID      string    `json:"traceId"`
	Error        *RunError `json:"error"`
	Note         string    `json:"note"` // why it was passed over
	CostUSD      USD       `json:"costUsd"`
	Trigger      string    `json:"trigger"`
	BackfillID   string    `json:"backfillId"`
}

// Question is what a graph asks a person.
type Question struct {
	Question   json.RawMessage `json:"question"`
	Answer     json.RawMessage `json:"answer"` // null until somebody answered
	AnsweredBy string          `json:"answeredBy"`
}

// Grant is the right to run graphs in the name of a user.
type Grant struct {
	ID                string    `json:"id"`
	UserID            string    `json:"userId"`
	BillingAccountID  string    `json:"billingAccountId"`
	Scopes            []string  `json:"scopes"`
	Caps              Caps      `json:"caps"`
	WildcardConsentAt time.Time `json:"wildcardConsentAt"`
	Automatic         bool      `json:"automatic"`
	ExpiresAt         time.Time `json:"expiresAt"`
	RevokedAt         time.Time `json:"revokedAt"`
	CreatedAt         time.Time `json:"createdAt"`
}

// Caps bound what runs under a grant may cost. Empty and nil are no bound.
type Caps struct {
	USDPerDay  USD    `json:"usdPerDay,omitempty"`
	USDPerRun  USD    `json:"usdPerRun,omitempty"`
	RunsPerDay *int64 `json:"runsPerDay,omitempty"`
}

// NewGrant asks for a grant.
type NewGrant struct {
	Graphs          []string `json:"graphs"`
	Caps            *Caps    `json:"caps,omitempty"`
	ExpiresAt       string   `json:"expiresAt,omitempty"`
	WildcardConsent bool     `json:"wildcardConsent,omitempty"`
}

// Account is who pays for runs of graphs, with what was spent lately.
type Account struct {
	ID          string `json:"id"`
	OwnerUserID string `json:"ownerUserId"`
	Name        string `json:"name"`
	BalanceUSD  USD    `json:"balanceUsd"` // empty: not prepaid
	KeyRef      string `json:"keyRef"`     // names a key; empty: it has none
	ReservedUSD USD    `json:"reservedUsd"`
	Days        []struct {
		Day       string `json:"day"` // of UTC, as 2030-01-31
		AmountUSD USD    `json:"amountUsd"`
	} `json:"days"`
	CreatedAt time.Time `json:"createdAt"`
}

// Receipt is the charge for one unit of usage.
type Receipt struct {
	ID           string    `json:"id"`
	GrantID      string    `json:"grantId"`
	ScheduleID   string    `json:"scheduleId"`
	RunID        string    `json:"runId"`
	Attempt      int       `json:"attempt"`
	Executor     string    `json:"executor"`
	Model        string    `json:"model"`
	InputTokens  int64     `json:"inputTokens"`
	OutputTokens int64     `json:"outputTokens"`
	AmountUSD    USD       `json:"amountUsd"`
	CreatedAt    time.Time `json:"createdAt"`
}

// Backfill is a plan to run slots of the past, and how far it has come.
type Backfill struct {
	ID          string         `json:"id"`
	ScheduleID  string         `json:"scheduleId"`
	Schedule    string         `json:"schedule"` // its name, added by the commands
	From        time.Time      `json:"from"`
	To          time.Time      `json:"to"`
	Hash        string         `json:"hash"` // names the plan that a person confirms
	State       string         `json:"state"`
	PerMinute   int            `json:"perMinute"`
	EstimateUSD USD            `json:"estimateUsd"` // empty: nothing is known
	Total       int            `json:"total"`
	Skipped     int            `json:"skipped"`
	Begun       int            `json:"begun"`
	Counts      BackfillCounts `json:"counts"`
	CreatedAt   time.Time      `json:"createdAt"`
	Before      int            `json:"before"`  // slots that lie before the schedule was made
	GrantID     string         `json:"grantId"` // empty: that of the schedule
	Uncovered   []struct {
		GraphID string `json:"graphId"`
		Slots   int    `json:"slots"`
		Message string `json:"message"` // why
	} `json:"uncovered"` // what the grant does not allow, by graph
	Slots []struct {
		At      time.Time `json:"at"`
		GraphID string    `json:"graphId"`
		Was     string    `json:"was"`
	} `json:"slots"` // of a plan that was just made
}

// BackfillCounts are the slots of a backfill by their status.
type BackfillCounts struct {
	Pending int `json:"pending"`
	Running int `json:"running"`
	Success int `json:"success"`
	Error   int `json:"error"`
	Skipped int `json:"skipped"`
}

// The states of a backfill.
const (
	BackfillPlanned   = "planned"
	BackfillRunning   = "running"
	BackfillPaused    = "paused"
	BackfillCancelled = "cancelled"
	BackfillDone      = "done"
)
