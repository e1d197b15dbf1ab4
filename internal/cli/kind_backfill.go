package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// backfillKind are the plans to run slots of the past.
func backfillKind() kind {
	return kind{
		plural: "backfills", singular: "backfill", path: client.BackfillsPath, below: "backfills", parent: scheduleKind, everywhere: true,
		alone: func(name string) bool { return uuid.Validate(name) == nil },
		watch: watchRules{events: []string{"schedule"}},
		columns: []column{
			{title: "id"}, {title: "state", state: true}, {title: "done"}, {title: "failed"}, {title: "from"}, {title: "to"}, {title: "estimate", spare: true},
			{title: "skipped", wide: true}, {title: "a minute", wide: true}, {title: "schedule", wide: true}, {title: "grant", wide: true}, {title: "created", wide: true},
		},
		row: func(raw json.RawMessage, now time.Time) ([]string, error) {
			var b struct {
				client.Backfill
				Schedule string `json:"schedule"` // its name, added by the commands
			}
			if err := json.Unmarshal(raw, &b); err != nil {
				return nil, err
			}
			estimate := "-"
			if b.EstimateUSD != nil {
				estimate = usd(*b.EstimateUSD)
			}
			return []string{
				b.ID, b.State, fmt.Sprintf("%d of %d", backfilled(b.Backfill), b.Total), fmt.Sprint(b.Counts.Error), pawl.FormatTime(b.From.Time), pawl.FormatTime(b.To.Time), estimate,
				fmt.Sprint(b.Skipped), fmt.Sprint(b.PerMinute), cmp.Or(b.Schedule, b.ScheduleID), orDash(string(b.GrantID)), relative(b.CreatedAt.Time, now),
			}, nil
		},
	}
}

// backfilled is how many slots of a backfill are dealt with: those that ended,
// and those that somebody else had run before.
func backfilled(b client.Backfill) int {
	open := b.Counts.Pending + b.Counts.Running
	return max(0, min(b.Total, b.Begun-open))
}
