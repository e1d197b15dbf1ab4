package contract

import "encoding/json"

// The names of the versioned contracts about schedules (C-25).
const (
	SchedulesCreateV1 = "schedules.create.v1"
	SchedulesListV1   = "schedules.list.v1"
	SchedulesUpdateV1 = "schedules.update.v1"
	SchedulesDeleteV1 = "schedules.delete.v1"
)

// ScheduleV1 is a schedule as answers show it.
type ScheduleV1 struct {
	ID                string            `json:"id"`
	Name              string            `json:"name"`
	OwnerUserID       string            `json:"ownerUserId"`
	ExecutionGrantID  string            `json:"executionGrantId"`
	GraphID           string            `json:"graphId"`
	Input             json.RawMessage   `json:"input"`
	Cron              string            `json:"cron"`
	Timezone          string            `json:"timezone"`
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy"`
	Enabled           bool              `json:"enabled"`
	Labels            map[string]string `json:"labels"`
	Issue             string            `json:"issue,omitempty"`
	NextRunAt         *Instant          `json:"nextRunAt"` // null: none is planned
	LastRunAt         *Instant          `json:"lastRunAt"` // null: it never ran
	CreatedAt         Instant           `json:"createdAt"`
	UpdatedAt         Instant           `json:"updatedAt"`
}

// SchedulesCreateV1Input asks for a schedule.
type SchedulesCreateV1Input struct {
	Name              string            `json:"name"`
	GraphID           string            `json:"graphId"`
	Input             json.RawMessage   `json:"input"`
	Cron              string            `json:"cron"`
	Timezone          string            `json:"timezone"`
	ExecutionGrantID  string            `json:"executionGrantId,omitempty"` // absent: one is made for this graph alone
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	Enabled           *bool             `json:"enabled,omitempty"` // absent: true
	Labels            map[string]string `json:"labels,omitempty"`
}

// SchedulesCreateV1Output is the schedule that was made.
type SchedulesCreateV1Output struct {
	ScheduleV1
}

// SchedulesListV1Input asks for a page of the caller's schedules.
type SchedulesListV1Input struct {
	Limit  int    `json:"limit,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

// SchedulesListV1Output is a page of schedules.
type SchedulesListV1Output struct {
	Items      []ScheduleV1 `json:"items"`
	NextCursor *string      `json:"nextCursor"` // null at the end
}

// SchedulesUpdateV1Input changes what is given and keeps the rest.
type SchedulesUpdateV1Input struct {
	Name              *string            `json:"name,omitempty"`
	GraphID           *string            `json:"graphId,omitempty"`
	Input             json.RawMessage    `json:"input,omitempty"`
	Cron              *string            `json:"cron,omitempty"`
	Timezone          *string            `json:"timezone,omitempty"`
	ExecutionGrantID  *string            `json:"executionGrantId,omitempty"`
	ConcurrencyPolicy *ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	Enabled           *bool              `json:"enabled,omitempty"`
	Labels            *map[string]string `json:"labels,omitempty"`
}

// SchedulesUpdateV1Output is the schedule as it is now.
type SchedulesUpdateV1Output struct {
	ScheduleV1
}

// SchedulesDeleteV1Input names the schedule that is to go.
type SchedulesDeleteV1Input struct {
	ID string `json:"id"`
}

// SchedulesDeleteV1Output tells what went with it.
type SchedulesDeleteV1Output struct {
	ID           string `json:"id"`
	GrantRevoked bool   `json:"grantRevoked"`
}
