package cli

import (
	"testing"
	"time"
)

func TestInstantsAreToldAsSeenFromNow(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		8 * time.Second: "in 8s", -3 * time.Minute: "3m ago", 0: "now", 400 * time.Millisecond: "now", -999 * time.Millisecond: "now",
		90 * time.Second: "in 1m30s", -12*time.Minute - 20*time.Second: "12m ago", 5*time.Hour + 30*time.Minute: "in 5h30m",
		47 * time.Hour: "in 1d23h", -30 * 24 * time.Hour: "30d ago", 59*time.Second + 700*time.Millisecond: "in 1m",
	} {
		if got := relative(now.Add(d), now); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
	if got := relative(time.Time{}, now); got != "-" {
		t.Errorf("no instant: %q", got)
	}
}

// So much may wait that it is not counted.
func TestWhatWaitsIsSaidToBeMore(t *testing.T) {
	if got := pendingText(12, false) + " " + pendingText(2500, true); got != "12 2500+" {
		t.Errorf("it is %q", got)
	}
}
