package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

type listRulesInput struct {
	WorkflowPath
	PageInput
}

const ruleCursor = "rule"

func (a *API) listRules(ctx context.Context, in *listRulesInput) (*pageOutput[client.ApprovalRule], error) {
	after, err := in.place(ruleCursor)
	if err != nil {
		return nil, err
	}
	out := &pageOutput[client.ApprovalRule]{}
	err = a.ofWorkflow(ctx, in.Name, func(ctx context.Context, tx *store.Tx, w workflowstore.Workflow) error {
		rules, err := mutationstore.In(tx).ApprovalRules(ctx, w.ID)
		slices.SortFunc(rules, func(x, y mutationstore.ApprovalRule) int { return strings.Compare(ruleKey(x), ruleKey(y)) }) // databases differ
		rules = following(rules, after, in.Limit+1, ruleKey)
		out.Body = cutPage(rules, in.Limit, ruleCursor, ruleKey, func(r mutationstore.ApprovalRule) client.ApprovalRule {
			return client.ApprovalRule{Workflow: w.Name, Tool: r.Tool, Method: r.Method, CreatedAt: client.At(r.CreatedAt), CreatedBy: client.NullString(userOf(r.CreatedBy))}
		})
		return err
	})
	return out, err
}

// ruleKey is the place of a rule in its list. Names of tools have no dots.
func ruleKey(r mutationstore.ApprovalRule) string { return r.Tool + "." + r.Method }

// following is the part of a short sorted list that comes after the thing with this
// key, which need not be there any more, and at most so many things.
func following[T any](list []T, after string, most int, key func(T) string) []T {
	for i := range list {
		if after == "" || key(list[i]) > after {
			return list[i:min(len(list), i+most)]
		}
	}
	return nil
}

type revokeRuleInput struct {
	WorkflowPath
	Tool   string `path:"tool" example:"sheet" doc:"The connection's name."`
	Method string `path:"method" example:"append"`
}

// revokeRule makes a workflow ask again before it calls a method. Calls that
// were made or approved already stay so.
func (a *API) revokeRule(ctx context.Context, in *revokeRuleInput) (*struct{}, error) {
	if textFault(in.Name, maxName) != "" {
		return nil, a.noWorkflow(ctx, in.Name)
	}
	who := actor(callOf(ctx).token)
	found := false
	err := a.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		w, err := workflowstore.In(tx).WorkflowByName(ctx, in.Name)
		if err != nil {
			return err
		}
		found = true
		if err := mutationstore.In(tx).RevokeApprovalRule(ctx, w.ID, in.Tool, in.Method, who); err != nil {
			return err
		}
		return tx.Audit(ctx, who, "approval.revoke", "workflow:"+w.Name, map[string]string{"tool": in.Tool, "method": in.Method})
	})
	switch {
	case err == nil:
		return nil, nil //nolint:nilnil // there is nothing to tell
	case errors.Is(err, pawl.ErrNotFound) && !found:
		return nil, a.noWorkflow(ctx, in.Name)
	case errors.Is(err, pawl.ErrNotFound):
		return nil, &pawl.Error{
			Code: pawl.CodeNotFound, Op: "revoke approval rule", Msg: fmt.Sprintf("there is no standing approval for %s.%s", in.Tool, in.Method),
			Hint: "List standing approvals: pawl get rules " + in.Name,
		}
	}
	return nil, err
}
