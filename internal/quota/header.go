package quota

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/outbound"
)

const (
	longestHeader = 1024    // characters of a header that are read
	mostCalls     = 1 << 53 // that a server can tell about
	firstEpoch    = 1e9     // from here on a reset is an instant in seconds, below it is a wait
	firstEpochMS  = 1e12    // from here on it is an instant in milliseconds
)

// account is what the headers of one answer tell about the server's own
// window. Nil and zero are what they do not tell.
type account struct {
	limit, left *int64
	reset       time.Time // between now and the longest rest
}

func (a account) empty() bool { return a.limit == nil && a.left == nil && a.reset.IsZero() }

// readAccount reads the headers that servers tell their limits with: the
// RateLimit header of the drafts of the IETF, the three headers of its older
// ones, and the two spellings of these with an X in front. What makes no sense
// is taken as not told.
func readAccount(h http.Header, now time.Time, longest time.Duration) account {
	if a := structured(h, now, longest); !a.empty() {
		return a
	}
	for _, prefix := range []string{"RateLimit-", "X-RateLimit-", "X-Rate-Limit-"} {
		a := account{
			limit: amount(h.Get(prefix + "Limit")),
			left:  amount(h.Get(prefix + "Remaining")),
			reset: instant(h.Get(prefix+"Reset"), now, longest),
		}
		if !a.empty() {
			return a
		}
	}
	return account{}
}

// restUntil is until when an answer wants its server to be left alone; zero if
// it does not.
func restUntil(status int, h http.Header, a account, now time.Time, longest time.Duration) time.Time {
	var until time.Time
	refused := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
	wait, told := outbound.RetryAfter(h, now, longest)
	if refused && told {
		until = now.Add(wait)
	}
	usedUp := a.left != nil && *a.left == 0
	if usedUp || status == http.StatusTooManyRequests && !told {
		until = latest(until, a.reset)
	}
	if !until.After(now) {
		return time.Time{}
	}
	return until
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// amount reads a count of calls. A list has the one that matters first.
func amount(text string) *int64 {
	text, _, _ = strings.Cut(text, ",")
	text, _, _ = strings.Cut(text, ";")
	value, ok := number(text)
	if !ok {
		return nil
	}
	n := int64(min(value, mostCalls))
	return &n
}

// instant reads when a window ends: a wait in seconds, or an instant in
// seconds or milliseconds of the epoch or as a date. It is never before now,
// and never after the longest rest.
func instant(text string, now time.Time, longest time.Duration) time.Time {
	var wait time.Duration
	if value, ok := number(text); ok {
		switch {
		case value >= firstEpochMS:
			value = value/1000 - float64(now.UnixMilli())/1000
		case value >= firstEpoch:
			value -= float64(now.UnixMilli()) / 1000
		}
		wait = time.Duration(min(value, longest.Seconds()) * float64(time.Second))
	} else if at, err := http.ParseTime(strings.TrimSpace(text)); err == nil {
		wait = at.Sub(now)
	} else if at, err := time.Parse(time.RFC3339, strings.TrimSpace(text)); err == nil {
		wait = at.Sub(now)
	} else {
		return time.Time{}
	}
	return now.Add(min(max(wait, 0), longest))
}

// number reads digits with at most one point. Anything else that a parser of
// numbers takes, such as NaN, Inf and hexadecimal, is none.
func number(text string) (float64, bool) {
	text = strings.TrimSpace(text)
	strange := func(r rune) bool { return (r < '0' || r > '9') && r != '.' }
	if text == "" || len(text) > longestHeader || strings.ContainsFunc(text, strange) {
		return 0, false
	}
	value, err := strconv.ParseFloat(text, 64)
	return value, err == nil && !math.IsNaN(value) && !math.IsInf(value, 0)
}

// structured reads the RateLimit header in its two forms,
//
//	RateLimit: limit=100, remaining=50, reset=30
//	RateLimit: "burst";r=0;t=5, "day";r=900;t=3600
//
// of which the second can have several windows: the one that is nearest to its
// end counts.
func structured(h http.Header, now time.Time, longest time.Duration) account {
	var flat account
	var windows []account
	for _, item := range splitOutside(strings.Join(h.Values("RateLimit"), ","), ',') {
		parts := splitOutside(item, ';')
		key, value, _ := strings.Cut(parts[0], "=")
		switch strings.TrimSpace(key) {
		case "limit":
			flat.limit = amount(value)
		case "remaining":
			flat.left = amount(value)
		case "reset":
			flat.reset = instant(value, now, longest)
		default:
			parameters := parametersOf(parts[1:])
			windows = append(windows, account{
				limit: policyOf(h, strings.TrimSpace(parts[0])),
				left:  amount(parameters["r"]), reset: instant(parameters["t"], now, longest),
			})
		}
	}
	if len(windows) == 0 || !flat.empty() {
		return flat
	}
	return tightest(windows)
}

// policyOf is how many calls a window allows by the RateLimit-Policy header.
func policyOf(h http.Header, name string) *int64 {
	for _, item := range splitOutside(strings.Join(h.Values("RateLimit-Policy"), ","), ',') {
		parts := splitOutside(item, ';')
		if strings.TrimSpace(parts[0]) == name {
			return amount(parametersOf(parts[1:])["q"])
		}
	}
	return nil
}

func parametersOf(parts []string) map[string]string {
	parameters := map[string]string{}
	for _, part := range parts {
		key, value, _ := strings.Cut(part, "=")
		parameters[strings.TrimSpace(key)] = value
	}
	return parameters
}

// tightest is the window with the fewest calls left; of equals, the one that
// ends last.
func tightest(windows []account) account {
	best := windows[0]
	for _, w := range windows[1:] {
		switch {
		case w.left == nil:
		case best.left == nil || *w.left < *best.left || *w.left == *best.left && w.reset.After(best.reset):
			best = w
		}
	}
	return best
}

// splitOutside cuts a text at a separator that is not within quotes. Texts
// that are longer than any honest one are taken as empty.
func splitOutside(text string, separator rune) []string {
	if len(text) > longestHeader {
		return []string{""}
	}
	quoted := false
	var parts []string
	start := 0
	for i, r := range text {
		switch {
		case r == '"':
			quoted = !quoted
		case r == separator && !quoted:
			parts = append(parts, text[start:i])
			start = i + 1
		}
	}
	return append(parts, text[start:])
}
