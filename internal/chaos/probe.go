//go:build linux

package main

import (
	"time"
)

// probeAhead is how long before it is due a job of a probing lane is enqueued:
// longer than anything keeps the API from answering, so that what is late is late
// because of who runs it.
const probeAhead = 25 * time.Second

// probeEvery is the time between two jobs of a probing lane.
const probeEvery = 500 * time.Millisecond

// probeLane is a lane that has a job every half second, to see when it runs again.
type probeLane struct {
	name   string
	bucket int64
	due    map[string]time.Time // of acts that have not arrived; guarded by world.mu
	late   []lateness           // guarded by world.mu
}

// lateness is a job that arrived.
type lateness struct{ due, at time.Time }

func (p *probeLane) arrived(what string, at time.Time) {
	due, ok := p.due[what]
	if !ok {
		return
	}
	delete(p.due, what)
	p.late = append(p.late, lateness{due, at})
}

// overdue is how long the lane's oldest job has been due, and nobody ran it.
func (p *probeLane) overdue(now time.Time) time.Duration {
	var worst time.Duration
	for _, due := range p.due {
		worst = max(worst, now.Sub(due))
	}
	return worst
}

// recovered is how long after the fault the lane's jobs ran again: the longest
// that any of them waited from the fault on, or from when it was due.
func (p *probeLane) recovered(fault time.Time) time.Duration {
	var worst time.Duration
	for _, l := range p.late {
		if l.at.After(fault) {
			worst = max(worst, l.at.Sub(later(fault, l.due)))
		}
	}
	return worst
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
