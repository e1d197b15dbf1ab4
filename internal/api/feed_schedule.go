package api

import (
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/schedule"
)

// ObserveSchedule tells of what happens to schedules; it is made for
// schedule.Options.
func (f *Feed) ObserveSchedule(c schedule.Change) {
	if !f.awake.Load() {
		return
	}
	f.publish("schedule", c.Schedule, ofSchedule(c.Schedule), client.ScheduleEvent{What: c.What, Schedule: c.Schedule, Name: c.Name, Slot: client.At(c.Slot), Status: c.Status, At: client.At(c.At)})
}
