package source

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
)

// run is the task: see the package comment.
func (s *Service) run(ctx context.Context, j *queue.Job) error {
	var p jobPayload
	if err := json.Unmarshal(j.Payload, &p); err != nil || p.Source == "" {
		return queue.Permanent(&pawl.Error{Code: pawl.CodeInternal, Op: "run source", Msg: "the job names no source", Err: err})
	}
	until, err := s.work(ctx, j, p.Source)
	if err != nil || until.IsZero() {
		return err
	}
	return queue.Snooze(until)
}

// work looks at a source and fetches if every gate is open. It returns when to
// look again, zero if nothing can become due by itself.
func (s *Service) work(ctx context.Context, c lane.Claim, id string) (time.Time, error) {
	v, err := s.recovered(ctx, c, id)
	if errors.Is(err, pawl.ErrNotFound) {
		return time.Time{}, nil // it was deleted
	}
	if err != nil {
		return time.Time{}, err
	}
	if d := v.evaluate(); !d.open && v.row.Status != pawl.StatusActive {
		return d.at, s.settleOnce(ctx, v)
	}
	if s.halts(v) {
		return time.Time{}, cmp.Or(s.settleOnce(ctx, v), queue.ErrHalted)
	}
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	}
	if c.Stopping() {
		return time.Now(), nil
	}
	err = s.fetch(ctx, c, id)
	if err != nil && !errors.Is(err, pawl.ErrConflict) { // else a person was faster
		return time.Time{}, err
	}
	if v, err = s.byID(ctx, id); err != nil {
		return time.Time{}, pawl.IgnoreNotFound(err)
	}
	d := v.evaluate()
	if d.open {
		d.at = v.now // it is due again already, or everything was halted while it waited for its place
	}
	return d.at, s.settleOnce(ctx, v)
}

// halts reports whether a fetch would start while everything is halted. One that a
// crash cut off goes on to its end.
func (s *Service) halts(v *view) bool {
	return v.row.Status != pawl.StatusActive && s.cfg.Halt().Active()
}

func (s *Service) byID(ctx context.Context, id string) (*view, error) {
	return s.loadWith(ctx, func(ctx context.Context, tx *store.Tx) (sourcestore.Source, error) {
		return sourcestore.In(tx).GetSource(ctx, id)
	})
}

// recovered looks at a source after ending a run that nobody executes. A run
// that is active afterwards waits for its start.
func (s *Service) recovered(ctx context.Context, c lane.Claim, id string) (*view, error) {
	v, err := s.byID(ctx, id)
	if err != nil || v.row.Status != pawl.StatusActive {
		return v, err
	}
	o, err := s.ledger.RecoverLane(ctx, s.db, c.Fence(), pawl.KindSource, v.source.Name)
	if err != nil {
		return nil, err
	}
	if o.Run.ID != "" {
		s.log.Warn("a fetch was found unfinished", "source", v.source.Name, "run", o.Run.ID, "successor", o.Successor.ID, "exhausted", o.Exhausted)
	}
	return s.byID(ctx, id)
}

// activate makes a run active in the caller's transaction: one that recovery
// left to be started, the successor of one that stopped, or a first attempt. It
// refuses with a conflict if anything changed since the view was taken.
func (s *Service) activate(ctx context.Context, tx *store.Tx, c lane.Claim, v *view) (runstore.Run, error) {
	if err := tx.Fence(ctx, c.Fence()); err != nil {
		return runstore.Run{}, err
	}
	now, err := sourcestore.In(tx).ShareSource(ctx, v.source.ID)
	if err != nil {
		return runstore.Run{}, err
	}
	if now.Revision != v.source.Revision {
		return runstore.Run{}, &pawl.Error{Code: pawl.CodeConflict, Op: "begin run", Msg: "the source was changed"}
	}
	if err := s.renewBudget(ctx, tx, v); err != nil {
		return runstore.Run{}, err
	}
	switch {
	case v.row.Status == pawl.StatusActive:
		return s.ledger.Start(ctx, tx, v.row)
	case v.row.ID != "" && run.NeedsSuccessor(v.row.Status):
		return s.ledger.Retry(ctx, tx, c.Fence(), v.row, v.source.Version, true)
	}
	return s.ledger.Begin(ctx, tx, c.Fence(), ledger.Spec{
		Kind: pawl.KindSource, Lane: v.source.Name, Handler: v.source.Name, HandlerType: pawl.HandlerSource,
		Trigger: v.trigger(), ScheduledFor: v.instant(), ScriptVersion: v.source.Version,
	})
}

// renewBudget begins a new period if the stored one is over (B-40..B-42).
func (s *Service) renewBudget(ctx context.Context, tx *store.Tx, v *view) error {
	row, err := runstore.In(tx).HoldRetry(ctx, pawl.KindSource, v.source.Name)
	if err != nil {
		return err
	}
	next, reset := ledger.RetryOf(row).ResetIfDue(v.def.Budget(), tx.Now)
	if !reset {
		return nil
	}
	row.Count, row.Crashes, row.PeriodStart, row.NextAt = next.Count, next.Crashes, next.PeriodStart, next.NextAt
	return runstore.In(tx).SetRetry(ctx, row)
}

func (v *view) trigger() string {
	if !v.state.RequestedAt.IsZero() {
		return "manual"
	}
	return "schedule"
}
