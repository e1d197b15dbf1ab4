package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// eventsShown is how many events of an input are shown with it.
const eventsShown = 100

func inputOf(i eventstore.Input, workflow string, outputs []mutationstore.Output) client.Input {
	out := client.Input{
		ID: i.ID, Workflow: workflow, Source: i.Source, Type: i.Type, ExternalID: i.ExternalID, Title: i.Title, Status: string(i.Status),
		CreatedAt: client.At(i.CreatedAt), CreatedBy: i.CreatedBy, SkippedAt: client.At(i.SkippedAt), SkippedBy: client.NullString(userOf(i.SkippedBy)), Outputs: []client.Output{},
	}
	for _, o := range outputs {
		if slices.Contains(o.Inputs, i.ID) {
			out.Outputs = append(out.Outputs, outputOf(o))
		}
	}
	return out
}

type listInputsInput struct {
	WorkflowPath
	PageInput
	Status string `query:"status" enum:"pending,done,skipped,orphaned" doc:"Only inputs with this status."`
}

const inputCursor = "input"

func (a *API) listInputs(ctx context.Context, in *listInputsInput) (*pageOutput[client.Input], error) {
	at, id, err := in.placeInTime(inputCursor)
	if err != nil {
		return nil, err
	}
	out := &pageOutput[client.Input]{}
	err = a.ofWorkflow(ctx, in.Name, func(ctx context.Context, tx *store.Tx, w workflowstore.Workflow) error {
		list, next, err := eventstore.In(tx).InputPage(ctx, w.ID, eventstore.InputStatus(in.Status), eventstore.InputCursor{CreatedAt: at, ID: id}, in.Limit)
		if err != nil {
			return err
		}
		ids := make([]string, len(list))
		for i := range list {
			ids[i] = list[i].ID
		}
		outputs, err := mutationstore.In(tx).OutputsOfInputs(ctx, ids)
		if err != nil {
			return err
		}
		cursor := ""
		if next.ID != "" {
			cursor = timeCursor(next.CreatedAt, next.ID)
		}
		out.Body = pageOf(mapAll(list, func(i eventstore.Input) client.Input { return inputOf(i, w.Name, outputs) }), inputCursor, cursor)
		return nil
	})
	return out, err
}

// InputPath is the input of requests about one input.
type InputPath struct {
	ID string `path:"id" example:"in_6f1ed002ab5595859014ebf0951522d9" doc:"The input's id."`
}

// check refuses what no input can be called.
func (p InputPath) check() error {
	if textFault(p.ID, maxName) != "" {
		return &pawl.Error{Code: pawl.CodeNotFound, Msg: fmt.Sprintf("there is no input %q", p.ID)}
	}
	return nil
}

// readInput reads an input with what was done about it, and its workflow.
func readInput(ctx context.Context, tx *store.Tx, id string) (client.Input, workflowstore.Workflow, error) {
	i, err := eventstore.In(tx).GetInput(ctx, id)
	if err != nil {
		return client.Input{}, workflowstore.Workflow{}, err
	}
	w, err := workflowstore.In(tx).GetWorkflow(ctx, i.WorkflowID)
	if err != nil {
		return client.Input{}, workflowstore.Workflow{}, err
	}
	outputs, err := mutationstore.In(tx).OutputsOfInputs(ctx, []string{id})
	return inputOf(i, w.Name, outputs), w, err
}

func (a *API) getInput(ctx context.Context, in *InputPath) (*output[client.InputDetail], error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	out := &output[client.InputDetail]{}
	err := a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		i, w, err := readInput(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		events, err := eventstore.In(tx).ListEvents(ctx, w.ID, eventstore.EventFilter{InputID: in.ID}, 0, eventsShown)
		out.Body = client.InputDetail{Input: i, Events: make([]client.Event, len(events))}
		for k, e := range events {
			out.Body.Events[k] = eventOf(e)
		}
		return err
	})
	return out, err
}

type skipInputInput struct {
	InputPath
	OnceHeader
}

type skipInputOutput struct {
	Replayed replayed `header:"Idempotency-Replayed"`
	Body     client.Input
}

// skipInput gives up an input; once more changes nothing.
func (a *API) skipInput(ctx context.Context, in *skipInputInput) (*skipInputOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	who := actor(callOf(ctx).token)
	body, was, err := once(ctx, a, http.StatusOK, struct{}{}, whole, func(ctx context.Context, tx *store.Tx) (client.Input, error) {
		if _, err := a.workflows.SkipInput(ctx, tx, in.ID, who); err != nil {
			return client.Input{}, err
		}
		i, _, err := readInput(ctx, tx, in.ID)
		return i, err
	})
	if err != nil {
		return nil, err
	}
	return &skipInputOutput{was, body}, nil
}
