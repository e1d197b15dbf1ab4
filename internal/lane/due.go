package lane

import (
	"time"

	"github.com/pawlrun/pawl/internal/when"
)

// Due is something that comes due again and again.
type Due struct {
	Ref
	Handler  string // of a workflow: the part of it that runs
	Schedule when.Schedule
	Missed   string    // what becomes of instants that were missed, if it says so; empty: the next run stands for them
	Next     time.Time // zero: it runs now, and what follows comes by the schedule
}

// Schedules makes schedules from their stored form, and loads each zone once.
type Schedules map[string]*time.Location

// Parse makes a schedule. It fails if a zone was lost since it was checked.
func (z Schedules) Parse(kind when.Kind, value, zone string) (when.Schedule, error) {
	if kind != when.KindCron {
		return when.Parse(kind, value, zone)
	}
	loc := z[zone]
	if loc == nil {
		var err error
		if loc, err = when.LoadZone(zone); err != nil {
			return when.Schedule{}, err
		}
		z[zone] = loc
	}
	return when.Cron(value, loc)
}
