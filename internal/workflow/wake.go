package workflow

import (
	"strings"
	"time"

	"github.com/pawlrun/pawl"
)

// The bounds of wakeAt. They are the host's policy: a script cannot change
// them.
const (
	WakeMin = 30 * time.Second
	WakeMax = 24 * time.Hour
)

// mostWakeAsked bounds what is kept of a wakeAt that was not taken as it was,
// in characters.
const mostWakeAsked = 100

// clampWake decides when a consumer wakes that asked for a time. asWritten
// says that it got what it asked for. A time out of bounds, in the past as
// well, is pulled to the nearest bound; text that is no time becomes the
// latest, so that it never causes an early wake.
//
// Instants are whole milliseconds, rounded so that none is out of bounds or
// earlier than what was asked.
func clampWake(asked string, now time.Time) (at time.Time, asWritten bool) {
	earliest := ceilMillisecond(now.Add(WakeMin))
	latest := now.Add(WakeMax).Truncate(time.Millisecond)
	at, ok := parseWake(asked)
	if !ok {
		return latest, false
	}
	at = ceilMillisecond(at)
	switch {
	case at.Before(earliest):
		return earliest, false
	case at.After(latest):
		return latest, false
	}
	return at, true
}

func ceilMillisecond(t time.Time) time.Time {
	if whole := t.Truncate(time.Millisecond); whole.Before(t) {
		return whole.Add(time.Millisecond)
	}
	return t
}

// parseWake reads a date-time of ISO 8601, in UTC unless it has an offset; a
// date alone is its first instant. Fractions of a second may be of any length.
func parseWake(text string) (time.Time, bool) {
	if len(text) > mostWakeAsked {
		return time.Time{}, false
	}
	text = strings.NewReplacer("t", "T", "z", "Z").Replace(text)
	for _, layout := range []string{
		time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07", "2006-01-02T15:04:05",
		"2006-01-02T15:04Z07:00", "2006-01-02T15:04Z0700", "2006-01-02T15:04Z07", "2006-01-02T15:04",
		time.DateOnly,
	} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// Wake is when the consumer wakes even without new events, and the zero time
// when it did not ask for that.
func (p Prepared) Wake() time.Time {
	t, err := time.Parse(pawl.TimeFormat, p.WakeAt)
	if err != nil {
		return time.Time{}
	}
	return t
}
