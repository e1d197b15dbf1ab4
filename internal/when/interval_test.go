package when

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlrun/pawl"
)

// digits plus a unit, and compounds of them.
func TestParseIntervalReadsUnitsFromLargestToSmallest(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1s":        time.Second,
		"90s":       90 * time.Second,
		"5m":        5 * time.Minute,
		"1h30m":     90 * time.Minute,
		"1d":        24 * time.Hour,
		"7d12h":     180 * time.Hour,
		"1d2h3m4s":  26*time.Hour + 3*time.Minute + 4*time.Second,
		"007m":      7 * time.Minute,
		"0h5m":      5 * time.Minute,
		"106751d":   106751 * 24 * time.Hour,
		"120m":      2 * time.Hour,
		"00000001s": time.Second,
	} {
		got, err := ParseInterval(text)
		if err != nil || got != want {
			t.Errorf("ParseInterval(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}

// anything else is an error. X-13: zero is refused.
func TestParseIntervalRefusesEverythingElse(t *testing.T) {
	for _, text := range []string{
		"", "0s", "0m", "0d0h0m0s", "5", "m", "5x", "5M", "-5m", "+5m", " 5m", "5m ", "5 m", "1.5h", "1h 30m",
		"30m1h", "5m5m", "1s1d", "5ms", "1w", "106752d", "9223372036854775807s", "99999999999999999999s",
		"106751d23h59m60s9999999999s", "106751d86400s", "٣m", "5m\x00", strings.Repeat("1", 1000) + "s", "1e3s",
	} {
		d, err := ParseInterval(text)
		e, ok := errors.AsType[*pawl.Error](err)
		if !ok || e.Code != pawl.CodeInvalid {
			t.Errorf("ParseInterval(%q) = %v, %v; want an error of code invalid", text, d, err)
			continue
		}
		if !strings.Contains(e.Hint, "90s, 5m") || len(e.Msg) > 200 {
			t.Errorf("ParseInterval(%q): the error does not say what is allowed: %q, %q", text, e.Msg, e.Hint)
		}
	}
}

func TestFormatIntervalIsTheInverseOfParseInterval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(1, math.MaxInt64/int64(time.Second)).Draw(t, "seconds")) * time.Second
		text := FormatInterval(d)
		if back, err := ParseInterval(text); err != nil || back != d {
			t.Fatalf("%v -> %q -> %v, %v", d, text, back, err)
		}
	})
	for d, want := range map[time.Duration]string{
		0: "0s", -time.Hour: "0s", 999 * time.Millisecond: "0s", 1500 * time.Millisecond: "1s",
		90 * time.Second: "1m30s", time.Hour: "1h", 180 * time.Hour: "7d12h",
	} {
		if got := FormatInterval(d); got != want {
			t.Errorf("FormatInterval(%v) = %q, want %q", d, got, want)
		}
	}
}
