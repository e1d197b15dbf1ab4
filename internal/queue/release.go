package queue

import (
	"context"
	"slices"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// giveBack drains buckets beyond the fair share and frees those that are
// empty. A bucket is given back between the jobs of its lanes. One that does not
// become empty for a lease is worked on, because meanwhile its other lanes stand
// still, and tried again later.
func (l *lessee) giveBack(ctx context.Context, fair int, now time.Duration) error {
	b := l.q.board
	b.mu.Lock()
	keep := 0
	for _, k := range b.owned {
		if k.draining && !k.suspended && k.busy > 0 && now-k.drainedAt > l.q.cfg.Lease {
			b.undrain(k)
			k.keepUntil = now + 3*l.q.cfg.Lease
		}
		if !k.draining {
			keep++
		}
	}
	for _, idle := range []bool{true, false} { // those without running jobs first
		for _, k := range b.owned {
			if keep > fair && !k.draining && (k.busy == 0) == idle && now >= k.keepUntil {
				b.drain(k.id)
				k.drainedAt = now
				keep--
			}
		}
	}
	var free []store.Fence
	for _, k := range b.owned {
		if k.draining && !k.suspended && k.busy == 0 && !b.checking(k.id) {
			k.leaving = true
			free = append(free, store.Fence{Bucket: k.id, Node: l.q.Node().ID, Epoch: k.epoch})
		}
	}
	b.mu.Unlock()
	if len(free) == 0 {
		return nil
	}
	// Nothing of them starts any more, so they are let go once they are free:
	// if that cannot be known, the next view tells.
	gone, err := l.q.db.Release(ctx, free...)
	if err != nil {
		return err
	}
	l.hurry = l.hurry || len(gone) < len(free)
	b.mu.Lock()
	for _, f := range free {
		if slices.Contains(gone, f.Bucket) {
			b.disown(f.Bucket, ErrLeaseLost)
		}
	}
	b.mu.Unlock()
	l.q.hints.changed()
	return nil
}

func (b *board) checking(bucket int) bool {
	for _, e := range b.entries {
		if e.job.Bucket == bucket && e.place == inCheck {
			return true
		}
	}
	return false
}

// suspend starts nothing until the database confirms that the buckets are still
// ours. What runs goes on, because a call that has left is not undone by not
// waiting for its answer; how it ended is written if the buckets turn out to be
// ours. Only then, or when they turn out to be another's, is it told.
func (b *board) suspend() {
	for _, k := range b.owned {
		b.drain(k.id)
		k.suspended = true
	}
}
