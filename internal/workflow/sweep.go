package workflow

import (
	"context"
	"time"

	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/partitionstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// SweepName is the task that looks for lanes that could be due and have no job,
// and for events that are held by runs which have ended. It runs at every start
// and then every sweepEvery. It arms the first and only tells of the second
// (context 3.12.4).
const SweepName = "pawl.workflow.sweep"

// WakeName is the task that runs once at every start. It arms the lanes that have
// pending events, so that a consumer that left some is asked once more,
// and those that wait for a connection, which the new process may have.
const WakeName = "pawl.workflow.wake"

const (
	sweepEvery = 5 * time.Minute
	sweepBatch = 500
)

// Standing implements lane.Kind.
func (s *Service) Standing() []store.JobSpec {
	return []store.JobSpec{lane.StandingJob(SweepName), lane.StandingJob(WakeName)}
}

// wakeTask is the code behind WakeName.
func (s *Service) wakeTask() queue.Task {
	return queue.Task{Internal: true, Run: func(ctx context.Context, _ *queue.Job) error {
		for after := ""; ; {
			page, err := s.wakePage(ctx, after)
			if err != nil || len(page) < sweepBatch {
				return err
			}
			after = page[len(page)-1].Name
		}
	}}
}

// wakePage arms some of the workflows that a new process is to look at.
func (s *Service) wakePage(ctx context.Context, after string) (page []workflowstore.Workflow, err error) {
	err = s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if page, err = workflowstore.In(tx).WaitingWorkflows(ctx, after, codeNoConnection, sweepBatch); err != nil {
			return err
		}
		for _, w := range page {
			if err := s.arm(ctx, tx, w, tx.Now); err != nil {
				return err
			}
		}
		return nil
	})
	return page, err
}

// sweepTask is the code behind SweepName.
func (s *Service) sweepTask() queue.Task {
	return queue.Task{Internal: true, Run: func(ctx context.Context, _ *queue.Job) error {
		if err := s.sweep(ctx); err != nil {
			return err
		}
		return queue.Snooze(time.Now().Add(sweepEvery))
	}}
}

// sweep does one round.
func (s *Service) sweep(ctx context.Context) error {
	var orphans []eventstore.OrphanedReservation
	err := s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		orphans, err = eventstore.In(tx).OrphanedReservations(ctx, "", sweepBatch)
		return err
	})
	if err != nil {
		return err
	}
	if err := s.sweepParts(ctx); err != nil {
		return err
	}
	for _, o := range orphans {
		s.log.Error("an event is held by a run that has ended", "workflow", o.WorkflowID, "topic", o.Topic, "event", o.MessageID, "run", o.RunID)
	}
	for after := ""; ; {
		page, err := s.sweepPage(ctx, after)
		if err != nil || len(page) < sweepBatch {
			return err
		}
		after = page[len(page)-1].Name
	}
}

// sweepPage arms those of some workflows without a job that have something to
// do, now or later.
func (s *Service) sweepPage(ctx context.Context, after string) (page []workflowstore.Workflow, err error) {
	var due []workflowstore.Workflow
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		due = nil
		if page, err = workflowstore.In(tx).UnarmedWorkflows(ctx, TaskName, after, sweepBatch); err != nil {
			return err
		}
		for _, w := range page {
			v, err := s.load(ctx, tx, w.ID)
			if err != nil {
				return err
			}
			if st, decided := v.chooseForRun(); !decided || st.do != actWait || !st.until.IsZero() {
				due = append(due, w)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, w := range due {
		s.log.Debug("a workflow that can be due has no job", "workflow", w.Name)
		if err := s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return s.arm(ctx, tx, w, tx.Now) }); err != nil {
			return nil, err
		}
	}
	return page, nil
}

// partitionsKept is for how long partitions are kept that are done and keep nothing.
const partitionsKept = 7 * 24 * time.Hour

// sweepParts arms partitions that ought to have a job and have none, and forgets those
// that are done.
func (s *Service) sweepParts(ctx context.Context) error {
	return s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		unarmed, err := partitionstore.In(tx).Unarmed(ctx, PartName, sweepBatch)
		if err != nil {
			return err
		}
		for _, u := range unarmed {
			if err := s.armPart(ctx, tx, workflowstore.Workflow{ID: u.WorkflowID, Lane: u.Lane}, u.ID, tx.Now); err != nil {
				return err
			}
		}
		_, err = partitionstore.In(tx).Forget(ctx, tx.Now.Add(-partitionsKept), sweepBatch)
		return err
	})
}
