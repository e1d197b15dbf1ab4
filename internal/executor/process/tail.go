package process

import (
	"bytes"
	"sync"
)

// Tail keeps the last bytes that are written to it, and counts all. It is safe for
// concurrent use.
type Tail struct {
	Keep int // bytes

	mu    sync.Mutex
	kept  []byte // at most twice Keep; guarded by mu
	total int64  // guarded by mu
}

// Write keeps the end of p. It never fails: a program must not be stopped by its
// log.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total += int64(len(p))
	rest := p
	if len(rest) > t.Keep {
		rest = rest[len(rest)-t.Keep:]
	}
	if len(t.kept)+len(rest) > 2*t.Keep {
		t.kept = append(t.kept[:0], t.kept[max(0, len(t.kept)-t.Keep):]...)
	}
	t.kept = append(t.kept, rest...)
	return len(p), nil
}

// Last is a copy of the last bytes, and how many there were in all.
func (t *Tail) Last() ([]byte, int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.kept[max(0, len(t.kept)-t.Keep):]), t.total
}
