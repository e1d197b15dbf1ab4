package when

import (
	"fmt"
	"strings"
	"time"
)

// Describe says in plain words when the schedule runs: "Every 5 minutes",
// "Daily at 09:00 Berlin time", "Mondays to Fridays at 09:00 UTC". An
// expression that would need too many words is quoted instead: Cron "..." in
// Europe/Berlin. Limits follow: "..., until 2027-06-30, except 12 days".
func (s Schedule) Describe() string {
	return s.describeTimes() + s.describeLimits()
}

func (s Schedule) describeTimes() string {
	switch s.Kind() {
	case KindInterval:
		return "Every " + intervalWords(s.interval)
	case KindCron:
		texts := []string{s.cron.words(s.zone)}
		for _, e := range s.more {
			texts = append(texts, e.words(s.zone))
		}
		return strings.Join(texts, "; ")
	case KindOnce:
		return "Once, " + s.once.In(s.zone).Format("Mon 2006-01-02 15:04:05") + " " + zoneWords(s.zone)
	}
	return "Not scheduled"
}

func (e *cronExpr) words(zone *time.Location) string {
	if words := e.describe(zone); words != "" {
		return words
	}
	return fmt.Sprintf("Cron %q in %s", e.text, zone)
}

func (s Schedule) describeLimits() string {
	var b strings.Builder
	if !s.from.IsZero() {
		b.WriteString(", from " + boundWords(s.from, s.zone))
	}
	if !s.end.IsZero() {
		b.WriteString(", until " + boundWords(s.end.Add(-time.Nanosecond), s.zone))
	}
	var out []string
	if n := len(s.days.spans); n > 0 {
		days := (Calendar{s.days}).Days()
		out = append(out, counted(time.Duration(days), "day"))
	}
	for _, e := range s.except {
		out = append(out, fmt.Sprintf("%q", e.text))
	}
	if len(out) > 0 {
		b.WriteString(", except " + listWords(out))
	}
	if s.jitter > 0 {
		b.WriteString(", up to " + intervalLength(s.jitter) + " later")
	}
	return b.String()
}

// intervalLength is an interval as a length: 1 hour, where intervalWords has hour.
func intervalLength(d time.Duration) string {
	words := intervalWords(d)
	if !isDigit(words[0]) {
		return "1 " + words
	}
	return words
}

// boundWords is a limit as a date where it is the first or last instant of one.
func boundWords(at time.Time, zone *time.Location) string {
	local := at.In(zone)
	day := floorDiv(floorDiv(at.Unix(), 60)+periodAt(floorDiv(at.Unix(), 60), zone).offset, minutesPerDay)
	if at.Equal(startOfDay(day, zone)) || at.Add(time.Nanosecond).Equal(startOfDay(day+1, zone)) {
		return local.Format(time.DateOnly)
	}
	return local.Truncate(time.Second).Format("2006-01-02 15:04:05")
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
