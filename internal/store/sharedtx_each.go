package store

import (
	"context"
	"errors"
)

// Each reads something for each of n things, as fn does for one. On PostgreSQL
// they are read side by side in the one transaction, and the statements that are
// wanted at the same time travel together, so that many cost hardly more round
// trips than one. What fn sets must not be shared.
func (tx *Tx) Each(ctx context.Context, n int, fn func(ctx context.Context, tx *Tx, i int) error) error {
	if t, ok := tx.conn.(*pgTx); ok && t.sent && !t.plan && n > 1 {
		return tx.sideBySide(ctx, t, n, fn)
	}
	for i := range n {
		if err := fn(ctx, tx, i); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) sideBySide(ctx context.Context, t *pgTx, n int, fn func(ctx context.Context, tx *Tx, i int) error) error {
	if err := t.flush(ctx); err != nil {
		return err
	}
	for from := 0; from < n; from += maxTogether {
		p := &sharedTx{db: tx.db}
		for i := from; i < min(n, from+maxTogether); i++ {
			p.members = append(p.members, &participant{ctx: ctx, fn: func(_ context.Context, tx *Tx) error {
				return fn(ctx, tx, i) // with the caller's own context: nothing is written that would have to be finished
			}})
		}
		p.prepare(tx.Now)
		for _, m := range p.members {
			go p.attend(m) //nolint:contextcheck // it has its own
		}
		p.serve(ctx, t.conn)
		for _, m := range p.members {
			switch {
			case m.panic != nil:
				panic(m.panic)
			case errors.Is(m.err, errApart) && p.err != nil: // of another one, which is the cause of all
				return p.err
			case m.err != nil:
				return m.err
			}
		}
	}
	return nil
}
