package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// repairsShown is how many proposals a description tells of.
const repairsShown = 5

// describeRepairs tells of the scripts that were proposed after a failure, each
// with its difference; nothing if there are none.
func describeRepairs(ctx context.Context, c *client.Client, workflow string, now time.Time) (string, error) {
	items, _, err := c.List(ctx, client.WorkflowPath(workflow, "repairs"), nil, repairsShown)
	if errors.Is(err, pawl.ErrNotFound) { // a server that does not know of repairs
		return "", nil
	}
	if err != nil || len(items) == 0 {
		return "", err
	}
	var b strings.Builder
	b.WriteString("\nProposed repairs, the newest first:\n")
	for _, raw := range items {
		var r client.Repair
		if err := json.Unmarshal(raw, &r); err != nil {
			return "", fmt.Errorf("read repair: %w", err)
		}
		fmt.Fprintf(&b, "\n  %s %s by %s, for run %s\n", relative(r.CreatedAt.Time, now), r.State, oneLine(r.Repairer), r.RunID)
		if r.Reason != "" {
			fmt.Fprintf(&b, "  because: %s\n", oneLine(string(r.Reason)))
		}
		if r.Explanation != "" {
			fmt.Fprintf(&b, "  it says: %s\n", oneLine(string(r.Explanation)))
		}
		if r.Script != "" {
			for line := range strings.Lines(unifiedDiff("failed", "proposed", string(r.BaseScript), string(r.Script))) {
				b.WriteString("    " + line)
			}
		}
	}
	return b.String(), nil
}
