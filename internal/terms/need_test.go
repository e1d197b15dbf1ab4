package terms

import (
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
)

func TestNeedsInWords(t *testing.T) {
	now := time.Date(2030, 1, 31, 9, 0, 0, 0, time.UTC)
	prices := client.Need{Source: "prices", MaxAge: "1h"}
	if got := NeedsWords([]client.Need{prices, {Source: "rates", MaxAge: "1d", Wait: "90s"}}); got != "source prices at most 1h old (waits up to 30m), source rates at most 1d old (waits up to 1m30s)" {
		t.Error(got)
	}
	for age, want := range map[time.Duration]string{
		0: "1s", 59 * time.Second: "59s", 3*time.Hour + 7*time.Minute + 9*time.Second: "3h7m", 30*time.Hour + 40*time.Minute: "1d6h", 80 * time.Hour: "3d",
	} {
		if got := (Stale{Need: prices, Last: now.Add(-age)}).Words(now); got != "source prices, "+want+" old" {
			t.Errorf("%s: %s", age, got)
		}
	}
	list := []Stale{{Need: prices, Why: "Source prices is paused."}, {Need: client.Need{Source: "rates"}, Last: now.Add(-time.Hour), Why: "Source rates is gone."}}
	if got := StaleWords(list, now) + "." + WhyWords(list); got != "source prices, which has never been fetched and source rates, 1h old. Source prices is paused. Source rates is gone." {
		t.Error(got)
	}
	if !SameNeeds(nil, []client.Need{}) || SameNeeds([]client.Need{prices}, nil) || WaitOf(prices) != 30*time.Minute || MaxAgeOf(prices) != time.Hour {
		t.Error("what is needed is not what was written")
	}
}
