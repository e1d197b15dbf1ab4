package schedule

import (
	"context"
	"time"

	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/when"
)

// While everything is halted, slots that come due wait. When the halt is lifted,
// they were missed, and so were the instants after them that came due meanwhile,
// however short it was: what the definition says of missed ones becomes of them.

// mayStart reports whether a slot that starts at an instant has nothing to do with a
// halt, by what this process knows without asking.
func (s *Service) mayStart(start time.Time) bool {
	h := s.cfg.Halt()
	return !h.Active() && !start.Before(h.Lifted)
}

// wasHalted closes a slot that came due while everything was halted, unless the
// definition says that it runs now. One that was made since was made because it does.
func (a *attempt) wasHalted(ctx context.Context, tx *store.Tx, start time.Time) (bool, error) {
	if a.slot.Trigger != triggerSchedule || a.mayStart(start) {
		return false, nil
	}
	h, err := tx.HaltAt(ctx, start)
	if err != nil || h.ID == 0 || !a.slot.CreatedAt.Before(h.Lifted) {
		return false, err
	}
	return a.missed(ctx, tx, a.schedule, a.slot)
}

// stretches are the times of the halts that concern what came due since an instant.
type stretches []store.Halt

// at is the halt that was in force at an instant; the zero one if none was.
func (l stretches) at(start time.Time) store.Halt {
	for _, h := range l {
		if !start.Before(h.Since) && (h.Active() || start.Before(h.Lifted)) {
			return h
		}
	}
	return store.Halt{}
}

// ends are the instants up to which spans may reach, so that each came due either
// in a halt or beside all of them; the last one is now.
func (l stretches) ends(after, now time.Time) []time.Time {
	var out []time.Time
	add := func(at time.Time) {
		if at = at.Add(-time.Millisecond); at.After(after) && at.Before(now) {
			out = append(out, at)
		}
	}
	for _, h := range l {
		add(h.Since)
		if !h.Active() {
			add(h.Lifted)
		}
	}
	return append(out, now)
}

// passMissed records slots that were missed: those that came due while everything
// was halted, and those that nobody was there for.
func (s *Service) passMissed(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, times when.Schedule, lost []span, halts stretches) error {
	for len(lost) > 0 {
		h, n := halts.at(times.Start(lost[0].first)), 1
		for n < len(lost) && halts.at(times.Start(lost[n].first)).ID == h.ID {
			n++
		}
		f := following{passed: lost[:n], disposition: run.DispositionSkippedMissed}
		if h.ID != 0 {
			f.disposition, f.words = run.DispositionHalted, lane.HaltedWords(h)
		}
		if err := s.passOver(ctx, tx, sch, f); err != nil {
			return err
		}
		lost = lost[n:]
	}
	return nil
}
