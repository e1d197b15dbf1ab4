package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/client"
)

// taskKind are the tasks that programs of users serve.
func taskKind() kind {
	return kind{
		plural: "tasks", singular: "task", path: client.TasksPath, removed: "deleted",
		columns: []column{
			{title: "name", flex: true, least: 12}, {title: "lease"}, {title: "attempts"}, {title: "per lane"}, {title: "rate"}, {title: "batch"}, {title: "results"},
			{title: "changed by", wide: true}, {title: "changed", wide: true},
		},
		row: func(raw json.RawMessage, now time.Time) ([]string, error) {
			var t client.Task
			if err := json.Unmarshal(raw, &t); err != nil {
				return nil, err
			}
			rate, batch := "-", "-"
			if t.Rate != nil {
				rate = fmt.Sprintf("%d/%s per %s", t.Rate.Limit, t.Rate.Period, t.Rate.Per)
			}
			if t.Batch != nil {
				batch = fmt.Sprintf("%d/%s", t.Batch.Size, t.Batch.Wait)
			}
			return []string{
				t.Name, t.Lease, strconv.Itoa(t.MaxAttempts), strconv.Itoa(t.ConcurrencyPerLane), rate, batch, t.KeepResults,
				t.UpdatedBy, relative(t.UpdatedAt.Time, now),
			}, nil
		},
	}
}
