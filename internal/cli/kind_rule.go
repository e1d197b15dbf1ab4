package cli

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/pawlrun/pawl/client"
)

// rulesBelow is where the rules of a workflow are, below it.
const rulesBelow = "approvals/rules"

// ruleKind are the calls that a workflow may make without asking, because
// somebody said always.
func ruleKind() kind {
	return kind{
		plural: "rules", singular: "rule", below: rulesBelow, parent: workflowKind, everywhere: true,
		removed: "revoked; it is asked for again", locate: locateRule,
		columns: []column{
			{title: "workflow", flex: true, least: 12}, {title: "tool", flex: true, least: 8}, {title: "method", flex: true, least: 8}, {title: "since"}, {title: "said by", spare: true},
			{title: "created", wide: true},
		},
		row: func(raw json.RawMessage, now time.Time) ([]string, error) {
			var r client.ApprovalRule
			if err := json.Unmarshal(raw, &r); err != nil {
				return nil, err
			}
			return []string{r.Workflow, r.Tool, r.Method, relative(r.CreatedAt.Time, now), orDash(string(r.CreatedBy)), r.CreatedAt.UTC().Format(time.RFC3339)}, nil
		},
	}
}

// locateRule finds a rule by its workflow, tool and method. The last two may be
// one word, as approvals show them: sheet.append.
func locateRule(words []string) (path, name string, err error) {
	if len(words) == 2 {
		if tool, method, ok := strings.Cut(words[1], "."); ok { // names of tools have no dots
			words = []string{words[0], tool, method}
		}
	}
	if len(words) != 3 {
		return "", "", usageError("Usage: pawl delete rule WORKFLOW TOOL METHOD", "a rule is named by its workflow, tool and method")
	}
	for _, w := range words {
		if w == "" || w == "." || w == ".." {
			return "", "", usageError("", "%q names nothing", w)
		}
	}
	path = client.WorkflowPath(words[0], rulesBelow, url.PathEscape(words[1]), url.PathEscape(words[2]))
	return path, words[0] + " " + words[1] + "." + words[2], nil
}
