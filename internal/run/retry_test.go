package run

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func day(hour, minute int) time.Time {
	return time.Date(2026, 3, 1, hour, minute, 0, 0, time.UTC)
}

// B-14..B-18, B-38, X-44: failure n waits 2^n minutes, the fifth exhausts.
func TestSourceBackoffIsTwoToTheNMinutes(t *testing.T) {
	r, b, now := NewRetry(day(0, 1)), DefaultBudget(), day(9, 0)
	for n, minutes := range []time.Duration{2, 4, 8, 16} {
		r = r.Fail(b, now)
		if r.Count != n+1 || r.Exhausted(b) || !r.NextAt.Equal(now.Add(minutes*time.Minute)) {
			t.Fatalf("failure %d: %+v", n+1, r)
		}
		if r.Ready(b, r.NextAt.Add(-time.Nanosecond)) || !r.Ready(b, r.NextAt) {
			t.Fatalf("failure %d: not ready exactly at %v", n+1, r.NextAt)
		}
		now = r.NextAt
	}
	r = r.Fail(b, now)
	if !r.Exhausted(b) || !r.NextAt.Equal(day(24, 1)) || !r.PeriodStart.Equal(day(0, 1)) {
		t.Fatalf("fifth failure: %+v", r)
	}
}

// B-40..B-44, B-47, B-48, X-43: exhausted on day 1, skipped for the rest of the
// period, free again 24 h after its start.
func TestExhaustedSourceRunsAgainAfterItsPeriod(t *testing.T) {
	b := DefaultBudget()
	r := Retry{Count: 5, Crashes: 1, PeriodStart: day(0, 1), NextAt: day(24, 1)}
	for _, now := range []time.Time{day(10, 0), day(11, 0), day(23, 59), day(24, 0)} {
		if again, reset := r.ResetIfDue(b, now); reset || again != r || r.Ready(b, now) {
			t.Errorf("at %v: reset %v, ready %v", now, reset, r.Ready(b, now))
		}
	}
	for _, now := range []time.Time{day(24, 1), day(24*9, 0)} {
		got, reset := r.ResetIfDue(b, now)
		want := Retry{Crashes: 1, PeriodStart: now}
		if !reset || got != want || !got.Ready(b, now) {
			t.Errorf("at %v: %+v, %v", now, got, reset)
		}
	}
}

// success clears count and backoff and keeps the period.
func TestSuccessClearsTheCountAndKeepsThePeriod(t *testing.T) {
	r := Retry{Count: 3, Crashes: 2, PeriodStart: day(0, 1), NextAt: day(10, 0)}
	if got, want := r.Succeed(), (Retry{PeriodStart: day(0, 1)}); got != want {
		t.Errorf("Succeed() = %+v, want %+v", got, want)
	}
}

// a failure after the end of the period is the first of a new one, and
// no backoff outlasts the period that would end it.
func TestFailureAtTheEdgeOfAPeriod(t *testing.T) {
	b := Budget{MaxRetries: 10, Period: time.Hour}
	late := Retry{Count: 9, PeriodStart: day(0, 0)}.Fail(b, day(1, 0))
	if want := (Retry{Count: 1, PeriodStart: day(1, 0), NextAt: day(1, 2)}); late != want {
		t.Errorf("late failure: %+v, want %+v", late, want)
	}
	long := Retry{Count: 5, PeriodStart: day(0, 0)}.Fail(b, day(0, 30))
	if want := (Retry{Count: 6, PeriodStart: day(0, 0), NextAt: day(1, 0)}); long != want {
		t.Errorf("long backoff: %+v, want %+v", long, want)
	}
}

// A budget of nothing still allows one attempt per period, and a period
// without a length is the default one.
func TestOddBudgets(t *testing.T) {
	for _, tries := range []int{math.MinInt, -1, 0, 1} {
		b := Budget{MaxRetries: tries, Period: time.Hour}
		r := NewRetry(day(0, 0))
		if !r.Ready(b, day(0, 0)) {
			t.Errorf("MaxRetries %d: never ready", tries)
		}
		if r = r.Fail(b, day(0, 0)); r.Ready(b, day(0, 59)) || !r.NextAt.Equal(day(1, 0)) {
			t.Errorf("MaxRetries %d after a failure: %+v", tries, r)
		}
	}
	for _, period := range []time.Duration{-1, 0} {
		b := Budget{MaxRetries: 1, Period: period}
		if r := NewRetry(day(0, 0)).Fail(b, day(0, 0)); !r.NextAt.Equal(day(24, 0)) {
			t.Errorf("period %d: %+v", period, r)
		}
	}
}

// the persisted backoff of a workflow.
func TestWorkflowBackoffEndsAtItsBudget(t *testing.T) {
	r, now := NewRetry(day(0, 0)), day(5, 0)
	for i, seconds := range []time.Duration{10, 20, 40, 80, 160} {
		next, ok := r.FailTransient(now)
		if !ok || next.Count != i+1 || !next.NextAt.Equal(now.Add(seconds*time.Second)) {
			t.Fatalf("failure %d: %+v, %v", i+1, next, ok)
		}
		r = next
	}
	r, ok := r.FailTransient(now)
	if ok || r.Count != 6 || !r.NextAt.IsZero() {
		t.Errorf("sixth failure: %+v, %v", r, ok)
	}
}

// three crashes in a row end the recovery; any other end breaks the row,
// and a crash spends nothing of the other budget.
func TestCrashBudgetCountsConsecutiveCrashes(t *testing.T) {
	crash := func(r Retry, n int) (Retry, bool) {
		ok := true
		for range n {
			r, ok = r.Crash()
		}
		return r, ok
	}
	start := Retry{Count: 2, PeriodStart: day(0, 0), NextAt: day(1, 0)}
	two, ok := crash(start, 2)
	if want := (Retry{Count: 2, Crashes: 2, PeriodStart: day(0, 0), NextAt: day(1, 0)}); !ok || two != want {
		t.Errorf("two crashes: %+v, %v", two, ok)
	}
	if three, ok := crash(start, 3); ok || three.Crashes != 3 {
		t.Errorf("three crashes: %+v, %v", three, ok)
	}
	failedOnce, _ := two.FailTransient(day(1, 0))
	for name, r := range map[string]Retry{
		"success": two.Succeed(), "failure": failedOnce, "source failure": two.Fail(DefaultBudget(), day(1, 0)),
	} {
		if _, ok := crash(r, 2); !ok {
			t.Errorf("two crashes after a %s are too many", name)
		}
	}
}

// B-17, X-44: over any history, counts are never negative, every failure waits
// into the future but not past the period, and waiting is always enough.
func TestRetryStateOverAnyHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Budget{
			MaxRetries: rapid.IntRange(-2, 1000).Draw(t, "max"),
			Period:     time.Duration(rapid.Int64Range(int64(time.Minute), int64(1000*24*time.Hour)).Draw(t, "period")),
		}
		now := day(0, 0)
		r := Retry{Count: rapid.IntRange(0, math.MaxInt).Draw(t, "count"), PeriodStart: now}
		for range 20 {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(b.Period)).Draw(t, "passed")))
			switch rapid.IntRange(0, 2).Draw(t, "event") {
			case 0:
				r = r.Fail(b, now)
				if !r.NextAt.After(now) || r.NextAt.After(r.PeriodStart.Add(b.Period)) || r.Ready(b, now) {
					t.Fatalf("failure at %v: %+v with %+v", now, r, b)
				}
			case 1:
				r = r.Succeed()
			case 2:
				r, _ = r.Crash()
			}
			if r.Count < 0 || r.Crashes < 0 {
				t.Fatalf("negative count: %+v", r)
			}
			later, _ := r.ResetIfDue(b, r.PeriodStart.Add(b.Period))
			if !later.Ready(b, r.PeriodStart.Add(b.Period)) {
				t.Fatalf("not ready after its period: %+v with %+v", r, b)
			}
		}
	})
}
