package source

import (
	"context"
	"time"

	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
)

// SweepName is the task that looks for active sources that have no job. It runs
// at every start and then every sweepEvery, and only repairs.
const SweepName = "pawl.source.sweep"

const (
	sweepEvery = 5 * time.Minute
	sweepBatch = 500
)

// Standing implements lane.Kind.
func (s *Service) Standing() []store.JobSpec { return []store.JobSpec{lane.StandingJob(SweepName)} }

// sweepTask is the code behind SweepName.
func (s *Service) sweepTask() queue.Task {
	return queue.Task{Internal: true, Run: func(ctx context.Context, _ *queue.Job) error {
		if err := s.sweep(ctx); err != nil {
			return err
		}
		return queue.Snooze(time.Now().Add(sweepEvery))
	}}
}

func (s *Service) sweep(ctx context.Context) error {
	for after := ""; ; {
		var page []sourcestore.Source
		err := s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			page, err = sourcestore.In(tx).UnarmedSources(ctx, TaskName, after, sweepBatch)
			return err
		})
		if err != nil {
			return err
		}
		for _, src := range page {
			s.log.Debug("an active source has no job", "source", src.Name)
			if err := s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return s.arm(ctx, tx, &src, tx.Now) }); err != nil {
				return err
			}
		}
		if len(page) < sweepBatch {
			return nil
		}
		after = page[len(page)-1].Name
	}
}
