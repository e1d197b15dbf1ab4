package client

import "encoding/json"

// Input is a thing of the outside that a workflow found.
type Input struct {
	ID         string     `json:"id" example:"in_6f1ed002ab5595859014ebf0951522d9"`
	Workflow   string     `json:"workflow" example:"mail-to-sheet"`
	Source     string     `json:"source" example:"mail"`
	Type       string     `json:"type" example:"message"`
	ExternalID string     `json:"externalId" example:"4711" doc:"What it is called outside."`
	Title      string     `json:"title" example:"Mail from Ada: Hello"`
	Status     string     `json:"status" enum:"pending,done,skipped,orphaned" doc:"pending: something of it waits. done: all is worked off. orphaned: nothing came of it."`
	CreatedAt  Instant    `json:"createdAt"`
	CreatedBy  string     `json:"createdBy" doc:"The run that found it, or the user who sent it."`
	SkippedAt  Instant    `json:"skippedAt" nullable:"true"`
	SkippedBy  NullString `json:"skippedBy"`
	Outputs    []Output   `json:"outputs" nullable:"false" doc:"What was done about it, the oldest first."`
}

// InputDetail is an input with its events.
type InputDetail struct {
	Input
	Events []Event `json:"events" nullable:"false" doc:"The newest 100, the newest first; the list of events with ?input= has all."`
}

// Output is something that a workflow did outside.
type Output struct {
	ID        string          `json:"id" format:"uuid"`
	RunID     string          `json:"runId" format:"uuid"`
	Tool      string          `json:"tool" example:"sheet"`
	Method    string          `json:"method" example:"append"`
	Title     NullString      `json:"title" example:"Add a row for Ada" doc:"What the script calls it; not to be trusted."`
	Arguments json.RawMessage `json:"arguments"`
	State     string          `json:"state" enum:"in_flight,applied,failed,needs_reconcile,indeterminate,skipped"`
	Result    json.RawMessage `json:"result"`
	Inputs    []string        `json:"inputs" nullable:"false" doc:"The ids of the inputs that it comes from."`
	At        Instant         `json:"at" doc:"When it was sent."`
}
