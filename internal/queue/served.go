package queue

import (
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// What programs of users serve is in the table of jobs and is claimed there, by
// package worker: this node neither fetches nor runs it. It passes on what
// happens to such jobs, as to its own.

// Chance says why there may be something for the workers of a task. The zero one says
// nothing: anything may have changed.
type Chance struct {
	At    time.Time // when; an instant to come is that of a job that waits for it
	Freed bool      // a lane has room again, which is of use only if jobs waited for it
}

// TellServed tells workers that wait, here and at other nodes, that there may be
// something for them.
func (q *Queue) TellServed(task string, c Chance) {
	q.cfg.Served(task, c)
	q.hints.served(task)
}

// tellCommitted tells workers of new jobs.
func (q *Queue) tellCommitted(jobs []store.Job, now time.Time) {
	type chances struct {
		due  bool
		next time.Time
	}
	var tasks map[string]chances
	for _, j := range jobs {
		if !j.Served() {
			continue
		}
		if tasks == nil {
			tasks = map[string]chances{}
		}
		c := tasks[j.Task]
		switch {
		case !j.RunAt.After(now):
			c.due = true
		case c.next.IsZero() || j.RunAt.Before(c.next):
			c.next = j.RunAt
		}
		tasks[j.Task] = c
	}
	for task, c := range tasks {
		if c.due {
			q.TellServed(task, Chance{At: now})
		}
		if !c.next.IsZero() {
			q.TellServed(task, Chance{At: c.next})
		}
	}
}

// ServedStarted tells that a worker has a job in hand.
func (q *Queue) ServedStarted(j store.Job, at time.Time) {
	q.cfg.Metrics.started(j.Task, at.Sub(j.RunAt))
	q.cfg.Observe(Event{What: "started", Job: j, At: at})
}

// ServedEnded tells how a job of a worker ended.
func (q *Queue) ServedEnded(f store.Finished) {
	q.cfg.Metrics.ended(f.Job.Task, wordFor(f.Verdict), f.EndedAt.Sub(f.StartedAt))
	q.cfg.Observe(eventOf(f))
}
