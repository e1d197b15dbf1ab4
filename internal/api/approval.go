package api

import (
	"context"
	"encoding/json"
	"errors"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// Approval is a question to people: may this call be made?
type Approval struct {
	ID        string          `json:"id" format:"uuid"`
	Workflow  string          `json:"workflow" example:"mail-to-sheet"`
	RunID     string          `json:"runId" format:"uuid" doc:"The run that asks; it is approved and rejected there."`
	Tool      string          `json:"tool" example:"sheet"`
	Method    string          `json:"method" example:"append"`
	Arguments json.RawMessage `json:"arguments" doc:"What will be sent."`
	Address   *string         `json:"address" example:"POST https://shop.example.com/orders" doc:"Where the call goes, with secrets left out; null if the connection cannot tell."`
	Hash      string          `json:"hash" doc:"Names this call: the script, the method, the address and the arguments. Send it along to approve what you saw and nothing else."`
	Title     *string         `json:"title" example:"Add a row for Ada" doc:"What the script calls it; not to be trusted."`
	State     string          `json:"state" enum:"pending,approved,rejected,expired,used" doc:"approved: and not made yet. used: the call was made."`
	CreatedAt Instant         `json:"createdAt"`
	ExpiresAt Instant         `json:"expiresAt" doc:"Until when it can be answered."`
	DecidedAt *Instant        `json:"decidedAt" nullable:"true"`
	DecidedBy *string         `json:"decidedBy" doc:"The user who answered."`
}

// approvalOf tells a question of the workflow with this name. Scripts are not
// given secrets; should one have got hold of one nevertheless, it is not shown.
func (a *API) approvalOf(q *store.Approval, workflow string) Approval {
	out := Approval{
		ID: q.ID, Workflow: workflow, RunID: q.RunID, Tool: q.Tool, Method: q.Method, Arguments: q.Arguments, Address: orNull(q.Address), Hash: q.Hash,
		Title: orNull(q.Title), State: string(q.State), CreatedAt: Instant{q.CreatedAt}, ExpiresAt: Instant{q.ExpiresAt},
		DecidedAt: instantOf(q.DecidedAt), DecidedBy: orNull(userOf(q.DecidedBy)),
	}
	if a.tools != nil {
		out.Arguments, out.Title = a.tools.Redact(q.Arguments), orNull(a.tools.RedactText(q.Title))
	}
	return out
}

type listApprovalsInput struct {
	PageInput
	State    string `query:"state" enum:"pending,approved,rejected,expired,used" default:"pending" doc:"Only questions in this state."`
	Workflow string `query:"workflow" doc:"Only questions of the workflow with this name."`
	Order    string `query:"order" enum:"newest,oldest" default:"newest" doc:"Which come first."`
}

type listApprovalsOutput struct{ Body Page[Approval] }

// approvalCursor is for a list that begins with the newest, oldestCursor for one
// that begins with the oldest.
const (
	approvalCursor = "approval"
	oldestCursor   = "approval_oldest"
)

func (a *API) listApprovals(ctx context.Context, in *listApprovalsInput) (*listApprovalsOutput, error) {
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
	out, unknown := &listApprovalsOutput{}, false
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		filter := store.ApprovalFilter{State: store.ApprovalState(in.State), Oldest: oldest}
		if in.Workflow != "" {
			w, err := tx.WorkflowByName(ctx, in.Workflow)
			if unknown = errors.Is(err, pawl.ErrNotFound); err != nil {
				return err
			}
			filter.WorkflowID = w.ID
		}
		list, err := tx.ListApprovals(ctx, filter, store.Place{CreatedAt: at, ID: id}, in.Limit+1)
		if err != nil {
			return err
		}
		names, err := workflowNames(ctx, tx, list)
		cursor := func(q store.Approval) string { return timeCursor(q.CreatedAt, q.ID) }
		out.Body = cutPage(list, in.Limit, place, cursor, func(q store.Approval) Approval { return a.approvalOf(&q, names[q.WorkflowID]) })
		return err
	})
	if unknown {
		return nil, a.noWorkflow(ctx, in.Workflow)
	}
	return out, err
}

// workflowNames are the names of the workflows that ask, by their ids.
func workflowNames(ctx context.Context, tx *store.Tx, list []store.Approval) (map[string]string, error) {
	names := map[string]string{}
	for _, q := range list {
		if names[q.WorkflowID] != "" {
			continue
		}
		w, err := tx.GetWorkflow(ctx, q.WorkflowID)
		if err != nil {
			return nil, err
		}
		names[q.WorkflowID] = w.Name
	}
	return names, nil
}
