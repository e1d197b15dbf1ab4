package when

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl"
)

const (
	day = 24 * time.Hour

	// maxIntervalText bounds the text that is looked at; the longest
	// meaningful interval is far shorter.
	maxIntervalText = 64

	intervalHint = "use digits and a unit, such as 90s, 5m, 12h or 7d; units (s, m, h, d) may be combined from the largest to the smallest, such as 1h30m"
)

// ParseInterval reads an interval such as 90s, 5m, 1h30m or 7d12h. The result
// is always at least one second.
func ParseInterval(text string) (time.Duration, error) {
	if len(text) > maxIntervalText {
		return 0, intervalError(text[:maxIntervalText]+"...", "is too long")
	}
	if text == "" {
		return 0, intervalError(text, "is empty")
	}
	var total, lastUnit time.Duration
	for rest := text; rest != ""; {
		part, tail, problem := cutIntervalPart(rest)
		if problem != "" {
			return 0, intervalError(text, problem)
		}
		if lastUnit != 0 && part.unit >= lastUnit {
			return 0, intervalError(text, "must name each unit once, the largest first")
		}
		if part.count > int64((math.MaxInt64-total)/part.unit) {
			return 0, intervalError(text, "is longer than 292 years")
		}
		total += time.Duration(part.count) * part.unit
		lastUnit, rest = part.unit, tail
	}
	if total == 0 {
		return 0, intervalError(text, "must be longer than zero")
	}
	return total, nil
}

// intervalPart is one number with its unit.
type intervalPart struct {
	count int64
	unit  time.Duration
}

// cutIntervalPart takes the first number and unit off text. A problem that is
// not empty says what is wrong with them.
func cutIntervalPart(text string) (part intervalPart, rest, problem string) {
	digits := 0
	for digits < len(text) && isDigit(text[digits]) {
		digits++
	}
	if digits == 0 {
		return part, "", "must be digits followed by s, m, h or d"
	}
	if digits == len(text) {
		return part, "", "lacks a unit"
	}
	switch text[digits] {
	case 's':
		part.unit = time.Second
	case 'm':
		part.unit = time.Minute
	case 'h':
		part.unit = time.Hour
	case 'd':
		part.unit = day
	default:
		return part, "", "has a unit other than s, m, h and d"
	}
	count, err := strconv.ParseInt(text[:digits], 10, 64)
	if err != nil {
		return part, "", "is longer than 292 years"
	}
	part.count = count
	return part, text[digits+1:], ""
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// FormatInterval is the inverse of ParseInterval: 90 seconds are "1m30s".
// Fractions of a second are dropped, and anything below a second is "0s".
func FormatInterval(d time.Duration) string {
	if d < time.Second {
		return "0s"
	}
	var b strings.Builder
	for _, u := range []struct {
		size time.Duration
		name byte
	}{{day, 'd'}, {time.Hour, 'h'}, {time.Minute, 'm'}, {time.Second, 's'}} {
		if n := d / u.size; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10))
			b.WriteByte(u.name)
			d -= n * u.size
		}
	}
	return b.String()
}

func intervalError(text, problem string) error {
	return &pawl.Error{
		Code: pawl.CodeInvalid,
		Op:   "parse interval",
		Msg:  fmt.Sprintf("interval %q %s", text, problem),
		Hint: intervalHint,
	}
}
