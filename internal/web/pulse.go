package web

import (
	"sync"
	"sync/atomic"

	"github.com/pawlrun/pawl/internal/lane"
)

// Pulse tells open pages that something they show has changed: not what, only
// that. Telling never waits, and costs next to nothing while no page is open.
type Pulse struct {
	count atomic.Int32
	told  atomic.Uint64 // how often Changed was called

	mu        sync.Mutex
	followers map[*follower]struct{} // guarded by mu
	closed    bool                   // guarded by mu
	end       chan struct{}          // closed by Close
}

// follower is one open page.
type follower struct {
	lane string        // kind:key; everyLane is all
	wake chan struct{} // has room for one
}

// everyLane is what a page follows that is about all lanes.
const everyLane = "*"

// NewPulse makes a pulse.
func NewPulse() *Pulse {
	return &Pulse{followers: map[*follower]struct{}{}, end: make(chan struct{})}
}

// Changed tells that something about a lane changed.
func (p *Pulse) Changed(of lane.Ref) {
	p.told.Add(1)
	if p.count.Load() == 0 {
		return
	}
	name := string(of.Kind) + ":" + of.Key
	p.mu.Lock()
	defer p.mu.Unlock()
	for f := range p.followers {
		if f.lane != everyLane && f.lane != name {
			continue
		}
		select {
		case f.wake <- struct{}{}:
		default: // it is going to look anyway
		}
	}
}

// Close ends all streams; there will be no others.
func (p *Pulse) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		close(p.end)
	}
}

// follow adds a page. It reports false when there will be nothing to tell. How
// many there can be is for access.Keeper to say.
func (p *Pulse) follow(lane string) (*follower, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false
	}
	f := &follower{lane: lane, wake: make(chan struct{}, 1)}
	p.followers[f] = struct{}{}
	p.count.Store(int32(len(p.followers))) //nolint:gosec // at most access.MostStreams
	return f, true
}

// leave removes a page.
func (p *Pulse) leave(f *follower) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.followers, f)
	p.count.Store(int32(len(p.followers))) //nolint:gosec // at most access.MostStreams
}
