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
	// restFor is how many times as long as it took to look a line rests that went
	// through all lanes for nothing.
	restFor = 9
	// longestRound is after how many lanes it rests in any case.
	longestRound = 100_000
	// lookTimeout bounds a look: those for whom it is may wait no longer.
	lookTimeout = 30 * time.Second
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
	l, w, err := s.enter(r) //nolint:contextcheck // who looks does so for all who wait, whoever leaves
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(r.Wait)
	defer timer.Stop()
	over, end := timer.C, s.end
	for {
		select {
		case a := <-w.answer:
			return a.jobs, a.err
		case <-over:
			over = nil
		case <-end:
			end = nil
		case <-ctx.Done():
		}
		if ctx.Err() == nil && s.inLook(w, end == nil) { // which answers it
			continue
		}
		a, answered := s.leave(l, w)
		if answered && ctx.Err() != nil { // nobody is there to hear of them
			s.giveBack(context.WithoutCancel(ctx), l.of, a.jobs)
			return nil, context.Cause(ctx)
		}
		return a.jobs, cmp.Or(a.err, context.Cause(ctx))
	}
}

// inLook reports whether somebody looks for a claim, or is going to.
func (s *Service) inLook(w *waiter, ended bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return w.party || !w.looked && !ended
}

// claimed is what a look found.
type claimed struct {
	jobs    []store.Claimed
	more    bool // there may be more
	blocked bool // there are more, which cannot be had now
	halted  bool // nothing can be had until the halt is lifted

	lanes []store.Lane // through which it went, if that were not all
	round bool         // all of them were looked at since something was found last

	asked bool      // next is known:
	next  time.Time // the next instant at which there may be something; zero is never
}

// tryClaim goes through what waits until it finds something. seen are the lanes that were
// looked at since.
func (s *Service) tryClaim(ctx context.Context, of group, hands []store.Hand, wantsNext bool, seen map[store.Lane]bool) (got claimed, err error) {
	for range claimTries {
		if got, err = s.claimOnce(ctx, of, hands, wantsNext); err != nil || len(got.jobs) > 0 || !got.more {
			clear(seen)
			break
		}
		before := len(seen)
		for _, l := range got.lanes {
			seen[l] = true
		}
		if got.round = len(seen) == before || len(seen) > longestRound; got.round {
			clear(seen)
			break
		}
	}
	return got, err
}

// claimOnce is one transaction: what is over is taken back, and what is due is
// handed out.
func (s *Service) claimOnce(ctx context.Context, of group, hands []store.Hand, wantsNext bool) (got claimed, err error) {
	var back []store.Finished
	err = s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		got = claimed{}
		tx.GoByIndex()
		t, halted, taken, err := s.hold(ctx, tx, of.task)
		if back, got.halted = taken, halted; err != nil || halted {
			return err
		}
		d, err := definitionOf(t)
		if err != nil {
			return err
		}
		c := store.Claim{Task: of.task, Hands: hands, PerLane: d.PerLane, Lease: d.Lease, After: t.Turn, Token: rand.Text, Rate: d.Rate, Batch: d.Batch}
		if of.owner != "" {
			c.Owner = &of.owner
		}
		found, err := tx.ClaimJobs(ctx, c)
		if err != nil {
			return err
		}
		got.jobs, got.more, got.blocked, got.lanes = found.Jobs, found.More, found.Left, found.Lanes
		if wantsNext = wantsNext || d.Rate != nil || d.Batch != nil; wantsNext && !got.more {
			got.asked = true
			if got.next, err = tx.NextServed(ctx, c); err != nil {
				return err
			}
		}
		if found.Turn != t.Turn {
			return workerstore.In(tx).SetTurn(ctx, of.task, found.Turn)
		}
		return nil
	})
	if err != nil {
		return claimed{}, err
	}
	now := time.Now()
	for _, f := range back {
		s.queue.ServedEnded(f)
	}
	for _, j := range got.jobs {
		s.queue.ServedStarted(j.Job, now)
	}
	return got, nil
}

// hold begins a claim: it reads the task, whose claims come one after the other,
// tells whether nothing may start, and takes back what is over.
func (s *Service) hold(ctx context.Context, tx *store.Tx, task string) (t workerstore.Task, halted bool, back []store.Finished, err error) {
	var missing error
	if err := workerstore.In(tx).AskTask(ctx, task, &t, &missing); err != nil {
		return t, false, nil, err
	}
	if err := tx.AskHalted(ctx, &halted); err != nil {
		return t, false, nil, err
	}
	back, err = tx.TakeBack(ctx, task, takeBackAtOnce)
	return t, halted, back, cmp.Or(err, missing)
}

// giveBack returns jobs that nobody was told of, without counting an attempt.
func (s *Service) giveBack(ctx context.Context, of group, jobs []store.Claimed) {
	if len(jobs) == 0 {
		return
	}
	list := make([]store.Ending, len(jobs))
	for i, j := range jobs {
		list[i] = store.Ending{ID: j.ID, Token: j.Token, Verdict: store.Snooze}
	}
	err := s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := s.End(ctx, tx, of.task, nil, list)
		return err
	})
	if err != nil {
		s.log.Warn("give back jobs of a worker that is gone; they come back when their leases end", "task", of.task, "jobs", len(jobs), "err", err)
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
		for _, e := range out {
			if e.Finished != nil {
				s.queue.ServedEnded(*e.Finished)
			}
		}
		for _, c := range chances(out, time.Now()) {
			s.queue.TellServed(task, c)
		}
	})
	return out, nil
}

// chances are what ends leave for other claims.
func chances(ends []store.Ended, now time.Time) (out []queue.Chance) {
	freed, again, later := false, false, time.Time{}
	for _, e := range ends {
		freed = freed || e.Code == store.LeaseCancelled
		if e.Finished == nil {
			continue
		}
		freed = freed || e.Finished.Job.Lane != ""
		switch v := e.Finished.Verdict; {
		case e.Finished.Job.Key != "": // another may be in its place, which could not be had meanwhile
			again = true
		case v != store.Retry && v != store.Snooze:
		case e.Finished.RunAt.After(now):
			later = earlier(later, e.Finished.RunAt)
		default:
			again = true
		}
	}
	switch {
	case again:
		out = append(out, queue.Chance{At: now})
	case freed:
		out = append(out, queue.Chance{At: now, Freed: true})
	}
	if !later.IsZero() {
		out = append(out, queue.Chance{At: later})
	}
	return out
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
