package queue

import (
	"context"
	"errors"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// sighting is when this node last saw another one's heartbeat change, by its
// own monotonic clock.
type sighting struct {
	beat int64
	at   time.Time
}

// sweepEvery is how often a node looks at everything again.
const sweepEvery = 3 * time.Minute

// lessee is the state of keepLease.
type lessee struct {
	q       *Queue
	seen    map[string]sighting
	joined  bool
	beatAt  time.Time // when the last heartbeat that worked was sent
	sweptAt time.Time
	silent  bool // suspended because the database does not answer
}

// keepLease joins, beats, takes what is free, and gives back what is too much.
func (q *Queue) keepLease(ctx context.Context) {
	l := &lessee{q: q, seen: map[string]sighting{}, beatAt: time.Now(), sweptAt: time.Now()}
	every := q.cfg.Lease / 5
	for ctx.Err() == nil {
		started := time.Now()
		err := l.runOnce(ctx, started)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			l.answered(started)
		default:
			l.failed(err, time.Now())
		}
		if !q.db.Shared() && err == nil { // nobody can take the file from this process
			<-ctx.Done()
			return
		}
		sleep(ctx, every-time.Since(started))
	}
}

func (l *lessee) runOnce(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, l.patience(now))
	defer cancel()
	if !l.joined {
		if err := l.q.db.Join(ctx, l.q.cfg.Node); err != nil {
			return err
		}
		l.joined = true
	}
	view, err := l.q.db.Beat(ctx, l.q.cfg.Node.ID)
	if errors.Is(err, pawl.ErrLeaseLost) {
		l.joined = false
		l.q.loseAll()
		return err
	}
	if err != nil {
		return err
	}
	if err := l.arrange(ctx, view, now); err != nil {
		return err
	}
	l.q.board.mu.Lock()
	l.q.board.fire(time.Now()) // the wall clock may have jumped since the timer was set
	l.q.board.mu.Unlock()
	if l.q.db.Shared() && now.Sub(l.sweptAt) > sweepEvery {
		l.sweptAt = now
		l.q.sweep()
	}
	return nil
}

// stopAfter is how long a node works on without a heartbeat that worked. Others
// take its buckets after a whole lease.
func (l *lessee) stopAfter() time.Duration { return l.q.cfg.Lease * 7 / 10 }

// patience bounds one try, so that one which hangs is given up in time to stop
// the work.
func (l *lessee) patience(now time.Time) time.Duration {
	left := l.stopAfter() - now.Sub(l.beatAt)
	if l.silent || left <= 0 || left > l.q.cfg.Lease/2 {
		return l.q.cfg.Lease / 2
	}
	return left
}

func (l *lessee) answered(started time.Time) {
	l.beatAt = started
	l.q.health.set(nil)
	if l.silent {
		l.silent = false
		l.q.log.Info("the database answers again; work goes on")
	}
}

// failed stops the work of this node in good time before others may take its
// buckets.
func (l *lessee) failed(err error, now time.Time) {
	l.q.health.set(err)
	l.q.log.Warn("heartbeat", "err", err)
	if l.silent || !l.q.db.Shared() || now.Sub(l.beatAt) < l.stopAfter() {
		return
	}
	l.silent = true
	l.q.log.Error("the database does not answer; work stops until it does")
	l.q.board.mu.Lock()
	l.q.board.suspend()
	l.q.board.mu.Unlock()
}

// arrange compares the view of the cluster with what this node holds.
func (l *lessee) arrange(ctx context.Context, v store.View, now time.Time) error {
	l.compare(v)
	dead := l.watch(v, now)
	sharers := 1
	for _, n := range v.Nodes {
		if n.ID != l.q.cfg.Node.ID && n.Share && !dead[n.ID] {
			sharers++
		}
	}
	fair := (len(v.Buckets) + sharers - 1) / sharers
	if err := l.take(ctx, v, dead, fair); err != nil {
		return err
	}
	for _, n := range v.Nodes {
		if dead[n.ID] {
			l.q.log.Warn("another node is dead", "node", n.ID)
			if err := l.q.db.Bury(ctx, n.ID, n.Beat); err != nil {
				return err
			}
		}
	}
	return l.giveBack(ctx, fair)
}

// compare drops buckets that have another owner by now, and goes on with those
// that were suspended and are still ours.
func (l *lessee) compare(v store.View) {
	b := l.q.board
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range v.Buckets {
		k := b.owned[s.ID]
		switch {
		case k == nil:
		case s.Node != l.q.cfg.Node.ID || s.Epoch != k.epoch:
			l.q.log.Warn("lost a bucket to another node", "bucket", s.ID)
			l.q.cfg.Metrics.lost()
			b.disown(s.ID, ErrLeaseLost)
		case k.suspended:
			k.suspended, k.draining = false, false
			for i := range k.cursors {
				k.cursors[i].rewind()
			}
			b.seekNext = true
			b.signalFetch()
		}
	}
}

// watch tells which nodes are dead: their heartbeat stood still for a whole
// lease, as seen from here.
func (l *lessee) watch(v store.View, now time.Time) map[string]bool {
	dead := map[string]bool{}
	there := map[string]bool{}
	for _, n := range v.Nodes {
		there[n.ID] = true
		s, ok := l.seen[n.ID]
		if !ok || s.beat != n.Beat {
			l.seen[n.ID] = sighting{n.Beat, now}
			continue
		}
		if n.ID != l.q.cfg.Node.ID && now.Sub(s.at) >= l.q.cfg.Lease {
			dead[n.ID] = true
		}
	}
	for id := range l.seen {
		if !there[id] {
			delete(l.seen, id)
		}
	}
	for _, b := range v.Buckets { // an owner without a row left, or was buried
		if b.Node != "" && !there[b.Node] {
			dead[b.Node] = true
		}
	}
	return dead
}

// take acquires free buckets and those of the dead, up to the fair share.
// Buckets in this node's own name that it does not hold are its predecessor's.
func (l *lessee) take(ctx context.Context, v store.View, dead map[string]bool, fair int) error {
	b := l.q.board
	me := l.q.cfg.Node.ID
	alone := !l.q.db.Shared() // it holds the file's lock, so nobody else lives
	var wanted []store.Bucket
	b.mu.Lock()
	for _, s := range v.Buckets {
		free := s.Node == "" || s.Node == me || dead[s.Node] || alone
		if b.owned[s.ID] == nil && free && len(b.owned)+len(wanted) < fair {
			wanted = append(wanted, s)
		}
	}
	b.mu.Unlock()
	if len(wanted) == 0 {
		return nil
	}
	got, err := l.q.db.Take(ctx, me, wanted...)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range got {
		b.own(s.ID, s.Epoch)
	}
	return nil
}

// giveBack drains buckets beyond the fair share and frees those that are
// empty. A bucket is given back between the jobs of its lanes.
func (l *lessee) giveBack(ctx context.Context, fair int) error {
	b := l.q.board
	b.mu.Lock()
	keep := 0
	for _, k := range b.owned {
		if !k.draining {
			keep++
		}
	}
	for _, idle := range []bool{true, false} { // those without running jobs first
		for _, k := range b.owned {
			if keep > fair && !k.draining && (k.busy == 0) == idle {
				b.drain(k.id)
				keep--
			}
		}
	}
	var free []store.Fence
	for _, k := range b.owned {
		if k.draining && !k.suspended && k.busy == 0 && !b.checking(k.id) {
			free = append(free, store.Fence{Bucket: k.id, Node: l.q.cfg.Node.ID, Epoch: k.epoch})
			b.disown(k.id, ErrLeaseLost)
		}
	}
	b.mu.Unlock()
	for _, f := range free {
		if err := l.q.db.Release(ctx, f); err != nil {
			return err
		}
	}
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

// suspend stops all work until the database confirms that the buckets are
// still ours. What has finished is kept and written then.
func (b *board) suspend() {
	for _, k := range b.owned {
		b.drain(k.id)
		k.suspended = true
	}
	for _, e := range b.running {
		if e.cancel != nil {
			e.cancel(ErrLeaseLost)
		}
	}
}

// loseAll: others took this node for dead.
func (q *Queue) loseAll() {
	q.log.Error("this node was taken for dead; it starts anew")
	q.board.mu.Lock()
	defer q.board.mu.Unlock()
	for id := range q.board.owned {
		q.cfg.Metrics.lost()
		q.board.disown(id, ErrLeaseLost)
	}
}
