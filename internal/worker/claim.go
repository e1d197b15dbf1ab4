package worker

import (
	"cmp"
	"context"
	"crypto/rand"
	"time"

	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/workerstore"
)

const (
	// MaxClaim is how many jobs one claim can have.
	MaxClaim = 1000
	// MaxWait is how long a claim can wait.
	MaxWait = time.Minute

	// claimTries is in how many steps a claim goes through what waits before it
	// comes to rest.
	claimTries = 16
	// takeBackAtOnce bounds what one transaction takes back.
	takeBackAtOnce = 200
)

// Request asks for jobs.
type Request struct {
	Task   string
	Owner  *string // whose jobs; nil is everybody's
	Worker string
	Limit  int           // 0 is a batch, or one
	Wait   time.Duration // for the first of them
}

// Claim gives due jobs into the hands of a worker. If there are none it waits.
func (s *Service) Claim(ctx context.Context, r Request) ([]store.Claimed, error) {
	w, err := s.enter(r)
	if err != nil {
		return nil, err
	}
	defer s.leave(w)
	until := time.Now().Add(r.Wait)
	for {
		got, next, err := s.tryClaim(ctx, r)
		if err != nil {
			return nil, err
		}
		if len(got.jobs) > 0 {
			if got.more {
				s.pass(w)
			}
			if ctx.Err() != nil { // nobody is there to hear of them
				s.giveBack(context.WithoutCancel(ctx), r, got.jobs)
			}
			return got.jobs, nil
		}
		if !s.await(ctx, w, next, until) {
			return nil, nil
		}
	}
}

// claimed is what one try got.
type claimed struct {
	jobs []store.Claimed
	more bool // there may be more
}

// tryClaim goes through what waits until it finds something, and tells when there
// may be something otherwise.
func (s *Service) tryClaim(ctx context.Context, r Request) (got claimed, next time.Time, err error) {
	for range claimTries {
		if got, next, err = s.claimOnce(ctx, r); err != nil || len(got.jobs) > 0 || !got.more {
			break
		}
		next = time.Now() // it has not seen everything
	}
	return got, next, err
}

// claimOnce is one transaction: what is over is taken back, and what is due is
// handed out.
func (s *Service) claimOnce(ctx context.Context, r Request) (got claimed, next time.Time, err error) {
	var back []store.Finished
	err = s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		tx.GoByIndex()
		t, err := workerstore.In(tx).HoldTask(ctx, r.Task)
		if err != nil {
			return err
		}
		d, err := definitionOf(t)
		if err != nil {
			return err
		}
		if h, err := tx.LatestHalt(ctx); err != nil || h.Active() { // nothing starts
			return err
		}
		if back, err = tx.TakeBack(ctx, r.Task, takeBackAtOnce); err != nil {
			return err
		}
		c := store.Claim{Task: r.Task, Owner: r.Owner, Worker: r.Worker, Limit: r.Limit, PerLane: d.PerLane, Lease: d.Lease, After: t.Turn, Token: rand.Text, Rate: d.Rate, Batch: d.Batch}
		if d.Batch != nil {
			c.Limit = min(cmp.Or(r.Limit, d.Batch.Size), d.Batch.Size)
		}
		c.Limit = max(1, c.Limit)
		var turn store.Lane
		if got.jobs, turn, got.more, err = tx.ClaimJobs(ctx, c); err != nil {
			return err
		}
		if turn != t.Turn {
			if err := workerstore.In(tx).SetTurn(ctx, r.Task, turn); err != nil {
				return err
			}
		}
		if len(got.jobs) == 0 {
			next, err = tx.NextServed(ctx, c)
		}
		return err
	})
	if err != nil {
		return claimed{}, next, err
	}
	now := time.Now()
	for _, f := range back {
		s.queue.ServedEnded(f)
	}
	for _, j := range got.jobs {
		s.queue.ServedStarted(j.Job, now)
	}
	return got, next, nil
}

// giveBack returns jobs that nobody was told of, without counting an attempt.
func (s *Service) giveBack(ctx context.Context, r Request, jobs []store.Claimed) {
	list := make([]store.Ending, len(jobs))
	for i, j := range jobs {
		list[i] = store.Ending{ID: j.ID, Token: j.Token, Verdict: store.Snooze}
	}
	err := s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := s.End(ctx, tx, r.Task, r.Owner, list)
		return err
	})
	if err != nil {
		s.log.Warn("give back jobs of a worker that is gone; they come back when their leases end", "task", r.Task, "jobs", len(jobs), "err", err)
	}
}

// End writes how jobs ended, and tells what became of each.
func (s *Service) End(ctx context.Context, tx *store.Tx, task string, owner *string, list []store.Ending) ([]store.Ended, error) {
	tx.GoByIndex()
	t, err := s.Find(ctx, tx, task)
	if err != nil {
		return nil, err
	}
	out, err := tx.EndJobs(ctx, store.Ends{Task: task, Owner: owner, List: list, Keep: t.Definition.Keep, Backoff: queue.DefaultBackoff})
	if err != nil {
		return nil, err
	}
	tx.AfterCommit(func() {
		wake := false
		for _, e := range out {
			if e.Finished != nil {
				s.queue.ServedEnded(*e.Finished)
				wake = wake || e.Finished.Job.Lane != "" || e.Finished.Verdict != store.Done
			}
		}
		if wake { // a lane is free, or a job waits again
			s.queue.TellServed(task)
		}
	})
	return out, nil
}

// Extend gives a worker more time for jobs, from now.
func (s *Service) Extend(ctx context.Context, tx *store.Tx, task string, owner *string, list []store.Signed) (out []store.Ended, until time.Time, err error) {
	tx.GoByIndex()
	t, err := s.Find(ctx, tx, task)
	if err != nil {
		return nil, until, err
	}
	until = tx.Now.Add(t.Definition.Lease)
	out, err = tx.ExtendLeases(ctx, task, owner, list, until)
	return out, until, err
}
