package when

import (
	"fmt"
	"strings"
	"time"
)

// Instant is one coming instant of a schedule, ready to be shown.
type Instant struct {
	Time  time.Time // UTC
	Local string    // RFC 3339 with the offset of the schedule's zone

	// ClockChange says what the clocks do on that local day, such as "clocks
	// go forward 1 h at 02:00"; it is empty on other days.
	ClockChange string

	Start time.Time // when it starts: later than Time by the jitter; zero without one
}

// Preview returns the next n instants after the given one, as NextN, and marks
// those on a local day on which the clocks change.
func (s Schedule) Preview(after time.Time, n int) []Instant {
	var list []Instant
	for _, t := range s.NextN(after, n) {
		one := Instant{
			Time:        t,
			Local:       t.In(s.zone).Format(time.RFC3339),
			ClockChange: clockChange(t, s.zone),
		}
		if s.jitter > 0 {
			one.Start = s.Start(t)
		}
		list = append(list, one)
	}
	return list
}

// clockChange describes the clock change of the local day that t is in, or
// returns "".
func clockChange(t time.Time, zone *time.Location) string {
	p := periodAt(floorDiv(t.Unix(), 60), zone)
	today := floorDiv(floorDiv(t.Unix(), 60)+p.offset, minutesPerDay)
	if words := describeChange(p.start, today, zone); words != "" {
		return words
	}
	return describeChange(p.end, today, zone)
}

// describeChange describes the change at the given minute, where a period
// begins, if it repeats or leaves out a part of the given local day.
func describeChange(at, today int64, zone *time.Location) string {
	if at <= startMinute || at >= endMinute {
		return ""
	}
	reached := at + offsetBefore(at, zone) // what the wall clock shows at the change
	resumed := at + periodAt(at, zone).offset
	low, high := min(reached, resumed), max(reached, resumed)
	if low == high || floorDiv(low, minutesPerDay) > today || floorDiv(high-1, minutesPerDay) < today {
		return ""
	}
	direction := "forward"
	if resumed < reached {
		direction = "back"
	}
	clock := reached - floorDiv(reached, minutesPerDay)*minutesPerDay
	if clock == 0 && reached > today*minutesPerDay {
		clock = minutesPerDay // the midnight that ends the day
	}
	return fmt.Sprintf("clocks go %s %s at %02d:%02d", direction,
		shortDuration(time.Duration(high-low)*time.Minute), clock/minutesPerHour, clock%minutesPerHour)
}

// shortDuration writes a duration in days, hours, minutes and seconds, such as
// 2 h 5 min, leaving out what is zero.
func shortDuration(d time.Duration) string {
	var parts []string
	for _, u := range []struct {
		size time.Duration
		name string
	}{{day, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if n := d / u.size; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, u.name))
			d -= n * u.size
		}
	}
	return strings.Join(parts, " ")
}
