package demo

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlrun/pawl/internal/server"
)

// house is the server of the demo.
type house struct {
	started server.Started
	ctx     context.Context // ends when the server is gone
	stop    context.CancelFunc
	closed  chan struct{}
	err     error // of the server; set before closed is
}

// openHouse starts a server and returns when it serves.
func openHouse(ctx context.Context, cfg server.Config) (*house, error) {
	// The server outlives the end of ctx until the story is told.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	gone, leave := context.WithCancel(context.WithoutCancel(ctx))
	h := &house{ctx: gone, stop: stop, closed: make(chan struct{})}
	ready := make(chan server.Started, 1)
	go func() {
		h.err = server.Run(running, cfg, func(s server.Started) { ready <- s })
		leave()
		close(h.closed)
	}()
	select {
	case h.started = <-ready:
		return h, nil
	case <-h.closed:
		stop()
		return nil, errors.Join(h.err, ctx.Err())
	case <-ctx.Done():
		return nil, h.close()
	}
}

// close stops the server and waits for it.
func (h *house) close() error {
	h.stop()
	<-h.closed
	if h.err != nil {
		return fmt.Errorf("run the server: %w", h.err)
	}
	return nil
}

// failure is why the server is gone although nobody stopped it; nil while it
// serves.
func (h *house) failure() error {
	select {
	case <-h.closed:
		return errors.Join(errors.New("the server ended too early"), h.err)
	default:
		return nil
	}
}
