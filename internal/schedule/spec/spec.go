// Package spec reads the definitions of schedules: files with kind: schedule.
package spec

import (
	_ "embed" // the schema
	"encoding/json"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/when"
)

// Kind is what the definitions name.
const Kind = "schedule"

//go:embed schedule.schema.json
var schema []byte

// Schema is the JSON Schema of a definition.
func Schema() []byte { return schema }

// written is a definition as it stands in a file.
type written struct {
	Name              string                 `json:"name" definition:"required"`
	Graph             string                 `json:"graph" definition:"required"`
	Input             json.RawMessage        `json:"input"`
	Cron              string                 `json:"cron" definition:"required"`
	Timezone          string                 `json:"timezone"`
	Grant             string                 `json:"grant"`
	ConcurrencyPolicy pawl.ConcurrencyPolicy `json:"concurrencyPolicy" definition:"oneof=Queue|Forbid|Allow|Replace"`
	Enabled           *bool                  `json:"enabled"`
	Labels            map[string]string      `json:"labels"`
}

// Parse reads every definition of a file; others than those of schedules are
// refused.
func Parse(file string, text []byte) ([]client.ScheduleRequest, error) {
	documents, err := definition.Read(file, text)
	var faults []pawl.Field
	if err != nil {
		return nil, err
	}
	var out []client.ScheduleRequest
	for _, doc := range documents {
		if doc.Kind != Kind {
			faults = append(faults, doc.Fault("/kind", "%s is not a schedule", pawl.Quote(doc.Kind)))
			continue
		}
		in, more := FromDocument(doc)
		faults = append(faults, more...)
		out = append(out, in)
	}
	return out, definition.Invalid("read schedules", faults)
}

// FromDocument reads one definition and tells every fault with its place.
func FromDocument(doc definition.Document) (client.ScheduleRequest, []pawl.Field) {
	var w written
	faults := doc.Check(&w)
	if _, _, err := contract.ParseGraphID(w.Graph); err != nil {
		faults.Add("/graph", "%s", messageOf(err))
	}
	zone, err := when.LoadZone(w.Timezone)
	if err != nil {
		faults.Add("/timezone", "%s", messageOf(err))
	} else if _, err := when.Cron(w.Cron, zone); err != nil {
		faults.Add("/cron", "%s", messageOf(err))
	}
	return client.ScheduleRequest{
		Name: w.Name, GraphID: w.Graph, Input: w.Input, Cron: w.Cron, Timezone: w.Timezone, ExecutionGrantID: w.Grant,
		ConcurrencyPolicy: w.ConcurrencyPolicy, Enabled: w.Enabled, Labels: w.Labels,
	}, faults.Fields()
}

func messageOf(err error) string {
	if e, ok := err.(*pawl.Error); ok { //nolint:errorlint // these packages return it bare
		return e.Msg
	}
	return err.Error()
}
