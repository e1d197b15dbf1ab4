package execution

import (
	"sync"
	"time"
)

// doubts are claims of this process of which nobody knows whether they were
// committed, because the answer was lost. Their runs never left, so who finds one
// need not wait for its lease. The zero value is ready.
type doubts struct {
	mu     sync.Mutex
	owners map[string]time.Time // when they were made; guarded by mu
}

// note remembers a claim for as long as its lease holds.
func (d *doubts) note(owner string, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.owners == nil {
		d.owners = map[string]time.Time{}
	}
	for other, at := range d.owners {
		if now.Sub(at) > 2*leaseFor {
			delete(d.owners, other)
		}
	}
	d.owners[owner] = now
}

// has reports whether a claim is one of them.
func (d *doubts) has(owner string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, there := d.owners[owner]
	return there
}
