package store

import "sync"

// Turn is a mutex for whoever asks the database while it has it, which can take
// long. Those who wait for a sync.Mutex stop the clock of simulated time; those
// who wait for a Turn do not. The zero value is free.
type Turn struct {
	mu    sync.Mutex
	freed sync.Cond // of mu
	taken bool      // guarded by mu
}

// Lock waits until the turn is free and takes it.
func (t *Turn) Lock() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.freed.L = &t.mu
	for t.taken {
		t.freed.Wait()
	}
	t.taken = true
}

// Unlock frees the turn.
func (t *Turn) Unlock() {
	t.mu.Lock()
	t.taken = false
	t.mu.Unlock()
	t.freed.Signal()
}
