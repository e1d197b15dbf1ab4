package retention

import (
	"slices"
	"time"
)

// Clock is what a database has seen of time. Clocks of machines are set wrong and
// set right again; an age counts only time that passed while somebody looked, so
// that a clock which jumps ahead by a year makes nothing a year older.
//
// Whoever looks notes the instant. Two looks that are far apart, or of which the
// second is before the first, are a leap: of the time in between only Believed
// counts. Between leaps, and before the first look, the stamps of rows are
// believed.
type Clock struct {
	At    time.Time // of the last look; zero: nobody has looked
	Leaps []Leap    // the oldest first
}

// Leap is where a clock was, and where it was at the next look.
type Leap struct{ Before, After time.Time }

const (
	// Believed is how much of a leap counts as time that passed. Whoever looks
	// every hour and was away for longer makes things old later, never sooner.
	Believed = 24 * time.Hour
	// backward is by how much clocks of nodes may differ.
	backward = time.Hour
)

// Look notes an instant, and reports the leap that it is if it is one.
func (c Clock) Look(now time.Time) (next Clock, leap Leap, leapt bool) {
	next = c
	switch apart := now.Sub(c.At); {
	case c.At.IsZero():
		next.At = now
	case apart >= Believed || apart < -backward:
		leap = Leap{c.At, now}
		next.At, next.Leaps = now, append(append([]Leap{}, c.Leaps...), leap)
		return next, leap, true
	case apart > 0: // a clock that is a little behind does not turn this one back
		next.At = now
	}
	return next, Leap{}, false
}

// Cut is the instant before which rows are older than the age, as far as the
// database has seen; zero if none is.
func (c Clock) Cut(age time.Duration) time.Time {
	if age == Forever || c.At.IsZero() {
		return time.Time{}
	}
	left, at := age, c.At // what is left of the age, counted back from at
	earliest := c.At      // where any span of time that is looked at began
	for _, leap := range slices.Backward(c.Leaps) {
		span := max(0, at.Sub(leap.After))
		if left <= span {
			return before(at.Add(-left), earliest)
		}
		if earliest = before(earliest, leap.After); leap.After.After(leap.Before) {
			span += min(Believed, leap.After.Sub(leap.Before))
		}
		if left <= span {
			return before(leap.Before, earliest)
		}
		left, at = left-span, leap.Before
	}
	return before(at.Add(-left), earliest)
}

func before(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
