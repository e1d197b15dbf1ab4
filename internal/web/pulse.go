package web

import (
	"sync"
	"sync/atomic"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/source"
	"github.com/pawlrun/pawl/internal/workflow"
)

// Pulse tells open pages that something they show has changed: not what, only
// that. Telling never waits, and costs next to nothing while no page is open.
type Pulse struct {
	count atomic.Int32
	told  atomic.Uint64 // how often Changed was called

	mu        sync.Mutex
	followers map[*follower]struct{} // guarded by mu
	closed    bool                   // guarded by mu
	atEnd     []func()               // guarded by mu
	end       chan struct{}          // closed by Close
}

// follower is one open page.
type follower struct {
	lane string        // kind:name, or kind:id of a schedule; everyLane is all
	wake chan struct{} // has room for one
}

// everyLane is what a page follows that is about all lanes.
const everyLane = "*"

// NewPulse makes a pulse.
func NewPulse() *Pulse {
	return &Pulse{followers: map[*follower]struct{}{}, end: make(chan struct{})}
}

// Changed tells that something about a lane changed.
func (p *Pulse) Changed(kind pawl.Kind, name string) {
	p.told.Add(1)
	if p.count.Load() == 0 {
		return
	}
	lane := string(kind) + ":" + name
	p.mu.Lock()
	defer p.mu.Unlock()
	for f := range p.followers {
		if f.lane != everyLane && f.lane != lane {
			continue
		}
		select {
		case f.wake <- struct{}{}:
		default: // it is going to look anyway
		}
	}
}

// ObserveRun is made for ledger.Config.
func (p *Pulse) ObserveRun(e ledger.Event) {
	if p.count.Load() == 0 {
		p.told.Add(1)
		return
	}
	name := e.Run.Lane
	switch e.Run.Kind {
	case pawl.KindWorkflow:
		name = workflow.NameOfLane(name)
	case pawl.KindSchedule:
		name = schedule.ScheduleOfRun(&e.Run)
	case pawl.KindSource:
	}
	p.Changed(e.Run.Kind, name)
}

// ObserveWorkflow is made for workflow.Options.
func (p *Pulse) ObserveWorkflow(c workflow.Change) { p.Changed(pawl.KindWorkflow, c.Workflow) }

// ObserveSource is made for source.Options.
func (p *Pulse) ObserveSource(c source.Change) { p.Changed(pawl.KindSource, c.Source) }

// ObserveSchedule is made for schedule.Options. Pages follow a schedule by its id.
func (p *Pulse) ObserveSchedule(c schedule.Change) { p.Changed(pawl.KindSchedule, c.Schedule) }

// Close ends all streams; there will be no others.
func (p *Pulse) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		close(p.end)
		for _, f := range p.atEnd {
			f()
		}
	}
}

// whenClosed has a function called when there will be no more to tell.
func (p *Pulse) whenClosed(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.atEnd = append(p.atEnd, f)
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
