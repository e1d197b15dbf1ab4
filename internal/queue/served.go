package queue

import (
	"slices"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// What programs of users serve is in the table of jobs and is claimed there, by
// package worker: this node neither fetches nor runs it. It passes on what
// happens to such jobs, as to its own.

// TellServed tells workers that wait, here and at other nodes, that there may be
// something for them.
func (q *Queue) TellServed(tasks ...string) {
	if len(tasks) == 0 {
		return
	}
	tasks = slices.Compact(slices.Sorted(slices.Values(tasks)))
	for _, name := range tasks {
		q.cfg.Served(name)
	}
	q.hints.served(tasks)
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
