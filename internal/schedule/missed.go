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
	"github.com/pawlrun/pawl/internal/timing"
	"github.com/pawlrun/pawl/internal/when"
)

// sorted are instants that came due while nobody was there: those that are lost,
// those that run later because the definition says so, and those that came due a
// moment ago, which only waited.
type sorted struct{ lost, later, fresh []span }

// catchUp sorts instants that came due while nobody was there, the oldest first. It
// is pure. from is how old one may be that runs later, most how many do so; the
// latest of due, as many and more, are each by themselves. Of those that only waited,
// a definition that says what runs later has only the last go on as always: the
// others would be covered by it or cover it.
func catchUp(policy string, from time.Time, due []span, fresh func(time.Time) bool, most int) sorted {
	end := len(due)
	for end > 0 && fresh(due[end-1].last) {
		end--
	}
	if end < len(due) && policy != timing.Skip {
		end = len(due) - 1
	}
	switch {
	case policy == timing.Skip:
		most = 0
	case policy == timing.Last && end < len(due): // which is later than all of them
		most = 0
	case policy == timing.Last:
		most = 1
	}
	begin := end
	for begin > 0 && end-begin < most && !due[begin-1].first.Before(from) {
		begin--
	}
	return sorted{lost: due[:begin], later: due[begin:end], fresh: due[end:]}
}

// sortMissed is catchUp for a schedule. What came due in a halt did not only wait.
func (s *Service) sortMissed(sch schedulestore.Schedule, times when.Schedule, due []span, now time.Time, halts stretches) sorted {
	policy, from := missedPolicy(sch, now)
	fresh := func(at time.Time) bool { return now.Sub(times.Start(at)) <= grace && halts.at(times.Start(at)).ID == 0 }
	return catchUp(policy, from, due, fresh, s.cfg.record)
}

// chainLate is chain for instants that came due while nobody was there; future is
// the first that is not due yet.
func (s *Service) chainLate(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, times when.Schedule, due []span, future time.Time, halts stretches) (following, error) {
	c := s.sortMissed(sch, times, due, tx.Now, halts)
	if err := s.runLater(ctx, tx, sch, c.later); err != nil {
		return following{}, err
	}
	if err := s.passMissed(ctx, tx, sch, times, c.lost, halts); err != nil {
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
func (s *Service) runLater(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, later []span) error {
	if len(later) == 0 {
		return nil
	}
	slots, jobs := make([]schedulestore.NewSlot, len(later)), make([]store.JobSpec, len(later))
	for i, d := range later {
		job, err := jobOf(sch, d.first, d.first)
		if err != nil {
			return err
		}
		slots[i], jobs[i] = schedulestore.NewSlot{ScheduleID: sch.ID, ScheduledFor: d.first, Revision: sch.Revision, Trigger: triggerSchedule}, job
	}
	if _, err := schedulestore.In(tx).InsertSlots(ctx, slots...); err != nil {
		return err
	}
	if _, err := s.jobs.EnqueueTx(ctx, tx, jobs...); err != nil {
		return err
	}
	s.log.Info("slots that were missed run now, as the definition says", "schedule", sch.Name, "slots", len(later), "first", pawl.FormatTime(later[0].first))
	return nil
}

// missed deals with a slot that nobody was there for, or that came due while
// everything was halted, and the instants since then,
// and makes the next one of the future (C-11, C-59). It reports false if the
// definition says that the slot runs now.
func (s *Service) missed(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, slot schedulestore.Slot) (bool, error) {
	schedule, err := s.timesOf(ctx, tx, sch)
	if err != nil {
		return false, err
	}
	start := schedule.Start(slot.ScheduledFor)
	var halts stretches
	if halts, err = tx.HaltsSince(ctx, start); err != nil {
		return false, err
	}
	due, _, err := s.dueSince(ctx, tx, sch.ID, schedule, slot.ScheduledFor, tx.Now, halts)
	if err != nil {
		return false, err
	}
	c := s.sortMissed(sch, schedule, append([]span{single(slot.ScheduledFor)}, due...), tx.Now, halts)
	lost := len(c.lost) > 0 && c.lost[0].first.Equal(slot.ScheduledFor)
	if lost {
		end := skipped(run.DispositionSkippedMissed, "", "No worker was running at this time.")
		if h := halts.at(start); h.ID != 0 {
			end = skipped(run.DispositionHalted, "", lane.HaltedWords(h))
		}
		if _, err := schedulestore.In(tx).CloseSlot(ctx, slot.ID, end); err != nil {
			return false, err
		}
		s.cfg.Emit(tx, lane.Change{Ref: refOf(sch.ID, sch.Name), What: "slot", Detail: SlotDetail{Slot: client.At(slot.ScheduledFor), Status: string(run.SlotSkipped), Disposition: end.Disposition}})
	}
	if len(due) == 0 && !lost {
		return false, nil // it is all there is
	}
	return lost, s.chain(ctx, tx, sch, slot.ScheduledFor, true)
}
