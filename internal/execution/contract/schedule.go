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
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy" enum:"Queue,Forbid,Allow,Replace"`
	Enabled           bool              `json:"enabled"`
	Labels            map[string]string `json:"labels" nullable:"false"`
	Issue             string            `json:"issue,omitempty" doc:"Why it was switched off by itself; absent if it was not."`
	NextRunAt         *Instant          `json:"nextRunAt" nullable:"true" doc:"Null: none is planned."`
	LastRunAt         *Instant          `json:"lastRunAt" nullable:"true" doc:"When its last run started; null: it never ran."`
	CreatedAt         Instant           `json:"createdAt"`
	UpdatedAt         Instant           `json:"updatedAt"`
}

// SchedulesCreateV1Input asks for a schedule.
type SchedulesCreateV1Input struct {
	Name              string            `json:"name" example:"morning-poet"`
	GraphID           string            `json:"graphId" example:"langgraph:poet" doc:"provider:name"`
	Input             json.RawMessage   `json:"input" doc:"Any JSON; the graph gets it as it is."`
	Cron              string            `json:"cron" example:"0 9 * * *"`
	Timezone          string            `json:"timezone" example:"Europe/Berlin" doc:"The name of an IANA zone."`
	ExecutionGrantID  string            `json:"executionGrantId,omitempty" doc:"Absent: one is made, for this graph alone."`
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty" enum:"Queue,Forbid,Allow,Replace" doc:"What happens to a slot that comes due while another runs. Absent: Queue."`
	Enabled           *bool             `json:"enabled,omitempty" doc:"Absent: true."`
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
	Items      []ScheduleV1 `json:"items" nullable:"false"`
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
	ConcurrencyPolicy *ConcurrencyPolicy `json:"concurrencyPolicy,omitempty" enum:"Queue,Forbid,Allow,Replace"`
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

// SchedulesApplyV1Output tells what became of a definition that was applied.
type SchedulesApplyV1Output struct {
	What     string      `json:"what" enum:"created,updated,unchanged"`
	DryRun   bool        `json:"dryRun" doc:"Nothing was changed; what tells what would be."`
	Schedule ScheduleV1  `json:"schedule" doc:"As it is now."`
	Previous *ScheduleV1 `json:"previous,omitempty" doc:"As it was before; absent if it is new."`
}

// SchedulesNextV1Output is when a schedule comes due.
type SchedulesNextV1Output struct {
	Schedule string   `json:"schedule" doc:"In words."`
	Enabled  bool     `json:"enabled" doc:"If not, none of them will run."`
	Items    []NextV1 `json:"items" nullable:"false"`
}

// NextV1 is an instant to come.
type NextV1 struct {
	At          Instant `json:"at"`
	Local       string  `json:"local" doc:"The same with the offset of the schedule's zone."`
	ClockChange string  `json:"clockChange,omitempty" doc:"What the clocks do on that day; absent on others."`
}
