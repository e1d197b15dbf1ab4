package outbound

import (
	"net/http"
	"strings"
	"time"
)

// RetryAfter reads the Retry-After header of an answer, in seconds or as a
// date, as the time to wait from now: at least 0, at most limit. The second
// result is false when the header is absent or makes no sense.
func RetryAfter(h http.Header, now time.Time, limit time.Duration) (time.Duration, bool) {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return 0, false
	}
	limit = max(limit, 0)
	if strings.Trim(value, "0123456789") == "" {
		return min(seconds(value, limit), limit), true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return min(max(at.Sub(now), 0), limit), true
}

// seconds reads digits of any number; it stops when the value passes limit,
// long before it could overflow.
func seconds(digits string, limit time.Duration) time.Duration {
	var n time.Duration
	for _, d := range digits {
		n = n*10 + time.Duration(d-'0')
		if n > limit/time.Second {
			return limit
		}
	}
	return n * time.Second
}
