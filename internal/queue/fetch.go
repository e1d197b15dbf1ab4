package queue

import (
	"context"
	"slices"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// fetchPlan is what one round of the fetcher reads.
type fetchPlan struct {
	cursors []store.Cursor
	limit   int // for each cursor
	until   time.Time
	lanes   []store.Lane
	laneCap int
	next    bool // ask for the next instant beyond the horizon
}

// fetchLoop reads ahead whenever something may be due and there is room.
func (q *Queue) fetchLoop(ctx context.Context) {
	b := q.board
	bound := &patience{q: q}
	for {
		b.mu.Lock()
		var p fetchPlan
		for {
			if b.closed {
				b.mu.Unlock()
				return
			}
			if p = b.plan(time.Now()); !p.empty() {
				break
			}
			b.fetchCond.Wait()
		}
		b.fetching = true
		b.fetches++
		b.mu.Unlock()
		q.health.begin(dutyFetch)
		err := q.fetchOnce(ctx, bound, p)
		if ctx.Err() != nil {
			continue // it ends once the board is closed
		}
		q.health.ended(dutyFetch, err)
		if err != nil {
			q.log.Warn("fetch jobs", "err", err)
			sleep(ctx, time.Second)
		}
	}
}

func (p fetchPlan) empty() bool { return len(p.cursors) == 0 && len(p.lanes) == 0 && !p.next }

// plan decides what to read and notes that it is being read.
func (b *board) plan(now time.Time) fetchPlan {
	p := fetchPlan{until: now.Add(b.limits.horizon), next: b.seekNext && len(b.owned) > 0}
	if b.stopping {
		return fetchPlan{}
	}
	for lvl := range levels {
		b.planLevel(&p, lvl)
	}
	if len(p.cursors) > 0 {
		b.lastFetch = now
	}
	for _, name := range b.refills {
		if l := b.lanes[name]; l != nil {
			p.lanes = append(p.lanes, name)
			p.laneCap = max(p.laneCap, b.limits.lane+l.ended)
		}
	}
	b.refills = nil
	if p.next {
		b.seekNext = false
	}
	return p
}

// minFetch is the least that is worth reading of one bucket.
const minFetch = 4

// planLevel adds the buckets of one priority that may have something to read,
// as many as there is room for; the others stay dirty for the next round.
func (b *board) planLevel(p *fetchPlan, lvl int) {
	room := min(b.room(lvl), b.limits.batch)
	if room < b.limits.batch/4 {
		return
	}
	n := 0
	for _, k := range b.owned {
		c := &k.cursors[lvl]
		if !c.dirty || k.draining || (n+1)*minFetch > room {
			continue
		}
		n++
		p.cursors = append(p.cursors, store.Cursor{Bucket: k.id, Priority: priorityOf(lvl), RunAt: c.runAt, ID: c.id})
		c.dirty, c.rewound = false, false
	}
	if n > 0 {
		limit := max(minFetch, room/n)
		if p.limit == 0 || limit < p.limit {
			p.limit = limit
		}
	}
}

// fetchOnce carries out one plan. On an error the plan is put back.
func (q *Queue) fetchOnce(ctx context.Context, bound *patience, p fetchPlan) error {
	b := q.board
	readAt := time.Now()
	var due, lanes []store.Job
	var next time.Time
	err := bound.run(ctx, func(ctx context.Context) (err error) {
		if len(p.lanes) > 0 {
			lanes, err = q.db.FetchLanes(ctx, p.lanes, p.laneCap, readAt)
		}
		if err == nil && len(p.cursors) > 0 {
			due, err = q.db.FetchDue(ctx, p.cursors, p.limit, p.until)
		}
		if err == nil && p.next {
			next, err = q.db.NextDue(ctx, q.allCursors(), p.until)
		}
		return err
	})
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fetching = false
	if err != nil {
		b.putBack(p)
		return err
	}
	b.filled(p, lanes, readAt, now)
	b.fetched(p, due, readAt, now)
	if p.next && !next.IsZero() {
		b.due(next)
	}
	for _, id := range b.tombs { // no fetch is under way that could still see them
		if e := b.entries[id]; e != nil && e.place == inNowhere {
			delete(b.entries, id)
		}
	}
	b.tombs = b.tombs[:0]
	b.rearm(now)
	return nil
}

func (q *Queue) allCursors() []store.Cursor {
	q.board.mu.Lock()
	defer q.board.mu.Unlock()
	var out []store.Cursor
	for _, k := range q.board.owned {
		for lvl := range k.cursors {
			out = append(out, store.Cursor{Bucket: k.id, Priority: priorityOf(lvl)})
		}
	}
	return out
}

func (b *board) putBack(p fetchPlan) {
	for _, c := range p.cursors {
		if k := b.owned[c.Bucket]; k != nil {
			k.cursors[levelOf(c.Priority)].dirty = true
		}
	}
	b.refills = append(b.refills, p.lanes...)
	b.seekNext = b.seekNext || p.next
}

// fetched files the rows of a plan and moves its cursors.
func (b *board) fetched(p fetchPlan, jobs []store.Job, readAt, now time.Time) {
	counts := map[[2]int]int{}
	for _, j := range b.inOrder(jobs) {
		k := b.owned[j.Bucket]
		if k == nil {
			continue
		}
		counts[[2]int{j.Bucket, j.Priority}]++
		c := &k.cursors[levelOf(j.Priority)]
		if c.rewound {
			// Stays where it is and is read again from there.
		} else if j.RunAt.After(c.runAt) || (j.RunAt.Equal(c.runAt) && j.ID > c.id) {
			c.runAt, c.id = j.RunAt, j.ID
		}
		b.offer(*j, true, readAt, now)
	}
	for _, c := range p.cursors {
		if k := b.owned[c.Bucket]; k != nil && counts[[2]int{c.Bucket, c.Priority}] >= p.limit {
			k.cursors[levelOf(c.Priority)].dirty = true
		}
	}
}

// inOrder brings jobs into the order of their time, in which places are given.
// Several buckets are read one after the other.
func (b *board) inOrder(jobs []store.Job) []*store.Job {
	list := make([]*store.Job, len(jobs))
	orders := map[int64]string{}
	for i := range jobs {
		list[i] = &jobs[i]
		if order := b.orderOf(&jobs[i]); order != "" {
			orders[jobs[i].ID] = order
		}
	}
	slices.SortFunc(list, func(x, y *store.Job) int {
		if len(orders) == 0 {
			return compare(x, y, "", "")
		}
		return compare(x, y, orders[x.ID], orders[y.ID])
	})
	return list
}

// orderOf is a job's order among those that came due at the same instant.
func (b *board) orderOf(j *store.Job) string {
	if order := b.orders[j.Task]; order != nil {
		return order(j.Payload)
	}
	return ""
}

// filled files the jobs of lanes that had more than fits in hand.
func (b *board) filled(p fetchPlan, jobs []store.Job, readAt, now time.Time) {
	counts, halted := map[store.Lane]int{}, map[store.Lane]bool{}
	for _, j := range jobs {
		counts[j.LaneName()]++
		if k := b.owned[j.Bucket]; k == nil || k.draining || b.entries[j.ID] != nil {
			continue
		}
		if b.halts(j.Task) {
			halted[j.LaneName()] = true
			continue
		}
		b.place(&entry{job: j, order: b.orderOf(&j), pool: b.poolFor(j.Task), readAt: readAt}, true, now)
	}
	for _, name := range p.lanes {
		l := b.lanes[name]
		if l == nil {
			continue
		}
		l.filling = false
		l.more = (l.missed || counts[name] >= p.laneCap) && !halted[name] // all of it is read when it goes on
		b.advance(name, l)
	}
}
