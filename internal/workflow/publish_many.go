package workflow

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/telemetry"
)

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
