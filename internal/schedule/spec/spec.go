// Package spec reads the definitions of schedules: files with kind: schedule.
package spec

import (
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/when"
)

// Kind is what the definitions name.
const Kind = "schedule"

// Schema is the JSON Schema of a definition.
func Schema() []byte {
	return definition.Schema(Kind, "Schedule", "A graph that runs at the instants of a cron expression.", written{})
}

// written is a definition as it stands in a file. The defaults are those of the
// service that takes it.
type written struct {
	Name              string                 `json:"name" definition:"required" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" doc:"Unique among the schedules of its owner."`
	Graph             string                 `json:"graph" definition:"required" pattern:"^[A-Za-z][A-Za-z0-9_-]*:[A-Za-z0-9][A-Za-z0-9_.-]*$" doc:"What runs: provider:name."`
	Input             json.RawMessage        `json:"input" doc:"What the graph gets. It holds no credentials."`
	Cron              string                 `json:"cron" definition:"required" doc:"Five fields, or @daily and the like."`
	Timezone          string                 `json:"timezone" doc:"An IANA zone in which the expression is read."`
	Grant             string                 `json:"grant" doc:"The id of the grant that it runs under. Without one, a grant for this graph alone is made."`
	ConcurrencyPolicy pawl.ConcurrencyPolicy `json:"concurrencyPolicy" definition:"oneof=Queue|Forbid|Allow|Replace" doc:"What happens when a slot comes due while the one before it runs."`
	Enabled           *bool                  `json:"enabled" doc:"Whether it runs."`
	Labels            map[string]string      `json:"labels" doc:"For selecting with -l."`
}

// DescribeSchema says what holds for what is missing.
func (written) DescribeSchema(s *jsonschema.Schema) {
	for field, normal := range map[string]string{"input": `{}`, "timezone": `"UTC"`, "concurrencyPolicy": `"Queue"`, "enabled": `true`} {
		s.Properties[field].Default = json.RawMessage(normal)
	}
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
