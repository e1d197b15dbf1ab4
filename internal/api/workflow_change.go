package api

import (
	"context"
	"net/http"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
)

type changeWorkflowInput struct {
	WorkflowPath
	OnceHeader
}

type runWorkflowOutput struct {
	Replayed replayed `header:"Idempotency-Replayed"`
	Body     client.RunRequested
}

// runWorkflow asks for a run of every producer. The check and the request are
// one transaction, so a refusal changed nothing.
func (a *API) runWorkflow(ctx context.Context, in *changeWorkflowInput) (*runWorkflowOutput, error) {
	if textFault(in.Name, maxName) != "" {
		return nil, a.noWorkflow(ctx, in.Name)
	}
	who := actor(callOf(ctx).token)
	body, was, err := once(ctx, a, http.StatusAccepted, struct{}{}, whole, func(ctx context.Context, tx *store.Tx) (client.RunRequested, error) {
		return client.RunRequested{Name: in.Name, Requested: true}, a.workflows.RunNow(ctx, tx, in.Name, who)
	})
	if err != nil {
		return nil, a.aboutWorkflow(ctx, in.Name, err)
	}
	return &runWorkflowOutput{was, body}, nil
}

type changeWorkflowOutput struct {
	Replayed replayed `header:"Idempotency-Replayed"`
	Body     client.Workflow
}

func (a *API) resumeWorkflow(ctx context.Context, in *changeWorkflowInput) (*changeWorkflowOutput, error) {
	return a.changeWorkflow(ctx, in.Name, struct{}{}, a.workflows.Resume)
}

// changeWorkflow makes a change that may have been made before, and answers
// with the workflow as it is then.
func (a *API) changeWorkflow(ctx context.Context, name string, request any, change func(ctx context.Context, tx *store.Tx, name, by string) (bool, error)) (*changeWorkflowOutput, error) {
	if textFault(name, maxName) != "" {
		return nil, a.noWorkflow(ctx, name)
	}
	who := actor(callOf(ctx).token)
	_, was, err := once(ctx, a, http.StatusOK, request, whole, func(ctx context.Context, tx *store.Tx) (struct{}, error) {
		_, err := change(ctx, tx, name, who)
		return struct{}{}, err
	})
	if err != nil {
		return nil, a.aboutWorkflow(ctx, name, err)
	}
	w, err := a.describeWorkflow(ctx, name)
	if err != nil {
		return nil, err
	}
	return &changeWorkflowOutput{was, w}, nil
}

func (a *API) deleteWorkflow(ctx context.Context, in *WorkflowPath) (*struct{}, error) {
	if textFault(in.Name, maxName) != "" {
		return nil, a.noWorkflow(ctx, in.Name)
	}
	who := actor(callOf(ctx).token)
	err := a.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return a.workflows.Delete(ctx, tx, in.Name, who)
	})
	return nil, a.aboutWorkflow(ctx, in.Name, err)
}
