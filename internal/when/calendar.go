package when

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl"
)

// MostCalendarDays bounds the entries of a calendar.
const MostCalendarDays = 2000

// Calendar is a set of local days: holidays, for one. It never changes.
type Calendar struct{ days daySet }

// NewCalendar reads the days of a calendar: dates and ranges of dates, whose
// ends both count. The error has a field for each fault.
func NewCalendar(days []string) (Calendar, error) {
	var faults []pawl.Field
	if len(days) > MostCalendarDays {
		faults = append(faults, pawl.Field{Pointer: "/days", Message: fmt.Sprintf("there are %d days; at most %d are allowed", len(days), MostCalendarDays)})
		days = nil
	}
	spans := make([]daySpan, 0, len(days))
	for i, text := range days {
		span, err := parseDays(strings.TrimSpace(text))
		if err != nil {
			faults = append(faults, pawl.Field{Pointer: fmt.Sprintf("/days/%d", i), Message: messageOf(err)})
			continue
		}
		spans = append(spans, span)
	}
	if len(faults) > 0 {
		return Calendar{}, &pawl.Error{Code: pawl.CodeInvalid, Op: "parse calendar", Msg: "the calendar is not valid: " + faults[0].Message, Hint: "Write dates such as 2026-12-25, or ranges such as 2026-12-24/2027-01-01.", Fields: faults}
	}
	return Calendar{newDaySet(spans)}, nil
}

// Days is how many days the calendar has.
func (c Calendar) Days() int {
	n := int64(0)
	for _, s := range c.days.spans {
		n += s.last - s.first + 1
	}
	return int(n)
}

// IsCalendarName reports whether a calendar can have this name.
func IsCalendarName(name string) bool {
	if name == "" || len(name) > 128 {
		return false
	}
	for i := range len(name) {
		c := name[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || isDigit(c)
		if !letter && (i == 0 || c != '.' && c != '-' && c != '_') {
			return false
		}
	}
	return true
}

// daySpan are the local days from first to last, counted from 1 January 1970.
type daySpan struct {
	first, last int64
	why         string // what it is, in words: 2026-12-24, or 2026-12-24/2027-01-01
}

// daySet are days, as spans that are sorted and apart.
type daySet struct{ spans []daySpan }

func newDaySet(spans []daySpan) daySet {
	spans = slices.DeleteFunc(slices.Clone(spans), func(s daySpan) bool { return s.why == "" })
	slices.SortFunc(spans, func(a, b daySpan) int { return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(b.last, a.last)) })
	var out []daySpan
	for _, s := range spans {
		if n := len(out); n > 0 && s.first <= out[n-1].last {
			if s.last <= out[n-1].last {
				continue // the wider one says it
			}
			s.first = out[n-1].last + 1
		}
		out = append(out, s)
	}
	return daySet{out}
}

// find returns the span that a day is in.
func (d daySet) find(day int64) (daySpan, bool) {
	i, _ := slices.BinarySearchFunc(d.spans, day, func(s daySpan, day int64) int { return cmp.Compare(s.last, day) })
	if i < len(d.spans) && d.spans[i].first <= day {
		return d.spans[i], true
	}
	return daySpan{}, false
}

// parseDays reads a date, or a range of dates with a slash.
func parseDays(text string) (daySpan, error) {
	begin, end, ranged := strings.Cut(text, "/")
	first, ok := parseDate(begin)
	last := first
	if ok && ranged {
		last, ok = parseDate(end)
	}
	switch {
	case !ok:
		return daySpan{}, badDate(text, "is not a date of the calendar", "write 2026-12-25, or 2026-12-24/2027-01-01 for a range")
	case last < first:
		return daySpan{}, badDate(text, "ends before it begins", "write the earlier date first")
	}
	return daySpan{first, last, text}, nil
}

// parseDate reads a date as days since 1970. The years are those of four digits.
func parseDate(text string) (int64, bool) {
	if len(text) != len(time.DateOnly) {
		return 0, false
	}
	t, err := time.Parse(time.DateOnly, text)
	if err != nil || t.Year() < 1 {
		return 0, false
	}
	return floorDiv(t.Unix(), 86400), true
}

func badDate(text, problem, hint string) error {
	return &pawl.Error{Code: pawl.CodeInvalid, Op: "parse schedule", Msg: fmt.Sprintf("%s %s: %s", pawl.Quote(text), problem, hint)}
}

// bound is a date or an instant that limits a schedule: from first, or to before
// end.
type bound struct{ first, end time.Time }

func parseBound(text string, zone *time.Location) (bound, error) {
	if day, ok := parseDate(text); ok {
		return bound{startOfDay(day, zone), startOfDay(day+1, zone)}, nil
	}
	at, err := parseInstant(text, zone)
	if err != nil {
		return bound{}, fmt.Errorf("%s is neither a date (2026-12-01) nor an instant (2026-12-01T08:00:00+01:00)", pawl.Quote(text))
	}
	return bound{at, at.Add(time.Nanosecond)}, nil
}

// parseInstant reads an instant with its offset, or a local time of the zone.
func parseInstant(text string, zone *time.Location) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"} {
		if err != nil {
			at, err = time.ParseInLocation(layout, text, zone)
		}
	}
	if err != nil || at.Year() < 1 || at.Unix() >= endMinute*60 {
		return time.Time{}, fmt.Errorf("%s is not an instant, such as 2026-12-24T18:00:00+01:00", pawl.Quote(text))
	}
	return at.UTC().Truncate(time.Millisecond), nil
}

// startOfDay is the first instant at which the wall clock shows the day or a
// later one. That is not midnight where clocks skip it.
func startOfDay(day int64, zone *time.Location) time.Time {
	wall := day * minutesPerDay
	for p := periodAt(wall-2*minutesPerDay, zone); ; p = periodAt(p.end, zone) {
		if p.end+p.offset > wall || p.end >= endMinute {
			return time.Unix(max(p.start, wall-p.offset)*60, 0).UTC()
		}
	}
}

// DayIn is the day of a zone that an instant is in: its first instant, and that of
// the next day. A day whose midnight clocks skip begins later.
func DayIn(at time.Time, zone *time.Location) (first, next time.Time) {
	_, offset := at.In(zone).Zone()
	day := floorDiv(at.Unix()+int64(offset), minutesPerDay*60)
	first, next = startOfDay(day, zone), startOfDay(day+1, zone)
	if !next.After(at) { // clocks went back over midnight: the next day has begun once
		first, next = next, startOfDay(day+2, zone)
	}
	return first, next
}

func messageOf(err error) string {
	if e, ok := errors.AsType[*pawl.Error](err); ok {
		return e.Msg
	}
	return err.Error()
}
