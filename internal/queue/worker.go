package queue

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/visible"
)

// work is one worker of a pool: it runs one job after the other.
func (q *Queue) work(ctx context.Context, p *pool) {
	b := q.board
	for {
		b.mu.Lock()
		var e *entry
		var check []*entry
		for {
			if b.stopping || b.closed {
				b.mu.Unlock()
				return
			}
			if e, check = b.take(p, time.Now()); e != nil || check != nil {
				break
			}
			p.cond.Wait()
		}
		b.mu.Unlock()
		if check != nil {
			q.check(ctx, check)
			continue
		}
		q.runOne(ctx, e)
	}
}

// check asks whether rows are still as they were read, because another process
// may have changed or deleted them.
func (q *Queue) check(ctx context.Context, entries []*entry) {
	ids := make([]int64, len(entries))
	for i, e := range entries {
		ids[i] = e.job.ID
	}
	readAt := time.Now()
	var revs map[int64]int64
	err := q.bounded(ctx, func(ctx context.Context) (err error) {
		revs, err = q.db.Revisions(ctx, ids)
		return err
	})
	if ctx.Err() == nil {
		q.health.ended(dutyCheck, err)
	}
	if err != nil && ctx.Err() == nil {
		q.log.Warn("check jobs", "err", err)
		sleep(ctx, time.Second)
	}
	now := time.Now()
	q.board.mu.Lock()
	defer q.board.mu.Unlock()
	if err != nil { // back to the queue; they are checked again
		q.board.unchecked(entries)
		return
	}
	q.board.checked(entries, revs, readAt, now)
}

func (b *board) unchecked(entries []*entry) {
	for _, e := range slices.Backward(entries) {
		if e.place != inCheck {
			continue
		}
		e.place, e.unknown = inReady, true
		if b.owned[e.job.Bucket].draining {
			b.drop(e)
			continue
		}
		e.pool.again(e)
	}
}

// runOne runs a job and files how it ended.
func (q *Queue) runOne(ctx context.Context, e *entry) {
	b := q.board
	jctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := false
	b.mu.Lock()
	k := b.owned[e.job.Bucket]
	if e.place != inRun || k == nil {
		b.mu.Unlock()
		return
	}
	e.cancel = cancel
	j := &Job{Job: e.job, StartedAt: e.started, queue: q, ended: &ended, fence: store.Fence{Bucket: k.id, Node: q.Node().ID, Epoch: k.epoch}}
	b.mu.Unlock()
	last, fit := q.recovered(jctx, j, e)
	if !fit || j.StillOwned() != nil {
		b.mu.Lock()
		b.giveUp(e)
		b.mu.Unlock()
		return
	}
	task, known := q.cfg.Tasks[j.Task]
	q.cfg.Metrics.started(j.Task, e.started.Sub(j.RunAt))
	q.observe(Event{What: "started", Job: j.Job, At: e.started})

	var err error
	if !known {
		// Another node may know it, or the next version of this program.
		err = snooze{e.started.Add(time.Minute), fmt.Sprintf("no task %q here", j.Task)}
	} else if err = last; err == nil {
		err = q.call(jctx, task, j)
	}
	if errors.Is(err, ErrHalted) && q.leaveHalted(e) {
		q.cfg.Metrics.ended(j.Task, wordFor(store.Snooze), time.Since(e.started))
		return
	}
	now := time.Now()
	f := verdict(j, task, err, context.Cause(jctx), now)
	b.mu.Lock()
	if ended {
		f.Verdict = store.Done
		b.finishedInside(e, f)
	} else {
		b.finish(e, f)
	}
	b.mu.Unlock()
	if ended {
		q.observe(eventOf(f))
	}
	q.ended(j, f, err)
}

// recovered counts a run that was cut off as an attempt, durably and before
// the job runs again. The job is not fit to run if that cannot be written; last
// is the error of one that has no attempt left.
func (q *Queue) recovered(ctx context.Context, j *Job, e *entry) (last error, fit bool) {
	if j.Job.StartedAt.IsZero() {
		return nil, true
	}
	marked := 0
	err := q.bounded(ctx, func(ctx context.Context) (err error) {
		marked, err = q.db.MarkStarted(ctx, store.Marking{
			Node: j.fence.Node, Epochs: map[int]int64{j.fence.Bucket: j.fence.Epoch}, Jobs: []*store.Job{&j.Job}, At: j.StartedAt,
		})
		return err
	})
	if err != nil && ctx.Err() == nil {
		q.log.Warn("count a run that was cut off", "job", j.ID, "err", err)
		sleep(ctx, time.Second)
	}
	if marked == 0 {
		return nil, false
	}
	q.board.mu.Lock()
	e.marked = true
	q.board.mu.Unlock()
	j.Recovered = true
	j.Attempt++
	q.log.Info("job was interrupted by the end of its process; it runs again", "job", j.ID, "task", j.Task, "attempt", j.Attempt+1)
	if j.MaxAttempts > 0 && j.Attempt >= j.MaxAttempts {
		return Permanent(errors.New("its process ended during the last allowed attempt")), true
	}
	return nil, true
}

// call runs the task; a panic is an error of this job only.
func (q *Queue) call(ctx context.Context, t Task, j *Job) (err error) {
	if t.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, t.Timeout, ErrTimeout)
		defer cancel()
	}
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{v, debug.Stack()}
		}
	}()
	return t.Run(ctx, j)
}

// ended tells the log and the metrics. Whoever watches is told once it is
// written.
func (q *Queue) ended(j *Job, f store.Finished, err error) {
	what := wordFor(f.Verdict)
	q.cfg.Metrics.ended(j.Task, what, f.EndedAt.Sub(f.StartedAt))
	if err == nil || f.Verdict == store.Snooze {
		return
	}
	attrs := []any{"job", j.ID, "task", j.Task, "attempt", j.Attempt + 1, "err", visible.Truncate(err.Error(), maxError)}
	if p, ok := errors.AsType[*panicked](err); ok {
		attrs = append(attrs, "stack", string(p.stack))
	}
	switch f.Verdict {
	case store.Fail:
		q.log.Error("job failed for good", attrs...)
	case store.Retry:
		q.log.Warn("job failed; it is tried again", append(attrs, "at", f.RunAt)...)
	case store.Done, store.Snooze, store.Cancel:
	}
}

func wordFor(v store.Verdict) string {
	switch v {
	case store.Done:
		return "succeeded"
	case store.Retry:
		return "retried"
	case store.Snooze:
		return "snoozed"
	case store.Fail:
		return "failed"
	default:
		return "cancelled"
	}
}

// markAfter is how long a job runs before its row says so.
const markAfter = time.Second

// markLoop notes on the rows of long jobs that they run. It sleeps while
// nothing does.
func (q *Queue) markLoop(ctx context.Context) {
	b := q.board
	for {
		b.mu.Lock()
		for len(b.running) == 0 && !b.closed {
			b.markCond.Wait()
		}
		closed := b.closed
		b.mu.Unlock()
		if closed {
			return
		}
		sleep(ctx, markAfter/2)
		if err := q.markOnce(ctx, time.Now()); err != nil && ctx.Err() == nil {
			q.log.Warn("mark running jobs", "err", err)
		}
	}
}

func (q *Queue) markOnce(ctx context.Context, now time.Time) error {
	b := q.board
	byStart := map[time.Time]store.Marking{}
	var entries []*entry
	b.mu.Lock()
	for _, e := range b.running {
		k := b.owned[e.job.Bucket]
		if k == nil || e.marked || now.Sub(e.started) < markAfter {
			continue
		}
		m, ok := byStart[e.started]
		if !ok {
			m = store.Marking{Node: q.Node().ID, Epochs: map[int]int64{}, At: e.started}
		}
		m.Epochs[k.id] = k.epoch
		m.Jobs = append(m.Jobs, &e.job)
		byStart[e.started] = m
		entries = append(entries, e)
	}
	b.mu.Unlock()
	for _, m := range byStart {
		if err := q.bounded(ctx, func(ctx context.Context) error { _, err := q.db.MarkStarted(ctx, m); return err }); err != nil {
			return err
		}
	}
	b.mu.Lock()
	for _, e := range entries {
		e.marked = true
	}
	b.mu.Unlock()
	return nil
}
