package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/cli/client"
)

// backfillKind are the plans to run slots of the past.
func backfillKind() kind {
	return kind{
		plural: "backfills", singular: "backfill", path: client.BackfillsPath,
		unlisted: "Name one: pawl get backfill ID. pawl get slots SCHEDULE --trigger backfill -o wide shows ids.",
		watch:    watchRules{events: []string{"schedule"}, reread: rereadOne},
		columns: []column{
			{title: "id"}, {title: "state", state: true}, {title: "done"}, {title: "failed"}, {title: "from"}, {title: "to"}, {title: "estimate", spare: true},
			{title: "skipped", wide: true}, {title: "a minute", wide: true}, {title: "schedule", wide: true}, {title: "created", wide: true},
		},
		row: func(raw json.RawMessage, now time.Time) ([]string, error) {
			var b client.Backfill
			if err := json.Unmarshal(raw, &b); err != nil {
				return nil, err
			}
			return []string{
				b.ID, b.State, fmt.Sprintf("%d of %d", backfilled(b), b.Total), fmt.Sprint(b.Counts.Error), pawl.FormatTime(b.From), pawl.FormatTime(b.To), usd(b.EstimateUSD),
				fmt.Sprint(b.Skipped), fmt.Sprint(b.PerMinute), b.ScheduleID, relative(b.CreatedAt, now),
			}, nil
		},
	}
}

// rereadOne reads the one thing that is watched again.
func rereadOne(ctx context.Context, w *watching, _ client.Event) ([]json.RawMessage, error) {
	raw, err := getOne(ctx, w.client, w.kind, w.name)
	return []json.RawMessage{raw}, err
}

// backfilled is how many slots of a backfill are dealt with: those that ended,
// and those that somebody else had run before.
func backfilled(b client.Backfill) int {
	open := b.Counts.Pending + b.Counts.Running
	return max(0, min(b.Total, b.Begun-open))
}
