package outbound

import (
	"net/http"
	"testing"
	"time"
)

// Surface, answer table: Retry-After honoured; design 7: clamped.
func TestRetryAfterReadsSecondsAndDatesWithinBounds(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const limit = time.Hour
	for _, c := range []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		{"0", 0, true},
		{"7", 7 * time.Second, true},
		{" 7 ", 7 * time.Second, true},
		{"3600", time.Hour, true},
		{"3601", time.Hour, true},
		{"99999999999999999999999999", time.Hour, true},
		{"Sun, 01 Mar 2026 12:00:30 GMT", 30 * time.Second, true},
		{"Sunday, 01-Mar-26 12:00:30 GMT", 30 * time.Second, true},
		{"Sun Mar  1 12:00:30 2026", 30 * time.Second, true},
		{"Sun, 01 Mar 2026 11:00:00 GMT", 0, true},
		{"Sun, 01 Mar 2226 12:00:00 GMT", time.Hour, true},
		{"Fri, 31 Dec 9999 23:59:59 GMT", time.Hour, true},
		{"", 0, false},
		{"-5", 0, false},
		{"1.5", 0, false},
		{"+5", 0, false},
		{"soon", 0, false},
		{"7 seconds", 0, false},
		{"٧", 0, false},
		{"2026-03-01T12:00:30Z", 0, false},
	} {
		got, ok := RetryAfter(http.Header{"Retry-After": {c.value}}, now, limit)
		if got != c.want || ok != c.ok {
			t.Errorf("%q: got %v %v, want %v %v", c.value, got, ok, c.want, c.ok)
		}
	}
	if _, ok := RetryAfter(nil, now, limit); ok {
		t.Error("an absent header is taken for one")
	}
	if got, ok := RetryAfter(http.Header{"Retry-After": {"9"}}, now, -1); got != 0 || !ok {
		t.Errorf("negative limit: got %v %v", got, ok)
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"0", "120", "18446744073709551616", "Fri, 31 Dec 9999 23:59:59 GMT", "-1", "\x00", "9223372036"} {
		f.Add(s, int64(time.Hour))
	}
	f.Add("9223372036", int64(1<<63-1))
	f.Fuzz(func(t *testing.T, value string, limit int64) {
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		got, ok := RetryAfter(http.Header{"Retry-After": {value}}, now, time.Duration(limit))
		if got < 0 || got > max(time.Duration(limit), 0) || (!ok && got != 0) {
			t.Fatalf("%q limited to %d: %v %v", value, limit, got, ok)
		}
	})
}
