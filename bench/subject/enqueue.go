package subject

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// enqueueBulk enqueues a batch ChunkSize jobs at a time and returns how long
// it took.
func enqueueBulk(ctx context.Context, s Subject, b Batch) (time.Duration, error) {
	began := time.Now()
	for from := 0; from < b.Count; from += ChunkSize {
		if err := s.EnqueueBulk(ctx, b.Jobs(from, min(from+ChunkSize, b.Count))); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// enqueueEach enqueues a batch one by one from several goroutines.
func enqueueEach(ctx context.Context, s Subject, b Batch, callers int) (time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var callersDone sync.WaitGroup
	began := time.Now()
	for range callers {
		callersDone.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= b.Count {
					return
				}
				if err := s.EnqueueOne(ctx, b.Job(i)); err != nil {
					cancel(err)
				}
			}
		})
	}
	callersDone.Wait()
	return time.Since(began), context.Cause(ctx)
}

// enqueuePaced enqueues one job every interval. A slow enqueue does not delay
// the next one, so that a queue cannot look better by slowing its callers.
func enqueuePaced(ctx context.Context, s Subject, b Batch, every time.Duration, r *Recorder) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tick := time.NewTicker(every)
	defer tick.Stop()
	var callsDone sync.WaitGroup
	for i := range b.Count {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		callsDone.Go(func() {
			r.called[i] = time.Now().UnixMicro()
			if err := s.EnqueueOne(ctx, b.Job(i)); err != nil {
				cancel(err)
				return
			}
			r.committed[i] = time.Now().UnixMicro()
		})
	}
	callsDone.Wait()
	return context.Cause(ctx)
}
