package queue

import (
	"errors"
	"sync"
)

var errStarting = errors.New("starting")

// health is the last thing that kept the queue from working, if it still does.
type health struct {
	mu  sync.Mutex
	err error // guarded by mu
}

func (h *health) set(err error) {
	h.mu.Lock()
	h.err = err
	h.mu.Unlock()
}

// clear forgets a failure of reading or writing: it works again. A queue that
// is still starting goes on starting.
func (h *health) clear() {
	h.mu.Lock()
	if !errors.Is(h.err, errStarting) {
		h.err = nil
	}
	h.mu.Unlock()
}

// Health is nil while the queue works, else what keeps it from working.
func (q *Queue) Health() error {
	q.health.mu.Lock()
	defer q.health.mu.Unlock()
	return q.health.err
}
