package cli

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/client"
)

// versionKind are the scripts of a workflow, or the definitions of a source,
// that were put in force.
func versionKind() kind {
	return kind{
		plural: "versions", singular: "version", below: "versions", parent: workflowKind, parents: []func() kind{workflowKind, sourceKind},
		columns: []column{
			{title: "number"}, {title: "version"}, {title: "active"}, {title: "created"}, {title: "by", spare: true}, {title: "file", flex: true, spare: true},
		},
		row: func(raw json.RawMessage, now time.Time) ([]string, error) {
			var v client.WorkflowVersion
			if err := json.Unmarshal(raw, &v); err != nil {
				return nil, err
			}
			active := "-"
			if v.Active {
				active = "yes"
			}
			return []string{strconv.Itoa(v.Number), v.Version[:min(len(v.Version), 12)], active, relative(v.CreatedAt.Time, now), orDash(string(v.CreatedBy)), orDash(v.Filename)}, nil
		},
	}
}
