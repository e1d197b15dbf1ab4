package api

import (
	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/workflow"
)

// runEvent is the data of an event of kind run.
type runEvent struct {
	What  string     `json:"what"`
	Run   RunSummary `json:"run"`
	At    Instant    `json:"at"`
	Alarm string     `json:"alarm,omitempty"`
}

// ObserveRun tells of what happens to runs; it is made for ledger.Config. What
// runs carry is left out: it can be large.
func (f *Feed) ObserveRun(e ledger.Event) {
	if !f.awake.Load() {
		return
	}
	about := subject{}
	if e.Run.Kind == pawl.KindSchedule {
		about = ofSchedule(schedule.ScheduleOfRun(&e.Run))
	}
	f.publish("run", e.Run.ID, about, runEvent{string(e.What), runSummary(&e.Run), Instant{e.Run.UpdatedAt}, e.Alarm})
}

// workflowEvent is the data of an event of kind workflow.
type workflowEvent struct {
	What     string  `json:"what"`
	Workflow string  `json:"workflow"`
	At       Instant `json:"at"`
	Topic    string  `json:"topic,omitempty"`
	Event    string  `json:"event,omitempty"`
	Input    string  `json:"input,omitempty"`
}

// ObserveWorkflow tells of what people and the outside do to workflows; it is
// made for workflow.Options.
func (f *Feed) ObserveWorkflow(c workflow.Change) {
	if !f.awake.Load() {
		return
	}
	f.publish("workflow", c.Workflow, subject{}, workflowEvent{c.What, c.Workflow, Instant{c.At}, c.Topic, c.Event, c.Input})
}
