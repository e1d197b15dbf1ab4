package cli

import (
	"fmt"
	"time"
)

// relative tells an instant as seen from now: in 8s, 3m ago, now.
func relative(t, now time.Time) string {
	d := t.Sub(now)
	switch {
	case t.IsZero():
		return "-"
	case d > -time.Second && d < time.Second:
		return "now"
	case d < 0:
		return compact(-d) + " ago"
	}
	return "in " + compact(d)
}

// compact writes a duration in its one or two largest units: 45s, 3m20s, 12m,
// 5h30m, 8d. The second unit is left out where the first says enough.
func compact(d time.Duration) string {
	units := []struct {
		name string
		size time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}
	d = d.Round(time.Second)
	for i, u := range units {
		n := d / u.size
		if n == 0 {
			continue
		}
		if i+1 < len(units) && n < 10 {
			if rest := d % u.size / units[i+1].size; rest > 0 {
				return fmt.Sprintf("%d%s%d%s", n, u.name, rest, units[i+1].name)
			}
		}
		return fmt.Sprintf("%d%s", n, u.name)
	}
	return "0s"
}

// plural counts things: 1 attempt, 2 attempts.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// orDash shows that there is nothing.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
