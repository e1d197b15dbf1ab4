package contract

// ScheduleRunV1 is one instant of a schedule and what became of it.
type ScheduleRunV1 struct {
	ID            string       `json:"id"`
	ScheduleID    string       `json:"scheduleId"`
	RunID         *string      `json:"runId" doc:"Of the first attempt; null until it starts."`
	ScheduledFor  Instant      `json:"scheduledFor"`
	StartedAt     *Instant     `json:"startedAt" nullable:"true"`
	CompletedAt   *Instant     `json:"completedAt" nullable:"true"`
	Status        SlotStatus   `json:"status" enum:"pending,running,success,error,skipped"`
	Disposition   *Disposition `json:"disposition" doc:"What became of it: fired, coalesced, skipped_overlap, skipped_missed, skipped_disabled, skipped_grant, skipped_budget or superseded; null until it is closed."`
	AttemptCount  int          `json:"attemptCount"`
	TraceID       *string      `json:"traceId"`
	Error         *SlotErrorV1 `json:"error" doc:"Null unless it failed or was refused."`
	Note          *string      `json:"note" doc:"Why it was passed over, in a sentence; null if it was not."`
	CostUSD       Micro        `json:"costUsd"`
	Trigger       string       `json:"trigger" enum:"schedule,manual,backfill"`
	BackfillID    *string      `json:"backfillId"`
	Revision      int64        `json:"revision" doc:"Of the schedule when the slot was made."`
	CoalescedInto *Instant     `json:"coalescedInto" nullable:"true" doc:"The slot that stands for it; null if none does."`
}

// SlotErrorV1 is why a slot did not succeed.
type SlotErrorV1 struct {
	Code    ErrorCode `json:"code"`
	Message string    `json:"message"`
}
