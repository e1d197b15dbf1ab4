package api

import (
	"context"
	"encoding/json"

	"github.com/pawlrun/pawl/internal/store"
)

// Output is something that a workflow did outside.
type Output struct {
	ID        string          `json:"id" format:"uuid"`
	RunID     string          `json:"runId" format:"uuid"`
	Tool      string          `json:"tool" example:"sheet"`
	Method    string          `json:"method" example:"append"`
	Title     *string         `json:"title" example:"Add a row for Ada" doc:"What the script calls it; not to be trusted."`
	Arguments json.RawMessage `json:"arguments"`
	State     string          `json:"state" enum:"in_flight,applied,failed,needs_reconcile,indeterminate,skipped"`
	Result    json.RawMessage `json:"result"`
	Inputs    []string        `json:"inputs" nullable:"false" doc:"The ids of the inputs that it comes from."`
	At        Instant         `json:"at" doc:"When it was sent."`
}

func outputOf(o store.Output) Output {
	return Output{
		ID: o.ID, RunID: o.RunID, Tool: o.Tool, Method: o.Method, Title: orNull(o.Title), Arguments: o.Arguments,
		State: string(o.State), Result: o.Result, Inputs: orEmpty(o.Inputs), At: Instant{o.CreatedAt},
	}
}

type listOutputsInput struct {
	WorkflowPath
	PageInput
}

type listOutputsOutput struct{ Body Page[Output] }

const outputCursor = "output"

func (a *API) listOutputs(ctx context.Context, in *listOutputsInput) (*listOutputsOutput, error) {
	at, id, err := in.placeInTime(outputCursor)
	if err != nil {
		return nil, err
	}
	out := &listOutputsOutput{}
	err = a.ofWorkflow(ctx, in.Name, func(ctx context.Context, tx *store.Tx, w store.Workflow) error {
		calls, err := tx.ListMutations(ctx, w.ID, store.MutationCursor{CreatedAt: at, ID: id}, in.Limit+1)
		if err != nil {
			return err
		}
		list, err := tx.OutputsOf(ctx, calls)
		cursor := func(o store.Output) string { return timeCursor(o.CreatedAt, o.ID) }
		out.Body = cutPage(list, in.Limit, outputCursor, cursor, outputOf)
		return err
	})
	return out, err
}
