// Package spec reads the definitions of schedules: files with kind: schedule.
package spec

import (
	"encoding/json"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/terms"
	"github.com/pawlrun/pawl/internal/timing"
	"github.com/pawlrun/pawl/internal/when"
)

// Kind is what the definitions name.
const Kind = "schedule"

// Schema is the JSON Schema of a definition.
func Schema() []byte {
	return definition.Schema(Kind, "Schedule", "A graph, a command, a URL or a job that runs at the instants of a cron expression.", written{})
}

// written is a definition as it stands in a file. The defaults are those of the
// service that takes it.
type written struct {
	Name              string                 `json:"name" definition:"required" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" doc:"Unique among the schedules of its owner."`
	Graph             string                 `json:"graph" definition:"nonempty" pattern:"^[A-Za-z][A-Za-z0-9_-]*:[A-Za-z0-9][A-Za-z0-9_.-]*$" doc:"What runs: provider:name. Or run."`
	Run               *writtenRun            `json:"run" doc:"What runs instead of a graph: exactly one of command, url and job. It needs no grant."`
	Idempotent        bool                   `json:"idempotent" doc:"Whether what runs may be started twice for one slot."`
	Missed            *writtenMissed         `json:"missed" doc:"What becomes of slots that came due while no worker was running."`
	Retry             *writtenRetry          `json:"retry" doc:"How often a slot is tried. Without it a graph is tried 3 times, anything else once."`
	Input             json.RawMessage        `json:"input" doc:"What the graph gets. It holds no credentials."`
	Cron              crons                  `json:"cron" doc:"Five fields, or @daily and the like; several as a list. One of cron, interval and at is needed."`
	Timezone          string                 `json:"timezone" doc:"An IANA zone in which the expression is read."`
	Grant             string                 `json:"grant" doc:"The id of the grant that it runs under. Without one, a grant for this graph alone is made."`
	ConcurrencyPolicy pawl.ConcurrencyPolicy `json:"concurrencyPolicy" definition:"oneof=Queue|Forbid|Allow|Replace" doc:"What happens when a slot comes due while the one before it runs."`
	Enabled           *bool                  `json:"enabled" doc:"Whether it runs."`
	Labels            map[string]string      `json:"labels" doc:"For selecting with -l."`
	Keep              map[string]string      `json:"keep" definition:"max=20" doc:"For how long its own things are kept, such as {runs: 7d, slots: forever}. Without it, as the server keeps those of all."`
	Expect            *client.Expect         `json:"expect" doc:"What is expected of it: what is not met needs attention."`
	Needs             []client.Need          `json:"needs" definition:"max=20" doc:"Sources that must be fresh before a slot starts: one that is too old is asked to fetch, and the slot waits."`
	Interval          string                 `json:"interval" definition:"nonempty" doc:"Instead of cron: the time between two slots, such as 90m."`
	At                string                 `json:"at" definition:"nonempty" doc:"Instead of cron: the one instant at which it runs, such as 2026-12-24T18:00:00+01:00."`
	From              string                 `json:"from" definition:"nonempty" doc:"A date or an instant, in the zone: nothing runs before it."`
	Until             string                 `json:"until" definition:"nonempty" doc:"A date or an instant, in the zone: the last on which it runs."`
	Except            []string               `json:"except" definition:"max=100" doc:"What is left out: dates, ranges of dates such as 2026-12-24/2027-01-01, cron expressions, and calendar:NAME."`
	MaxRuns           int64                  `json:"maxRuns" definition:"min=1,max=1000000000" doc:"After how many slots it ends."`
	Jitter            string                 `json:"jitter" definition:"nonempty" doc:"Each slot starts later than its time by less than this, such as 5m; always by the same."`
}

// crons are one expression or several.
type crons []string

// ReadValue takes a text or a list of texts.
func (c *crons) ReadValue(v definition.Value) {
	if v.Shape() == definition.List {
		v.Decode((*[]string)(c))
		if len(*c) == 0 {
			v.Refuse("cron is empty")
		}
		return
	}
	var one string
	v.Decode(&one)
	*c = crons{one}
}

// DescribeSchema says that both forms are right.
func (crons) DescribeSchema(s *jsonschema.Schema) {
	text := &jsonschema.Schema{Type: "string", MinLength: new(1)}
	*s = jsonschema.Schema{OneOf: []*jsonschema.Schema{text, {Type: "array", Items: text, MinItems: new(1), MaxItems: new(20)}}}
}

// DescribeSchema says what holds for what is missing.
func (written) DescribeSchema(s *jsonschema.Schema) {
	for _, one := range []string{"cron", "interval", "at"} {
		s.OneOf = append(s.OneOf, &jsonschema.Schema{Required: []string{one}})
	}
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
	w.checkWork(faults)
	fault := func(path []any, message, hint string) {
		faults.Add(definition.Pointer(path...), "%s; %s", message, hint)
	}
	terms.CheckKeep(w.Keep, fault)
	terms.CheckExpect(w.Expect, terms.About{Kind: pawl.KindSchedule, Scheduled: true}, fault)
	terms.CheckNeeds(w.Needs, fault)
	for _, f := range w.timeFaults() {
		faults.Add(f.Pointer, "%s", f.Full())
	}
	return client.ScheduleRequest{
		Run: w.Run.request(), Idempotent: w.Idempotent, Missed: w.Missed.request(), Retry: w.Retry.request(),
		Name: w.Name, GraphID: w.Graph, Input: w.Input, Cron: client.Crons(w.Cron...), Timezone: w.Timezone, ExecutionGrantID: w.Grant,
		ConcurrencyPolicy: w.ConcurrencyPolicy, Enabled: w.Enabled, Labels: w.Labels, Keep: w.Keep, Expect: w.Expect, Needs: w.Needs,
		Timing: client.Timing{Interval: w.Interval, At: w.At, From: w.From, Until: w.Until, Except: w.Except, MaxRuns: w.MaxRuns, Jitter: w.Jitter},
	}, faults.Fields()
}

// Foresee says why a schedule would never run if it were applied now, without a
// server; see timing.Foresee. One that is in force already may have ended, so it is not
// for whoever applies it.
func Foresee(in client.ScheduleRequest, calendars map[string]when.Calendar, now time.Time) (why pawl.Field, never bool) {
	rule := when.Rule{
		Cron: in.Cron.List(), Interval: in.Interval, At: in.At, Timezone: in.Timezone, From: in.From, Until: in.Until, Except: in.Except, Jitter: in.Jitter,
	}
	return timing.Foresee(rule, rule.Interval != "", calendars, now, timing.Slot)
}

// timeFaults are what is wrong with when it runs. Whether a calendar is there is for
// the server to say; whether anything is still to come, Foresee says.
func (w written) timeFaults() []pawl.Field {
	_, err := when.Rule{
		Cron: w.Cron, Interval: w.Interval, At: w.At, Timezone: w.Timezone, From: w.From, Until: w.Until, Except: w.Except, Jitter: w.Jitter,
	}.Schedule(when.Context{})
	return definition.FieldsOf(err)
}

func messageOf(err error) string {
	if e, ok := err.(*pawl.Error); ok { //nolint:errorlint // these packages return it bare
		return pawl.Field{Message: e.Msg, Hint: e.Hint}.Full()
	}
	return err.Error()
}
