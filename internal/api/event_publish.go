package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/telemetry"
	"github.com/pawlrun/pawl/internal/workflow"
)

// maxEventID is the most bytes of a messageId and of what identifies an input.
const maxEventID = 512

type publishEventInput struct {
	WorkflowPath
	OnceHeader
	TraceHeader
	Body client.EventRequest
}

type publishEventOutput struct {
	Status   int
	Replayed replayed `header:"Idempotency-Replayed"`
	Body     client.PublishedEvent
}

// publishEvent adds an event from outside. Its messageId makes it safe to
// repeat; the idempotency key is for those who want the same answer, too.
func (a *API) publishEvent(ctx context.Context, in *publishEventInput) (*publishEventOutput, error) {
	if textFault(in.Name, maxName) != "" {
		return nil, a.noWorkflow(ctx, in.Name)
	}
	e, err := a.checkEvent(&in.Body)
	if err != nil {
		return nil, err
	}
	caller := callOf(ctx).token
	ctx = telemetry.Request(ctx, in.Traceparent)
	var alone []string // who answers the same key comes one after the other
	if key := callOf(ctx).idempotencyKey; key != "" {
		alone = []string{"key " + key}
	}
	write := func(ctx context.Context, fn store.Func) error {
		return eventstore.Write(ctx, a.db, in.Name, e.Topic, e.MessageID, fn, alone...)
	}
	body, was, err := onceIn(ctx, write, http.StatusCreated, &in.Body, whole, func(ctx context.Context, tx *store.Tx) (client.PublishedEvent, error) {
		stored, did, err := a.workflows.PublishExternal(ctx, tx, in.Name, e, caller.User.Name)
		if err == nil && did.New+did.Changed > 0 {
			err = tx.Audit(ctx, actor(caller), "event.publish", "workflow:"+in.Name, map[string]string{"topic": e.Topic, "messageId": e.MessageID})
		}
		return client.PublishedEvent{Event: eventOf(stored), Duplicate: did.New == 0, Changed: did.Changed > 0}, err
	})
	if err != nil {
		return nil, a.aboutWorkflow(ctx, in.Name, err)
	}
	out := &publishEventOutput{http.StatusCreated, was, body}
	if body.Duplicate {
		out.Status = http.StatusOK
	}
	return out, nil
}

// checkEvent finds every fault that the schema cannot, but for those that need
// the workflow.
func (a *API) checkEvent(r *client.EventRequest) (workflow.ExternalEvent, error) {
	e := workflow.ExternalEvent{Topic: r.Topic, MessageID: r.MessageID, Payload: r.Payload}
	if int64(len(r.Payload)) > a.cfg.MaxPayload {
		return e, newProblem(http.StatusRequestEntityTooLarge, string(pawl.CodeTooLarge),
			fmt.Sprintf("the payload has %d bytes, more than the %d that are allowed", len(r.Payload), a.cfg.MaxPayload),
			"Keep the data elsewhere and send where it is.", client.Fault{Pointer: "/payload", Message: "is too large"})
	}
	var f faults
	f.add("/messageId", eventIDFault(r.MessageID), "")
	if i := r.Input; i != nil {
		f.add("/input/source", eventIDFault(i.Source), "")
		f.add("/input/type", eventIDFault(i.Type), "")
		f.add("/input/id", eventIDFault(i.ID), "")
		e.Input = &workflow.OutsideInput{Source: i.Source, Type: i.Type, ID: i.ID, Title: i.Title}
	}
	return e, f.problem()
}

// eventIDFault says what is wrong with an id that comes from outside, or is
// empty. It may have any characters but one.
func eventIDFault(id string) string {
	switch {
	case id == "" || len(id) > maxEventID:
		return fmt.Sprintf("must have 1 to %d bytes", maxEventID)
	case strings.ContainsRune(id, 0):
		return "must not have a NUL character"
	}
	return ""
}
