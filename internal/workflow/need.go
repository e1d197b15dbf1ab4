package workflow

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/terms"
	"github.com/pawlrun/pawl/internal/timing"
)

// A workflow that needs a source which is too old begins no run. It waits until the
// source was fetched, and asks again whenever a wait is over; from the first one on it
// needs a person. What has begun goes on: attempts, answers and what a crash cut off.

// checkNeeds refuses a script that needs a source which is not there.
func (s *Service) checkNeeds(ctx context.Context, tx *store.Tx, d Deploy, config Config) error {
	faults, err := s.cfg.Needs.Check(ctx, tx, config.Needs)
	if err != nil || len(faults) == 0 {
		return err
	}
	c := &checker{}
	for _, f := range faults {
		c.fault(strings.Split(f.Pointer[1:], "/"), "pawl get sources lists them", "needs: %s", f.Message)
	}
	return c.report(d.Filename, d.Script)
}

// Freshened implements need.User: the lane looks again.
func (s *Service) Freshened(ctx context.Context, tx *store.Tx, lane string) error {
	w, err := workflowstore.In(tx).WorkflowByLane(ctx, lane)
	if err != nil || !w.DeletedAt.IsZero() {
		return err
	}
	if err := s.stir(ctx, tx, w); err != nil {
		return err
	}
	return s.arm(ctx, tx, w, tx.Now)
}

// NeedingName implements need.User. Workflows are everybody's, but whoever sees only
// what is theirs is told no names.
func (s *Service) NeedingName(ctx context.Context, tx *store.Tx, lane, owner string) (string, error) {
	if owner != "" {
		return "", nil
	}
	w, err := workflowstore.In(tx).WorkflowByLane(ctx, lane)
	return "workflow " + w.Name, err
}

// awaitFresh makes a lane wait if it is about to begin a run and needs sources that
// are too old. It returns when to look again; the end of a fetch makes it look
// earlier.
func (e *session) awaitFresh(ctx context.Context, v *view, st step) (until time.Time, waits bool, err error) {
	if len(v.config.Needs) == 0 || st.do != actConsume && st.do != actProduce {
		return time.Time{}, false, nil
	}
	var stale []terms.Stale
	err = e.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		stale, err = e.cfg.Needs.Stale(ctx, tx, v.config.Needs)
		return err
	})
	if err != nil || len(stale) == 0 {
		return time.Time{}, false, err
	}
	if err := e.writeCommit(ctx); err != nil && !errors.Is(err, pawl.ErrConflict) {
		return time.Time{}, false, err
	}
	e.ahead, e.states = nil, nil
	if err := e.cfg.fault("before wait"); err != nil {
		return time.Time{}, false, err
	}
	err = e.db.Write(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if err := tx.Fence(ctx, e.claim.Fence()); err != nil {
			return err
		}
		if err := workflowstore.In(tx).ExpectRevision(ctx, e.id, v.workflow.Revision); err != nil {
			return err
		}
		if stale, err = e.cfg.Needs.Wait(ctx, tx, refOf(v.workflow.Name), v.workflow.Lane, v.config.Needs); err != nil || len(stale) == 0 {
			return err
		}
		until = nextLook(stale, tx.Now)
		return e.settleLane(ctx, tx, e.id)
	})
	if errors.Is(err, pawl.ErrConflict) && !errors.Is(err, pawl.ErrLeaseLost) {
		return time.Now(), true, nil // it was changed at this moment
	}
	e.memory.settled = settled{}
	if err == nil && len(stale) > 0 {
		err = e.cfg.fault("waits")
	}
	return until, len(stale) > 0, err
}

// stopWaiting takes back that a lane waits for sources, because nothing of it would
// begin any more.
func (e *session) stopWaiting(ctx context.Context, v *view) error {
	if len(v.waits) == 0 || v.workflow.Partitioned { // a partition may wait
		return nil
	}
	v.waits = nil
	return e.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Fence(ctx, e.claim.Fence()); err != nil {
			return err
		}
		return e.cfg.Needs.StopWaiting(ctx, tx, pawl.KindWorkflow, v.workflow.Lane)
	}, store.Lazy)
}

// nextLook is when a lane that waits asks again: at the end of the first wait, and
// after as long again from then on.
func nextLook(stale []terms.Stale, now time.Time) (next time.Time) {
	for _, s := range stale {
		at, wait := s.Since, terms.WaitOf(s.Need)
		at = at.Add(wait * (now.Sub(at)/wait + 1))
		next = earlier(next, at)
	}
	return next
}

// waitedFresh reports whether an instant of a producer came due while the lane waited
// for a source: then it was not missed.
func (e *session) waitedFresh(ctx context.Context, v *view, start time.Time) (waited bool, err error) {
	if len(v.config.Needs) == 0 || v.now.Sub(start) <= timing.Grace {
		return false, nil
	}
	err = e.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		waited, err = e.cfg.Needs.Waited(ctx, tx, pawl.KindWorkflow, v.workflow.Lane, start, timing.Grace)
		return err
	})
	return waited, err
}

// statusOfWait is how a lane stands that waits for sources and for nothing else.
func (v *view) statusOfWait() (run.State, run.Issue) {
	if slices.ContainsFunc(v.waits, func(s terms.Stale) bool { return v.now.Sub(s.Since) >= terms.WaitOf(s.Need) }) {
		return run.NeedsAttention, run.IssueStale
	}
	return run.Running, run.IssueWaitingFresh
}

// waitingWords says for which sources the lane waits.
func (v *view) waitingWords() string {
	return "It waits for " + terms.StaleWords(v.waits, v.now) + "; at most " + v.waits[0].MaxAge + " is allowed."
}

// waitedSources names the sources that the lane waits for, with their verb.
func (v *view) waitedSources() string {
	names := make([]string, len(v.waits))
	for i, s := range v.waits {
		names[i] = s.Source
	}
	if len(names) == 1 {
		return "source " + names[0] + " was"
	}
	return "the sources " + strings.Join(names, " and ") + " were"
}
