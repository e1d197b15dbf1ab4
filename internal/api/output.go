package api

import (
	"context"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

func outputOf(o mutationstore.Output) client.Output {
	return client.Output{
		ID: o.ID, RunID: o.RunID, Tool: o.Tool, Method: o.Method, Title: client.NullString(o.Title), Arguments: o.Arguments,
		State: string(o.State), Result: o.Result, Inputs: orEmpty(o.Inputs), At: client.At(o.CreatedAt),
	}
}

type listOutputsInput struct {
	WorkflowPath
	PageInput
}

const outputCursor = "output"

func (a *API) listOutputs(ctx context.Context, in *listOutputsInput) (*pageOutput[client.Output], error) {
	at, id, err := in.placeInTime(outputCursor)
	if err != nil {
		return nil, err
	}
	out := &pageOutput[client.Output]{}
	err = a.ofWorkflow(ctx, in.Name, func(ctx context.Context, tx *store.Tx, w workflowstore.Workflow) error {
		calls, err := mutationstore.In(tx).ListMutations(ctx, w.ID, mutationstore.MutationCursor{CreatedAt: at, ID: id}, in.Limit+1)
		if err != nil {
			return err
		}
		list, err := mutationstore.In(tx).OutputsOf(ctx, calls)
		cursor := func(o mutationstore.Output) string { return timeCursor(o.CreatedAt, o.ID) }
		out.Body = cutPage(list, in.Limit, outputCursor, cursor, outputOf)
		return err
	})
	return out, err
}
