package quota

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// noon is now, for pure code.
func noon() time.Time { return time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC) }

// shown writes an account for tables.
func shown(a account) string {
	value := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprint(*n)
	}
	reset := "-"
	if !a.reset.IsZero() {
		reset = a.reset.Sub(noon()).String()
	}
	return value(a.limit) + " " + value(a.left) + " " + reset
}

// the spellings that servers use, and what makes no sense, which is taken
// as not told or bounded.
func TestHeadersOfLimitsAreRead(t *testing.T) {
	epoch := fmt.Sprint(noon().Unix() + 90)
	for _, c := range []struct{ headers, want string }{
		{"", "- - -"},
		{"RateLimit-Limit: 100|RateLimit-Remaining: 50|RateLimit-Reset: 30", "100 50 30s"},
		{"RateLimit-Limit: 100, 100;w=60|RateLimit-Remaining: 50", "100 50 -"},
		{"X-RateLimit-Limit: 100|X-RateLimit-Remaining: 0|X-RateLimit-Reset: " + epoch, "100 0 1m30s"},
		{"X-Rate-Limit-Remaining: 7|X-Rate-Limit-Reset: " + epoch + "000", "- 7 1m30s"},
		{"X-RateLimit-Reset: 1.5", "- - 1.5s"},
		{"X-RateLimit-Reset: Wed, 04 Mar 2026 12:00:10 GMT", "- - 10s"},
		{"X-RateLimit-Reset: 2026-03-04T12:00:20Z", "- - 20s"},
		{"RateLimit: limit=100, remaining=50, reset=30", "100 50 30s"},
		{`RateLimit: "default";r=50;t=30|RateLimit-Policy: "default";q=100;w=60`, "100 50 30s"},
		{`RateLimit: "burst";r=0;t=5, "day";r=0;t=60, "a;b,c";r=3;t=900`, "- 0 1m0s"},
		{`RateLimit: "day";r=900;t=3600, "burst";r=2;t=5`, "- 2 5s"},
		{"RateLimit-Remaining: -1|RateLimit-Reset: -5", "- - -"},
		{"RateLimit-Remaining: NaN|RateLimit-Reset: NaN", "- - -"},
		{"RateLimit-Remaining: Inf|RateLimit-Reset: +Inf", "- - -"},
		{"RateLimit-Remaining: 0x0|RateLimit-Reset: 1e9", "- - -"},
		{"RateLimit-Remaining: zero|RateLimit-Reset: ${TOKEN}", "- - -"},
		{"RateLimit-Limit: 99999999999999999999999|RateLimit-Reset: 999999999999999999999", "9007199254740992 - 1h0m0s"},
		{"RateLimit-Reset: 999999999", "- - 1h0m0s"},
		{"RateLimit-Reset: 1000000001", "- - 0s"}, // long ago
		{"RateLimit-Reset: Wed, 04 Mar 1026 12:00:10 GMT", "- - 0s"},
		{"RateLimit-Reset: 9999-03-04T12:00:20Z", "- - 1h0m0s"},
		{"RateLimit-Reset: " + strings.Repeat("9", 400), "- - -"},
		{"RateLimit: " + strings.Repeat(`"x";r=0;t=9,`, 5000), "- - -"},
		{`RateLimit: "unclosed;r=0;t=9`, "- - -"},
		{"RateLimit: ;;;,,,=", "- - -"},
	} {
		h := http.Header{}
		for line := range strings.SplitSeq(c.headers, "|") {
			if name, value, ok := strings.Cut(line, ": "); ok {
				h.Add(name, value)
			}
		}
		if got := shown(readAccount(h, noon(), time.Hour)); got != c.want {
			t.Errorf("%.80s: %s, want %s", c.headers, got, c.want)
		}
	}
}

// Whatever a server sends, it gains no more than the longest rest, and nothing
// comes out that is before now or below zero.
func TestHostileHeadersAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := http.Header{}
		value := rapid.OneOf(rapid.String(), rapid.StringMatching(`-?[0-9.eE+]{0,30}`), rapid.StringMatching(`("[a-z]"|limit=|reset=|;r=|;t=|,|[0-9]){0,12}`))
		for _, name := range []string{"RateLimit", "RateLimit-Policy", "RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "RateLimit-Reset", "Retry-After"} {
			if rapid.Bool().Draw(t, name+" is there") {
				h.Set(name, value.Draw(t, name))
			}
		}
		a := readAccount(h, noon(), time.Hour)
		for _, n := range []*int64{a.limit, a.left} {
			if n != nil && (*n < 0 || *n > mostCalls) {
				t.Fatalf("%v tells %d calls", h, *n)
			}
		}
		for _, status := range []int{200, 429, 503} {
			for _, at := range []time.Time{a.reset, restUntil(status, h, a, noon(), time.Hour)} {
				if !at.IsZero() && (at.Before(noon()) || at.After(noon().Add(time.Hour))) {
					t.Fatalf("%v tells %v", h, at)
				}
			}
		}
	})
}
