package queue

import (
	"errors"
	"fmt"
	"sync"
	"time"

	pawl "github.com/pawlrun/pawl"
)

var errStarting = errors.New("starting")

// The duties of a queue that must succeed again and again.
const (
	dutyBeat  = "heartbeat"
	dutyShare = "share"
	dutyFetch = "fetch"
	dutyCheck = "check"
	dutyWrite = "finish"
)

// health is what keeps the queue from working, duty by duty: that one works says
// nothing about the others.
type health struct {
	mu       sync.Mutex
	starting bool
	failed   map[string]error     // guarded by mu
	since    map[string]time.Time // guarded by mu: when what is under way began

	unheld      int // guarded by mu: shares in this node's name that it does not work
	unheldSince time.Time
}

func (h *health) begin(duty string) {
	h.mu.Lock()
	h.since[duty] = time.Now()
	h.mu.Unlock()
}

// ended notes how a duty went; nil is well.
func (h *health) ended(duty string, err error) {
	h.mu.Lock()
	delete(h.since, duty)
	if err == nil {
		delete(h.failed, duty)
	} else {
		h.failed[duty] = err
	}
	h.mu.Unlock()
}

func (h *health) started() {
	h.mu.Lock()
	h.starting = false
	h.mu.Unlock()
}

// shares notes how many shares are in this node's name without being worked.
func (h *health) shares(unheld int, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if unheld == 0 || h.unheld == 0 {
		h.unheldSince = now
	}
	h.unheld = unheld
}

// Health is nil while the queue works, else what keeps it from working.
func (q *Queue) Health() error {
	b := q.board
	b.mu.Lock()
	ends, checks := len(b.finished) > 0, false
	for _, e := range b.entries {
		checks = checks || e.place == inCheck || e.place == inReady && e.unknown
	}
	b.mu.Unlock()
	q.health.forgive(dutyWrite, ends)
	q.health.forgive(dutyCheck, checks)
	return q.health.judge(time.Now(), q.cfg.Lease)
}

// forgive forgets that a duty failed of which nothing is left to do: what it was
// for has another owner by now, and nobody would ever do it with success.
func (h *health) forgive(duty string, left bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, under := h.since[duty]; !left && !under {
		delete(h.failed, duty)
	}
}

func (h *health) judge(now time.Time, lease time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.starting {
		return errStarting
	}
	for _, duty := range []string{dutyBeat, dutyShare, dutyFetch, dutyCheck, dutyWrite} {
		if err := h.failed[duty]; err != nil {
			return err
		}
		if at, under := h.since[duty]; under && now.Sub(at) > lease {
			return &pawl.Error{Code: pawl.CodeUnavailable, Msg: fmt.Sprintf("the %s of the queue does not end", duty)}
		}
	}
	if h.unheld > 0 && now.Sub(h.unheldSince) > 2*lease {
		return &pawl.Error{
			Code: pawl.CodeUnavailable, Msg: fmt.Sprintf("%d shares of the work are in the name of this node, and it does not get them", h.unheld),
			Hint: "If this lasts, restart the node.",
		}
	}
	return nil
}

func (h *health) unheldShares() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unheld
}
