package contract

import (
	"encoding/json"
	"fmt"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// Limits of what a request to run a graph may hold, in bytes.
const (
	MaxKey = 255
	maxID  = 128
)

// RunRequestV1 asks the execution service to run a graph. The graph is named
// by the path and the slot by the idempotency key; there is no credential in
// it, only the id of a grant.
type RunRequestV1 struct {
	ExecutionGrantID string          `json:"executionGrantId"`
	Input            json.RawMessage `json:"input"`
	RunID            string          `json:"runId,omitempty"`   // absent: the service makes one
	Attempt          int             `json:"attempt,omitempty"` // absent: whatever the key is at
	ScheduleID       string          `json:"scheduleId,omitempty"`
	ScheduledFor     client.Instant  `json:"scheduledFor,omitzero"`
	Schedule         string          `json:"schedule,omitempty"`   // its name
	Timezone         string          `json:"timezone,omitempty"`   // of the schedule
	Idempotent       bool            `json:"idempotent,omitempty"` // what runs may be started twice
	Retries          bool            `json:"retries,omitempty"`    // a failure that is known may be followed by another start
	Asked            bool            `json:"asked,omitempty"`      // a person asked for this attempt
}

// Check reports every fault of a request, with its place.
func (r RunRequestV1) Check() error { return r.check(true) }

// CheckPlain is Check for a graph that needs no grant.
func (r RunRequestV1) CheckPlain() error { return r.check(false) }

func (r RunRequestV1) check(granted bool) error {
	var faults []pawl.Field
	add := func(pointer, message string) { faults = append(faults, pawl.Field{Pointer: pointer, Message: message}) }
	switch {
	case r.ExecutionGrantID == "" && !granted:
	case r.ExecutionGrantID == "":
		add("/executionGrantId", "must be the id of a grant")
	case !isID(r.ExecutionGrantID):
		add("/executionGrantId", fmt.Sprintf("must be printable ASCII of at most %d characters", maxID))
	}
	switch {
	case len(r.Input) == 0:
		add("/input", "must be there; null is a value")
	case !json.Valid(r.Input):
		add("/input", "must be JSON")
	}
	if r.RunID != "" && !isID(r.RunID) {
		add("/runId", fmt.Sprintf("must be printable ASCII of at most %d characters", maxID))
	}
	if r.ScheduleID != "" && !isID(r.ScheduleID) {
		add("/scheduleId", fmt.Sprintf("must be printable ASCII of at most %d characters", maxID))
	}
	if r.Attempt < 0 {
		add("/attempt", "must not be negative")
	}
	if len(faults) == 0 {
		return nil
	}
	return &pawl.Error{
		Code: pawl.CodeInvalid, Reason: string(InvalidRequest), Op: "run graph", Msg: "the request to run a graph is not valid",
		Hint: "Send executionGrantId and input.", Fields: faults,
	}
}

// CheckKey refuses what cannot be an idempotency key.
func CheckKey(key string) error {
	msg := ""
	switch {
	case key == "":
		msg = "there is no idempotency key"
	case len(key) > MaxKey:
		msg = fmt.Sprintf("the idempotency key is longer than %d characters", MaxKey)
	case !isPrintable(key):
		msg = "the idempotency key is not printable ASCII"
	default:
		return nil
	}
	return &pawl.Error{
		Code: pawl.CodeInvalid, Reason: string(InvalidRequest), Op: "run graph", Msg: msg,
		Hint:   "Send the header Idempotency-Key, the same one when the request is repeated.",
		Fields: []pawl.Field{{Pointer: "/Idempotency-Key", Message: msg}},
	}
}

func isID(s string) bool { return len(s) <= maxID && isPrintable(s) }

func isPrintable(s string) bool {
	for _, b := range []byte(s) {
		if b <= ' ' || b > '~' {
			return false
		}
	}
	return true
}

// RunAnswerV1 tells how a run ended. A run that waits for a person has neither
// succeeded nor failed: OK is false, ErrorCode empty and Interrupt is there.
type RunAnswerV1 struct {
	OK           bool            `json:"ok"`
	RunID        string          `json:"runId"`
	TraceID      string          `json:"traceId"`
	ErrorCode    ErrorCode       `json:"errorCode"`
	ErrorMessage string          `json:"errorMessage,omitempty"`
	Output       json.RawMessage `json:"output,omitempty"`
	CostUSD      *pawl.USD       `json:"costUsd,omitempty"`
	Interrupt    json.RawMessage `json:"interrupt,omitempty"`
	QuestionID   string          `json:"questionId,omitempty" doc:"Which question the interrupt is: an answer names it, so that it reaches no other one."`

	Attempt      int   `json:"attempt,omitempty"`      // which attempt this is the outcome of
	Unknown      bool  `json:"unknown,omitempty"`      // nobody knows whether it ran: only a person may have it started again
	Retry        bool  `json:"retry,omitempty"`        // another attempt may help
	RetryAfterMS int64 `json:"retryAfterMs,omitempty"` // and not before this has passed
}
