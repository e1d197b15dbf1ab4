package run

import (
	"math"
	"time"
)

// Retry is the persisted retry state of one lane. It exists from the
// registration of the lane on, so a restart grants no new budget.
type Retry struct {
	Count       int       // failures in the current period; for workflows: in a row
	Crashes     int       // crashed attempts in a row
	PeriodStart time.Time // when the current period began
	NextAt      time.Time // earliest next attempt; zero when not backing off
}

// Budget is what a source may spend on failures.
type Budget struct {
	MaxRetries int           // failures per period; the first attempt counts
	Period     time.Duration // rolling, from Retry.PeriodStart
}

// DefaultBudget is that of a source which declares none.
func DefaultBudget() Budget { return Budget{MaxRetries: 5, Period: 24 * time.Hour} }

// NewRetry returns the state of a lane registered now.
func NewRetry(now time.Time) Retry { return Retry{PeriodStart: now} }

// Fail records a failed attempt of a source: the n-th failure of the period
// waits 2^n minutes, the last of the budget waits for the end of the period
// . No wait is longer than that, because the reset would end it.
func (r Retry) Fail(b Budget, now time.Time) Retry {
	r, _ = r.ResetIfDue(b, now)
	r.Crashes = 0
	r.Count = addOne(r.Count)
	left := r.periodEnd(b).Sub(now)
	r.NextAt = now.Add(left)
	if !r.Exhausted(b) {
		r.NextAt = now.Add(doubled(time.Minute, left, r.Count))
	}
	return r
}

// FailTransient records a transient failure of a workflow. ok is false once
// the budget is used up; there is then no next attempt to wait for, and the
// lane needs attention.
func (r Retry) FailTransient(now time.Time) (next Retry, ok bool) {
	r.Crashes = 0
	r.Count = addOne(r.Count)
	wait, ok := Transient(r.Count)
	r.NextAt = time.Time{}
	if ok {
		r.NextAt = now.Add(wait)
	}
	return r, ok
}

// Crash records an attempt that was found unfinished at a restart. ok is false
// once the lane has crashed too often in a row. A crash spends nothing
// of the budget for failures.
func (r Retry) Crash() (next Retry, ok bool) {
	r.Crashes = addOne(r.Crashes)
	return r, !CrashLoop(r.Crashes)
}

// Succeed records a success: the budget is whole again and nothing backs off,
// but the period goes on.
func (r Retry) Succeed() Retry {
	return Retry{PeriodStart: r.PeriodStart}
}

// ResetIfDue begins a new period if the current one is over, and then also
// ends the backoff (B-41, X-44). It reports whether it did.
func (r Retry) ResetIfDue(b Budget, now time.Time) (Retry, bool) {
	if now.Before(r.periodEnd(b)) {
		return r, false
	}
	return Retry{Crashes: r.Crashes, PeriodStart: now}, true
}

// Exhausted reports whether the budget of the current period is used up.
func (r Retry) Exhausted(b Budget) bool { return r.Count >= max(b.MaxRetries, 1) }

// Ready reports whether the retry state lets a source run now (B-17, B-18).
// The caller resets a period that is over first.
func (r Retry) Ready(b Budget, now time.Time) bool {
	return !r.Exhausted(b) && !now.Before(r.NextAt)
}

// periodEnd treats a period that is not positive as the default one: without
// a length there would be no end to retrying.
func (r Retry) periodEnd(b Budget) time.Time {
	if b.Period <= 0 {
		b.Period = DefaultBudget().Period
	}
	return r.PeriodStart.Add(b.Period)
}

// addOne counts without ever turning negative.
func addOne(n int) int {
	if n == math.MaxInt {
		return n
	}
	return max(n, 0) + 1
}
