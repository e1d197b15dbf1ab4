package run

import (
	"hash/fnv"
	"time"
)

// SlotBudget is what a slot of a schedule may spend on failures. The zero one is
// the default: SlotAttempts attempts, at once.
type SlotBudget struct {
	Attempts int           // the first one counts; 0: SlotAttempts
	Within   time.Duration // the pauses are spread over this; 0: they begin with a second
	Since    time.Time     // when the first attempt began; used with Within
}

// longestPause is the longest one of a budget that has all the time.
const longestPause = 5 * time.Minute

// Next is when the attempt after that many failed ones may begin, zero if there is
// none. The pauses double: from a second on, or so that the last attempt begins
// when about three quarters of Within are over. Those of a definition are up to a
// tenth longer or shorter, by the seed, so that slots that failed together do not come back
// together. The other side is not asked before the time that it wants.
func (b SlotBudget) Next(failures int, now time.Time, asked time.Duration, seed string) time.Time {
	attempts := b.Attempts
	if attempts <= 0 {
		attempts = SlotAttempts
	}
	if failures >= attempts {
		return time.Time{}
	}
	pause := doubled(time.Second, longestPause, failures-1)
	if b.Within > 0 {
		first := b.Within * 3 / 4
		for range min(attempts-1, 40) {
			first /= 2
		}
		pause = doubled(max(first, time.Second), b.Within, failures-1)
	}
	if b.Attempts > 0 {
		pause = jittered(pause, seed)
	}
	next := now.Add(max(pause, asked))
	if b.Within > 0 && next.After(b.Since.Add(b.Within)) {
		return time.Time{}
	}
	return next
}

// jittered is a pause that is up to a tenth longer or shorter.
func jittered(pause time.Duration, seed string) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(seed)) // it never fails
	const steps = 2001
	return (pause - pause/10 + pause/10*time.Duration(h.Sum64()%steps)/1000).Truncate(time.Millisecond)
}
