package when

import (
	"fmt"
	"strings"
	"time"
)

// Describe says in plain words when the schedule runs: "Every 5 minutes",
// "Daily at 09:00 Berlin time", "Mondays to Fridays at 09:00 UTC". An
// expression that would need too many words is quoted instead: Cron "..." in
// Europe/Berlin.
func (s Schedule) Describe() string {
	switch s.Kind() {
	case KindInterval:
		return "Every " + intervalWords(s.interval)
	case KindCron:
		if words := s.cron.describe(s.zone); words != "" {
			return words
		}
		return fmt.Sprintf("Cron %q in %s", s.cron.text, s.zone)
	}
	return "Not scheduled"
}

// Until is the countdown to the next instant: "Next in 3 min", "Next in 2 h 5
// min", or "due now". It rounds to what it shows, so a countdown that began at
// three minutes says so for its first half minute. A zero next means that there
// is none.
func Until(now, next time.Time) string {
	if next.IsZero() {
		return "not scheduled"
	}
	left := next.Sub(now)
	switch {
	case left <= 0:
		return "due now"
	case left <= 59*time.Second:
		left = (left + time.Second - 1).Truncate(time.Second) // never "0 s"
	case left < day:
		left = left.Round(time.Minute)
	default:
		left = left.Round(time.Hour)
	}
	return "Next in " + shortDuration(left)
}

// intervalUnits are the units of words about intervals, the largest first.
func intervalUnits() []intervalUnit {
	return []intervalUnit{{day, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}}
}

type intervalUnit struct {
	size time.Duration
	name string
}

// intervalWords writes an interval in one unit where that stays readable ("90
// seconds"), and in several otherwise ("7 days 12 hours").
func intervalWords(d time.Duration) string {
	for _, u := range intervalUnits() {
		n := d / u.size
		switch {
		case d%u.size != 0:
		case n == 1:
			return u.name
		case n < 100 || u.size == day:
			return counted(n, u.name)
		}
	}
	var parts []string
	for _, u := range intervalUnits() {
		if n := d / u.size; n > 0 {
			parts = append(parts, counted(n, u.name))
			d -= n * u.size
		}
	}
	return strings.Join(parts, " ")
}

func counted(n time.Duration, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
