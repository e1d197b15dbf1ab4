package queue

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// rumours are jobs in hand here of which a hint says that they were cancelled. Whoever
// may log in to the database can send a hint, an application's role among them, so it is
// the rows that decide.
type rumours struct {
	mu   sync.Mutex
	of   map[int64]bool // guarded by mu
	wake chan struct{}
}

func newRumours() *rumours { return &rumours{of: map[int64]bool{}, wake: make(chan struct{}, 1)} }

func (r *rumours) add(ids ...int64) {
	if len(ids) == 0 {
		return
	}
	r.mu.Lock()
	for _, id := range ids {
		r.of[id] = true
	}
	r.mu.Unlock()
	signal(r.wake)
}

func (r *rumours) take() []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := slices.Collect(maps.Keys(r.of))
	clear(r.of)
	return ids
}

// checkRumours drops and stops the jobs whose rows are gone.
func (q *Queue) checkRumours(ctx context.Context) {
	p := &patience{q: q}
	for {
		select {
		case <-ctx.Done():
			return
		case <-q.rumours.wake:
		}
		ids := q.rumours.take()
		var there map[int64]int64
		err := p.run(ctx, func(ctx context.Context) (err error) {
			there, err = q.db.Revisions(ctx, ids)
			return err
		})
		if err != nil {
			if ctx.Err() == nil {
				q.log.Warn("find out which jobs were cancelled; it is tried again", "err", err)
			}
			sleep(ctx, q.cfg.limits.answer/5)
			q.rumours.add(ids...)
			continue
		}
		q.board.mu.Lock()
		for _, id := range ids {
			if _, is := there[id]; !is {
				q.board.revoke(id)
			}
		}
		q.board.mu.Unlock()
	}
}
