package hook

import (
	"sync"
	"time"
)

const (
	// refusedKept is how many refused deliveries of a hook are kept, the newest.
	refusedKept = 100
	// refusedBurst of them are written down at once, and one every refusedEvery
	// after that: whoever sends rubbish makes the database work no more than this.
	refusedBurst = 20
	refusedEvery = time.Second
)

// limiter bounds how many refused deliveries are written down.
type limiter struct {
	mu  sync.Mutex
	due map[string]time.Time // when the burst of a hook is whole again; guarded by mu
}

// allow reports whether one more of a hook may be written down.
func (l *limiter) allow(name string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.due == nil {
		l.due = map[string]time.Time{}
	}
	due := l.due[name]
	if due.Before(now) {
		due = now
	}
	if due = due.Add(refusedEvery); due.Sub(now) > refusedBurst*refusedEvery {
		return false
	}
	l.due[name] = due // of known hooks only
	return true
}
