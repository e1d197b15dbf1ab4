package api

import (
	"context"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

func eventOf(e eventstore.Event) client.Event {
	return client.Event{
		Topic: e.Topic, MessageID: e.MessageID, Payload: e.Payload, Status: string(e.Status), CausedBy: orEmpty(e.CausedBy),
		Attempt: e.Attempt, Duplicates: e.Duplicates, CreatedAt: client.At(e.CreatedAt), CreatedBy: e.CreatedBy, ReservedBy: client.NullString(e.ReservedBy),
	}
}

type listEventsInput struct {
	WorkflowPath
	PageInput
	Topic  string `query:"topic" doc:"Only events of this topic."`
	Status string `query:"status" enum:"pending,reserved,consumed,skipped" doc:"Only events with this status."`
	Input  string `query:"input" doc:"Only events that come from the input with this id."`
}

const eventCursor = "event"

func (a *API) listEvents(ctx context.Context, in *listEventsInput) (*pageOutput[client.Event], error) {
	before, err := in.placeInOrder(eventCursor)
	if err != nil {
		return nil, err
	}
	filter, err := in.filter()
	if err != nil {
		return nil, err
	}
	out := &pageOutput[client.Event]{}
	err = a.ofWorkflow(ctx, in.Name, func(ctx context.Context, tx *store.Tx, w workflowstore.Workflow) error {
		list, next, err := eventstore.In(tx).EventPage(ctx, w.ID, filter, before, in.Limit)
		out.Body = pageOf(mapAll(list, eventOf), eventCursor, orderCursor(next))
		return err
	})
	return out, err
}

func (in *listEventsInput) filter() (eventstore.EventFilter, error) {
	var f faults
	for _, p := range []struct{ pointer, value string }{{"/topic", in.Topic}, {"/input", in.Input}} {
		if p.value != "" {
			f.add(p.pointer, textFault(p.value, maxName), "")
		}
	}
	return eventstore.EventFilter{Topic: in.Topic, Status: eventstore.EventStatus(in.Status), InputID: in.Input}, f.problem()
}
