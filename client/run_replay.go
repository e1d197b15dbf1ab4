package client

import "encoding/json"

// ReplayRequest says with which script a run is replayed.
type ReplayRequest struct {
	Script   string `json:"script,omitempty" doc:"Another script to run it with. Absent is the one that it had."`
	Filename string `json:"filename,omitempty" maxLength:"200" example:"mail.workflow.ts" doc:"The name of the script in messages."`
}

// Replay is a run that was run again with what it read then, and with calls
// switched off.
type Replay struct {
	RunID       string        `json:"runId"`
	Same        bool          `json:"same" doc:"It would do the same, or fail in the same way."`
	Differences []string      `json:"differences" nullable:"false" doc:"How it would behave differently."`
	Then        ReplayEffects `json:"then" doc:"What it did."`
	Now         ReplayEffects `json:"now" doc:"What it would do."`
	Logs        []string      `json:"logs" nullable:"false"`
	Error       NullString    `json:"error" doc:"Why it fails now; null if it does not."`
}

// ReplayEffects are what a run meant to do.
type ReplayEffects struct {
	Reservations []Reservation   `json:"reservations" nullable:"false"`
	Data         json.RawMessage `json:"data"`
	Call         *ReplayCall     `json:"call"`
	Events       []ReplayEvent   `json:"events" nullable:"false"`
	State        json.RawMessage `json:"state"`
}

// ReplayCall is the call of mutate.
type ReplayCall struct {
	Tool      string          `json:"tool"`
	Method    string          `json:"method"`
	Arguments json.RawMessage `json:"arguments"`
}

// ReplayEvent is an event that was, or would be, published.
type ReplayEvent struct {
	Topic     string          `json:"topic"`
	MessageID string          `json:"messageId"`
	Payload   json.RawMessage `json:"payload"`
}

// Reservation is which events of a topic a run meant to work on.
type Reservation struct {
	Topic string   `json:"topic"`
	IDs   []string `json:"ids"` // each is a messageId
}
