package outbound

import (
	"context"
	"net"
	"sync/atomic"
)

type (
	permitKey   struct{}
	permissions struct{}
)

// WithPermit returns a context whose mutations leave only while the permit holds.
// It is asked before a mutation is made, and again before each piece of it is
// written to the network: connecting may take long, and a process may be stopped
// for any time between two of its instructions. What was not permitted is an Error
// with the permit's own error as its cause; MaybeSent is false unless a piece of
// the request had been written before. Reads need no permit.
func WithPermit(ctx context.Context, permit func() error) context.Context {
	return context.WithValue(ctx, permitKey{}, permit)
}

// Permitted asks the permit of a context, for whoever acts in another way than
// by the client. Without a permit everything is permitted.
func Permitted(ctx context.Context) error { return askPermit(ctx).ask() }

// permission is the permit of one request, and what became of it.
type permission struct {
	holds   func() error
	written atomic.Bool           // a piece was written since the connection is there
	denied  atomic.Pointer[error] // why not
}

// askPermit makes the permission of a request; nil if none is needed.
func askPermit(ctx context.Context) *permission {
	holds, _ := ctx.Value(permitKey{}).(func() error)
	if holds == nil {
		return nil
	}
	return &permission{holds: holds}
}

// ask reports why nothing may leave any more, and remembers it.
func (p *permission) ask() error {
	if p == nil {
		return nil
	}
	err := p.holds()
	if err != nil {
		p.denied.Store(&err)
	}
	return err
}

// connected: what was written until now was to make the connection.
func (p *permission) connected() {
	if p != nil {
		p.written.Store(false)
	}
}

// denial is why something was not permitted; nil if all was.
func (p *permission) denial() error {
	if p == nil || p.denied.Load() == nil {
		return nil
	}
	return *p.denied.Load()
}

// attach makes connections of this context ask.
func (p *permission) attach(ctx context.Context) context.Context {
	if p == nil {
		return ctx
	}
	return context.WithValue(ctx, permissions{}, p)
}

// permittedDial dials connections that ask before they write.
func permittedDial(dial func(ctx context.Context, network, address string) (net.Conn, error)) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if p, _ := ctx.Value(permissions{}).(*permission); p != nil && err == nil {
			return &permittedConn{conn, p}, nil
		}
		return conn, err
	}
}

// permittedConn is the connection of one request.
type permittedConn struct {
	net.Conn
	permission *permission
}

func (c *permittedConn) Write(b []byte) (int, error) {
	if err := c.permission.ask(); err != nil {
		return 0, err
	}
	c.permission.written.Store(true)
	return c.Conn.Write(b)
}
