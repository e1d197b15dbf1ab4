package simulate

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// delete is a person who deletes the schedule and makes another one of its name.
func (c *calendar) delete(r *rand.Rand) {
	was := c.id
	_ = c.w.do(r, "delete schedule", func(ctx context.Context, l *life, tx *store.Tx) error {
		_, err := l.schedules.Delete(ctx, tx, c.owner, was, "tester")
		return err
	})
	if len(c.w.rows(`select id||'' from schedules where id = $1 and deleted_at is null`, was)) > 0 {
		return
	}
	c.edited = true
	c.w.mu.Lock()
	c.gone[was] = time.Now()
	c.w.mu.Unlock()
	c.create(r)
}

// belongs holds that nothing of a schedule starts that was deleted.
func (c *calendar) belongs(key string) {
	c.w.mu.Lock()
	at, gone := c.gone[scheduleOf(key)]
	c.w.mu.Unlock()
	if d := time.Since(at); gone && d > lease {
		c.w.fail("%s starts %v after its schedule was deleted", key, d)
	}
}

// delete is a person who deletes the source, and does not see it to the end if the
// node does not.
func (f *feed) delete(r *rand.Rand) {
	l := f.w.nodes[r.IntN(len(f.w.nodes))].now()
	if l == nil {
		return
	}
	f.gone, f.paused, f.rests = true, true, nil // the next one of its name may go on
	keep := r.IntN(3) > 0
	f.w.acts.Go(func() {
		rows, err := l.sources.Delete(l.ctx, "feed", keep, "", "tester")
		f.w.note("delete source at node %d: %d rows, %v", l.n.index, rows, err)
		f.w.refused("delete source", err)
	})
}

// restore is a person who sees a deletion to its end, and makes the source anew.
func (f *feed) restore() {
	if !f.gone {
		return
	}
	err := f.w.try(0, func(l *life) error {
		_, err := l.sources.Delete(l.ctx, "feed", true, "", "tester")
		return err
	})
	f.w.refused("delete source", err)
	f.apply(0, 30)
}
