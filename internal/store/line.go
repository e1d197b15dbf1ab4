package store

import (
	"slices"
	"sync"
)

// line is those who can do something together. The first that come lead; who
// comes meanwhile waits until a leader takes it along, or has ended and makes the
// first that waits lead. The zero value is ready.
type line[T comparable] struct {
	mu      sync.Mutex
	leaders int // who are at work; guarded by mu
	waiting []T // in the order in which they came; guarded by mu
}

// enter reports whether one leads, because there are fewer leaders than most;
// else it waits from now on.
func (l *line[T]) enter(one T, most int) (leads bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leaders < most {
		l.leaders++
		return true
	}
	l.waiting = append(l.waiting, one)
	return false
}

// gather takes along those that wait and may come.
func (l *line[T]) gather(may func(T) bool) (with []T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = slices.DeleteFunc(l.waiting, func(one T) bool {
		if !may(one) {
			return false
		}
		with = append(with, one)
		return true
	})
	return with
}

// leave reports whether one still waited, which it does no longer.
func (l *line[T]) leave(one T) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, one)
	if i < 0 {
		return false
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	return true
}

// pass ends a leader and tells who leads instead, if anybody waits.
func (l *line[T]) pass() (next T, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.leaders--
		return next, false
	}
	next = l.waiting[0]
	l.waiting = slices.Delete(l.waiting, 0, 1)
	return next, true
}
