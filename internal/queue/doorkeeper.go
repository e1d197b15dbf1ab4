package queue

import (
	"context"
	"sync"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// Applications add jobs in their own transactions, on PostgreSQL, and wake us by a
// NOTIFY, for which all commits of the database wait in one line, each for the disk.
// So where they come often a node promises in a row, of which all know, that it looks
// by itself, every few milliseconds, until an instant. While there is such a promise
// the functions wake nobody. What a look finds is treated as if it had been
// heard of.
//
// Nothing is missed. A function takes part in a promise only if it reads it after its
// transaction has a number, and after the job has its id. Whoever ends a promise does
// so by a commit, and then looks which numbers there are: all that took part have a lower
// one. It looks again until all of these have ended, and the last look is after that.
// Until then nobody makes another promise. Transactions that see the past (repeatable
// read) take no part, because they may read an old promise at any time.
//
// How far back a look reads is decided the same way: ids have the time at which they
// were made, and a transaction whose number is higher than that of an earlier look made
// its ids after that.
//
// How late a job can be: a look's distance, 3 ms, while the promise holds; if its
// transaction lasts longer than that, a tenth of the time since the end of the promise and a
// second at most. If the node dies, another one finds that in its row of nodes and
// inherits: everybody looks at everything, until all transactions have ended that may have
// taken part. That is as late as a job of the dead node itself, or at most half of the
// time again that such a transaction lasts longer.
type doorkeeper struct {
	q     *Queue
	limit doorLimits
	busy  chan struct{} // so many wake-ups come from the door that a promise pays
	check chan struct{} // another node may have left something

	mu    sync.Mutex
	heard int       // guarded by mu: wake-ups since then
	since time.Time // guarded by mu
}

type doorLimits struct {
	often   int           // this many wake-ups or jobs in a span make a promise pay
	span    time.Duration // also: how much is left of a promise when it is made longer
	promise time.Duration
	every   time.Duration // between looks
	back    time.Duration // a look that has to read farther back than that ends the promise
	longest time.Duration // between looks for transactions that last
	rest    time.Duration // before another try to make a promise
}

func defaultDoorLimits() doorLimits {
	return doorLimits{
		often: 32, span: 100 * time.Millisecond, promise: 300 * time.Millisecond, every: 3 * time.Millisecond,
		back: 250 * time.Millisecond, longest: time.Second, rest: 250 * time.Millisecond,
	}
}

// doorSlack is for clocks that are set while we look, in milliseconds.
const doorSlack = 10

func newDoorkeeper(q *Queue) *doorkeeper {
	return &doorkeeper{q: q, limit: q.cfg.limits.door, busy: make(chan struct{}, 1), check: make(chan struct{}, 1)}
}

// woken counts the wake-ups that come from the door.
func (k *doorkeeper) woken(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now.Sub(k.since) > k.limit.span {
		k.heard, k.since = 0, now
	}
	if k.heard++; k.heard == k.limit.often {
		signal(k.busy)
	}
}

// signal tells whoever waits for it, or is going to.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// run keeps promises and inherits those of others, one after the other.
func (k *doorkeeper) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-k.check:
			k.inherit(ctx)
		case <-k.busy:
			k.keep(ctx)
			sleep(ctx, k.limit.rest)
			select { // what was heard meanwhile is over
			case <-k.busy:
			default:
			}
		}
	}
}

// doorWatch is what is known while a promise lasts, and until nothing is left of it.
type doorWatch struct {
	k     *doorkeeper
	node  string
	until int64 // of the promise, by the database's clock
	from  int64 // where the next look begins, by that clock
	to    int64 // and where it ends
	marks []doorMark
	last  int64 // clock of the last look
	top   int64 // the latest clock of any look: ids may be of then, if it was set back
	seen  map[int64]bool
	found int // jobs since the promise was made longer
}

// doorMark: transactions with a higher number made their ids at that time or later.
type doorMark struct{ at, xid int64 }

// maxMarks is more than there are while a promise holds.
const maxMarks = 1000

// forever is an instant that no id has.
const forever = int64(1) << 41

// keep makes a promise and keeps it for as long as it pays.
func (k *doorkeeper) keep(ctx context.Context) {
	from, ok := k.begin(ctx)
	if !ok {
		return
	}
	w := &doorWatch{k: k, node: k.q.Node().ID, from: from, to: forever, seen: map[int64]bool{}}
	until, ok, err := k.q.db.PromiseDoor(ctx, w.node, k.limit.promise)
	if err == nil && !ok {
		return // another node looks
	}
	// An error may hide that the promise was made.
	for w.until = until; err == nil && ctx.Err() == nil; sleep(ctx, k.limit.every) {
		if !w.goOn(ctx) {
			break
		}
	}
	w.end(ctx)
}

// begin finds an instant at which no transaction had begun to write that is still
// open: what it adds under a promise it may have given an id before the promise. While
// there is one that lasts there is no promise.
func (k *doorkeeper) begin(ctx context.Context) (from int64, ok bool) {
	first, err := k.q.db.LookAtDoor(ctx, forever, forever)
	for now := first; err == nil && ctx.Err() == nil && now.At-first.At < k.limit.back.Milliseconds(); sleep(ctx, k.limit.every) {
		if now, err = k.q.db.LookAtDoor(ctx, forever, forever); err == nil && now.Xmin >= first.Xid {
			return first.At - doorSlack, true
		}
	}
	return 0, false
}

// goOn looks once, makes the promise longer if need be, and reports whether it holds.
func (w *doorWatch) goOn(ctx context.Context) bool {
	look, err := w.look(ctx)
	if err != nil || look.Full || look.At-w.from > w.k.limit.back.Milliseconds() {
		return false
	}
	if w.until-look.At > w.k.limit.promise.Milliseconds()-w.k.limit.span.Milliseconds() {
		return true
	}
	if w.found < w.k.limit.often/2 {
		return false
	}
	w.found = 0
	until, ok, err := w.k.q.db.PromiseDoor(ctx, w.node, w.k.limit.promise)
	w.until = until
	return ok && err == nil
}

// look tells the owners of what is new of it.
func (w *doorWatch) look(ctx context.Context) (store.DoorLook, error) {
	ctx, cancel := context.WithTimeout(ctx, w.k.q.cfg.limits.answer)
	defer cancel()
	look, err := w.k.q.db.LookAtDoor(ctx, w.from, w.to)
	if err != nil {
		return look, err
	}
	var fresh []store.Job
	for _, j := range look.Jobs {
		if !w.seen[j.ID] {
			w.seen[j.ID] = true
			fresh = append(fresh, j)
		}
	}
	w.found += len(fresh)
	w.k.q.lookFor(fresh)
	if look.Full {
		w.k.q.lookEverywhere()
	}
	w.move(look)
	return look, nil
}

// move finds out where the next look has to begin.
func (w *doorWatch) move(look store.DoorLook) {
	if look.At < w.last { // the clock was set back, and ids with it
		w.from = min(w.from, look.At-doorSlack)
		for i := range w.marks {
			w.marks[i].at = min(w.marks[i].at, look.At)
		}
	}
	w.last, w.top = look.At, max(w.top, look.At)
	before := w.from
	for len(w.marks) > 0 && w.marks[0].xid <= look.Xmin {
		w.from = max(w.from, w.marks[0].at-doorSlack)
		w.marks = w.marks[1:]
	}
	if len(w.marks) < maxMarks {
		w.marks = append(w.marks, doorMark{at: look.At, xid: look.Xid})
	}
	if w.from > before {
		for id := range w.seen {
			if store.DoorTime(id) < w.from {
				delete(w.seen, id)
			}
		}
	}
}

// end withdraws the promise, and looks until all that took part in it have ended. If
// this node ends first, the next one inherits.
func (w *doorWatch) end(ctx context.Context) {
	if ctx.Err() != nil { // nobody needs to wait for the promise to end by itself
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.k.q.cfg.limits.answer)
		defer cancel()
		if w.k.q.db.WithdrawDoor(ctx, w.node) == nil {
			w.close(ctx, func(time.Duration) bool { return false })
		}
		return
	}
	for w.k.q.db.WithdrawDoor(ctx, w.node) != nil {
		if sleep(ctx, w.k.limit.rest); ctx.Err() != nil {
			return
		}
		_, _ = w.look(ctx)
	}
	w.close(ctx, func(since time.Duration) bool {
		sleep(ctx, min(max(w.k.limit.every, since/10), w.k.limit.longest))
		return ctx.Err() == nil
	})
}

// close looks, after the promise was withdrawn, until nothing is left of it or wait says no.
func (w *doorWatch) close(ctx context.Context, wait func(since time.Duration) bool) {
	begun := time.Now()
	last := int64(-1) // all that took part have a lower number
	for {
		look, err := w.look(ctx)
		switch {
		case err != nil:
		case last < 0:
			last, w.to = look.Xid, w.top+w.k.limit.back.Milliseconds()
		}
		if err == nil && look.Xmin >= last {
			if err := w.k.q.db.LeaveDoor(ctx, w.node); err == nil {
				return
			}
		}
		if !wait(time.Since(begun)) {
			return
		}
	}
}

// inherit answers for a node that is gone: as nobody knows what it had seen, all look
// at everything.
func (k *doorkeeper) inherit(ctx context.Context) {
	node := k.q.Node().ID
	ok, err := k.q.db.InheritDoor(ctx, node)
	for ; err != nil && ctx.Err() == nil; ok, err = k.q.db.InheritDoor(ctx, node) {
		sleep(ctx, k.limit.longest)
	}
	if !ok {
		return
	}
	last := int64(-1)
	for wait := k.limit.span; ctx.Err() == nil; wait = min(wait+wait/2, time.Minute) {
		look, err := k.q.db.LookAtDoor(ctx, forever, forever)
		if err == nil && last < 0 {
			last = look.Xid
		}
		done := err == nil && look.Xmin >= last
		k.q.lookEverywhere()
		if done && k.q.db.LeaveDoor(ctx, node) == nil {
			return
		}
		sleep(ctx, wait)
	}
}
