package queue

import (
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// While everything is halted, jobs of users stay in the table. They are neither
// read into the hand nor started, and all of the table is read again when the halt
// is lifted. Internal jobs run: those that would start something leave their job
// as it is, with ErrHalted, and what has begun is ended.
//
// A node knows the switch by its heartbeat, whose view has it, and looks at once
// when another node says that something changed. The one that moves the switch is
// told directly, as is the only one that a SQLite file has.

// Halt is what this node knows of the switch. One that works on no jobs knows only
// what it did itself.
func (q *Queue) Halt() store.HaltMark { return *q.halt.Load() }

// SetHalt is called after the commit of a change of the switch.
func (q *Queue) SetHalt(m store.HaltMark) {
	q.learnHalt(m)
	q.hints.changed()
}

func (q *Queue) learnHalt(m store.HaltMark) {
	b := q.board
	b.mu.Lock()
	defer b.mu.Unlock()
	if !m.After(b.halt) {
		return // a view from before
	}
	was := b.halt.Active()
	b.halt = m
	q.halt.Store(&m)
	switch {
	case m.Active() && !was:
		q.log.Warn("everything is halted: nothing starts until the halt is lifted")
	case was && !m.Active():
		q.log.Info("the halt is lifted")
		for id := range b.owned {
			b.reread(id)
		}
	}
}

// halts reports whether jobs of the task wait until the halt is lifted.
func (b *board) halts(task string) bool { return b.halt.Active() && b.waits[task] }

// leaveHalted takes a job off its worker that would have started something. Its row
// is found again when the halt is lifted. It reports false if the row may say that
// the job runs: then its end must be written.
func (q *Queue) leaveHalted(e *entry) bool {
	b := q.board
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.marked || time.Since(e.started) > markAfter/2 {
		return false
	}
	changed := e.rearmed || !b.halt.Active()
	b.forgetRun(e)
	if changed {
		b.announce(e.job.Bucket, e.job.Priority, epochStart(), time.Now())
	}
	return true
}
