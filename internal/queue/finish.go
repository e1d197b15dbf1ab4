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
		q.health.begin(dutyWrite)
		err := q.flush(ctx)
		if ctx.Err() != nil {
			continue // it ends once the board is closed
		}
		q.health.ended(dutyWrite, err)
		if err != nil {
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
	b.mu.Unlock()
	if len(batch) == 0 {
		return nil
	}
	left, err := q.writeEnds(ctx, batch)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(left) == 0 {
		clear(batch) // lets go of the jobs
		b.spare = batch[:0]
		return nil
	}
	b.finished = append(slices.Clip(left), b.finished...)
	b.finished = slices.DeleteFunc(b.finished, func(f store.Finished) bool { return b.owned[f.Job.Bucket] == nil })
	return err
}

// writeEnds writes ends in their order, and returns those that could not be
// written now. When the database refuses a batch, it is halved until the one is
// found that it refuses, so that none holds back another.
func (q *Queue) writeEnds(ctx context.Context, batch []store.Finished) (left []store.Finished, err error) {
	err = q.tryEnds(ctx, batch)
	switch {
	case err == nil:
		return nil, nil
	case !store.Refused(err):
		return batch, err
	case len(batch) == 1:
		return q.endAnyway(ctx, batch[0], err)
	}
	half := len(batch) / 2
	if left, err = q.writeEnds(ctx, batch[:half]); err != nil {
		return append(slices.Clip(left), batch[half:]...), err
	}
	return q.writeEnds(ctx, batch[half:])
}

// tryEnds writes ends and files what that means.
func (q *Queue) tryEnds(ctx context.Context, batch []store.Finished) error {
	b := q.board
	epochs := map[int]int64{}
	b.mu.Lock()
	for _, f := range batch {
		if k := b.owned[f.Job.Bucket]; k != nil {
			epochs[k.id] = k.epoch
		}
	}
	b.mu.Unlock()
	var again []store.Job
	var lost []int
	err := q.finishing.run(ctx, func(ctx context.Context) (err error) {
		again, lost, err = q.db.Finish(ctx, store.Finishing{Node: q.Node().ID, Epochs: epochs, Jobs: batch})
		return err
	})
	if err != nil {
		return err
	}
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
			if f.Job.Task == CanaryName {
				q.canary.ended(f, now)
			}
			q.observe(eventOf(f))
		}
	}
	return nil
}

// stuckFor is how long an end waits that the database refuses in every form.
const stuckFor = time.Minute

// endAnyway ends a job whose end the database refuses: with less and less of
// what there is to say about it, and last as failed. If even that is refused, it
// is put aside for a while, so that nothing else waits for it.
func (q *Queue) endAnyway(ctx context.Context, f store.Finished, refused error) ([]store.Finished, error) {
	q.log.Error("the end of a job cannot be written as it is", "job", f.Job.ID, "task", f.Job.Task, "err", refused)
	said := f
	if said.Error != "" || said.Verdict != store.Done {
		said.Error = "how this run ended could not be stored: the database refused it"
	}
	bare, failed := said, said
	bare.NoHistory, failed.NoHistory = true, true
	failed.Verdict = store.Fail
	for _, form := range []store.Finished{said, bare, failed} {
		err := q.tryEnds(ctx, []store.Finished{form})
		if err == nil {
			return nil, nil
		}
		if !store.Refused(err) {
			return []store.Finished{f}, err
		}
	}
	q.log.Error("the end of a job cannot be written at all; it is tried again later", "job", f.Job.ID, "task", f.Job.Task, "after", stuckFor)
	time.AfterFunc(stuckFor, func() {
		b := q.board
		b.mu.Lock()
		defer b.mu.Unlock()
		if e := b.entries[f.Job.ID]; e != nil && e.place == inFinish && !b.closed {
			b.finished = append(b.finished, f)
			b.signalFinish()
		}
	})
	return nil, nil
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
