package client

import "encoding/json"

// RunSummary is a run without what it carried.
type RunSummary struct {
	ID            string     `json:"id" format:"uuid"`
	Kind          string     `json:"kind" enum:"workflow,source,schedule"`
	Lane          string     `json:"lane" example:"mail-to-sheet" doc:"The name of what it is a run of."`
	LaneID        NullString `json:"laneId" doc:"Of a run of a schedule: the id of the schedule, because its name is its owner's; else null."`
	Handler       string     `json:"handler" example:"addRow"`
	HandlerType   string     `json:"handlerType" enum:"producer,consumer,source,schedule"`
	Trigger       string     `json:"trigger" example:"schedule" doc:"What caused it: schedule, manual, event or wake. The same along a chain."`
	RetryOf       NullString `json:"retryOf" doc:"The attempt before this one."`
	Phase         string     `json:"phase" enum:"executing,preparing,prepared,mutating,mutated,emitting,fetching,validating,committed" doc:"How far it came."`
	Status        string     `json:"status" enum:"active,paused:transient,paused:approval,paused:reconciliation,failed:logic,failed:internal,committed,crashed,cancelled" doc:"The status of the run."`
	Attempt       int        `json:"attempt" example:"1" doc:"Its place in the chain of retries."`
	ScheduledFor  Instant    `json:"scheduledFor" nullable:"true" doc:"The instant that it stands for; null if it was not due to a schedule."`
	Error         *RunError  `json:"error" doc:"Why it stopped; null if it did not."`
	ScriptVersion NullString `json:"scriptVersion"`
	CreatedAt     Instant    `json:"createdAt"`
	UpdatedAt     Instant    `json:"updatedAt"`
	StartedAt     Instant    `json:"startedAt" nullable:"true"`
	EndedAt       Instant    `json:"endedAt" nullable:"true"`
	Through       Instant    `json:"through,omitzero" doc:"Of many runs in a row that found nothing to do and are kept as one, the first of them: when the last one was made. Absent: it is one run."`
	Count         int64      `json:"count,omitempty" doc:"How many runs it stands for. Absent: one."`
}

// Run is a run as lists show it.
type Run struct {
	RunSummary
	PrepareResult json.RawMessage `json:"prepareResult" doc:"What prepare returned; null before."`
	Mutation      *RunMutation    `json:"mutation" doc:"Its call that has side effects; null if there is none."`
	Progress      *RunProgress    `json:"progress" doc:"Of a run of a source: what it has done so far; else null."`
}

// RunDetail is everything about one run.
type RunDetail struct {
	Run
	RunAnswers
	ScheduleRunDetail
	Partition string        `json:"partition,omitempty" example:"acme" doc:"Of a run of a workflow: the partition that it is of; absent: none."`
	Chain     []RunSummary  `json:"chain" nullable:"false" doc:"The whole chain of retries that it belongs to, the newest first."`
	Mutations []RunMutation `json:"mutations" nullable:"false" doc:"All its calls, in their order. All but the last one did not happen."`
	Logs      []LogLine     `json:"logs" nullable:"false" doc:"What its handler logged."`
}

// RunError is why a run stopped.
type RunError struct {
	Code    string `json:"code" example:"timeout"`
	Message string `json:"message"`
	Class   string `json:"class" enum:"transient,logic,auth,permission,indeterminate,precondition,internal"`
}

// RunMutation is a call that has side effects, as the ledger has it.
type RunMutation struct {
	ID                string          `json:"id" format:"uuid"`
	Tool              string          `json:"tool" example:"sheet"`
	Method            string          `json:"method" example:"append"`
	Title             NullString      `json:"title" doc:"What the script calls it; not to be trusted."`
	Arguments         json.RawMessage `json:"arguments"`
	State             string          `json:"state" enum:"in_flight,applied,failed,needs_reconcile,indeterminate,skipped"`
	Result            json.RawMessage `json:"result"`
	Error             *RunError       `json:"error" doc:"Why it did not happen; null if that is not known or did not come about."`
	IdempotencyKey    string          `json:"idempotencyKey"`
	ReconcileAttempts int             `json:"reconcileAttempts" doc:"How often it was asked for in vain."`
	NextReconcileAt   Instant         `json:"nextReconcileAt" nullable:"true"`
	ResolvedBy        NullString      `json:"resolvedBy" doc:"How the outcome became known: answer, reconcile, or a person."`
	ResolvedAt        Instant         `json:"resolvedAt" nullable:"true"`
	CreatedAt         Instant         `json:"createdAt"`
	UpdatedAt         Instant         `json:"updatedAt"`
}

// LogLine is one line that a handler logged.
type LogLine struct {
	Phase string  `json:"phase"`
	At    Instant `json:"at"`
	Level string  `json:"level" example:"info"`
	Text  string  `json:"text"`
}

// ScheduleRunDetail is what only runs of schedules have.
type ScheduleRunDetail struct {
	Output json.RawMessage `json:"output" doc:"Of a run of a schedule: what the graph returned; else null."`
	Slot   *Slot           `json:"slot" doc:"Of a run of a schedule: the slot that it is an attempt of; else null."`
}
