package queue

import (
	"context"
	"errors"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// sighting is what this node knows of another one's heartbeat, and since when it
// has stood still: from when the first look at it was answered, less what was not
// seen since.
type sighting struct {
	beat  int64
	since time.Duration
}

// sweepEvery is how often a node looks at everything again.
const sweepEvery = 3 * time.Minute

// lessee is the state of keepLease. Instants are those of sinceBoot.
type lessee struct {
	q        *Queue
	seen     map[string]sighting
	looked   bool
	lookedAt time.Duration // when the last look that was answered began
	joined   bool
	beatAt   time.Duration // when the last heartbeat that worked was sent
	sweptAt  time.Duration
	silent   bool // suspended because no heartbeat works
	hurry    bool // something could not be taken yet
}

// keepLease joins, beats, takes what is free, and gives back what is too much.
func (q *Queue) keepLease(ctx context.Context) {
	now := q.board.clock()
	l := &lessee{q: q, seen: map[string]sighting{}, beatAt: now, sweptAt: now}
	for ctx.Err() == nil {
		started := q.board.clock()
		err := l.runOnce(ctx, started)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			l.failed(err, q.board.clock())
		case !q.db.Shared() && !l.hurry: // it has its bucket, and nobody can take the file from this process
			<-ctx.Done()
			return
		}
		q.pauseOrNudge(ctx, l.nextLook(q.board.clock()-started))
	}
}

// nextLook is how long to wait for the next heartbeat after one that took so
// long. A node that stays silent is looked at again when it is dead, and not up to
// a heartbeat later.
func (l *lessee) nextLook(took time.Duration) time.Duration {
	every := l.q.cfg.Lease / 5
	wait := every
	for id, s := range l.seen {
		if left := l.q.cfg.Lease - (l.lookedAt - s.since); id != l.q.Node().ID && left > 0 {
			wait = min(wait, left)
		}
	}
	wait -= took
	if l.hurry {
		wait = min(wait, every/10)
	}
	return max(wait, every/20)
}

// pauseOrNudge waits, or until another node says that something changed.
func (q *Queue) pauseOrNudge(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-q.nudges:
	}
}

func (l *lessee) runOnce(ctx context.Context, now time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, l.patience(now))
	defer cancel()
	if !l.joined {
		if err := l.q.db.Join(ctx, l.q.Node()); err != nil {
			return err
		}
		l.joined = true
		l.q.hints.changed()
	}
	view, err := l.q.db.Beat(ctx, l.q.Node())
	switch {
	case errors.Is(err, pawl.ErrLeaseLost):
		l.q.log.Error("other nodes considered this node dead because its heartbeat stopped; it starts again")
		l.startAnew()
		return err
	case errors.Is(err, pawl.ErrConflict):
		l.q.rename("another process has joined under its id")
		l.startAnew()
		return err
	case err != nil:
		return err
	}
	l.answered(view, now)
	if err := l.arrange(ctx, view, now); err != nil {
		l.q.health.ended(dutyShare, err)
		l.q.log.Warn("share the work", "err", err)
		l.hurry = true
		return nil // the heartbeat works
	}
	l.q.health.ended(dutyShare, nil)
	l.q.health.started()
	if l.q.db.Shared() && now-l.sweptAt > sweepEvery {
		l.sweptAt = now
		l.q.sweep()
	}
	return nil
}

// patience bounds one try, so that one which hangs is given up in time.
func (l *lessee) patience(now time.Duration) time.Duration {
	left := l.q.stopAfter() - (now - l.beatAt)
	if l.silent || left <= 0 || left > l.q.cfg.Lease/2 {
		return l.q.cfg.Lease / 2
	}
	return left
}

// answered: the heartbeat that was sent at now worked. What is no longer ours is
// dropped before anything may start again.
func (l *lessee) answered(v store.View, now time.Duration) {
	l.beatAt = now
	l.q.health.ended(dutyBeat, nil)
	l.q.learnHalt(v.Halt) // before anything may start
	l.compare(v)
	b := l.q.board
	b.mu.Lock()
	b.extend(now + l.q.stopAfter())
	b.fire(time.Now()) // the wall clock may have jumped since the timer was set
	b.mu.Unlock()
	if l.silent {
		l.silent = false
		l.q.log.Info("the database answers again; work continues")
		l.q.hints.nudge()
	}
}

// failed stops the work of this node in good time before others may take its
// buckets.
func (l *lessee) failed(err error, now time.Duration) {
	if errors.Is(err, context.DeadlineExceeded) {
		err = store.ErrNoAnswer
		l.q.db.Reconnect()
	}
	l.q.health.ended(dutyBeat, err)
	if !l.joined { // it is about to join anew
		l.hurry = true
		return
	}
	l.q.log.Warn("heartbeat", "err", err)
	if l.silent || !l.q.db.Shared() || now-l.beatAt < l.q.stopAfter() {
		return
	}
	l.silent = true
	l.q.log.Error("no heartbeat reaches the database; nothing new starts until one does, and running work continues")
	l.q.board.mu.Lock()
	l.q.board.suspend()
	l.q.board.mu.Unlock()
}

// startAnew: this node owns nothing any more, and joins again.
func (l *lessee) startAnew() {
	l.joined, l.looked = false, false
	clear(l.seen)
	b := l.q.board
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range b.owned {
		l.q.cfg.Metrics.lost()
		b.disown(id, ErrLeaseLost)
	}
}

// arrange compares the view of the cluster with what this node holds.
func (l *lessee) arrange(ctx context.Context, v store.View, now time.Duration) error {
	dead := l.watch(v, now, l.q.board.clock())
	buried, err := l.bury(ctx, v, dead)
	if err != nil {
		return err
	}
	sharers := 1
	for _, n := range v.Nodes {
		if n.ID != l.q.Node().ID && n.Share && !dead[n.ID] {
			sharers++
		}
	}
	fair := (len(v.Buckets) + sharers - 1) / sharers
	err = l.take(ctx, v, dead, fair)
	if buried {
		l.q.hints.changed() // what is left is for the others, who need not wait for their next look
	}
	if err != nil {
		return err
	}
	return l.giveBack(ctx, fair, now)
}

// bury removes the dead before anything of theirs is taken. One that raises its
// heartbeat in this very moment either finds that it is buried, and starts
// nothing, or is not buried, and keeps its buckets: else it would take itself for
// their owner until its next heartbeat.
func (l *lessee) bury(ctx context.Context, v store.View, dead map[string]bool) (some bool, err error) {
	for _, n := range v.Nodes {
		if !dead[n.ID] {
			continue
		}
		buried, err := l.q.db.Bury(ctx, n.ID, n.Beat)
		if err != nil {
			return some, err
		}
		if !buried { // or another one buried it: then the next view has no row of it
			delete(dead, n.ID)
			continue
		}
		some = true
		l.q.log.Warn("another node is dead", "node", n.ID)
	}
	return some, nil
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
		case s.Node == l.q.Node().ID && s.Epoch == k.epoch:
			if k.suspended {
				b.undrain(k)
			}
		case k.leaving: // as it was meant; only the answer was lost
			b.disown(s.ID, ErrLeaseLost)
		default:
			l.q.log.Warn("lost a bucket to another node", "bucket", s.ID)
			l.q.cfg.Metrics.lost()
			b.disown(s.ID, ErrLeaseLost)
		}
	}
}

// watch tells which nodes are dead: their heartbeat was seen to stand still for
// a whole lease. The look began at now and was answered by then: whatever it shows
// may have happened a moment before the answer, and it shows nothing of what
// happened after its begin. So silence lasts from an answer to a begin.
//
// Time in which this node saw nothing does not count, because the others could be
// heard as little as it could hear: of the time between two looks no more than
// that of a heartbeat and a half does, and after half a lease without a look all
// watching begins anew.
func (l *lessee) watch(v store.View, now, answered time.Duration) map[string]bool {
	lease := l.q.cfg.Lease
	gap := now - l.lookedAt
	anew := !l.looked || gap > lease/2
	unseen := max(0, gap-lease*3/10)
	l.looked, l.lookedAt = true, now
	dead := map[string]bool{}
	there := map[string]bool{}
	for _, n := range v.Nodes {
		there[n.ID] = true
		s, ok := l.seen[n.ID]
		if !ok || anew || s.beat != n.Beat {
			l.seen[n.ID] = sighting{beat: n.Beat, since: answered}
			continue
		}
		s.since += unseen
		l.seen[n.ID] = s
		if n.ID != l.q.Node().ID && now-s.since >= lease {
			dead[n.ID] = true
		}
	}
	for id := range l.seen {
		if !there[id] {
			delete(l.seen, id)
			l.q.sweep() // it may have committed something and not told anybody
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
// Buckets in this node's own name that it does not hold are its predecessor's,
// or their release or taking was not answered: nobody else will take them while
// this node lives, so it does whatever its share is. What is too much is given
// back as usual.
func (l *lessee) take(ctx context.Context, v store.View, dead map[string]bool, fair int) error {
	b := l.q.board
	me := l.q.Node().ID
	alone := !l.q.db.Shared() // it holds the file's lock, so nobody else lives
	var wanted []store.Bucket
	b.mu.Lock()
	for _, s := range v.Buckets {
		if b.owned[s.ID] == nil && s.Node == me {
			wanted = append(wanted, s)
		}
	}
	mine := len(wanted)
	for _, s := range v.Buckets {
		free := s.Node == "" || dead[s.Node] || alone
		if b.owned[s.ID] == nil && s.Node != me && free && len(b.owned)+len(wanted) < fair {
			wanted = append(wanted, s)
		}
	}
	b.mu.Unlock()
	l.q.health.shares(mine, time.Now())
	l.hurry = false
	if len(wanted) == 0 {
		return nil
	}
	got, err := l.q.db.Take(ctx, me, wanted...)
	if err != nil {
		return err
	}
	l.hurry = len(got) < len(wanted)
	b.mu.Lock()
	for _, s := range got {
		b.own(s.ID, s.Epoch)
	}
	unheld := 0
	for _, s := range wanted[:mine] {
		if b.owned[s.ID] == nil {
			unheld++
		}
	}
	b.mu.Unlock()
	l.q.health.shares(unheld, time.Now())
	return nil
}
