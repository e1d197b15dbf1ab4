// Package budget bounds the bytes that calls of scripts hold in this process.
//
// A call that may hold much says so before it does (Reserve), and waits until
// others have let go: within its phase, and then within the process. Whoever has
// a reservation never waits for another one, so that nobody waits for ever. What
// is reserved is let go when the answer has left the process.
package budget

import (
	"context"
	"slices"
	"sync"
)

// Pool is a number of bytes that can be held at once. Who waits is served in
// the order of arrival.
type Pool struct {
	most int64

	mu      sync.Mutex
	held    int64
	waiting []*waiter
}

type waiter struct {
	n    int64
	turn chan struct{}
}

// New makes a pool of that many bytes.
func New(most int64) *Pool { return &Pool{most: most} }

// Acquire waits until n bytes are free and takes them; more than there are is
// all of them. It returns how many it took.
func (p *Pool) Acquire(ctx context.Context, n int64) (int64, error) {
	n = min(n, p.most)
	p.mu.Lock()
	if len(p.waiting) == 0 && p.held+n <= p.most {
		p.held += n
		p.mu.Unlock()
		return n, nil
	}
	w := &waiter{n, make(chan struct{})}
	p.waiting = append(p.waiting, w)
	p.mu.Unlock()
	select {
	case <-w.turn:
		return n, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	i := slices.Index(p.waiting, w)
	if i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		p.serve() // a smaller one behind it may fit
	}
	p.mu.Unlock()
	if i < 0 { // the turn came at the same moment
		p.Release(n)
	}
	return 0, context.Cause(ctx)
}

// Release gives bytes back.
func (p *Pool) Release(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held -= n
	p.serve()
}

func (p *Pool) serve() {
	for len(p.waiting) > 0 && p.held+p.waiting[0].n <= p.most {
		p.held += p.waiting[0].n
		close(p.waiting[0].turn)
		p.waiting = p.waiting[1:]
	}
}

// Held is how many bytes are taken.
func (p *Pool) Held() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// Call is what one call holds of its phase and of the process.
type Call struct {
	pools []*Pool // the narrowest first

	mu   sync.Mutex
	took []int64 // of each pool; empty before Reserve
	done bool
}

// NewCall makes a call that reserves in each of some pools, in this order.
func NewCall(pools ...*Pool) *Call { return &Call{pools: pools} }

type key struct{}

// With lets what is called find the call.
func With(ctx context.Context, c *Call) context.Context { return context.WithValue(ctx, key{}, c) }

// Reserve waits until the call in ctx may hold n bytes. It counts once: a call
// that says it again, or a context without one, waits for nothing.
func Reserve(ctx context.Context, n int64) error {
	c, ok := ctx.Value(key{}).(*Call)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.took) > 0 || c.done {
		return nil
	}
	for _, p := range c.pools {
		n, err := p.Acquire(ctx, n)
		if err != nil {
			c.free()
			return err
		}
		c.took = append(c.took, n)
	}
	return nil
}

// Release lets go of what was reserved, for good.
func (c *Call) Release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = true
	c.free()
}

func (c *Call) free() {
	for i, n := range c.took {
		c.pools[i].Release(n)
	}
	c.took = nil
}
