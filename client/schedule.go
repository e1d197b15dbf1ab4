package client

import (
	"encoding/json"

	pawl "github.com/pawlrun/pawl"
)

// Schedule is a schedule as answers show it.
type Schedule struct {
	ID                string                 `json:"id"`
	Name              string                 `json:"name"`
	OwnerUserID       string                 `json:"ownerUserId"`
	ExecutionGrantID  string                 `json:"executionGrantId,omitempty" doc:"Absent if what it runs needs no grant."`
	GraphID           string                 `json:"graphId,omitempty" doc:"Absent if it runs something else than a graph; see run."`
	Input             json.RawMessage        `json:"input"`
	Run               *PlainRun              `json:"run,omitempty" doc:"What it runs instead of a graph."`
	Idempotent        bool                   `json:"idempotent" doc:"What it runs may be started twice."`
	Missed            *Missed                `json:"missed,omitempty" doc:"What becomes of slots that came due while no worker was running; absent: none of them runs."`
	Retry             *Retry                 `json:"retry,omitempty" doc:"How often a slot is tried; absent: a graph 3 times, anything else once."`
	Keep              map[string]string      `json:"keep,omitempty" doc:"For how long its own things are kept; absent: as the server keeps those of all."`
	Expect            *Expect                `json:"expect,omitempty" doc:"What is expected of it; absent: nothing."`
	Needs             []Need                 `json:"needs,omitempty" doc:"The sources that must be fresh before a slot starts; absent: none."`
	Expectations      []Expectation          `json:"expectations,omitempty" doc:"What is expected of it, and whether it is met; absent: nothing, or a change was answered."`
	Cron              Cron                   `json:"cron,omitempty" doc:"One expression, or a list of several; absent if interval or at take its place."`
	Timezone          string                 `json:"timezone"`
	ConcurrencyPolicy pawl.ConcurrencyPolicy `json:"concurrencyPolicy" enum:"Queue,Forbid,Allow,Replace"`
	Enabled           bool                   `json:"enabled"`
	Labels            map[string]string      `json:"labels" nullable:"false"`
	Issue             string                 `json:"issue,omitempty" doc:"Why it was disabled automatically, or is held back by a daily cap; absent if it is neither."`
	Pause             *Pause                 `json:"pause,omitempty" doc:"Who disabled it, until when and why; absent: it is enabled, nobody knows, or a change of the definition was answered."`
	CappedUntil       Instant                `json:"cappedUntil,omitzero" doc:"A daily cap is reached: it runs again from this instant on; absent if none is."`
	Begun             int64                  `json:"begun,omitempty" doc:"How many slots of its own have begun; maxRuns counts them."`
	NextRunAt         Instant                `json:"nextRunAt" nullable:"true" doc:"Null: none is planned."`
	LastRunAt         Instant                `json:"lastRunAt" nullable:"true" doc:"When its last run started; null: it never ran."`
	CreatedAt         Instant                `json:"createdAt"`
	UpdatedAt         Instant                `json:"updatedAt"`
	Timing
}

// ScheduleRequest asks for a schedule.
type ScheduleRequest struct {
	Name              string                 `json:"name" example:"morning-poet"`
	GraphID           string                 `json:"graphId,omitempty" example:"langgraph:poet" doc:"provider:name; or send run."`
	Input             json.RawMessage        `json:"input,omitempty" doc:"Any JSON; the graph gets it as it is."`
	Run               *PlainRun              `json:"run,omitempty" doc:"What runs instead of a graph: a command, a URL or a job."`
	Idempotent        bool                   `json:"idempotent,omitempty" doc:"What runs may be started twice. Absent: false."`
	Missed            *Missed                `json:"missed,omitempty" doc:"What becomes of slots that came due while no worker was running. Absent: none of them runs."`
	Retry             *Retry                 `json:"retry,omitempty" doc:"How often a slot is tried. Absent: a graph 3 times, anything else once."`
	Keep              map[string]string      `json:"keep,omitempty" doc:"For how long its own things are kept: ages by kind, such as runs: 7d. Absent: as the server keeps those of all."`
	Expect            *Expect                `json:"expect,omitempty" doc:"What is expected of it: what is not met needs attention. Absent: nothing."`
	Needs             []Need                 `json:"needs,omitempty" doc:"Sources that must be fresh before a slot starts: one that is too old is asked to fetch, and the slot waits. Absent: none."`
	Cron              Cron                   `json:"cron,omitempty" doc:"One expression, or a list of several. One of cron, interval and at is needed."`
	Timezone          string                 `json:"timezone,omitempty" example:"Europe/Berlin" doc:"The name of an IANA zone. Absent: UTC."`
	ExecutionGrantID  string                 `json:"executionGrantId,omitempty" doc:"Absent: one is made, for this graph alone."`
	ConcurrencyPolicy pawl.ConcurrencyPolicy `json:"concurrencyPolicy,omitempty" enum:"Queue,Forbid,Allow,Replace" doc:"What happens to a slot that comes due while another runs. Absent: Queue."`
	Enabled           *bool                  `json:"enabled,omitempty" doc:"Absent: true."`
	Labels            map[string]string      `json:"labels,omitempty"`
	Timing
}

// CreatedSchedule is the schedule that was made.
type CreatedSchedule struct {
	Schedule
}

// SchedulePage is a page of schedules.
type SchedulePage struct {
	Items      []Schedule `json:"items" nullable:"false"`
	NextCursor NullString `json:"nextCursor"` // null at the end
}

// SchedulePatch changes what is given and keeps the rest.
type SchedulePatch struct {
	Name              *string                 `json:"name,omitempty"`
	GraphID           *string                 `json:"graphId,omitempty"`
	Input             json.RawMessage         `json:"input,omitempty"`
	Run               *PlainRun               `json:"run,omitempty"`
	Idempotent        *bool                   `json:"idempotent,omitempty"`
	Missed            *Missed                 `json:"missed,omitempty"`
	Retry             *Retry                  `json:"retry,omitempty"`
	Keep              *map[string]string      `json:"keep,omitempty" doc:"Empty: as the server keeps those of all."`
	Expect            *Expect                 `json:"expect,omitempty" doc:"Empty: nothing."`
	Needs             *[]Need                 `json:"needs,omitempty" doc:"Empty: none."`
	Cron              *Cron                   `json:"cron,omitempty" doc:"Takes the place of interval and at."`
	Timezone          *string                 `json:"timezone,omitempty"`
	ExecutionGrantID  *string                 `json:"executionGrantId,omitempty"`
	ConcurrencyPolicy *pawl.ConcurrencyPolicy `json:"concurrencyPolicy,omitempty" enum:"Queue,Forbid,Allow,Replace"`
	Enabled           *bool                   `json:"enabled,omitempty"`
	Labels            *map[string]string      `json:"labels,omitempty"`
	TimingPatch
}

// UpdatedSchedule is the schedule as it is now.
type UpdatedSchedule struct {
	Schedule
}

// DeletedSchedule tells what went with it.
type DeletedSchedule struct {
	ID           string `json:"id"`
	GrantRevoked bool   `json:"grantRevoked"`
}

// AppliedSchedule tells what became of a definition that was applied.
type AppliedSchedule struct {
	What     string    `json:"what" enum:"created,updated,unchanged"`
	DryRun   bool      `json:"dryRun" doc:"Nothing was changed; what shows what would be."`
	Schedule Schedule  `json:"schedule" doc:"As it is now."`
	Previous *Schedule `json:"previous,omitempty" doc:"As it was before; absent if it is new."`
	Warnings []Warning `json:"warnings" nullable:"false" doc:"What this server lacks to run it."`
}

// Warning is something that is probably not meant.
type Warning struct {
	Message string     `json:"message" example:"there is no executor \"http\" for the graph http:poet"`
	Hint    NullString `json:"hint"`
}

// NextInstants is when a schedule comes due.
type NextInstants struct {
	Schedule string        `json:"schedule" doc:"In words."`
	Enabled  bool          `json:"enabled" doc:"If not, none of them will run."`
	Items    []NextInstant `json:"items" nullable:"false"`
}

// NextInstant is an instant to come.
type NextInstant struct {
	At          Instant `json:"at"`
	Local       string  `json:"local" doc:"The same with the offset of the schedule's zone."`
	ClockChange string  `json:"clockChange,omitempty" doc:"What the clocks do on that day; absent on others."`
	StartsAt    Instant `json:"startsAt,omitzero" doc:"When it starts, by its jitter; absent without one."`
}
