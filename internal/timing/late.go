package timing

import (
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/when"
)

// What becomes of instants that came due while nothing could run.
const (
	Skip = "skip" // none of them runs
	Last = "last" // the latest does
	All  = "all"  // each does
)

const (
	// Grace is how late a start may be without its instant being missed, so that
	// a restart drops nothing.
	Grace = 60 * time.Second
	// MostLate is how many instants that were missed run later at most: the
	// latest ones.
	MostLate = 1000
	// LongestWithin bounds how late something may run.
	LongestWithin = 366 * 24 * time.Hour
)

// CheckMissed finds what is wrong with the rule for missed instants.
func CheckMissed(m *client.Missed, add func(pointer, format string, values ...any)) {
	if m == nil {
		return
	}
	if m.Policy != Skip && m.Policy != Last && m.Policy != All {
		add("/missed/policy", "must be skip, last or all, not %q", m.Policy)
	}
	CheckWithin("/missed/within", m.Within, add)
}

// CheckWithin finds out whether a text is a length of time of at most a year.
func CheckWithin(pointer, text string, add func(pointer, format string, values ...any)) {
	if text == "" {
		return
	}
	if d, err := when.ParseInterval(text); err != nil || d > LongestWithin {
		add(pointer, "must be a length of time of at most a year, such as 12h")
	}
}

// Earliest is how old an instant may be that runs later; zero: of any age.
func Earliest(m *client.Missed, now time.Time) time.Time {
	if d, err := when.ParseInterval(m.Within); err == nil {
		return now.Add(-d)
	}
	return time.Time{}
}

// Start is when an instant of a lane starts: by its jitter, unless it is none of
// the schedule, as that of a deploy.
func Start(times when.Schedule, at time.Time) time.Time {
	if times.Jitter() == 0 || !times.Floats() && !times.Names(at) {
		return at
	}
	return times.Start(at)
}

// Next is the instant that a lane runs for next, which is due or still to come;
// zero: none. first is the first one that nothing has become of. It is pure, and
// looks at no more instants than it has to, however many came due.
func Next(times when.Schedule, m *client.Missed, first, now time.Time) time.Time {
	if first.IsZero() || Start(times, first).After(now) {
		return first
	}
	fresh := func(at time.Time) bool { return now.Sub(Start(times, at)) <= Grace }
	from := Earliest(m, now)
	most := 1
	if m.Policy == All {
		most = MostLate
	}
	due := latest(times, first, now, most)
	for _, at := range due {
		if fresh(at) || m.Policy != Skip && !at.Before(from) {
			return at
		}
	}
	next, _ := times.Next(due[len(due)-1])
	return next
}

// latest are the latest instants that have come due, the oldest first. There is
// one: first.
func latest(times when.Schedule, first, now time.Time, most int) []time.Time {
	for window := time.Minute; ; window *= 4 {
		begin, whole := now.Add(-window), false
		at, ok := times.Next(begin.Add(-time.Nanosecond))
		if !begin.After(first) {
			at, ok, whole = first, true, true
		}
		var list []time.Time
		for ; ok && !Start(times, at).After(now); at, ok = times.Next(at) {
			if list = append(list, at); len(list) >= 2*most {
				list = append(list[:0], list[len(list)-most:]...)
			}
		}
		if whole || len(list) >= most {
			return list[max(0, len(list)-most):]
		}
	}
}
