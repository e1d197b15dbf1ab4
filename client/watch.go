package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	pawl "github.com/pawlrun/pawl"
)

const (
	streamPath     = "/api/v1/stream"
	firstReconnect = 200 * time.Millisecond
	lastReconnect  = 5 * time.Second
	// silence ends a stream on which nothing came for so long, not even a
	// comment: the connection is dead and nobody said so.
	silence = 90 * time.Second
)

// Watcher is who is told of a stream. Both functions are called from the
// goroutine of Watch, and an error of theirs ends it.
type Watcher struct {
	Kind string // of the events, such as job; empty is all
	ID   string // of the thing they are about; empty is all

	// CatchUp is called at every new connection, before its first event, and
	// where events were lost. What it reads then and the events after it leave
	// no gap between them.
	CatchUp func(ctx context.Context) error
	Event   func(StreamEvent) error

	// Every, if it is not zero, stands in for Event where events tell that
	// something has changed but not what: CatchUp is called a moment after each
	// burst of them, and after so long without one, because a stream tells of one
	// process and others may have changed something too.
	Every time.Duration
}

// burst is how long events are gathered before CatchUp is called for them.
const burst = 300 * time.Millisecond

// dropped is the type of the event that tells that others were lost.
const dropped = "dropped"

// Watch follows the stream of events until ctx ends, which is no error. A
// connection that breaks is made again; only the first must succeed.
func (c *Client) Watch(ctx context.Context, w Watcher) error {
	wait, once, lastID := firstReconnect, false, ""
	for {
		connected, err := c.follow(ctx, &lastID, w)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // what went wrong is that the caller is done
		case !retriable(err), !once && !connected:
			return err
		case connected:
			once, wait = true, firstReconnect
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		wait = min(2*wait, lastReconnect)
	}
}

// retriable reports whether another connection may do better.
func retriable(err error) bool {
	code := pawl.ErrorCode(err)
	return code == pawl.CodeUnreachable || code == pawl.CodeUnavailable
}

// follow makes one connection and tells of its events until it breaks.
func (c *Client) follow(ctx context.Context, lastID *string, w Watcher) (connected bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := c.request(ctx, http.MethodGet, streamPath, w.query(), nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if *lastID != "" {
		req.Header.Set("Last-Event-ID", *lastID)
	}
	dead := time.AfterFunc(answerTimeout, func() { cancel(errSilent) })
	defer dead.Stop()
	resp, err := c.do(req)
	if err != nil {
		return false, c.unreachable(ctx, err)
	}
	defer resp.Body.Close() //nolint:errcheck // nothing to lose
	if resp.StatusCode != http.StatusOK {
		return false, c.problem(resp, readSome(resp.Body))
	}
	dead.Reset(silence)
	if err := w.CatchUp(ctx); err != nil {
		return true, err
	}
	return true, c.dispatch(ctx, newEventReader(&heard{resp.Body, dead}), lastID, w)
}

// dispatch passes on the events of one connection until it breaks.
func (c *Client) dispatch(ctx context.Context, events *eventReader, lastID *string, w Watcher) error {
	type read struct {
		event StreamEvent
		err   error
	}
	heard := make(chan read)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			event, err := events.next()
			select {
			case heard <- read{event, err}:
			case <-ended:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	again := newAlarm(w.Every)
	defer again.stop()
	for {
		var err error
		select {
		case got := <-heard:
			if got.err != nil {
				return c.unreachable(ctx, got.err)
			}
			*lastID = got.event.ID
			switch {
			case w.Every > 0:
				again.within(burst)
			case got.event.Type == dropped:
				err = w.CatchUp(ctx)
			default:
				err = w.Event(got.event)
			}
		case <-again.c:
			err = w.CatchUp(ctx)
			again.rearm()
		}
		if err != nil {
			return err
		}
	}
}

// alarm goes off after a while, or earlier. Without a while it never does.
type alarm struct {
	c     <-chan time.Time
	timer *time.Timer
	every time.Duration
	soon  bool
}

func newAlarm(every time.Duration) *alarm {
	if every <= 0 {
		return &alarm{}
	}
	timer := time.NewTimer(every)
	return &alarm{c: timer.C, timer: timer, every: every}
}

// within makes it go off after d; what makes it do so already does not put it
// off.
func (a *alarm) within(d time.Duration) {
	if !a.soon {
		a.soon = true
		a.timer.Reset(d)
	}
}

func (a *alarm) rearm() {
	a.soon = false
	a.timer.Reset(a.every)
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}

var errSilent = errors.New("the server fell silent")

func (w Watcher) query() url.Values {
	query := url.Values{}
	if w.Kind != "" {
		query.Set("kind", w.Kind)
	}
	if w.ID != "" {
		query.Set("id", w.ID)
	}
	return query
}

// heard puts the end off whenever something was read.
type heard struct {
	body io.Reader
	dead *time.Timer
}

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.body.Read(p)
	if n > 0 {
		h.dead.Reset(silence)
	}
	return n, err
}

// readSome reads the body of a refusal.
func readSome(r io.Reader) []byte {
	raw, _ := io.ReadAll(io.LimitReader(r, 1<<20)) // what is missing shows as a problem that cannot be read
	return raw
}
