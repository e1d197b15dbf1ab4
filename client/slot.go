package client

import pawl "github.com/pawlrun/pawl"

// Slot is one instant of a schedule and what became of it, or very many in a row
// of which the same became.
type Slot struct {
	ID            string     `json:"id"`
	ScheduleID    string     `json:"scheduleId"`
	RunID         NullString `json:"runId" doc:"Of the first attempt; null until it starts."`
	ScheduledFor  Instant    `json:"scheduledFor"`
	StartedAt     Instant    `json:"startedAt" nullable:"true"`
	CompletedAt   Instant    `json:"completedAt" nullable:"true"`
	Status        string     `json:"status" enum:"pending,running,success,error,skipped"`
	Disposition   NullString `json:"disposition" doc:"The outcome: fired, coalesced, skipped_overlap, skipped_missed, skipped_disabled, skipped_grant, skipped_budget, skipped_stale, superseded, excluded or halted. Null until it is closed; waiting_fresh while it waits for a source that it needs."`
	AttemptCount  int        `json:"attemptCount"`
	Unknown       bool       `json:"unknown" doc:"Nobody knows whether it ran, and no person has said."`
	TraceID       NullString `json:"traceId"`
	Error         *SlotError `json:"error" doc:"Null unless it failed or was refused."`
	Note          NullString `json:"note" doc:"Why it was passed over, or for which source it waits, in a sentence; null if neither."`
	CostUSD       pawl.USD   `json:"costUsd"`
	Trigger       string     `json:"trigger" enum:"schedule,manual,backfill,retry"`
	BackfillID    NullString `json:"backfillId"`
	Revision      int64      `json:"revision" doc:"Of the schedule when the slot was made."`
	CoalescedInto Instant    `json:"coalescedInto" nullable:"true" doc:"The slot that stands for it; null if none does."`
	Through       Instant    `json:"through,omitzero" doc:"Of very many slots in a row that did not run and are shown as one: the last. Absent: it is one slot."`
	Count         int64      `json:"count,omitempty" doc:"How many slots it stands for. Absent: one."`

	WaitsSince Instant `json:"waitsSince,omitzero" doc:"Since when it waits for a source that it needs. Absent: it does not."`

	Output *PlainOutput `json:"output,omitempty" doc:"What its command, URL or job left behind, also while it runs; lists show the end of it. Absent for graphs, whose runs have it."`
}

// SlotError is why a slot did not succeed.
type SlotError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}
