package worker

import (
	"context"
	"time"

	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/workerstore"
)

// Run takes back what workers left, until the context ends. Claims do that too; this
// is for tasks that nobody claims from any more, so that their jobs are told as they
// are.
func (s *Service) Run(ctx context.Context) {
	tick := time.NewTicker(s.limits.sweep)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.forgetLines()
		if err := s.forgetStarts(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("forget what counts no more for rates", "err", err)
		}
		if _, err := s.runOnce(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("take back leases that are over", "err", err)
		}
	}
}

// sweptAtOnce bounds the tasks that one pass looks after.
const sweptAtOnce = 100

// runOnce takes back a bounded number of leases, and tells how many.
func (s *Service) runOnce(ctx context.Context) (int, error) {
	var tasks []string
	err := s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		tasks, err = workerstore.In(tx).Expired(ctx, sweptAtOnce)
		return err
	})
	n := 0
	for _, name := range tasks {
		var back []store.Finished
		err = s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			tx.GoByIndex()
			back, err = tx.TakeBack(ctx, name, takeBackAtOnce)
			return err
		})
		if err != nil {
			return n, err
		}
		n += len(back)
		for _, f := range back {
			s.queue.ServedEnded(f)
		}
		s.queue.TellServed(name, queue.Chance{})
	}
	return n, err
}

// forgetStarts removes slices of time that count no more for any rate.
func (s *Service) forgetStarts(ctx context.Context) error {
	const atOnce = 1000
	var old int
	err := s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		old, err = tx.CountOldStarts(ctx, atOnce)
		return err
	})
	if err != nil || old == 0 {
		return err
	}
	return s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.PruneStarts(ctx, atOnce)
		return err
	})
}
