package api

import (
	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/relay"
)

// Relay makes the feed tell the other nodes what happens here. It must be called
// before anything is published or followed.
func (f *Feed) Relay(r *relay.Relay) { f.relay = r }

// wanted reports whether anybody follows, here or on another node.
func (f *Feed) wanted() bool { return f.awake.Load() || f.relay.WantsEvents() }

// Followed reports whether anybody follows here, or did a moment ago.
func (f *Feed) Followed() bool { return f.awake.Load() }

// Heard hands what happened on another node to those who follow here. What was
// lost on the way is told to all of them, because nobody knows whose it was.
func (f *Feed) Heard(news relay.News) {
	f.waits.ended(news.Ended...)
	if !f.awake.Load() {
		return
	}
	if news.Lost > 0 {
		f.mu.Lock()
		for _, to := range f.followers {
			to.lost, to.atLeast = to.lost+news.Lost, true
			select {
			case to.wake <- struct{}{}:
			default:
			}
		}
		f.mu.Unlock()
	}
	for _, e := range news.Events {
		f.hand(e.Kind, e.ID, subject{lane: laneKey{pawl.Kind(e.LaneKind), e.LaneKey}, job: e.Owner}, e.Data)
	}
}
