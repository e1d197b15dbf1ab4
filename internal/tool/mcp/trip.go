package mcp

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/pawlrun/pawl/internal/outbound"
)

// trip is what is known about the way of one request. The transports report to
// the trip in the context of the request. A nil trip takes no notes.
type trip struct {
	mu         sync.Mutex
	follows    bool // it is about all requests, the last one counting; else about the first one
	begun      bool
	arrived    bool            // it may have arrived at the server
	failure    *outbound.Error // of the network
	status     int             // of HTTP; 0 if there was no answer
	retryAfter time.Duration
}

type tripKey struct{}

// attach returns a context whose request reports to the trip.
func (t *trip) attach(ctx context.Context) context.Context {
	return context.WithValue(ctx, tripKey{}, t)
}

// tripOf returns the trip of a context, or nil.
func tripOf(ctx context.Context) *trip {
	t, _ := ctx.Value(tripKey{}).(*trip)
	return t
}

// begin notes that a request is about to be sent, and reports whether it is one
// that the trip is about. A cancelled call sends a notice of that with values
// of its own context; that is not what the trip is about.
func (t *trip) begin() bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun && !t.follows {
		return false
	}
	t.begun, t.failure, t.status = true, nil, 0
	return true
}

// mayHaveArrived notes that a request was sent.
func (t *trip) mayHaveArrived() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.arrived = true
}

// answered notes the head of an answer.
func (t *trip) answered(resp *http.Response) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.arrived, t.status = true, resp.StatusCode
	t.retryAfter, _ = outbound.RetryAfter(resp.Header, time.Now(), time.Hour)
}

// failed notes that there was no answer, or none that could be read.
func (t *trip) failed(e *outbound.Error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failure = e
	t.arrived = t.arrived || e.MaybeSent
}

// facts are a copy of what is known.
func (t *trip) facts() (arrived bool, status int, failure *outbound.Error, retryAfter time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.arrived, t.status, t.failure, t.retryAfter
}
