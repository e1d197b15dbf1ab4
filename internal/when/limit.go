package when

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// limits keep a schedule from running at some of its instants.
type limits struct {
	from   time.Time   // the first instant that may be one; zero: any
	end    time.Time   // instants are before it; zero: any
	days   daySet      // local days that are left out
	except []*cronExpr // local minutes that are left out
}

func (l limits) none() bool {
	return l.from.IsZero() && l.end.IsZero() && len(l.days.spans) == 0 && len(l.except) == 0
}

// mostSteps bounds how many excluded instants in a row are looked at one by one,
// which only an interval that meets its exceptions each time can reach.
const mostSteps = 400_000

// nextAllowed returns the first instant after the given one and before end that
// the limits leave.
func (s Schedule) nextAllowed(after, end time.Time) (time.Time, bool) {
	if !s.end.IsZero() && s.end.Before(end) {
		end = s.end
	}
	if horizon := s.horizon(after); horizon.Before(end) {
		end = horizon
	}
	origin := after
	if !s.from.IsZero() && after.Before(s.from) {
		after = s.from.Add(-time.Nanosecond)
	}
	for range mostSteps {
		at, ok := s.step(origin, after, end)
		if !ok {
			return time.Time{}, false
		}
		again, out := s.skip(at)
		if !out {
			return at, true
		}
		after = again.Add(-time.Nanosecond)
	}
	return time.Time{}, false
}

// step returns the first instant after the given one and before end, without
// regard to the limits. origin is where an interval without an anchor counts from.
func (s Schedule) step(origin, after, end time.Time) (time.Time, bool) {
	switch s.Kind() {
	case KindOnce:
		return s.once, s.once.After(after) && s.once.Before(end)
	case KindInterval:
		if !s.anchor.IsZero() {
			origin = s.anchor
		}
		next, ok := nextMultiple(origin, s.interval, after, s.anchor.IsZero())
		return next, ok && next.Before(end) && next.Unix() < endMinute*60
	case KindCron:
		from, last := firstMinuteAfter(after), min(endMinute, ceilMinute(end))
		m, found := s.cron.next(from, last, s.zone)
		for _, e := range s.more {
			if found {
				last = m
			}
			if earlier, ok := e.next(from, last, s.zone); ok {
				m, found = earlier, true
			}
		}
		at := time.Unix(m*60, 0).UTC()
		return at, found && at.Before(end)
	}
	return time.Time{}, false
}

// nextMultiple is the first instant after the given one that is a whole number of
// intervals after origin; later says that origin itself is none.
func nextMultiple(origin time.Time, interval time.Duration, after time.Time, later bool) (time.Time, bool) {
	origin, n := origin.UTC(), int64(0)
	if later {
		n = 1
	}
	if after.Before(origin) {
		return origin.Add(time.Duration(n) * interval), true
	}
	seconds := after.Unix() - origin.Unix() // a Duration holds 292 years
	if seconds > math.MaxInt64/int64(time.Second)-1 {
		return time.Time{}, false
	}
	n = max(n, int64(after.Sub(origin)/interval)+1)
	if n > math.MaxInt64/int64(interval) {
		return time.Time{}, false
	}
	return origin.Add(time.Duration(n) * interval), true
}

// horizon is how far an instant is looked for. From the year 2100 on every zone
// follows yearly rules, and the calendar repeats after 400 years.
func (s Schedule) horizon(after time.Time) time.Time {
	year := max(2100, after.UTC().Year(), s.from.Year())
	for _, span := range s.days.spans[max(0, len(s.days.spans)-1):] {
		year = max(year, time.Unix(span.last*86400, 0).UTC().Year())
	}
	return time.Date(min(year+401, 10000), 1, 1, 0, 0, 0, 0, time.UTC)
}

// skip reports whether an instant is excluded, and from when on to look again.
func (s Schedule) skip(at time.Time) (again time.Time, excluded bool) {
	if len(s.days.spans) == 0 && len(s.except) == 0 {
		return time.Time{}, false
	}
	wall := s.wall(at)
	day := floorDiv(wall, minutesPerDay)
	if span, ok := s.days.find(day); ok {
		return startOfDay(span.last+1, s.zone), true
	}
	if s.exceptAt(wall) == nil {
		return time.Time{}, false
	}
	if left := s.emptyDays(day); left > day {
		return startOfDay(left, s.zone), true
	}
	return at.Truncate(time.Minute).Add(time.Minute), true
}

// wall is what the wall clock shows, as in cronExpr.nextWall.
func (s Schedule) wall(at time.Time) int64 {
	m := floorDiv(at.Unix(), 60)
	return m + periodAt(m, s.zone).offset
}

func (s Schedule) exceptAt(wall int64) *cronExpr {
	for _, e := range s.except {
		if e.matches(wall) {
			return e
		}
	}
	return nil
}

// matches reports whether the expression names the wall minute.
func (e *cronExpr) matches(wall int64) bool {
	day := floorDiv(wall, minutesPerDay)
	clock := wall - day*minutesPerDay
	return e.hour>>(clock/minutesPerHour)&1 == 1 && e.minute>>(clock%minutesPerHour)&1 == 1 && e.onDay(day)
}

func (e *cronExpr) onDay(day int64) bool {
	year, month, dayOfMonth := time.Unix(day*86400, 0).UTC().Date()
	return e.daySet(month, daysIn(year, month), weekday(day-int64(dayOfMonth-1)))>>dayOfMonth&1 == 1
}

// emptyDays returns the first day, from the given one on, that may have an
// instant: the expressions name a minute that is not excluded, or its clocks skip
// one. It looks 400 years ahead at most.
func (s Schedule) emptyDays(day int64) int64 {
	quiet := day // clocks do not change on days before it
	for last := day + 401*366; day < last; day++ {
		if s.hasMinute(day) || day >= quiet && s.makesUp(day) {
			return day
		}
		if day >= quiet {
			p := periodAt(floorDiv(startOfDay(day+1, s.zone).Unix(), 60), s.zone)
			quiet = floorDiv(p.end+min(p.offset, 0), minutesPerDay) - 1
		}
	}
	return day
}

func (s Schedule) hasMinute(day int64) bool {
	var excluded [24]uint64
	const all = 1<<minutesPerHour - 1
	for _, e := range s.except {
		if !e.onDay(day) {
			continue
		}
		for h := range excluded {
			if e.hour>>h&1 == 1 {
				excluded[h] |= e.minute
			}
		}
	}
	left := func(minute uint64, hours uint32) bool {
		for h := range excluded {
			if hours>>h&1 == 1 && minute&^excluded[h] != 0 {
				return true
			}
		}
		return false
	}
	if s.cron == nil {
		return left(all, 1<<24-1)
	}
	for i := -1; i < len(s.more); i++ {
		e := s.cron
		if i >= 0 {
			e = s.more[i]
		}
		if left(e.minute, e.hour) && e.onDay(day) {
			return true
		}
	}
	return false
}

// makesUp reports whether a time that the clocks of a day skip may be made up for,
// at a minute that is not excluded.
func (s Schedule) makesUp(day int64) bool {
	if s.cron == nil || s.cron.wildcard && !slices.ContainsFunc(s.more, func(e *cronExpr) bool { return !e.wildcard }) {
		return false
	}
	m := floorDiv(startOfDay(day, s.zone).Unix(), 60)
	for p := periodAt(m, s.zone); p.start < m+minutesPerDay; p = periodAt(p.end, s.zone) {
		if p.start >= m && offsetBefore(p.start, s.zone) < p.offset && s.exceptAt(p.start+p.offset) == nil {
			return true
		}
		if p.end >= endMinute {
			break
		}
	}
	return false
}

// Excluded says why an instant of the schedule is left out, in words; empty if it
// is not.
func (s Schedule) Excluded(at time.Time) string {
	switch {
	case !s.from.IsZero() && at.Before(s.from):
		return "the schedule begins at " + s.from.In(s.zone).Format(time.RFC3339)
	case !s.end.IsZero() && !at.Before(s.end):
		return "the schedule has ended"
	case s.limits.none():
		return ""
	}
	wall := s.wall(at)
	if span, ok := s.days.find(floorDiv(wall, minutesPerDay)); ok {
		return "except " + span.why
	}
	if e := s.exceptAt(wall); e != nil {
		return fmt.Sprintf("except %q", e.text)
	}
	return ""
}

// LeftOut is the first instant after the given one if the limits leave it out, and
// why.
func (s Schedule) LeftOut(after time.Time) (at time.Time, why string, out bool) {
	at, ok := s.step(after, after, endOfTime())
	if !ok {
		return at, "", false
	}
	why = s.Excluded(at)
	return at, why, why != ""
}

// ExcludedAt reports whether an instant would be one of the schedule without its
// limits, and why it is none.
func (s Schedule) ExcludedAt(at time.Time) (string, bool) {
	why := s.Excluded(at)
	if why == "" {
		return "", false
	}
	next, ok := s.step(at.Add(-time.Nanosecond), at.Add(-time.Nanosecond), at.Add(time.Nanosecond))
	return why, ok && next.Equal(at)
}
