package client

import "encoding/json"

// Event is an event of a workflow.
type Event struct {
	Topic      string          `json:"topic" example:"mail.received"`
	MessageID  string          `json:"messageId" example:"4711" doc:"Unique in its topic."`
	Payload    json.RawMessage `json:"payload"`
	Status     string          `json:"status" enum:"pending,reserved,consumed,skipped"`
	CausedBy   []string        `json:"causedBy" nullable:"false" doc:"The ids of the inputs that it comes from."`
	Attempt    int             `json:"attempt" doc:"How often it was taken and given back."`
	Duplicates int             `json:"duplicates" doc:"How often it was published again without an effect."`
	CreatedAt  Instant         `json:"createdAt"`
	CreatedBy  string          `json:"createdBy" doc:"The run that published it, or the user."`
	ReservedBy NullString      `json:"reservedBy" doc:"The run that holds it, or took it."`
}

// PublishedEvent is an event with what its publishing did.
type PublishedEvent struct {
	Event
	Duplicate bool `json:"duplicate" doc:"The messageId was known already; the event is shown as it is now."`
	Changed   bool `json:"changed" doc:"It was known and still pending, and has the new payload now."`
}

// EventRequest publishes an event.
type EventRequest struct {
	Topic     string             `json:"topic" minLength:"1" maxLength:"256" example:"mail.received" doc:"One that the script declares and a consumer subscribes to."`
	MessageID string             `json:"messageId" minLength:"1" example:"4711" doc:"Names the event in its topic: once more with the same one is a duplicate."`
	Payload   json.RawMessage    `json:"payload,omitempty" example:"{\"from\":\"ada@example.com\"}" doc:"Any JSON value. Absent is null."`
	Input     *EventInputRequest `json:"input,omitempty" doc:"The thing outside that it comes from; people see what becomes of it."`
}

// EventInputRequest names the thing outside that an event comes from.
type EventInputRequest struct {
	Source string `json:"source" minLength:"1" example:"mail"`
	Type   string `json:"type" minLength:"1" example:"message"`
	ID     string `json:"id" minLength:"1" example:"4711" doc:"What it is called there."`
	Title  string `json:"title,omitempty" example:"Mail from Ada: Hello" doc:"What people read."`
}
