package lane

import (
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/store/runstore"
)

func TestAroundIsToldInWords(t *testing.T) {
	now := time.Date(2030, 1, 31, 9, 0, 0, 0, time.UTC)
	run := func(from, to time.Duration) *runstore.Run {
		s := &runstore.Run{Handler: "look", CreatedAt: now.Add(from)}
		if to != 0 {
			s.EndedAt = now.Add(to)
		}
		return s
	}
	for _, c := range []struct {
		before, after *runstore.Run
		want          string
	}{
		{nil, nil, "It has never run."},
		{nil, run(time.Second, 0), "It had not run yet; its first run started at 2030-01-31T09:00:01.000Z."},
		{run(-time.Second, 0), nil, "A run of look had started at 2030-01-31T08:59:59.000Z and was still active."},
		{run(-time.Second, time.Second), nil, "A run of look had started at 2030-01-31T08:59:59.000Z and was still active."},
		{run(-2*time.Second, -time.Second), nil, "Nothing ran; the previous run ended at 2030-01-31T08:59:59.000Z, and there was none after it."},
		{run(-2*time.Second, -time.Second), run(time.Second, 0), "Nothing ran; the previous run ended at 2030-01-31T08:59:59.000Z, and the next started at 2030-01-31T09:00:01.000Z."},
	} {
		a := &Around{At: now, Before: c.before, After: c.after}
		if got := a.sentence(now.Add(time.Hour)); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}
