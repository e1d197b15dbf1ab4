package schedule

import (
	"context"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/timing"
)

// ReconcileName is the task that gives schedules back what they lack (C-12,
// C-13, C-73). It runs at every start and then every reconcileEvery, as a job
// of the queue.
const ReconcileName = "reconcile_schedules"

const (
	reconcileEvery = 5 * time.Minute
	reconcileBatch = 500
	// beatEvery is how often a worker notes that it is at work.
	beatEvery = 20 * time.Second
	// grace is how late a slot may be without counting as missed, so that a
	// restart drops nothing.
	grace = timing.Grace
)

// Standing implements lane.Kind.
func (s *Service) Standing() []store.JobSpec {
	return []store.JobSpec{lane.StandingJob(ReconcileName)}
}

// reconcileTask is the code behind ReconcileName.
func (s *Service) reconcileTask() queue.Task {
	return queue.Task{Internal: true, Run: func(ctx context.Context, _ *queue.Job) error {
		if _, err := s.Reconcile(ctx); err != nil {
			return err
		}
		return queue.Snooze(time.Now().Add(reconcileEvery))
	}}
}

// Reconcile looks at every enabled schedule whose next instant is unknown or
// past, and returns how many it had to repair. It touches nothing that is
// healthy, and costs nothing for schedules that are not due.
func (s *Service) Reconcile(ctx context.Context) (repaired int, err error) {
	err = s.eachStale(ctx, func(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule) error {
		fixed, err := s.repair(ctx, tx, sch)
		if fixed {
			repaired++
			s.log.Warn("a schedule had lost its next slot", "schedule", sch.Name, "id", sch.ID)
		}
		return err
	})
	return repaired, err
}

// eachStale calls fn for every stale schedule, in a transaction of its own that
// holds the schedule's row.
func (s *Service) eachStale(ctx context.Context, fn func(context.Context, *store.Tx, schedulestore.Schedule) error) error {
	for after := (schedulestore.Schedule{}); ; {
		var page []schedulestore.Schedule
		err := s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			page, err = schedulestore.In(tx).StaleSchedules(ctx, after, reconcileBatch)
			return err
		})
		if err != nil {
			return err
		}
		for _, sch := range page {
			err := s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
				held, err := schedulestore.In(tx).HoldSchedule(ctx, sch.ID)
				if err != nil || !held.Enabled {
					return pawl.IgnoreNotFound(err)
				}
				return fn(ctx, tx, held)
			})
			if err != nil {
				return err
			}
		}
		if len(page) < reconcileBatch {
			return nil
		}
		after = page[len(page)-1]
	}
}

// repair gives a schedule its next slot if it has none, and a slot its job. A
// schedule whose slot runs or waits with its job is healthy.
func (s *Service) repair(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule) (bool, error) {
	there, err := planned(ctx, tx, sch)
	if err != nil {
		return false, err
	}
	if !there {
		after, err := lastSlot(ctx, tx, sch)
		if err != nil {
			return false, err
		}
		if err := s.chain(ctx, tx, sch, after, true); err != nil {
			return false, err
		}
	}
	open, err := schedulestore.In(tx).OpenSlots(ctx, sch.ID, 100)
	if err != nil {
		return false, err
	}
	mended := !there && slices.ContainsFunc(open, func(slot schedulestore.Slot) bool { return leadsOn(sch, slot) }) // else it has ended
	times, err := s.timesOf(ctx, tx, sch)
	if err != nil {
		return false, err
	}
	keys := make([]string, len(open))
	for i, slot := range open {
		keys[i] = pawl.SlotKey(sch.ID, slot.ScheduledFor)
	}
	known, err := tx.KnownJobKeys(ctx, TaskName, keys)
	if err != nil {
		return false, err
	}
	for i, slot := range open {
		if known[keys[i]] || run.SlotStatus(slot.Status) == run.SlotRunning && waitsForPerson(ctx, tx, slot) {
			continue
		}
		at := startOf(times, slot)
		if at.Before(tx.Now) {
			at = tx.Now
		}
		if err := s.arm(ctx, tx, sch, slot.ScheduledFor, at); err != nil {
			return mended, err
		}
		mended = true
	}
	return mended, nil
}

// waitsForPerson reports whether the run of a slot asked somebody something.
func waitsForPerson(ctx context.Context, tx *store.Tx, slot schedulestore.Slot) bool {
	r, err := newestOf(ctx, tx, slot)
	return err == nil && r.Status == pawl.StatusPausedApproval
}

// Start closes what came due while no worker was there. It must have ended
// before this process claims anything.
func (s *Service) Start(ctx context.Context) error { return s.beat(ctx) }

// Beat notes that this process is at work until the context ends.
func (s *Service) Beat(ctx context.Context) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := s.beat(ctx); err != nil && ctx.Err() == nil {
				s.log.Warn("note that a worker is at work", "err", err)
			}
		}
	}
}

// beat moves the clock of workers. Before that, it closes what came due since
// it last moved, if that is long ago: then nobody was there.
func (s *Service) beat(ctx context.Context) error {
	var alive, now time.Time
	var any bool
	err := s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		now = tx.Now
		if any, err = schedulestore.In(tx).HasSchedules(ctx); err != nil || !any {
			return err
		}
		alive, err = schedulestore.In(tx).AliveAt(ctx)
		return err
	})
	if err != nil || !any {
		return err
	}
	if now.Sub(alive) > grace { // zero: no worker noted that it was there before the first one died
		if !alive.IsZero() { // else no worker was there before
			s.log.Info("no worker was there for a while; what came due meanwhile was missed", "since", pawl.FormatTime(alive), "until", pawl.FormatTime(now))
		}
		if err := s.eachStale(ctx, func(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule) error {
			return s.passGap(ctx, tx, sch, alive)
		}); err != nil {
			return err
		}
	}
	return s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return schedulestore.In(tx).SetAlive(ctx) }, store.Lazy)
}

// passGap closes the slots of a schedule that came due in a gap, with all the
// instants in it that have no slot yet. What a run that is under way has to
// follow is left to its end, but begins after the gap.
func (s *Service) passGap(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, alive time.Time) error {
	open, err := schedulestore.In(tx).OpenSlots(ctx, sch.ID, 100)
	if err != nil {
		return err
	}
	running := false
	for _, slot := range open {
		if waitsFresh(slot) {
			if err := s.waitAgain(ctx, tx, sch, slot); err != nil {
				return err
			}
		}
		running = running || run.SlotStatus(slot.Status) == run.SlotRunning || waitsFresh(slot)
	}
	times, err := s.timesOf(ctx, tx, sch)
	if err != nil {
		return err
	}
	for _, slot := range open {
		start := startOf(times, slot)
		late := tx.Now.Sub(start) > grace && (start.After(alive) || !running)
		if run.SlotStatus(slot.Status) == run.SlotPending && slot.Trigger == triggerSchedule && late && !waitsFresh(slot) {
			_, err := s.missed(ctx, tx, sch, slot)
			return err
		}
	}
	if !running {
		return nil
	}
	return s.recordGap(ctx, tx, sch, alive)
}

// recordGap records the instants of a gap for a schedule whose slot runs. Those
// from before the gap wait for its end, or were passed over by its policy.
func (s *Service) recordGap(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, alive time.Time) error {
	schedule, err := s.timesOf(ctx, tx, sch)
	if err != nil {
		return err
	}
	after, err := lastSlot(ctx, tx, sch)
	if err != nil {
		return err
	}
	end := tx.Now.Add(-grace)
	if alive.After(end) {
		alive = end
	}
	due, next, err := s.dueSince(ctx, tx, sch.ID, schedule, after, alive, nil)
	if err != nil {
		return err
	}
	before := follow(pawl.ConcurrencyPolicy(sch.Policy), due, time.Time{})
	if before.next, err = s.setNext(ctx, tx, sch, schedule, before.next); err != nil {
		return err
	}
	if err := s.passOver(ctx, tx, sch, before); err != nil {
		return err
	}
	if next.IsZero() {
		return nil
	}
	halts, err := tx.HaltsSince(ctx, next)
	if err != nil {
		return err
	}
	if due, _, err = s.dueSince(ctx, tx, sch.ID, schedule, next.Add(-time.Millisecond), end, halts); err != nil {
		return err
	}
	_, err = s.chainLate(ctx, tx, sch, schedule, due, time.Time{}, halts)
	return err
}
