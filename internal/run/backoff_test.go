package run

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// the waits and the budgets.
func TestBackoffTables(t *testing.T) {
	s := time.Second
	tests := []struct {
		name  string
		f     func(int) (time.Duration, bool)
		first int // what the first entry of waits was given
		waits []time.Duration
		limit int // the first count that is refused
	}{
		{"transient", Transient, 1, []time.Duration{10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 320 * s, 600 * s, 600 * s}, 6},
		{"reconcile", Reconcile, 0, []time.Duration{10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 320 * s, 600 * s, 600 * s}, 5},
	}
	for _, tt := range tests {
		for i, want := range tt.waits {
			n := tt.first + i
			wait, ok := tt.f(n)
			if wait != want || ok != (n < tt.limit) {
				t.Errorf("%s(%d) = %v, %v; want %v, %v", tt.name, n, wait, ok, want, n < tt.limit)
			}
		}
	}
	for crashes, want := range map[int]bool{0: false, 1: false, 2: false, 3: true, 4: true, math.MaxInt: true} {
		if got := CrashLoop(crashes); got != want {
			t.Errorf("CrashLoop(%d) = %v", crashes, got)
		}
	}
}

// Whatever the count, a wait lies between the base and the cap.
func TestBackoffNeverOverflows(t *testing.T) {
	extremes := []int{math.MinInt, -1, 0, 1, 62, 63, 64, 65, 1000, math.MaxInt}
	for _, n := range extremes {
		for _, f := range []func(int) (time.Duration, bool){Transient, Reconcile} {
			if wait, _ := f(n); wait < 10*time.Second || wait > 10*time.Minute {
				t.Errorf("wait after %d is %v", n, wait)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		base := time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "base"))
		limit := time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "limit"))
		n := rapid.Int().Draw(t, "n")
		d := doubled(base, limit, n)
		if d > limit || d < min(base, limit) {
			t.Fatalf("doubled(%d, %d, %d) = %d", base, limit, n, d)
		}
		if n < math.MaxInt && doubled(base, limit, n+1) < d {
			t.Fatalf("doubled(%d, %d, %d) shrinks with the next step", base, limit, n)
		}
	})
}
