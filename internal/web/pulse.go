package web

import (
	"sync"
	"sync/atomic"

	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/relay"
)

// Pulse tells open pages that something they show has changed: not what, only
// that. Telling never waits, and costs next to nothing while no page is open, here
// or on another node.
type Pulse struct {
	count atomic.Int32
	told  atomic.Uint64 // how often Changed or Heard was called
	relay *relay.Relay  // tells other nodes; nil: there are none

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

// Relay makes the pulse tell the other nodes what changes here. It must be called
// before anything is told or followed.
func (p *Pulse) Relay(r *relay.Relay) { p.relay = r }

// Followed reports whether a page is open here.
func (p *Pulse) Followed() bool { return p.count.Load() > 0 }

// Changed tells that something about a lane changed.
func (p *Pulse) Changed(of lane.Ref) {
	name := string(of.Kind) + ":" + of.Key
	p.relay.Lane(name)
	p.tell(name)
}

// Heard tells that something changed on another node.
func (p *Pulse) Heard(news relay.News) {
	for _, name := range news.Lanes {
		p.tell(name)
	}
}

func (p *Pulse) tell(name string) {
	p.told.Add(1)
	if p.count.Load() == 0 {
		return
	}
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
	if p.count.Swap(int32(len(p.followers))) == 0 { //nolint:gosec // at most access.MostStreams
		p.relay.Followed()
	}
	return f, true
}

// leave removes a page.
func (p *Pulse) leave(f *follower) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.followers, f)
	p.count.Store(int32(len(p.followers))) //nolint:gosec // at most access.MostStreams
}
