package queue

import (
	"slices"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// take gives a worker of a pool its next job, the most urgent first. Where
// other processes may have changed the row since it was read, it gives a batch
// to check instead. Both are nil when there is nothing to do.
func (b *board) take(p *pool, now time.Time) (run *entry, check []*entry) {
	if p.nothing() || !b.mayStart() {
		return nil, nil
	}
	for lvl := range p.ready {
		q := &p.ready[lvl]
		for q.len() > 0 {
			e := q.pop()
			if e.place != inReady {
				continue // dropped meanwhile
			}
			if b.halts(e.job.Task) {
				b.drop(e)
				continue
			}
			if b.isFresh(e, now) {
				return b.start(e, now), nil
			}
			e.place = inCheck
			return nil, append([]*entry{e}, b.takeStale(q, now)...)
		}
	}
	return nil, nil
}

// checkedFor is how long a row that was found to be as it was is believed to
// be.
const checkedFor = time.Second

// isFresh: the row was seen a moment ago, or nobody else can change it.
func (b *board) isFresh(e *entry, now time.Time) bool {
	age := now.Sub(e.readAt)
	return !b.shared || age <= b.limits.fresh || e.checked && age <= checkedFor
}

// takeStale takes more that must be checked, so that a backlog is checked in
// batches.
func (b *board) takeStale(q *fifo, now time.Time) []*entry {
	var out []*entry
	for q.len() > 0 && len(out) < b.limits.batch/8 {
		e := q.pop()
		switch {
		case e.place != inReady:
		case b.isFresh(e, now):
			q.pushFront(e)
			return out
		default:
			e.place = inCheck
			out = append(out, e)
		}
	}
	return out
}

func (b *board) start(e *entry, now time.Time) *entry {
	e.place, e.started = inRun, now
	b.running[e.job.ID] = e
	if len(b.running) == 1 {
		b.markCond.Signal()
	}
	b.owned[e.job.Bucket].busy++
	return e
}

// checked puts entries back whose rows are as they were, drops those that are
// gone, and lets the fetcher read those that changed.
func (b *board) checked(entries []*entry, revs map[int64]int64, readAt, now time.Time) {
	for _, e := range slices.Backward(entries) {
		if e.place != inCheck { // its bucket was lost meanwhile
			continue
		}
		rev, there := revs[e.job.ID]
		if there && rev == e.job.Rev && !b.owned[e.job.Bucket].draining {
			e.readAt, e.checked, e.unknown, e.place = readAt, true, false, inReady
			e.pool.again(e)
			continue
		}
		e.place = inReady
		b.drop(e)
		if there {
			b.announce(e.job.Bucket, e.job.Priority, epochStart(), now)
		}
	}
}

// finish files a run that ended, for the finisher, and frees its lane.
func (b *board) finish(e *entry, f store.Finished) {
	if b.end(e) {
		b.finished = append(b.finished, f)
		b.signalFinish()
	}
}

// end takes a job off its worker and frees its lane. It reports false when the
// bucket was lost meanwhile: then the result is worth nothing.
func (b *board) end(e *entry) bool {
	if b.running[e.job.ID] == e {
		delete(b.running, e.job.ID)
	}
	if e.place != inRun {
		return false
	}
	e.place, e.cancel = inFinish, nil
	if l := b.lanes[e.job.LaneName()]; e.job.Lane != "" && l != nil {
		l.ended++
	}
	b.leaveLane(e)
	return true
}

// finishedInside files a run that ended its job in its own transaction.
func (b *board) finishedInside(e *entry, f store.Finished) {
	if b.end(e) {
		b.written([]store.Finished{f})
	}
}

// written takes finished jobs out of hand: the database knows.
func (b *board) written(jobs []store.Finished) {
	for i := range jobs {
		j := jobs[i].Job
		e := b.entries[j.ID]
		if e == nil || e.place != inFinish {
			continue
		}
		b.past.note(j.ID, j.Rev)
		if k := b.owned[j.Bucket]; k != nil {
			k.busy--
		}
		if l := b.lanes[j.LaneName()]; j.Lane != "" && l != nil {
			l.ended--
			b.advance(j.LaneName(), l)
		}
		if e.changed {
			b.announce(j.Bucket, j.Priority, epochStart(), time.Now())
		}
		e.place = inNowhere
		b.left(e.pool)
		if b.fetching {
			b.tombs = append(b.tombs, j.ID)
		} else {
			delete(b.entries, j.ID)
		}
	}
	b.signalFetch()
}

// disown drops a bucket and everything of it that is in hand. Running jobs are
// told to stop, with the cause. Whoever has the bucket by now is told to look: it
// may have read everything before something was committed here that this node
// still took for its own.
func (b *board) disown(id int, cause error) {
	k := b.owned[id]
	if k == nil {
		return
	}
	delete(b.owned, id)
	for _, e := range b.entries {
		if e.job.Bucket != id {
			continue
		}
		switch e.place {
		case inRun:
			if e.cancel != nil {
				e.cancel(cause)
			}
			delete(b.running, e.job.ID)
		case inTimers:
			b.timers.remove(e)
		case inLane, inReady, inCheck, inFinish, inNowhere:
		}
		b.forget(e)
	}
	for name, l := range b.lanes {
		if l.bucket == id {
			delete(b.lanes, name)
		}
	}
	kept := b.finished[:0]
	for _, f := range b.finished {
		if f.Job.Bucket != id {
			kept = append(kept, f)
		}
	}
	b.finished = kept
	b.signalFetch() // there is room
	if b.lost != nil {
		b.lost(id)
	}
}

// drain stops a bucket's jobs from starting and drops those that wait.
func (b *board) drain(id int) {
	k := b.owned[id]
	if k == nil || k.draining {
		return
	}
	k.draining = true
	for _, e := range b.entries {
		if e.job.Bucket != id {
			continue
		}
		switch e.place {
		case inTimers, inLane, inReady:
			b.drop(e)
		case inCheck, inRun, inFinish, inNowhere:
		}
	}
	for name, l := range b.lanes { // nothing is read for them; all of it is when they go on
		if l.bucket == id {
			l.more, l.missed = false, false
			b.advance(name, l)
		}
	}
	b.signalFetch() // there is room
}

// undrain goes on with a bucket; all of its jobs are read again.
func (b *board) undrain(k *bucket) {
	k.draining, k.suspended, k.leaving = false, false, false
	b.reread(k.id)
}

// reread makes everything of a bucket that is held be read again.
func (b *board) reread(id int) {
	k := b.owned[id]
	if k == nil {
		return
	}
	for i := range k.cursors {
		k.cursors[i].rewind()
	}
	b.seekNext = true
	b.signalFetch()
}

// giveUp takes a job off its worker that did not begin after all. Its row is
// found again by a fetch.
func (b *board) giveUp(e *entry) {
	b.forgetRun(e)
	b.announce(e.job.Bucket, e.job.Priority, epochStart(), time.Now())
}

// forgetRun takes a job off its worker and out of hand.
func (b *board) forgetRun(e *entry) {
	if b.running[e.job.ID] == e {
		delete(b.running, e.job.ID)
	}
	if e.place != inRun {
		return // its bucket was lost
	}
	e.cancel = nil
	b.owned[e.job.Bucket].busy--
	b.leaveLane(e)
	b.forget(e)
}
