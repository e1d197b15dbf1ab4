package when

import "time"

// Instants are counted in minutes since 1970 UTC here. Those before the year 1
// are taken as its beginning; there is nothing after the year 9999, which is
// the last one that the text formats can hold.
const (
	startMinute = -1035593280 // 0001-01-01T00:00Z
	endMinute   = 4223371680  // 10000-01-01T00:00Z

	// correction is the size from which a clock change is a correction of the
	// calendar, for which nothing is made up, as in Debian cron.
	correction = 3 * minutesPerHour
)

// firstMinuteAfter returns the first whole minute strictly after t.
func firstMinuteAfter(t time.Time) int64 {
	if t.Year() < 1 {
		return startMinute
	}
	return floorDiv(t.Unix(), 60) + 1
}

// next returns the first matching instant in [from, end), in minutes.
func (e *cronExpr) next(from, end int64, zone *time.Location) (int64, bool) {
	for from < end {
		p := periodAt(from, zone)
		if m, ok := e.firstIn(p, from, zone); ok {
			return before(m, end)
		}
		from = p.end
	}
	return 0, false
}

// happensIn reports whether the expression has a next instant wherever one
// asks. From the year 2100 on every zone follows yearly rules, and the calendar
// repeats after 400 years, so one look at these is enough.
func (e *cronExpr) happensIn(zone *time.Location) bool {
	const year2100, year2501 = 68374080, 279279360
	_, ok := e.next(year2100, year2501, zone)
	return ok
}

// firstIn returns the first matching instant of a period that is not before
// from, which is inside the period. This is where the rules of clock changes
// are: they concern the beginning of a period, and fixed expressions only.
func (e *cronExpr) firstIn(p period, from int64, zone *time.Location) (int64, bool) {
	wall := from + p.offset
	if !e.wildcard && from-p.start < correction {
		reached := p.start + offsetBefore(p.start, zone) // where the wall clock was at the change
		resumed := p.start + p.offset
		switch skipped := resumed - reached; {
		case skipped > 0 && skipped < correction && from == p.start:
			if _, ok := e.nextWall(reached, resumed); ok {
				return from, true
			}
		case skipped < 0 && -skipped < correction:
			wall = max(wall, reached)
		}
	}
	w, ok := e.nextWall(wall, p.end+p.offset)
	return w - p.offset, ok
}

// period is a stretch of time in which the zone's offset does not change. Two
// neighbours may have the same offset.
type period struct {
	start, end int64 // [start, end), in minutes
	offset     int64 // wall clock minus UTC, in minutes
}

// periodAt returns the period that the minute m is in. Offsets and changes
// that are not whole minutes, which ended in 1972, are taken as whole ones.
func periodAt(m int64, zone *time.Location) period {
	t := time.Unix(m*60, 0).In(zone)
	_, offset := t.Zone()
	p := period{start: startMinute - minutesPerDay, end: endMinute, offset: floorDiv(int64(offset), 60)}
	start, end := t.ZoneBounds()
	if !start.IsZero() {
		p.start = ceilMinute(start)
	}
	if !end.IsZero() {
		p.end = ceilMinute(end)
	}
	if p.end <= m {
		// ZoneBounds takes every year past the zone's table for one of 365
		// days, and so ends before t on 31 December of a leap year.
		p.end = (floorDiv(m, minutesPerDay) + 1) * minutesPerDay
	}
	return p
}

// offsetBefore returns the offset that was in force just before the minute m.
func offsetBefore(m int64, zone *time.Location) int64 {
	_, offset := time.Unix(m*60-1, 0).In(zone).Zone()
	return floorDiv(int64(offset), 60)
}

func ceilMinute(t time.Time) int64 { return floorDiv(t.Add(time.Minute-time.Nanosecond).Unix(), 60) }
