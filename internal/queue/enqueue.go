package queue

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// EnqueueTx adds jobs in the caller's transaction: they exist if and only if
// it commits, and run no earlier.
func (q *Queue) EnqueueTx(ctx context.Context, tx *store.Tx, specs ...store.JobSpec) ([]store.Job, error) {
	q.fill(specs)
	jobs, err := tx.Enqueue(ctx, specs)
	if err != nil {
		return nil, err
	}
	q.HandOver(tx, jobs...)
	return jobs, nil
}

// fill adds what a task says about its jobs.
func (q *Queue) fill(specs []store.JobSpec) {
	for i := range specs {
		if t, ok := q.cfg.Tasks[specs[i].Task]; ok && specs[i].MaxAttempts == 0 {
			specs[i].MaxAttempts = t.MaxAttempts
		}
	}
}

// HandOver tells the owners of jobs that a transaction added or changed, once
// it is committed.
func (q *Queue) HandOver(tx *store.Tx, jobs ...store.Job) {
	moment := q.board.past.now()
	tx.AfterCommit(func() { q.committed(jobs, moment) })
	tx.InDoubt(func() { q.doubt(jobs) })
}

// Announce is HandOver for jobs that were changed without reading their payloads:
// their owners look for them.
func (q *Queue) Announce(tx *store.Tx, jobs ...store.Job) {
	tx.AfterCommit(func() {
		now := time.Now()
		for _, j := range jobs {
			q.cfg.Observe(Event{What: "enqueued", Job: j, At: now})
		}
		q.lookFor(jobs)
	})
	tx.InDoubt(func() { q.doubt(jobs) })
}

// Enqueue adds jobs in a transaction of their own. Concurrent callers share
// one.
func (q *Queue) Enqueue(ctx context.Context, specs ...store.JobSpec) ([]store.Job, error) {
	if q.enq.running.Load() && len(specs) == 1 {
		return q.enq.enqueue(ctx, specs)
	}
	return q.enqueueOwnTx(ctx, specs)
}

func (q *Queue) enqueueOwnTx(ctx context.Context, specs []store.JobSpec) (jobs []store.Job, err error) {
	if !slices.ContainsFunc(specs, func(s store.JobSpec) bool { return s.Key != "" }) {
		q.fill(specs)
		moment := q.board.past.now()
		jobs, err = q.db.EnqueueOwnTx(ctx, specs)
		if err != nil {
			q.doubt(jobs)
			return nil, err
		}
		q.committed(jobs, moment)
		return jobs, nil
	}
	err = q.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		jobs, err = q.EnqueueTx(ctx, tx, specs...)
		return err
	})
	return jobs, err
}

// committed hands new rows to their owner: in memory if that is this process,
// else by a hint. A fetch may have found them since the moment, which was before
// the commit; then they may have ended.
func (q *Queue) committed(jobs []store.Job, moment uint64) {
	now := time.Now()
	for _, j := range jobs { // before it can start
		q.observe(Event{What: "enqueued", Job: j, At: now})
	}
	var foreign []store.Job
	q.board.mu.Lock()
	gone, known := q.board.past.since(moment, jobs)
	for _, j := range jobs {
		rev, ended := gone[j.ID]
		switch {
		case j.Served(): // tellCommitted does
		case q.board.owned[j.Bucket] == nil:
			foreign = append(foreign, j)
		case !known:
			q.board.announce(j.Bucket, j.Priority, j.RunAt, now)
		case !ended || rev < j.Rev:
			q.board.offer(j, false, now, now)
		}
	}
	q.board.mu.Unlock()
	q.hints.due(foreign)
	q.tellCommitted(jobs, now)
}

// doubtWaits are when rows are looked for of which nobody knows whether they were
// committed: at once, and until what was on its way cannot arrive any more.
func doubtWaits() []time.Duration {
	return []time.Duration{0, time.Second, 5 * time.Second, 15 * time.Second}
}

// doubt makes the owners of jobs look for them, which may be there.
func (q *Queue) doubt(jobs []store.Job) {
	if len(jobs) == 0 {
		return
	}
	for _, wait := range doubtWaits() {
		time.AfterFunc(wait, func() { q.lookFor(jobs) })
	}
}

// Remind makes the owners of jobs look for those that are still in the table:
// whoever added them may have died before it could say so.
func (q *Queue) Remind(ctx context.Context, ids ...int64) error {
	jobs, err := q.db.FetchJobs(ctx, ids)
	if err != nil {
		return err
	}
	q.lookFor(jobs)
	return nil
}

func (q *Queue) lookFor(jobs []store.Job) {
	now := time.Now()
	var foreign []store.Job
	q.board.mu.Lock()
	for _, j := range jobs {
		switch {
		case j.Served(): // tellCommitted does
		case q.board.owned[j.Bucket] == nil:
			foreign = append(foreign, j)
		default:
			q.board.announce(j.Bucket, j.Priority, j.RunAt, now)
		}
	}
	q.board.mu.Unlock()
	q.hints.due(foreign)
	q.tellCommitted(jobs, now)
}

// enqueuer lets concurrent callers share transactions on PostgreSQL, where
// each would otherwise wait for the disk alone. (On SQLite all transactions
// are grouped.)
type enqueuer struct {
	q        *Queue
	requests chan *enqueueRequest
	running  atomic.Bool
	stopped  chan struct{}
}

type enqueueRequest struct {
	ctx   context.Context
	specs []store.JobSpec
	jobs  []store.Job
	err   error
	done  chan struct{}
}

const (
	enqueueGroup   = 256
	enqueueWriters = 4
)

func newEnqueuer(q *Queue) *enqueuer {
	return &enqueuer{q: q, requests: make(chan *enqueueRequest), stopped: make(chan struct{})}
}

func (e *enqueuer) run(ctx context.Context) {
	defer close(e.stopped)
	if !e.q.db.Shared() {
		return
	}
	e.running.Store(true)
	slots := make(chan struct{}, enqueueWriters)
	for {
		var first *enqueueRequest
		select {
		case first = <-e.requests:
		case <-ctx.Done():
			return
		}
		leave := func() { <-slots }
		select {
		case slots <- struct{}{}: // while all writers are busy, callers gather
		case <-ctx.Done():
			leave = func() {} // it has the place of nobody
		}
		group := e.gather(first)
		go func() { //nolint:contextcheck // a group outlives any one of its callers
			e.write(group)
			leave()
		}()
	}
}

func (e *enqueuer) gather(first *enqueueRequest) []*enqueueRequest {
	group := []*enqueueRequest{first}
	for len(group) < enqueueGroup {
		select {
		case r := <-e.requests:
			group = append(group, r)
		default:
			return group
		}
	}
	return group
}

// write commits a group at once; if the database refuses that, each alone, so
// that one bad request does not fail the others. If nobody knows whether it was
// committed, all are told so: adding them again could make two of each.
func (e *enqueuer) write(group []*enqueueRequest) {
	defer func() {
		for _, r := range group {
			close(r.done)
		}
	}()
	if len(group) > 1 {
		var specs []store.JobSpec
		for _, r := range group {
			specs = append(specs, r.specs...)
		}
		jobs, err := e.q.enqueueOwnTx(context.WithoutCancel(group[0].ctx), specs)
		if err == nil {
			for _, r := range group {
				r.jobs, jobs = jobs[:len(r.specs)], jobs[len(r.specs):]
			}
			return
		}
		if !store.Refused(err) {
			for _, r := range group {
				r.err = err
			}
			return
		}
	}
	for _, r := range group {
		r.jobs, r.err = e.q.enqueueOwnTx(r.ctx, r.specs)
	}
}

func (e *enqueuer) enqueue(ctx context.Context, specs []store.JobSpec) ([]store.Job, error) {
	r := &enqueueRequest{ctx: ctx, specs: specs, done: make(chan struct{})}
	select {
	case e.requests <- r:
		<-r.done
		return r.jobs, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-e.stopped:
		return e.q.enqueueOwnTx(ctx, specs)
	}
}
