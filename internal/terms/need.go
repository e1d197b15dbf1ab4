package terms

import (
	"fmt"
	"slices"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/when"
)

// Bounds of what a lane can need.
const (
	mostNeeds   = 20
	longestWait = 7 * 24 * time.Hour
	usualWait   = 30 * time.Minute
)

// CheckNeeds finds what is wrong with what a lane needs. Whether the sources are
// there is for the server to say.
func CheckNeeds(list []client.Need, fault Fault) {
	if len(list) > mostNeeds {
		fault([]any{"needs"}, fmt.Sprintf("there are %d; at most %d are allowed", len(list), mostNeeds), "Leave some out.")
		return
	}
	seen := map[string]bool{}
	for i, n := range list {
		wrong := func(name, hint, format string, values ...any) {
			fault([]any{"needs", i, name}, fmt.Sprintf(format, values...), hint)
		}
		switch {
		case n.Source == "":
			wrong("source", "Write the name of a source, such as source: prices.", "the source is missing")
		case seen[n.Source]:
			wrong("source", "Name each source once.", "the source %s is named twice", pawl.Quote(n.Source))
		}
		seen[n.Source] = true
		checkLength(n.MaxAge, longestFresh, func(format string, values ...any) {
			wrong("maxAge", "Write how old its last fetch may be, such as maxAge: 1h.", format, values...)
		})
		if n.Wait != "" {
			checkLength(n.Wait, longestWait, func(format string, values ...any) {
				wrong("wait", "Write how long a start waits at most, such as wait: 30m.", format, values...)
			})
		}
	}
}

func checkLength(text string, most time.Duration, wrong func(format string, values ...any)) {
	switch d, err := when.ParseInterval(text); {
	case text == "":
		wrong("it is missing")
	case err != nil:
		wrong("%s is not a length of time", pawl.Quote(text))
	case d > most:
		wrong("%s is longer than %s", pawl.Quote(text), when.FormatInterval(most))
	}
}

// MaxAgeOf is how old the last fetch may be.
func MaxAgeOf(n client.Need) time.Duration {
	d, _ := when.ParseInterval(n.MaxAge) // it was checked
	return d
}

// WaitOf is how long a start waits for a fetch.
func WaitOf(n client.Need) time.Duration {
	d, err := when.ParseInterval(n.Wait)
	if err != nil {
		return usualWait
	}
	return d
}

// SameNeeds reports whether two lists say the same.
func SameNeeds(a, b []client.Need) bool {
	return slices.Equal(a, b)
}

// NeedsWords is what is needed, for people.
func NeedsWords(list []client.Need) string {
	parts := make([]string, len(list))
	for i, n := range list {
		parts[i] = fmt.Sprintf("source %s at most %s old (waits up to %s)", n.Source, n.MaxAge, when.FormatInterval(WaitOf(n)))
	}
	return strings.Join(parts, ", ")
}

// Stale is a needed source that is too old.
type Stale struct {
	client.Need
	Last  time.Time // when its last whole fetch ended; zero: none did
	Since time.Time // the lane waits for it since then; zero: it does not
	Why   string    // why no fetch of it begins now, as a sentence; empty if one does

	Paused bool // a person paused it, and it is not fetched before another one resumes it
}

// Words names the source and its age: source prices, 3h old.
func (s Stale) Words(now time.Time) string {
	if s.Last.IsZero() {
		return "source " + s.Source + ", which has never been fetched"
	}
	return "source " + s.Source + ", " + AgeWords(now.Sub(s.Last)) + " old"
}

// StaleWords names sources and their ages.
func StaleWords(list []Stale, now time.Time) string {
	parts := make([]string, len(list))
	for i, s := range list {
		parts[i] = s.Words(now)
	}
	return strings.Join(parts, " and ")
}

// WhyWords are why no fetches begin, after a space each.
func WhyWords(list []Stale) (text string) {
	for _, s := range list {
		if s.Why != "" {
			text += " " + s.Why
		}
	}
	return text
}

// AgeWords is an age to two digits or so: 3h, not 3h7m22s.
func AgeWords(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		d = d.Truncate(24 * time.Hour)
	case d >= 10*time.Hour:
		d = d.Truncate(time.Hour)
	case d >= time.Minute:
		d = d.Truncate(time.Minute)
	}
	return when.FormatInterval(max(d, time.Second))
}
