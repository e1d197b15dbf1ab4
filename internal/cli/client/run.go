package client

import (
	"encoding/json"
	"time"
)

// Where runs and inputs are.
const (
	RunsPath   = "/api/v1/runs"
	InputsPath = "/api/v1/inputs"
)

// Run is one attempt at some work.
type Run struct {
	ID            string          `json:"id"`
	Kind          string          `json:"kind"`
	Lane          string          `json:"lane"`
	Handler       string          `json:"handler"`
	HandlerType   string          `json:"handlerType"`
	Trigger       string          `json:"trigger"`
	RetryOf       string          `json:"retryOf"`
	Phase         string          `json:"phase"`
	Status        string          `json:"status"`
	Attempt       int             `json:"attempt"` // place in its chain, counted from 1
	ScheduledFor  time.Time       `json:"scheduledFor"`
	PrepareResult json.RawMessage `json:"prepareResult"`
	Mutation      *Call           `json:"mutation"`
	Error         *RunError       `json:"error"`
	ScriptVersion string          `json:"scriptVersion"`
	CreatedAt     time.Time       `json:"createdAt"`
	UpdatedAt     time.Time       `json:"updatedAt"`
	StartedAt     time.Time       `json:"startedAt"`
	EndedAt       time.Time       `json:"endedAt"`

	// Of one run only, not in lists.
	Chain     []Run     `json:"chain"` // all attempts at the same work
	Mutations []Call    `json:"mutations"`
	Logs      []LogLine `json:"logs"`
	Approval  *Approval `json:"approval"` // what it asks, or asked last
	Question  *Question `json:"question"` // what a graph asks, or asked
	Actions   []Action  `json:"actions"`  // what would be accepted now

	Progress *Progress       `json:"progress"` // of sources only
	Output   json.RawMessage `json:"output"`   // of schedules only: what the graph returned
}

// RunError is why a run stopped.
type RunError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Class   string `json:"class"`
}

// Call is one call to the outside, and what became of it. Of outputs it is
// told as a whole; of runs without the run and the inputs.
type Call struct {
	ID             string          `json:"id"`
	RunID          string          `json:"runId"`
	Tool           string          `json:"tool"`
	Method         string          `json:"method"`
	Title          string          `json:"title"` // what the script calls it
	Arguments      json.RawMessage `json:"arguments"`
	State          string          `json:"state"`
	Result         json.RawMessage `json:"result"`
	Error          *RunError       `json:"error"`
	Inputs         []string        `json:"inputs"`
	IdempotencyKey string          `json:"idempotencyKey"`
	ResolvedBy     string          `json:"resolvedBy"` // who knew what became of it
	At             time.Time       `json:"at"`         // of outputs
	CreatedAt      time.Time       `json:"createdAt"`  // of runs
	UpdatedAt      time.Time       `json:"updatedAt"`  // of runs
}

// LogLine is a line that a script logged.
type LogLine struct {
	Phase string    `json:"phase"`
	At    time.Time `json:"at"`
	Level string    `json:"level"`
	Text  string    `json:"text"`
}

// Input is a thing of the outside that a workflow has found.
type Input struct {
	ID         string       `json:"id"`
	Workflow   string       `json:"workflow"`
	Source     string       `json:"source"`
	Type       string       `json:"type"`
	ExternalID string       `json:"externalId"`
	Title      string       `json:"title"`
	Status     string       `json:"status"` // pending, done, skipped or orphaned
	CreatedAt  time.Time    `json:"createdAt"`
	CreatedBy  string       `json:"createdBy"` // a run, or a user
	SkippedAt  time.Time    `json:"skippedAt"`
	SkippedBy  string       `json:"skippedBy"`
	Outputs    []Call       `json:"outputs"`
	Events     []TopicEvent `json:"events"` // of one input only, not in lists
}

// TopicEvent is one event of a topic.
type TopicEvent struct {
	Topic      string          `json:"topic"`
	MessageID  string          `json:"messageId"`
	Payload    json.RawMessage `json:"payload"`
	Status     string          `json:"status"` // pending, reserved, consumed or skipped
	CausedBy   []string        `json:"causedBy"`
	Attempt    int             `json:"attempt"` // how often it was reserved and released
	CreatedAt  time.Time       `json:"createdAt"`
	CreatedBy  string          `json:"createdBy"`
	ReservedBy string          `json:"reservedBy"` // the run that holds or consumed it
}

// Published is an event with what its publishing did.
type Published struct {
	TopicEvent
	Duplicate bool `json:"duplicate"` // its id was known already
	Changed   bool `json:"changed"`   // it was known and pending, and has the new payload now
}
