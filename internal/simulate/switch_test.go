package simulate

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// switchAll is a person at the switch that stops all starts.
func (w *world) switchAll(r *rand.Rand, what string) {
	w.mu.Lock()
	w.halts = true
	w.counts[what]++
	w.mu.Unlock()
	var by *life
	err := w.do(r, what, func(ctx context.Context, l *life, tx *store.Tx) error {
		by = l
		return flip(ctx, l, tx, what == "halt")
	})
	w.seeHalt()
	w.mu.Lock()
	if w.halter = nil; err == nil && what == "halt" {
		w.halter = by
	}
	w.mu.Unlock()
}

// flip is what the API does.
func flip(ctx context.Context, l *life, tx *store.Tx, halt bool) (err error) {
	var h store.Halt
	var changed bool
	if halt {
		h, changed, err = tx.BeginHalt(ctx, "tester", "an emergency")
	} else {
		h, changed, err = tx.LiftHalt(ctx, "tester")
	}
	if err == nil && changed {
		tx.AfterCommit(func() { l.queue.SetHalt(h.HaltMark) })
	}
	return err
}

// liftAll ends the halt, if there is one.
func (w *world) liftAll() {
	err := w.try(0, func(l *life) error {
		return l.db.Write(l.ctx, func(ctx context.Context, tx *store.Tx) error { return flip(ctx, l, tx, false) })
	})
	w.refused("lift", err)
	w.seeHalt()
}

func (w *world) isHalted() bool {
	return len(w.rows(`select id||'' from halts where lifted_at is null`)) > 0
}

// seeHalt looks at the switch. What waited because of it has the usual time to
// begin when it is lifted.
func (w *world) seeHalt() {
	halted := w.isHalted()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !halted && !w.halted.IsZero():
		w.halted = time.Time{}
		if now := time.Now(); now.After(w.fault) {
			w.fault = now
		}
	case halted && w.halted.IsZero():
		w.halted = time.Now()
	}
}

// haltedFor is for how long everything has been halted at least.
func (w *world) haltedFor() time.Duration {
	if !w.isHalted() {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.halted.IsZero() {
		return 0
	}
	return time.Since(w.halted)
}

// hears is how long it may take until nothing starts any more: one that has not
// heard of a halt for longer than a lease must not act at all, and the healthy look
// five times in a lease.
func (w *world) hears() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.halted.IsZero() || w.halted.Before(w.fault.Add(2*lease)):
		return lease
	case w.plan.shared:
		return lease/5 + 1500*time.Millisecond
	default:
		return time.Second
	}
}

// starts holds that nothing starts while everything is halted. The process that halted
// it knows at once.
func (w *world) starts(l *life, what string) {
	d := w.haltedFor()
	w.mu.Lock()
	itself := w.halter == l
	w.mu.Unlock()
	if d > w.hears() || itself && d > 50*time.Millisecond {
		w.fail("%s starts %v after everything was halted", what, d)
	}
}

// checkHalt holds that no run of any kind began while everything was halted.
func (w *world) checkHalt() {
	d := w.haltedFor()
	w.mu.Lock()
	skew := w.skew
	w.mu.Unlock()
	late := d - w.hears() - skew
	if late <= 0 {
		return
	}
	for _, r := range w.rows(`select kind||'', handler||'', created_at||'' from runs where created_at > $1 and attempt = 1`, time.Now().Add(-late).UnixMilli()) {
		w.fail("a %s run (%s) began %v after everything was halted", r[0], r[1], d-time.Since(time.UnixMilli(atoi(r[2]))))
	}
}

// misset sets the clock of a place wrong for some transactions, and then it is set
// right: between any two looks of a process at the time there may be a jump. For
// longer the clocks cannot differ here, because the queue looks at that of the
// bubble.
func (w *world) misset(r *rand.Rand, n *node) {
	off := time.Duration(pick(r, []float64{0.3, 2, 5, 20, 50, 100}) * float64(time.Second))
	if r.IntN(2) == 0 {
		off = -off
	}
	left := 1 + r.IntN(6)
	n.mu.Lock()
	n.wall = wall{off, left}
	n.mu.Unlock()
	w.mu.Lock()
	w.counts["clock"]++
	w.wounded = true
	w.skew = max(w.skew, off.Abs())
	w.mu.Unlock()
	w.note("the clock of node %d is wrong by %v for %d transactions", n.index, off, left)
}

// setRight sets all clocks right.
func (w *world) setRight() {
	for _, n := range w.nodes {
		n.mu.Lock()
		n.wall = wall{}
		n.mu.Unlock()
	}
}
