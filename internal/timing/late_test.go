package timing

import (
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/when"
)

func mustRule(t testing.TB, r when.Rule, anchor time.Time) when.Schedule {
	t.Helper()
	s, err := r.Schedule(when.Context{Seed: "lane", Anchor: anchor})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// C-53..C-82: what is run later is what the definition says, and no more.
func TestNextOfInstantsThatCameDueLate(t *testing.T) {
	day := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	hour := func(h float64) time.Time { return day.Add(time.Duration(h * float64(time.Hour))) }
	hourly := mustRule(t, when.Rule{Cron: []string{"0 * * * *"}}, time.Time{})
	some := mustRule(t, when.Rule{Cron: []string{"0 * * * *"}, Except: []string{"* 4-5 * * *"}, Until: "2026-03-02T08:00:00Z"}, time.Time{})
	every := mustRule(t, when.Rule{Interval: "90m"}, hour(0.25))
	for _, test := range []struct {
		name             string
		times            when.Schedule
		policy, within   string
		first, now, want float64
	}{
		{"not due", hourly, Skip, "", 3, 2.5, 3},
		{"on time", hourly, Skip, "", 3, 3, 3},
		{"a minute late is not missed", hourly, Skip, "", 3, 3 + 1.0/60, 3},
		{"skip", hourly, Skip, "", 3, 6.5, 7},
		{"skip runs what came due just now", hourly, Skip, "", 3, 6.01, 6},
		{"last", hourly, Last, "", 3, 6.5, 6},
		{"last, too old", hourly, Last, "15m", 3, 6.5, 7},
		{"last, within", hourly, Last, "30m", 3, 6.5, 6},
		{"all", hourly, All, "", 3, 6.5, 3},
		{"all within", hourly, All, "2h", 3, 6.5, 5},
		{"all, all too old", hourly, All, "5m", 3, 6.5, 7},
		{"all, too old but just now", hourly, All, "1s", 3, 6.01, 6},
		{"one that is none of the schedule counts", hourly, All, "", 3.3, 6.5, 3.3},
		{"what is left out does not run later", some, Last, "", 3, 5.5, 3},
		{"all but what is left out", some, All, "2h", 3, 6.5, 6},
		{"the end", some, Skip, "", 8, 12, -1},
		{"an interval counts from its anchor", every, Last, "", 0.25, 7, 6.25},
		{"each of an interval", every, All, "", 1.75, 7, 1.75},
		{"the interval goes on", every, Skip, "", 0.25, 7, 7.75},
	} {
		got := Next(test.times, &client.Missed{Policy: test.policy, Within: test.within}, hour(test.first), hour(test.now))
		if want := hour(test.want); test.want < 0 && !got.IsZero() || test.want >= 0 && !got.Equal(want) {
			t.Errorf("%s: %v, want %v", test.name, got, want)
		}
	}
}

// The latest thousand run later, and finding them costs little, however many there
// are.
func TestNextOfVeryManyIsBounded(t *testing.T) {
	now := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	for name, times := range map[string]when.Schedule{
		"interval": mustRule(t, when.Rule{Interval: "1s", Except: []string{"2025-12-24"}}, now.AddDate(-3, 0, 0)),
		"cron":     mustRule(t, when.Rule{Cron: []string{"* * * * *"}, Jitter: "30s"}, time.Time{}),
		"seldom":   mustRule(t, when.Rule{Cron: []string{"0 0 1 1 *"}}, time.Time{}),
	} {
		begun := time.Now()
		first, _ := times.Next(now.AddDate(-3, 0, 0))
		got := Next(times, &client.Missed{Policy: All}, first, now)
		count := 0
		for at := got; !Start(times, at).After(now); count++ {
			at, _ = times.Next(at)
		}
		want := MostLate
		if name == "seldom" {
			want = 3
		}
		if count != want {
			t.Errorf("%s: %d run later", name, count)
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
}

// The jitter is that of an instant of the schedule; what runs because it was
// deployed starts at once.
func TestStartIsLaterByTheJitter(t *testing.T) {
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	times := mustRule(t, when.Rule{Cron: []string{"0 * * * *"}, Jitter: "30m"}, time.Time{})
	if got := Start(times, at); !got.Equal(times.Start(at)) || got.Equal(at) {
		t.Errorf("%v", got)
	}
	if off := at.Add(7 * time.Minute); !Start(times, off).Equal(off) {
		t.Errorf("%v", Start(times, off))
	}
	late := at.Add(20 * time.Hour) // nothing of the jitter is lost in what is due
	if got := Next(times, &client.Missed{Policy: Last}, at, times.Start(late).Add(-time.Millisecond)); !got.Equal(late.Add(-time.Hour)) {
		t.Errorf("%v", got)
	}
	if got := Next(times, &client.Missed{Policy: Last}, at, times.Start(late)); !got.Equal(late) {
		t.Errorf("%v", got)
	}
}
