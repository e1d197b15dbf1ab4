package cli

import (
	"encoding/json"
	"time"

	"github.com/pawlrun/pawl/internal/cli/client"
)

func approvalKind() kind {
	return kind{
		plural: "approvals", singular: "approval", path: client.ApprovalsPath, filters: []string{"state"},
		instead: "Approvals are those of runs. Show one with: pawl describe run RUN",
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
				expires = relative(q.ExpiresAt, now)
			}
			return []string{
				q.RunID, q.Tool + "." + q.Method, q.Workflow, relative(q.CreatedAt, now), expires, q.State, orDash(visible(q.Title)),
				visible(string(compactJSON(q.Arguments))), orDash(q.DecidedBy),
			}, nil
		},
	}
}
