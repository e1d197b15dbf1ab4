package worker

import (
	"context"
	"fmt"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
)

// group is claims that wait for the same jobs.
type group struct {
	task  string
	owner string // empty is everybody's
}

// waiter is a claim that may have to wait.
type waiter struct {
	of   group
	wake chan struct{} // has room for one sign
}

// enter puts a claim in line, before it looks: whatever happens after that wakes
// it.
func (s *Service) enter(r Request) (*waiter, error) {
	w := &waiter{of: group{task: r.Task}, wake: make(chan struct{}, 1)}
	if r.Owner != nil {
		w.of.owner = *r.Owner
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting >= s.limits.waiting {
		return nil, &pawl.Error{Code: pawl.CodeUnavailable, Reason: "too_many_claims", Op: "claim", Msg: fmt.Sprintf("%d claims are waiting already", s.waiting), Hint: "Claim more jobs at once with fewer workers."}
	}
	s.waiting++
	s.groups[w.of] = append(s.groups[w.of], w)
	return w, nil
}

// leave takes a claim out of line. A sign that it did not follow is for the next
// one, who now also looks at the clock.
func (s *Service) leave(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting--
	line := s.groups[w.of]
	first := line[0] == w
	line = slices.DeleteFunc(line, func(o *waiter) bool { return o == w })
	if len(line) == 0 {
		delete(s.groups, w.of)
		return
	}
	s.groups[w.of] = line
	if first || len(w.wake) > 0 {
		signal(line)
	}
}

// signal wakes the first that has not been told.
func signal(line []*waiter) {
	for _, w := range line {
		select {
		case w.wake <- struct{}{}:
			return
		default:
		}
	}
}

// Wake tells that a task may have something for those who wait.
func (s *Service) Wake(task string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, line := range s.groups {
		if of.task == task {
			signal(line)
		}
	}
}

// pass wakes another claim, because there is more than this one took.
func (s *Service) pass(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	signal(slices.DeleteFunc(slices.Clone(s.groups[w.of]), func(o *waiter) bool { return o == w }))
}

// await waits until there may be something, and reports whether to look again. The
// first in line looks at the clock for all.
func (s *Service) await(ctx context.Context, w *waiter, next, until time.Time) bool {
	for {
		now := time.Now()
		if !now.Before(until) {
			return false
		}
		at := until
		if s.isFirst(w) {
			if poll := now.Add(s.limits.poll); poll.Before(at) {
				at = poll
			}
			if !next.IsZero() && next.Before(at) {
				at = next
			}
		}
		timer := time.NewTimer(at.Sub(now))
		select {
		case <-w.wake:
			timer.Stop()
			return true
		case <-timer.C:
			if at.Before(until) {
				return true
			}
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-s.end:
			timer.Stop()
			return false
		}
	}
}

func (s *Service) isFirst(w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.groups[w.of]
	return len(line) > 0 && line[0] == w
}

// Close ends all waiting: the process stops.
func (s *Service) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.end)
	}
}
