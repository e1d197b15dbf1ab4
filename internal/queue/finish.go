package queue

import (
	"context"
	"slices"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// finishLoop writes how jobs ended. While one batch is being written the next
// one gathers.
func (q *Queue) finishLoop(ctx context.Context) {
	b := q.board
	for {
		b.mu.Lock()
		for len(b.finished) == 0 && !b.closed {
			b.finishCond.Wait()
		}
		closed := b.closed
		b.mu.Unlock()
		if closed {
			return
		}
		if err := q.flush(ctx); err != nil && ctx.Err() == nil {
			q.health.set(err)
			q.log.Warn("finish jobs", "err", err)
			sleep(ctx, time.Second)
		}
	}
}

// flushAll writes what is left when the process stops.
func (q *Queue) flushAll(ctx context.Context) {
	deadline := time.Now().Add(5 * time.Second)
	for time.Now().Before(deadline) {
		q.flushing.Lock() // not while a batch is on its way
		q.board.mu.Lock()
		n := len(q.board.finished)
		q.board.mu.Unlock()
		q.flushing.Unlock()
		if n == 0 {
			return
		}
		if err := q.flush(ctx); err != nil {
			sleep(ctx, 200*time.Millisecond)
		}
	}
}

// flush writes one batch. On an error the batch stays and is tried again: what
// a job did must not be forgotten because the database was away.
func (q *Queue) flush(ctx context.Context) error {
	q.flushing.Lock()
	defer q.flushing.Unlock()
	b := q.board
	b.mu.Lock()
	batch := b.finished
	if n := 4 * b.limits.batch; len(batch) > n {
		batch, b.finished = batch[:n:n], batch[n:]
	} else {
		b.finished, b.spare = b.spare[:0], nil
	}
	epochs := map[int]int64{}
	for _, f := range batch {
		if k := b.owned[f.Job.Bucket]; k != nil {
			epochs[k.id] = k.epoch
		}
	}
	b.mu.Unlock()
	if len(batch) == 0 {
		return nil
	}
	again, lost, err := q.db.Finish(ctx, store.Finishing{Node: q.cfg.Node.ID, Epochs: epochs, Jobs: batch})
	if err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.finished = append(batch, b.finished...)
		b.finished = slices.DeleteFunc(b.finished, func(f store.Finished) bool { return b.owned[f.Job.Bucket] == nil })
		return err
	}
	q.health.clear()
	b.mu.Lock()
	for _, id := range lost {
		q.log.Warn("lost a bucket to another node", "bucket", id)
		q.cfg.Metrics.lost()
		b.disown(id, ErrLeaseLost)
	}
	b.written(batch)
	now := time.Now()
	for _, j := range again {
		b.offer(j, false, now, now)
	}
	b.mu.Unlock()
	for _, f := range batch {
		if len(lost) == 0 || !slices.Contains(lost, f.Job.Bucket) {
			q.cfg.Observe(eventOf(f))
		}
	}
	clear(batch) // lets go of the jobs
	b.mu.Lock()
	b.spare = batch[:0]
	b.mu.Unlock()
	return nil
}

// eventOf tells how a run ended, with the job as it is now.
func eventOf(f store.Finished) Event {
	j := *f.Job
	j.StartedAt = f.StartedAt
	if f.Verdict == store.Retry || f.Verdict == store.Snooze {
		j.RunAt, j.StartedAt = f.RunAt, time.Time{}
	}
	return Event{What: wordFor(f.Verdict), Job: j, At: f.EndedAt, Err: f.Error}
}
