package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/visible"
)

func approvalKind() kind {
	return kind{
		plural: "approvals", singular: "approval", path: client.ApprovalsPath, filters: []string{"state"},
		instead: "Approvals are those of runs. Show one with: pawl describe run RUN",
		watch:   watchRules{events: []string{"run", "workflow"}, reread: rereadApprovals},
		columns: []column{
			{title: "run"}, {title: "call", flex: true, least: 12}, {title: "workflow", flex: true, least: 12}, {title: "asked"},
			{title: "expires", spare: true}, {title: "state", state: true, spare: true}, {title: "title", flex: true, spare: true},
			{title: "arguments", wide: true, flex: true, least: 20}, {title: "decided by", wide: true},
		},
		row: func(raw json.RawMessage, now time.Time) ([]string, error) {
			var q client.Approval
			if err := json.Unmarshal(raw, &q); err != nil {
				return nil, err
			}
			expires := "-"
			if q.State == client.ApprovalPending {
				expires = relative(q.ExpiresAt.Time, now)
			}
			return []string{
				q.RunID, q.Tool + "." + q.Method, q.Workflow, relative(q.CreatedAt.Time, now), expires, q.State, orDash(visible.Text(string(q.Title))),
				visible.Text(string(compactJSON(q.Arguments))), orDash(string(q.DecidedBy)),
			}, nil
		},
	}
}

// rereadApprovals reads the questions that an event may be about: new ones, and
// those that were shown and are of the same run or workflow. What became of
// them, only their runs tell.
func rereadApprovals(ctx context.Context, w *watching, e client.StreamEvent) (items []json.RawMessage, err error) {
	var event struct {
		What     string           `json:"what"`
		Workflow string           `json:"workflow"`
		Run      client.RunDetail `json:"run"`
	}
	if err := json.Unmarshal(e.Data, &event); err != nil {
		return nil, fmt.Errorf("read event: %w", err)
	}
	if event.Workflow != "" && !slices.Contains([]string{"asked", "approved", "rejected", "expired"}, event.What) {
		return nil, nil
	}
	if event.Workflow != "" || event.Run.Status == string(pawl.StatusPausedApproval) {
		if items, _, err = w.list(ctx); err != nil {
			return nil, err
		}
	}
	for _, shown := range w.last {
		var q client.Approval
		if err := json.Unmarshal(shown, &q); err != nil {
			return nil, fmt.Errorf("read approval: %w", err)
		}
		settled := q.State != client.ApprovalPending && q.State != client.ApprovalApproved
		if settled || (q.RunID != event.Run.ID && q.Workflow != event.Workflow) {
			continue
		}
		now, err := questionOf(ctx, w.client, q)
		if err != nil {
			return nil, err
		}
		items = append(items, now...)
	}
	return slices.DeleteFunc(items, func(raw json.RawMessage) bool { return !w.matches(raw) }), nil
}

// questionOf reads a question again. A run shows the last one that it asked; if
// that is another one by now, this one has expired.
func questionOf(ctx context.Context, c *client.Client, q client.Approval) ([]json.RawMessage, error) {
	raw, err := getOne(ctx, c, runKind(), q.RunID)
	if errors.Is(err, pawl.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r struct {
		Approval json.RawMessage `json:"approval"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("read run: %w", err)
	}
	if idOf(r.Approval) != q.ID {
		return nil, nil
	}
	return []json.RawMessage{r.Approval}, nil
}
