package queue

import (
	"time"

	"golang.org/x/sys/unix"
)

func clock(id int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		panic(err) // there is no system without it
	}
	return time.Duration(t.Nano())
}

// stopAfter is how long a node starts work without a heartbeat that worked.
// Others take its buckets after a whole lease.
func (q *Queue) stopAfter() time.Duration { return q.cfg.Lease * 7 / 10 }

// mayStart reports whether the last heartbeat that worked is young enough for
// something to begin.
func (b *board) mayStart() bool { return !b.shared || b.clock() < b.until }

// extend lets work begin until the given instant.
func (b *board) extend(until time.Duration) {
	shut := !b.mayStart()
	b.until = max(b.until, until)
	if shut && b.mayStart() {
		b.broadcast()
	}
}

// StillAlive is nil as long as this node may act for whatever it has begun: its
// last heartbeat is young. A process that works on no jobs has none to lose.
func (q *Queue) StillAlive() error {
	q.board.mu.Lock()
	defer q.board.mu.Unlock()
	if q.cfg.Workers > 0 && !q.board.mayStart() {
		return ErrLeaseLost
	}
	return nil
}

// StillOwned is nil as long as this node may act for the job's lane, as far as
// it can know without asking: its last heartbeat is young, and nobody is known
// to have taken the lane. It costs next to nothing and is asked immediately
// before anything leaves that no transaction can undo, because a process may
// have been stopped for any time between two of its instructions.
func (j *Job) StillOwned() error {
	b := j.queue.board
	b.mu.Lock()
	defer b.mu.Unlock()
	if k := b.owned[j.fence.Bucket]; k == nil || k.epoch != j.fence.Epoch || !b.mayStart() {
		return ErrLeaseLost
	}
	return nil
}
