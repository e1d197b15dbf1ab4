package client

import pawl "github.com/pawlrun/pawl"

// Backfill is a plan to run slots of the past, and how far it has come.
type Backfill struct {
	ID          string           `json:"id"`
	ScheduleID  string           `json:"scheduleId"`
	From        Instant          `json:"from"`
	To          Instant          `json:"to" doc:"This instant itself does not belong to it."`
	Hash        string           `json:"hash" doc:"Names the plan: what a person confirms."`
	State       string           `json:"state" enum:"planned,running,paused,cancelled,done"`
	PerMinute   int              `json:"perMinute" doc:"How many slots begin in a minute."`
	EstimateUSD *pawl.USD        `json:"estimateUsd" nullable:"true" doc:"What it will probably cost; null: nothing is known."`
	Total       int              `json:"total" doc:"How many slots the plan has."`
	Skipped     int              `json:"skipped" doc:"How many slots of that time are left out because they ran, or wait, already."`
	Before      int              `json:"before" doc:"How many slots of the plan lie before the schedule was made. They run it as it was at first."`
	GrantID     NullString       `json:"grantId" doc:"The grant that the slots run under. Null: that of the schedule."`
	Uncovered   []UncoveredSlots `json:"uncovered" nullable:"false" doc:"The slots of the plan that the grant did not allow when the plan was made. They would be skipped."`
	Begun       int              `json:"begun" doc:"How many slots of the plan were made due, or found to have run meanwhile."`
	Counts      BackfillCounts   `json:"counts" doc:"The slots that were made due, by their status."`
	CreatedBy   string           `json:"createdBy"`
	CreatedAt   Instant          `json:"createdAt"`
	ConfirmedBy NullString       `json:"confirmedBy"`
	ConfirmedAt Instant          `json:"confirmedAt" nullable:"true"`
	UpdatedAt   Instant          `json:"updatedAt"`
	Slots       []PlannedSlot    `json:"slots,omitempty" nullable:"false" doc:"The plan, the oldest first. Absent unless it was asked for."`
}

// BackfillCounts are the slots of a backfill by their status.
type BackfillCounts struct {
	Pending int `json:"pending"`
	Running int `json:"running"`
	Success int `json:"success"`
	Error   int `json:"error"`
	Skipped int `json:"skipped"`
}

// PlannedSlot is one instant that a backfill runs, as the schedule was then.
type PlannedSlot struct {
	At       Instant `json:"at"`
	Revision int64   `json:"revision" doc:"Of the schedule that is run."`
	GraphID  string  `json:"graphId"`
	Was      string  `json:"was,omitempty" doc:"The earlier outcome of the slot; absent if unknown."`
}

// UncoveredSlots are slots of a plan with one graph, which the grant does not allow.
type UncoveredSlots struct {
	GraphID string `json:"graphId"`
	Slots   int    `json:"slots" doc:"How many slots of the plan run this graph."`
	Code    string `json:"code" doc:"What their error code would be."`
	Message string `json:"message" doc:"Why the grant does not allow it."`
}

// BackfillRequest asks for a plan. Nothing runs until it is confirmed.
type BackfillRequest struct {
	From      Instant  `json:"from"`
	To        Instant  `json:"to" doc:"This instant itself does not belong to it. Not in the future."`
	PerMinute int      `json:"perMinute,omitempty" minimum:"1" maximum:"600" doc:"How many slots begin in a minute. Absent: 10."`
	Include   []string `json:"include,omitempty" enum:"failed" doc:"Slots that are otherwise left out: failed, those that ended with an error."`
	GrantID   string   `json:"grantId,omitempty" format:"uuid" doc:"The grant that the slots are to run under, for instance because the schedule ran another graph then. Absent: that of the schedule."`
}

// ConfirmRequest lets a plan begin.
type ConfirmRequest struct {
	Hash string `json:"hash" minLength:"1" maxLength:"128" doc:"That of the plan that was seen."`
}

// The states of a backfill.
const (
	BackfillPlanned   = "planned"
	BackfillRunning   = "running"
	BackfillPaused    = "paused"
	BackfillCancelled = "cancelled"
	BackfillDone      = "done"
)
