package when

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The values are pinned: other versions have promised instants by them.
func TestJitterIsTheSameInEveryVersion(t *testing.T) {
	slot := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		key  string
		slot time.Time
		most time.Duration
		want time.Duration
	}{
		{"schedule:a", slot, time.Minute, 28865 * time.Millisecond},
		{"schedule:b", slot, time.Minute, 41255 * time.Millisecond},
		{"schedule:a", slot.Add(time.Minute), time.Minute, 32350 * time.Millisecond},
		{"schedule:a", slot, 24 * time.Hour, 41567036 * time.Millisecond},
		{"", time.Unix(0, 0), time.Second, 684 * time.Millisecond},
		{"schedule:a", slot, 999 * time.Microsecond, 0},
		{"schedule:a", slot, 0, 0},
		{"schedule:a", slot, -time.Hour, 0},
	} {
		if got := Jitter(tt.key, tt.slot, tt.most); got != tt.want {
			t.Errorf("Jitter(%q, %v, %v) = %v, want %v", tt.key, tt.slot, tt.most, got, tt.want)
		}
	}
}

func TestJitterStaysBelowItsLimitInWholeMilliseconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.String().Draw(t, "key")
		slot := time.UnixMilli(rapid.Int64().Draw(t, "slot"))
		most := time.Duration(rapid.Int64().Draw(t, "most"))
		got := Jitter(key, slot, most)
		if got < 0 || got > 0 && got >= most || got%time.Millisecond != 0 {
			t.Fatalf("Jitter = %v of %v", got, most)
		}
		if again := Jitter(key, slot.In(time.FixedZone("x", 3600)), most); again != got {
			t.Fatalf("Jitter = %v, then %v", got, again)
		}
	})
}

func TestJitterSpreadsLanesOfOneSlot(t *testing.T) {
	slot := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var tenths [10]int
	for i := range 10000 {
		key := "lane-" + time.Duration(i).String()
		tenths[Jitter(key, slot, 10*time.Second)/time.Second]++
	}
	for i, n := range tenths {
		if n < 850 || n > 1150 {
			t.Errorf("%d of 10000 lanes start in second %d", n, i)
		}
	}
}
