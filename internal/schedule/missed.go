package schedule

import (
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// sorted are instants that came due while nobody was there: those that are lost,
// those that run later because the definition says so, and those that came due a
// moment ago, which only waited.
type sorted struct{ lost, later, fresh []time.Time }

// catchUp sorts instants that came due while nobody was there, the oldest first. It
// is pure. from is how old one may be that runs later.
func catchUp(policy string, from time.Time, due []time.Time, now time.Time) (s sorted) {
	for _, at := range due {
		switch {
		case now.Sub(at) <= grace:
			s.fresh = append(s.fresh, at)
		case policy == missedSkip || at.Before(from):
			s.lost = append(s.lost, at)
		default:
			s.later = append(s.later, at)
		}
	}
	most := maxRecorded
	if policy == missedLast {
		most = 1
		if len(s.fresh) > 0 { // which is later than all of them
			most = 0
		}
	}
	if over := len(s.later) - most; over > 0 {
		s.lost, s.later = append(s.lost, s.later[:over]...), s.later[over:]
	}
	return s
}

// chainLate is chain for instants that came due while nobody was there; future is
// the first that is not due yet.
func (s *Service) chainLate(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, due []time.Time, future time.Time) (following, error) {
	policy, from := missedPolicy(sch, tx.Now)
	c := catchUp(policy, from, due, tx.Now)
	if err := s.runLater(ctx, tx, sch, c.later); err != nil {
		return following{}, err
	}
	if err := s.passOver(ctx, tx, sch, following{c.lost, run.DispositionSkippedMissed, time.Time{}}); err != nil {
		return following{}, err
	}
	p := pawl.ConcurrencyPolicy(sch.Policy)
	if p == pawl.PolicyForbid { // nothing ran that they could be in the way of
		p = pawl.PolicyReplace
	}
	return follow(p, c.fresh, future), nil
}

// runLater makes slots of instants that were missed and run now, one after the
// other.
func (s *Service) runLater(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, later []time.Time) error {
	for _, at := range later {
		if _, err := schedulestore.In(tx).PlanSlot(ctx, sch.ID, at, sch.Revision); err != nil {
			return err
		}
		if err := s.arm(ctx, tx, sch, at, at); err != nil {
			return err
		}
	}
	if len(later) > 0 {
		s.log.Info("slots that were missed run now, as the definition says", "schedule", sch.Name, "slots", len(later), "first", pawl.FormatTime(later[0]))
	}
	return nil
}

// missed deals with a slot that nobody was there for, and the instants since then,
// and makes the next one of the future (C-11, C-59). It reports false if the
// definition says that the slot runs now.
func (s *Service) missed(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, slot schedulestore.Slot) (bool, error) {
	schedule, err := s.timesOf(ctx, tx, sch)
	if err != nil {
		return false, err
	}
	due, _ := dueBetween(schedule, slot.ScheduledFor, tx.Now)
	if due, err = withoutSlot(ctx, tx, sch.ID, due); err != nil {
		return false, err
	}
	policy, from := missedPolicy(sch, tx.Now)
	c := catchUp(policy, from, append([]time.Time{slot.ScheduledFor}, due...), tx.Now)
	lost := len(c.lost) > 0 && c.lost[0].Equal(slot.ScheduledFor)
	if lost {
		if _, err := schedulestore.In(tx).CloseSlot(ctx, slot.ID, skipped(run.DispositionSkippedMissed, "", "No worker was running at this time.")); err != nil {
			return false, err
		}
		s.cfg.Emit(tx, lane.Change{Ref: refOf(sch.ID, sch.Name), What: "slot", Detail: SlotDetail{Slot: client.At(slot.ScheduledFor), Status: string(run.SlotSkipped)}})
	}
	if len(due) == 0 && !lost {
		return false, nil // it is all there is
	}
	return lost, s.chain(ctx, tx, sch, slot.ScheduledFor, true)
}
