package run

import (
	"time"
)

// The budgets of a lane. The first attempt counts. A transient failure is
// followed by up to five retries, so the run whose failure is the sixth in a row
// is the last one that the host starts by itself.
const (
	TransientAttempts = 6
	ReconcileAttempts = 5
	SlotAttempts      = 3
	CrashAttempts     = 3
)

// Transient returns how long to wait after the given number of transient
// failures in a row: 10 s, doubling up to 10 min. ok is false once the budget
// is used up and a person must look.
func Transient(failures int) (wait time.Duration, ok bool) {
	return doubled(10*time.Second, 10*time.Minute, failures-1), failures < TransientAttempts
}

// Reconcile returns how long to wait before asking again what became of a
// call, after the background loop has asked the given number of times: 10 s,
// doubling up to 10 min. The attempt made inline is not counted. ok is false
// once the loop must give up and the mutation becomes indeterminate.
func Reconcile(attempts int) (wait time.Duration, ok bool) {
	return doubled(10*time.Second, 10*time.Minute, attempts), attempts < ReconcileAttempts
}

// CrashLoop reports whether that many consecutive crashed attempts of one
// chain are enough to stop recovering by itself.
func CrashLoop(crashes int) bool { return crashes >= CrashAttempts }

// doubled returns base doubled n times, at most limit. It cannot overflow,
// however large n is.
func doubled(base, limit time.Duration, n int) time.Duration {
	d := base
	for ; n > 0 && d < limit; n-- {
		if d > limit/2 {
			return limit
		}
		d *= 2
	}
	return min(d, limit)
}
