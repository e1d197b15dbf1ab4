package cli

import (
	"encoding/json"
	"time"

	"github.com/pawlrun/pawl/client"
)

func partitionKind() kind {
	return kind{
		plural: "partitions", singular: "partition", below: "partitions", parent: workflowKind, filters: []string{"state"},
		columns: []column{
			{title: "partition", flex: true, least: 12}, {title: "consumer"}, {title: "state", state: true}, {title: "since"}, {title: "issue", flex: true, least: 12}, {title: "run", spare: true},
			{title: "continues", wide: true},
		},
		row: func(raw json.RawMessage, now time.Time) ([]string, error) {
			var p client.Partition
			if err := json.Unmarshal(raw, &p); err != nil {
				return nil, err
			}
			return []string{
				orDash(string(p.Name)), p.Handler, p.State, relative(p.Since.Time, now), orDash(string(p.Issue)), orDash(string(p.RunID)), relative(p.NextAt.Time, now),
			}, nil
		},
	}
}
