package api

import (
	"context"
	"errors"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// approvalOf tells a question of the workflow with this name. Scripts are not
// given secrets; should one have got hold of one nevertheless, it is not shown.
func (a *API) approvalOf(q *mutationstore.Approval, workflow string) client.Approval {
	out := client.Approval{
		ID: q.ID, Workflow: workflow, RunID: q.RunID, Tool: q.Tool, Method: q.Method, Arguments: q.Arguments, Address: client.NullString(q.Address), Hash: q.Hash,
		Title: client.NullString(q.Title), State: string(q.State), CreatedAt: client.At(q.CreatedAt), ExpiresAt: client.At(q.ExpiresAt),
		DecidedAt: client.At(q.DecidedAt), DecidedBy: client.NullString(userOf(q.DecidedBy)),
	}
	if a.tools != nil {
		out.Arguments, out.Title = a.tools.Redact(q.Arguments), client.NullString(a.tools.RedactText(q.Title))
	}
	return out
}

type listApprovalsInput struct {
	PageInput
	State    string `query:"state" enum:"pending,approved,rejected,expired,used" default:"pending" doc:"Only questions in this state."`
	Workflow string `query:"workflow" doc:"Only questions of the workflow with this name."`
	Order    string `query:"order" enum:"newest,oldest" default:"newest" doc:"Which come first."`
}

// approvalCursor is for a list that begins with the newest, oldestCursor for one
// that begins with the oldest.
const (
	approvalCursor = "approval"
	oldestCursor   = "approval_oldest"
)

func (a *API) listApprovals(ctx context.Context, in *listApprovalsInput) (*pageOutput[client.Approval], error) {
	oldest, place := in.Order == "oldest", approvalCursor
	if oldest {
		place = oldestCursor
	}
	at, id, err := in.placeInTime(place)
	if err != nil {
		return nil, err
	}
	if in.Workflow != "" && textFault(in.Workflow, maxName) != "" {
		return nil, a.noWorkflow(ctx, in.Workflow)
	}
	out, unknown := &pageOutput[client.Approval]{}, false
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		filter := mutationstore.ApprovalFilter{State: mutationstore.ApprovalState(in.State), Oldest: oldest}
		if in.Workflow != "" {
			w, err := workflowstore.In(tx).WorkflowByName(ctx, in.Workflow)
			if unknown = errors.Is(err, pawl.ErrNotFound); err != nil {
				return err
			}
			filter.WorkflowID = w.ID
		}
		list, err := mutationstore.In(tx).ListApprovals(ctx, filter, store.Place{CreatedAt: at, ID: id}, in.Limit+1)
		if err != nil {
			return err
		}
		names, err := workflowNames(ctx, tx, list)
		cursor := func(q mutationstore.Approval) string { return timeCursor(q.CreatedAt, q.ID) }
		out.Body = cutPage(list, in.Limit, place, cursor, func(q mutationstore.Approval) client.Approval { return a.approvalOf(&q, names[q.WorkflowID]) })
		return err
	})
	if unknown {
		return nil, a.noWorkflow(ctx, in.Workflow)
	}
	return out, err
}

// workflowNames are the names of the workflows that ask, by their ids.
func workflowNames(ctx context.Context, tx *store.Tx, list []mutationstore.Approval) (map[string]string, error) {
	names := map[string]string{}
	for _, q := range list {
		if names[q.WorkflowID] != "" {
			continue
		}
		w, err := workflowstore.In(tx).GetWorkflow(ctx, q.WorkflowID)
		if err != nil {
			return nil, err
		}
		names[q.WorkflowID] = w.Name
	}
	return names, nil
}
