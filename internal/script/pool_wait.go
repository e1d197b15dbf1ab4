package script

import (
	"context"
	"slices"
	"time"
)

// waiter is somebody who wants a worker.
type waiter struct {
	program string
	turn    chan *worker // a worker, or nil for the right to start one
	patient bool         // it can wait for a better worker than there is; guarded by Pool.mu
	home    bool         // a worker that has the program ready had a phase when it came
}

// patience is how long a phase waits for the worker that has its program ready,
// and for any worker if there are as many as processors. To prepare a program
// takes as long as some phases, to start a worker as long as a hundred; and few
// workers that are always busy need less time than many that fall asleep.
const patience = 25 * time.Millisecond

// acquire returns a worker for one phase of a program, one that has it ready if
// there is a choice. Callers that must wait are served in the order in which they
// came, but for those who wait for a certain worker.
func (p *Pool) acquire(ctx context.Context, program string) (*worker, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed
	}
	me := &waiter{program: program, turn: make(chan *worker, 1), patient: true, home: p.busyWith(program)}
	p.waiting = append(p.waiting, me)
	p.serve()
	p.mu.Unlock()
	return p.await(ctx, me)
}

// busyWith reports whether a worker that has the program ready has a phase.
func (p *Pool) busyWith(program string) bool {
	for w := range p.busy {
		if w.knows[program] {
			return true
		}
	}
	return false
}

// await waits for a turn.
func (p *Pool) await(ctx context.Context, me *waiter) (*worker, error) {
	select {
	case w, open := <-me.turn:
		return p.useTurn(ctx, me, w, open)
	default:
	}
	tired := time.NewTimer(p.patience)
	defer tired.Stop()
	for {
		select {
		case w, open := <-me.turn:
			return p.useTurn(ctx, me, w, open)
		case <-tired.C:
			p.mu.Lock()
			me.patient = false
			p.serve()
			p.mu.Unlock()
		case <-ctx.Done():
			p.giveUp(me)
			return nil, context.Cause(ctx)
		}
	}
}

func (p *Pool) useTurn(ctx context.Context, me *waiter, w *worker, open bool) (*worker, error) {
	switch {
	case !open:
		return nil, errClosed
	case w != nil:
		return w, nil
	}
	return p.start(ctx, me.program)
}

// giveUp takes back that somebody waits.
func (p *Pool) giveUp(me *waiter) {
	p.mu.Lock()
	i := slices.Index(p.waiting, me)
	if i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
	p.mu.Unlock()
	if i >= 0 {
		return
	}
	if w, open := <-me.turn; w != nil { // the turn came at the same moment: pass it on
		p.release(w)
	} else if open {
		p.freeSlot()
	}
}

// serve gives those who wait what there is.
func (p *Pool) serve() {
	p.waiting = slices.DeleteFunc(p.waiting, func(m *waiter) bool {
		if w := p.popIdle(m); w != nil {
			p.occupy(w, m.program)
			m.turn <- w
			return true
		}
		if p.count >= p.cfg.Workers || m.patient && (m.home || p.count >= p.enough) {
			return false
		}
		p.count++
		m.turn <- nil
		return true
	})
}

// occupy notes that a worker has a phase of a program, for which it will have it
// ready.
func (p *Pool) occupy(w *worker, program string) {
	p.busy[w] = true
	if program != "" {
		w.note(program)
	}
}

// popIdle takes an idle worker that knows the program, or else the one that was
// used last, so that the others can end. Those that have died meanwhile are
// forgotten.
func (p *Pool) popIdle(m *waiter) *worker {
	for len(p.idle) > 0 {
		i := slices.IndexFunc(p.idle, func(w *worker) bool { return w.knows[m.program] })
		if i < 0 && m.home && m.patient {
			return nil
		}
		if i < 0 {
			i = len(p.idle) - 1
		}
		w := p.idle[i]
		p.idle = slices.Delete(p.idle, i, i+1)
		if w.alive() {
			return w
		}
		w.kill() // frees the pipes
		p.count--
	}
	return nil
}
