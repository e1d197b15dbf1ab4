package terms

import (
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/when"
)

// The rules by which is judged.
const (
	// Punctual is by how much a start may be late and is still on time, jitter apart.
	Punctual = time.Minute
	// Starts that onTime looks at, of at most StartsWithin.
	StartsLooked = 200
	StartsWithin = 30 * day

	// UsualOf are the fetches before the judged one by which is told what is usual;
	// with fewer than usualLeast nothing is.
	UsualOf    = 20
	usualLeast = 5
	farFewer   = 4  // fewer than this part of the median
	rarely     = 10 // and as few in at most this part of the fetches

	daysBack = 40 // that are looked at for one on which something was due
)

// JudgeFresh is whether the newest success is fresh. One that never was counts from
// when it is expected.
func JudgeFresh(e *client.Expect, now, from, success time.Time) Verdict {
	v := Verdict{Name: FreshWithin, Met: true, Sentence: "A success is at most " + e.FreshWithin + " old."}
	within, err := when.ParseInterval(e.FreshWithin)
	if err != nil { // another release wrote it
		return v
	}
	base := success
	if from.After(base) {
		base = from
	}
	if now.Sub(base) <= within {
		return v
	}
	v.Met, v.Since = false, base.Add(within)
	if success.IsZero() {
		v.Sentence = fmt.Sprintf("It has not succeeded since %s; a success is expected every %s.", pawl.FormatTime(base), e.FreshWithin)
	} else {
		v.Sentence = fmt.Sprintf("It last succeeded at %s; a success is expected every %s.", pawl.FormatTime(success), e.FreshWithin)
	}
	return v
}

// Day is a day on which something is due.
type Day struct {
	Name     string    // such as 2030-01-31
	Start    time.Time // its midnight
	End      time.Time // that of the next day
	First    time.Time // when something is due first
	Deadline time.Time // by when there must be a success that stands for the day
}

// Days are the newest day that has begun to be due, and the newest whose deadline is
// over; both are zero if none was in the last weeks. A day on which nothing is due is
// none. What is first due after the time of doneBy must be done by that time of the
// next day.
func Days(doneBy string, zone *time.Location, times []when.Schedule, now time.Time) (begun, over Day) {
	minutes, ok := parseClock(doneBy)
	if !ok {
		return begun, over
	}
	year, month, date := now.In(zone).Date()
	for back := range daysBack {
		d := Day{Start: midnight(year, month, date-back, zone), End: midnight(year, month, date-back+1, zone)}
		if d.First = firstDue(times, d); d.First.IsZero() {
			continue
		}
		d.Name = d.Start.In(zone).Format(time.DateOnly)
		d.Deadline = time.Date(year, month, date-back, 0, minutes, 0, 0, zone)
		if !d.First.Before(d.Deadline) {
			d.Deadline = time.Date(year, month, date-back+1, 0, minutes, 0, 0, zone)
		}
		if begun.Name == "" && !d.First.After(now) {
			begun = d
		}
		if !d.Deadline.After(now) {
			return begun, d
		}
	}
	return begun, over
}

// midnight is the first instant of a day; there are zones that skip it.
func midnight(year int, month time.Month, date int, zone *time.Location) time.Time {
	t := time.Date(year, month, date, 0, 0, 0, 0, zone)
	if noon := time.Date(year, month, date, 12, 0, 0, 0, zone); t.Day() != noon.Day() {
		return t.Add(time.Hour)
	}
	return t
}

// firstDue is when something is due first on a day; zero if nothing is. What counts
// from when it last ran is due that long after midnight at the latest.
func firstDue(times []when.Schedule, d Day) (first time.Time) {
	for _, s := range times {
		at, ok := s.NextWithin(d.Start.Add(-time.Nanosecond), d.End)
		if every := s.Interval(); every > 0 {
			at, ok = d.Start.Add(every), every <= day
			if !at.Before(d.End) {
				at = d.End.Add(-time.Nanosecond)
			}
		}
		if ok && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// JudgeDone is whether the newest day whose deadline is over was done. done is the
// newest day that has a success.
func JudgeDone(e *client.Expect, zone *time.Location, over Day, from time.Time, done string) Verdict {
	v := Verdict{Name: DoneBy, Met: true, Sentence: fmt.Sprintf("It is done by %s (%s) on each day on which it is due.", e.DoneBy, zone)}
	if over.Name == "" || !over.Deadline.After(from) || over.Name <= done {
		return v
	}
	v.Met, v.Since = false, over.Deadline.UTC()
	v.Sentence = fmt.Sprintf("No run that stands for %s has succeeded; it should have been done by %s (%s).", over.Name, e.DoneBy, zone)
	return v
}

// JudgeOnTime is whether enough of the newest starts were on time.
func JudgeOnTime(e *client.Expect, now time.Time, starts, late int) Verdict {
	v := Verdict{Name: OnTime, Met: true, Sentence: fmt.Sprintf("Of its last starts, %s are within a minute of their time.", percent(*e.OnTime))}
	if starts == 0 || float64(starts-late)*100 >= *e.OnTime*float64(starts) {
		return v
	}
	v.Met, v.Since = false, now
	v.Sentence = fmt.Sprintf("%d of its last %d starts were more than a minute late; %s are expected on time.", late, starts, percent(*e.OnTime))
	return v
}
