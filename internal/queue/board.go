package queue

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// levels are the priorities, most urgent first.
const levels = 3

func levelOf(priority int) int    { return 1 - priority }
func priorityOf(level int) int    { return 1 - level }
func epochStart() time.Time       { return time.UnixMilli(0) }
func validPriority(p int) bool    { return p >= -1 && p <= 1 }
func (c *cursor) rewind()         { c.runAt, c.id, c.dirty, c.rewound = epochStart(), 0, true, true }
func (b *board) signalFetch()     { b.fetchCond.Signal() }
func (b *board) signalFinish()    { b.finishCond.Signal() }
func (b *board) room(lvl int) int { return b.limits.capacity(lvl) - len(b.entries) }

// limits bound what is in hand.
type limits struct {
	canary  time.Duration // how often the canary is due; zero: every minute
	answer  time.Duration // how long the database may take to answer, at first
	hand    int           // jobs in hand
	batch   int           // jobs fetched or finished at once
	lane    int           // jobs in hand that wait for one lane
	horizon time.Duration // how far ahead jobs are fetched
	fresh   time.Duration // how old a row may be when it starts, where others may change it
	door    doorLimits
}

func defaultLimits() limits {
	return limits{answer: 4 * time.Second, hand: 8000, batch: 2000, lane: 64, horizon: time.Second, fresh: 20 * time.Millisecond, door: defaultDoorLimits()}
}

// capacity leaves room for the urgent when the hand is full of the ordinary.
func (l limits) capacity(level int) int {
	switch level {
	case 0:
		return l.hand + l.hand/4
	case 1:
		return l.hand
	default:
		return l.hand / 2
	}
}

// cursor is how far one priority of a bucket was read.
type cursor struct {
	runAt time.Time
	id    int64
	dirty bool // there may be something beyond it
	// rewound: moved back while a fetch was under way, which so must not move
	// it forward over what it may not have seen.
	rewound bool
}

// bucket is a bucket that this node owns.
type bucket struct {
	id       int
	epoch    int64
	draining bool // starts nothing
	// suspended: draining only until the database confirms the lease.
	suspended bool
	leaving   bool          // is being given back
	drainedAt time.Duration // by the clock of the board
	keepUntil time.Duration // is not given back before
	cursors   [levels]cursor
	busy      int // jobs that run or are not yet written
}

// board is all that is in hand. Every method expects mu to be held.
type board struct {
	mu         sync.Mutex
	fetchCond  *sync.Cond
	finishCond *sync.Cond
	markCond   *sync.Cond

	limits limits
	shared bool // other processes change rows too
	clock  func() time.Duration
	until  time.Duration // nothing starts from here on, by the clock
	timer  *time.Timer

	owned    map[int]*bucket
	entries  map[int64]*entry
	timers   timerHeap
	pools    []*pool                                 // the first one is that of the tasks that name none
	poolOf   map[string]*pool                        // by task; what is not there has the first one
	orders   map[string]func(json.RawMessage) string // by task
	waits    map[string]bool                         // the tasks that wait while everything is halted
	halt     store.HaltMark
	lanes    map[store.Lane]*lane
	refills  []store.Lane
	finished []store.Finished // in the order they ended
	spare    []store.Finished // an empty list whose memory is used again
	running  map[int64]*entry

	next      time.Time // earliest due instant beyond the horizon, as far as known
	seekNext  bool      // it must be asked for again
	lastFetch time.Time
	fetching  bool
	fetches   int64
	tombs     []int64 // deleted while a fetch was under way that may still see them
	past      past
	stopping  bool // starts nothing more
	closed    bool

	lost func(bucket int) // told of every bucket that is disowned; may be nil
}

func newBoard(l limits, shared bool) *board {
	b := &board{
		poolOf: map[string]*pool{}, orders: map[string]func(json.RawMessage) string{}, waits: map[string]bool{},
		limits: l, shared: shared, clock: sinceBoot, owned: map[int]*bucket{}, entries: map[int64]*entry{},
		lanes: map[store.Lane]*lane{}, running: map[int64]*entry{},
	}
	b.fetchCond, b.finishCond, b.markCond = sync.NewCond(&b.mu), sync.NewCond(&b.mu), sync.NewCond(&b.mu)
	b.addPool(l.hand)
	return b
}

// own adds a bucket; all of its jobs are yet to be read.
func (b *board) own(id int, epoch int64) {
	k := &bucket{id: id, epoch: epoch}
	for i := range k.cursors {
		k.cursors[i].rewind()
	}
	b.owned[id] = k
	b.seekNext = true
	b.signalFetch()
}

// offer takes a row that was read at readAt into hand, or refreshes it there.
// A row that does not fit is left to the fetcher; planned ones fit, because
// the plan made room.
func (b *board) offer(j store.Job, planned bool, readAt, now time.Time) {
	k := b.owned[j.Bucket]
	if k == nil || k.draining || b.stopping {
		return
	}
	if e := b.entries[j.ID]; e != nil {
		if e.place == inFinish && j.Rev > e.job.Rev {
			e.changed = true // the finisher may have read the row before this
		}
		if e.place == inRun && j.Rev > e.job.Rev {
			e.rearmed = true
		}
		if e.job.Rev >= j.Rev || e.place == inRun || e.place == inFinish || e.place == inCheck {
			return // the same, or found out when it is finished or checked
		}
		b.drop(e)
	}
	if j.RunAt.After(now.Add(b.limits.horizon)) {
		b.due(j.RunAt)
		return
	}
	if b.halts(j.Task) {
		return
	}
	if !planned && b.room(levelOf(j.Priority)) <= 0 {
		b.announce(j.Bucket, j.Priority, j.RunAt, now)
		return
	}
	p := b.poolFor(j.Task)
	if p.inHand >= p.most {
		p.more = true
		return
	}
	b.place(&entry{job: j, order: b.orderOf(&j), pool: p, readAt: readAt}, false, now)
}

// place files an entry where it belongs.
func (b *board) place(e *entry, fromRefill bool, now time.Time) {
	b.entries[e.job.ID] = e
	e.pool.inHand++
	if e.job.RunAt.After(now) {
		e.place = inTimers
		b.timers.push(e)
		b.rearm(now)
		return
	}
	b.admit(e, fromRefill)
}

// admit lets a due job through if its lane is free.
func (b *board) admit(e *entry, fromRefill bool) {
	name := e.job.LaneName()
	if name.Name == "" {
		b.toReady(e)
		return
	}
	l := b.lanes[name]
	if l == nil {
		l = &lane{bucket: e.job.Bucket}
		b.lanes[name] = l
	}
	switch {
	case l.holder == nil && len(l.waiting) == 0 && (!l.more || fromRefill):
		l.holder = e
		b.toReady(e)
	case !fromRefill && (l.more || len(l.waiting) >= b.limits.lane):
		l.more, l.missed = true, true
		b.forget(e)
	default:
		l.add(e)
		if l.holder == nil {
			b.advance(name, l)
		}
	}
}

func (b *board) toReady(e *entry) {
	e.place = inReady
	e.pool.ready[levelOf(e.job.Priority)].push(e)
	e.pool.cond.Signal()
}

// forget takes an entry out of hand; its row is found again by a fetch.
func (b *board) forget(e *entry) {
	if e.place != inNowhere {
		b.left(e.pool)
	}
	e.place = inNowhere
	delete(b.entries, e.job.ID)
}

// drop takes an entry out of hand that has not started, wherever it waits.
func (b *board) drop(e *entry) {
	switch e.place {
	case inTimers:
		b.timers.remove(e)
	case inLane:
		b.lanes[e.job.LaneName()].remove(e)
	case inReady: // the queue skips it when it comes to its turn
		b.leaveLane(e)
	case inCheck, inRun, inFinish, inNowhere:
	}
	b.forget(e)
}

// leaveLane frees the lane that e holds and lets the next one in.
func (b *board) leaveLane(e *entry) {
	if e.job.Lane == "" {
		return
	}
	if l := b.lanes[e.job.LaneName()]; l != nil && l.holder == e {
		l.holder = nil
		b.advance(e.job.LaneName(), l)
	}
}

// advance gives a free lane its next job, asks for more in time, and forgets
// the lane when there is nothing left to remember.
func (b *board) advance(name store.Lane, l *lane) {
	if l.holder == nil && len(l.waiting) > 0 {
		next := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.holder = next
		b.toReady(next)
	}
	if l.more && !l.filling && len(l.waiting) <= b.limits.lane/4 {
		l.filling, l.missed = true, false
		b.refills = append(b.refills, name)
		b.signalFetch()
	}
	if l.holder == nil && !l.more && !l.filling && l.ended == 0 && len(l.waiting) == 0 {
		delete(b.lanes, name)
	}
}

// announce: a job of this bucket and priority, due at t, is in the table.
func (b *board) announce(bucket, priority int, t, now time.Time) {
	k := b.owned[bucket]
	if k == nil {
		return
	}
	lvl := levelOf(priority)
	if t.After(now.Add(b.limits.horizon)) {
		b.due(t)
		return
	}
	c := &k.cursors[lvl]
	if !t.After(c.runAt) {
		c.runAt, c.id = t.Add(-time.Millisecond), 0
	}
	c.dirty, c.rewound = true, true
	b.signalFetch()
}

// due remembers an instant beyond the horizon.
func (b *board) due(t time.Time) {
	if b.next.IsZero() || t.Before(b.next) {
		b.next = t
		b.rearm(time.Now())
	}
}

// fire moves what has become due and asks for what comes into the horizon.
func (b *board) fire(now time.Time) {
	for len(b.timers) > 0 && !b.timers[0].job.RunAt.After(now) {
		b.admit(b.timers.pop(), false)
	}
	if !b.next.IsZero() && !b.prefetchAt().After(now) {
		b.next = time.Time{}
		b.seekNext = true
		b.rescan(false)
	}
	b.rearm(now)
}

// rescan makes the fetcher look at every bucket again; from the beginning, if
// hints may have been missed.
func (b *board) rescan(fromStart bool) {
	for _, k := range b.owned {
		for i := range k.cursors {
			if fromStart {
				k.cursors[i].rewind()
			} else {
				k.cursors[i].dirty = true
			}
		}
	}
	if fromStart {
		b.seekNext = true
	}
	b.signalFetch()
}

// prefetchAt is when to fetch for b.next: a horizon ahead, but not so often
// that a steady stream of timers makes a fetch each.
func (b *board) prefetchAt() time.Time {
	h := b.limits.horizon
	p := b.next.Add(-h)
	if q := b.lastFetch.Add(h / 2); q.After(p) {
		p = q
	}
	if q := b.next.Add(-h / 4); q.Before(p) {
		p = q
	}
	return p
}

// rearm sets the one timer to the first thing that will happen by itself.
func (b *board) rearm(now time.Time) {
	if b.timer == nil {
		return
	}
	var at time.Time
	if len(b.timers) > 0 {
		at = b.timers[0].job.RunAt
	}
	if !b.next.IsZero() {
		if p := b.prefetchAt(); at.IsZero() || p.Before(at) {
			at = p
		}
	}
	if at.IsZero() {
		b.timer.Stop()
		return
	}
	b.timer.Reset(max(0, at.Sub(now)))
}
