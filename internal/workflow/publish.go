package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/telemetry"
)

// ExternalEvent is an event that comes from outside.
type ExternalEvent struct {
	Topic     string
	MessageID string
	Payload   json.RawMessage
	Input     *OutsideInput
}

// OutsideInput names the thing that an event comes from.
type OutsideInput struct {
	Source, Type, ID, Title string
}

// PublishExternal adds an event from outside, in the caller's transaction, and
// wakes the lane if it is news. A known messageId is a duplicate and changes
// nothing once the event is taken.
func (s *Service) PublishExternal(ctx context.Context, tx *store.Tx, name string, e ExternalEvent, by string) (eventstore.Event, eventstore.Published, error) {
	none := eventstore.Published{}
	w, err := workflowstore.In(tx).WorkflowByName(ctx, name)
	if err != nil {
		return eventstore.Event{}, none, err
	}
	config, err := s.config(ctx, tx, w.ID, w.Version)
	if err != nil {
		return eventstore.Event{}, none, err
	}
	if err := checkOutside(config, e); err != nil {
		return eventstore.Event{}, none, err
	}
	event := eventstore.NewEvent{Topic: e.Topic, MessageID: e.MessageID, Payload: orNullJSON(e.Payload), Trace: telemetry.Requested(ctx)}
	if e.Input != nil {
		input, err := newInput(w.ID, e.Input.Source, e.Input.Type, e.Input.ID, e.Input.Title, by)
		if err != nil {
			return eventstore.Event{}, none, badEvent("/input", err.Error())
		}
		if err := eventstore.In(tx).AddInputs(ctx, []eventstore.Input{input}); err != nil {
			return eventstore.Event{}, none, err
		}
		event.CausedBy = []string{input.ID}
	}
	published, err := eventstore.In(tx).Publish(ctx, w.ID, by, []eventstore.NewEvent{event})
	if err != nil {
		return eventstore.Event{}, none, err
	}
	if published.News() {
		// Told before it is handed over, so that it is heard before the run.
		s.cfg.Emit(tx, lane.Change{Ref: refOf(name), What: "published", Detail: ChangeDetail{Topic: e.Topic, Event: e.MessageID}})
		if err := s.arm(ctx, tx, w, tx.Now); err != nil {
			return eventstore.Event{}, none, err
		}
	}
	sent := eventstore.Event{
		WorkflowID: w.ID, Topic: e.Topic, MessageID: e.MessageID, Payload: event.Payload, Status: eventstore.EventPending, CausedBy: event.CausedBy,
		CreatedBy: by, CreatedAt: tx.Now,
	}
	if published.New == 1 && e.Input == nil { // an input may have been skipped
		return sent, published, nil
	}
	stored, err := eventstore.In(tx).EventsByMessage(ctx, w.ID, e.Topic, []string{e.MessageID})
	switch {
	case err == nil && len(stored) == 1:
		return stored[0], published, nil
	case err == nil && published.Duplicate == 1:
		// It was done with so long ago that only its id is known: it is told as it
		// was sent now.
		sent.Status = eventstore.EventConsumed
		return sent, published, nil
	}
	return eventstore.Event{}, none, errors.Join(err, fmt.Errorf("the event was not stored"))
}

func checkOutside(config Config, e ExternalEvent) error {
	switch {
	case !slices.Contains(config.Topics, e.Topic):
		return badEvent("/topic", fmt.Sprintf("workflow %q has no topic %q; it has %s", config.Name, e.Topic, quotedList(config.Topics)))
	case len(config.Subscribers(e.Topic)) == 0:
		return badEvent("/topic", fmt.Sprintf("no consumer subscribes to %q", e.Topic))
	case e.MessageID == "" || len(e.MessageID) > maxMessageID || slices.Contains([]byte(e.MessageID), 0):
		return badEvent("/messageId", fmt.Sprintf("must have 1 to %d bytes", maxMessageID))
	}
	return nil
}

func badEvent(pointer, msg string) error {
	return &pawl.Error{Code: pawl.CodeInvalid, Op: "publish event", Msg: "the event cannot be taken", Fields: []pawl.Field{{Pointer: pointer, Message: msg}}}
}

// PublishMany adds events from outside, in the caller's transaction, and wakes
// the lane if any of them is news. All of them are taken or none.
func (s *Service) PublishMany(ctx context.Context, tx *store.Tx, name string, events []ExternalEvent, by string) error {
	if len(events) == 0 {
		return nil
	}
	w, err := workflowstore.In(tx).WorkflowByName(ctx, name)
	if err != nil {
		return err
	}
	config, err := s.config(ctx, tx, w.ID, w.Version)
	if err != nil {
		return err
	}
	list := make([]eventstore.NewEvent, len(events))
	var inputs []eventstore.Input
	for i, e := range events {
		if err := checkOutside(config, e); err != nil {
			return err
		}
		list[i] = eventstore.NewEvent{Topic: e.Topic, MessageID: e.MessageID, Payload: orNullJSON(e.Payload), Trace: telemetry.Requested(ctx)}
		if e.Input == nil {
			continue
		}
		input, err := newInput(w.ID, e.Input.Source, e.Input.Type, e.Input.ID, e.Input.Title, by)
		if err != nil {
			return badEvent(fmt.Sprintf("/%d/input", i), err.Error())
		}
		inputs = append(inputs, input)
		list[i].CausedBy = []string{input.ID}
	}
	if err := eventstore.In(tx).AddInputs(ctx, inputs); err != nil {
		return err
	}
	published, err := eventstore.In(tx).Publish(ctx, w.ID, by, list)
	if err != nil || !published.News() {
		return err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(name), What: "published", Detail: ChangeDetail{Topic: events[0].Topic}})
	return s.arm(ctx, tx, w, tx.Now)
}
