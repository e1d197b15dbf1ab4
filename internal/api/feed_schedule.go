package api

import "github.com/pawlrun/pawl/internal/schedule"

// scheduleEvent is the data of an event of kind schedule.
type scheduleEvent struct {
	What     string   `json:"what"`
	Schedule string   `json:"schedule"`
	Name     string   `json:"name,omitempty"`
	Slot     *Instant `json:"slot,omitempty"`
	Status   string   `json:"status,omitempty"`
	At       Instant  `json:"at"`
}

// ObserveSchedule tells of what happens to schedules; it is made for
// schedule.Options.
func (f *Feed) ObserveSchedule(c schedule.Change) {
	if !f.awake.Load() {
		return
	}
	f.publish("schedule", c.Schedule, ofSchedule(c.Schedule), scheduleEvent{c.What, c.Schedule, c.Name, instantOf(c.Slot), c.Status, Instant{c.At}})
}
