package queue

import (
	"context"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// maxPatience is the most that one round trip may take.
const maxPatience = time.Minute

// patience bounds the round trips of one loop to the database: short, so that a
// connection which died without a word is noticed; and longer after each that
// ran out, so that a database which is only slow gets its chance.
type patience struct {
	q      *Queue
	ranOut int
}

func (p *patience) run(ctx context.Context, do func(context.Context) error) error {
	if !p.q.db.Shared() {
		return do(ctx) // nothing is between this process and its file
	}
	bound, cancel := context.WithTimeout(ctx, min(p.q.cfg.limits.answer<<p.ranOut, maxPatience))
	defer cancel()
	err := do(bound)
	if err == nil || bound.Err() == nil || ctx.Err() != nil {
		p.ranOut = 0
		return err
	}
	p.ranOut = min(p.ranOut+1, 6)
	p.q.db.Reconnect()
	return store.ErrNoAnswer
}

// bounded runs one round trip of its own.
func (q *Queue) bounded(ctx context.Context, do func(context.Context) error) error {
	return (&patience{q: q}).run(ctx, do)
}
