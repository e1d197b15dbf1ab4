package spec

import (
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/timing"
	"github.com/pawlrun/pawl/internal/when"
)

// Foresee says why a source would never run if it were applied now, without a server;
// see timing.Foresee. One that is in force already may have ended, so it is not for
// whoever applies it.
func Foresee(d Definition, calendars map[string]when.Calendar, now time.Time) (why pawl.Field, never bool) {
	if !d.Schedule.Limited() {
		return why, false
	}
	rule := d.Schedule.Rule()
	why, never = timing.Foresee(rule, timing.Fixed(rule, d.Schedule.Missed != nil), calendars, now, timing.Instant)
	why.Pointer = "/schedule" + why.Pointer
	return why, never
}
