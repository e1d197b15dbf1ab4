// Package workflowtool is the connector of another workflow. Its one method adds an
// event to a topic of that workflow, which works on it as on one of its own.
//
// An event is known by its message id. To publish it again changes nothing, so
// a call of which nobody knows whether it arrived is settled by making it
// again.
package workflowtool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Limits of arguments, in bytes.
const (
	longestName      = 512
	largestArguments = 4<<20 + 8<<10
)

// Workflow is the connection to one workflow.
type Workflow struct {
	name    string
	publish func(ctx context.Context, workflow, topic, messageID string, payload json.RawMessage, key string) (json.RawMessage, error)
}

// New makes the connection that a definition describes:
//
//	workflow: shipping
func New(s *connector.Settings) (connector.Connection, bool) {
	var written struct {
		Workflow string `json:"workflow" definition:"required"`
	}
	if !s.Read(&written) {
		return nil, false
	}
	if s.Publish == nil && !s.CheckOnly {
		s.Add("/workflow", "the workflow %s cannot be reached: nothing can be published here", pawl.Quote(written.Workflow))
		return nil, false
	}
	return &Workflow{name: written.Workflow, publish: s.Publish}, true
}

// Methods lists publish.
func (w *Workflow) Methods() []connector.Method {
	return []connector.Method{{Name: "publish", Mutation: true, Reconciles: true}}
}

type arguments struct {
	Topic     *string         `json:"topic"`
	MessageID *string         `json:"messageId"`
	Payload   json.RawMessage `json:"payload"`
}

// Call publishes an event. Its errors are *connector.Error.
func (w *Workflow) Call(ctx context.Context, c connector.Call) (json.RawMessage, error) {
	if c.Method != "publish" {
		return nil, &connector.Error{
			Class: pawl.ClassLogic, Code: "unknown_method", NotApplied: true,
			Msg: "a workflow connection has no method " + pawl.Quote(c.Method), Hint: "The method is publish.",
		}
	}
	a, err := parse(c.Args)
	if err != nil {
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, &connector.Error{Class: pawl.ClassTransient, Code: "interrupted", NotApplied: true, Msg: "the call was cancelled before it began", Err: err}
	}
	result, err := w.publish(ctx, w.name, *a.Topic, *a.MessageID, a.Payload, c.Key)
	if err != nil {
		return nil, w.fault(err)
	}
	return result, nil
}

// Address is the topic and the workflow that gets the event.
func (w *Workflow) Address(c connector.Call) string {
	a, err := parse(c.Args)
	if err != nil {
		return ""
	}
	return "an event " + pawl.Quote(*a.Topic) + " for the workflow " + w.name
}

// Reconcile publishes the event again, after which it is there.
func (w *Workflow) Reconcile(ctx context.Context, c connector.Call) (connector.Answer, error) {
	result, err := w.Call(ctx, c)
	if err != nil {
		// Whatever it says is about this attempt and not about the first.
		if e, ok := errors.AsType[*connector.Error](err); ok {
			silent := *e
			silent.NotApplied = false
			err = &silent
		}
		return connector.Answer{}, err
	}
	return connector.Answer{State: connector.Applied, Result: result}, nil
}

// parse checks the arguments of a call. A missing payload is null.
func parse(raw json.RawMessage) (arguments, error) {
	var a arguments
	if err := connector.DecodeArguments(raw, largestArguments, &a); err != nil {
		return a, err
	}
	if err := checkText("topic", a.Topic); err != nil {
		return a, err
	}
	if err := checkText("messageId", a.MessageID); err != nil {
		return a, err
	}
	if len(a.Payload) == 0 {
		a.Payload = json.RawMessage("null")
	}
	return a, nil
}

func checkText(name string, text *string) error {
	switch {
	case text == nil || *text == "":
		return connector.BadArguments("Give topic, messageId and payload.", "%s is missing", name)
	case len(*text) > longestName || strings.Contains(*text, "\x00"):
		return connector.BadArguments("", "%s must have 1 to %d bytes, none of them 0", name, longestName)
	}
	return nil
}

// fault is the error of a publication. The store says by a code what it
// refused; any other error may have come after the event was written.
func (w *Workflow) fault(err error) *connector.Error {
	if e, ok := errors.AsType[*connector.Error](err); ok {
		return e
	}
	doing := "publish to the workflow " + pawl.Quote(w.name)
	fault := &connector.Error{Class: pawl.ClassInternal, Code: "internal", Msg: doing + ": it did not work", Err: err}
	refused := func(class pawl.Class) {
		fault.Class, fault.NotApplied, fault.Err = class, true, nil
	}
	code := pawl.ErrorCode(err)
	switch code {
	case pawl.CodeNotFound, pawl.CodeConflict, pawl.CodeForbidden:
		refused(pawl.ClassPrecondition)
	case pawl.CodeInvalid, pawl.CodeTooLarge:
		refused(pawl.ClassLogic)
	case pawl.CodeUnavailable, pawl.CodeLeaseLost:
		fault.Class = pawl.ClassIndeterminate
	default: // a fault of Pawl
	}
	if e, ok := errors.AsType[*pawl.Error](err); ok {
		fault.Code, fault.Msg, fault.Hint = string(code), fmt.Sprintf("%s: %s", doing, e.Msg), e.Hint
	}
	return fault
}
