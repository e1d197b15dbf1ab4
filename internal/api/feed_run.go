package api

import (
	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/workflow"
)

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
	f.publish("run", e.Run.ID, about, client.RunEvent{What: string(e.What), Run: runSummary(&e.Run), At: client.At(e.Run.UpdatedAt), Alarm: e.Alarm})
}

// ObserveWorkflow tells of what people and the outside do to workflows; it is
// made for workflow.Options.
func (f *Feed) ObserveWorkflow(c workflow.Change) {
	if !f.awake.Load() {
		return
	}
	f.publish("workflow", c.Workflow, subject{}, client.WorkflowEvent{What: c.What, Workflow: c.Workflow, At: client.At(c.At), Topic: c.Topic, Event: c.Event, Input: c.Input})
}
