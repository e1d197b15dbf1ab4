package schedule

import (
	"context"
	"fmt"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/terms"
	"github.com/pawlrun/pawl/internal/timing"
	"github.com/pawlrun/pawl/internal/when"
)

// A slot that needs a source which is too old does not begin. It waits, with a
// disposition that says so, until the source was fetched; its job is armed for the
// end of that wait, and by the end of the fetch for now. What has begun goes on
// whatever becomes of the source.

// waitsFresh reports whether a slot waits for a source.
func waitsFresh(slot schedulestore.Slot) bool {
	return slot.Disposition == string(run.DispositionWaitingFresh) && run.SlotStatus(slot.Status) == run.SlotPending
}

// checkNeeds finds the sources that a schedule newly needs and that are not there.
func (s *Service) checkNeeds(ctx context.Context, tx *store.Tx, was, sch schedulestore.Schedule) error {
	if sameNeeds(was, sch) {
		return nil
	}
	faults, err := s.cfg.Needs.Check(ctx, tx, RulesOf(sch).Needs)
	if err != nil || len(faults) == 0 {
		return err
	}
	return &pawl.Error{Code: pawl.CodeInvalid, Op: "check schedule", Msg: "the schedule is not valid: " + faults[0].Message, Hint: "pawl get sources lists them.", Fields: faults}
}

func sameNeeds(a, b schedulestore.Schedule) bool {
	return terms.SameNeeds(RulesOf(a).Needs, RulesOf(b).Needs)
}

// declareNeeds notes what a schedule needs now. Slots that wait for what it needed
// look again.
func (s *Service) declareNeeds(ctx context.Context, tx *store.Tx, was, now schedulestore.Schedule) error {
	if sameNeeds(was, now) {
		return nil
	}
	if err := s.cfg.Needs.Declare(ctx, tx, pawl.KindSchedule, now.ID, RulesOf(now).Needs); err != nil {
		return err
	}
	return s.Freshened(ctx, tx, now.ID)
}

// Freshened implements need.User: the slots that wait look again.
func (s *Service) Freshened(ctx context.Context, tx *store.Tx, id string) error {
	sch, err := schedulestore.In(tx).GetSchedule(ctx, id)
	if err != nil {
		return err
	}
	open, err := schedulestore.In(tx).OpenSlots(ctx, id, 1000)
	if err != nil {
		return err
	}
	var jobs []store.JobSpec
	for _, slot := range open {
		if !waitsFresh(slot) {
			continue
		}
		job, err := jobOf(sch, slot.ScheduledFor, tx.Now)
		if err != nil {
			return err
		}
		jobs = append(jobs, job)
	}
	if len(jobs) == 0 {
		return nil
	}
	_, err = s.jobs.EnqueueTx(ctx, tx, jobs...)
	return err
}

// NeedingName implements need.User.
func (s *Service) NeedingName(ctx context.Context, tx *store.Tx, id, owner string) (string, error) {
	sch, err := s.Owned(ctx, tx, owner, id)
	if err != nil {
		return "", err
	}
	return "schedule " + sch.Name, nil
}

// awaitFresh makes a slot wait for the sources that it needs and that are too old,
// and passes it over when it has waited long enough. It reports false if the slot
// begins now.
func (a *attempt) awaitFresh(ctx context.Context, tx *store.Tx, start time.Time) (step, bool, error) {
	stale, err := a.cfg.Needs.Stale(ctx, tx, a.needs)
	if err != nil || len(stale) == 0 {
		return step{}, false, err
	}
	since := a.waitSince(stale, start, tx.Now)
	if deadline, of := firstDeadline(stale, since); !deadline.After(tx.Now) {
		words := fmt.Sprintf("It waited %s for %s; at most %s is allowed.", when.FormatInterval(terms.WaitOf(of.Need)), of.Words(tx.Now), of.MaxAge)
		s, err := a.pass(ctx, tx, skipped(run.DispositionSkippedStale, "", words))
		return s, true, err
	}
	if err := a.cfg.fault("waiting"); err != nil {
		return step{}, false, err
	}
	if stale, err = a.cfg.Needs.Wait(ctx, tx, refOf(a.schedule.ID, a.schedule.Name), a.schedule.ID, a.needs); err != nil || len(stale) == 0 {
		return step{}, false, err
	}
	deadline, _ := firstDeadline(stale, since)
	if waitsFresh(a.slot) {
		return step{waits: true, again: deadline}, true, nil
	}
	words := "It waits for " + terms.StaleWords(stale, tx.Now) + ", until " + pawl.FormatTime(deadline) + " at most." + terms.WhyWords(stale)
	if a.slot, err = schedulestore.WaitFresh(ctx, tx, a.slot.ID, string(run.DispositionWaitingFresh), since, words); err != nil {
		return step{}, false, err
	}
	a.emitSlot(tx, a.schedule, a.slot)
	return step{waits: true, again: deadline}, true, a.settleLane(ctx, tx, a.schedule.ID)
}

// waitSince is the instant from which the wait of a slot counts. Where slots run
// beside each other that is when it was to start, so that those which came due while
// one waited do not wait one after the other.
func (a *attempt) waitSince(stale []terms.Stale, start, now time.Time) time.Time {
	if waitsFresh(a.slot) {
		return a.slot.WaitsSince
	}
	if deadline, _ := firstDeadline(stale, start); mayOverlap(a.schedule) && deadline.After(now) {
		return start
	}
	return now
}

// firstDeadline is the first end of a wait that began at an instant, and for what.
func firstDeadline(stale []terms.Stale, since time.Time) (deadline time.Time, of terms.Stale) {
	for i, s := range stale {
		if at := since.Add(terms.WaitOf(s.Need)); i == 0 || at.Before(deadline) {
			deadline, of = at, s
		}
	}
	return deadline, of
}

// waitAgain lets the wait of a slot count from now if its end came in a gap in which
// nobody was there, and the definition says that such slots run later.
func (s *Service) waitAgain(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, slot schedulestore.Slot) error {
	if policy, from := missedPolicy(sch, tx.Now); policy == timing.Skip || slot.ScheduledFor.Before(from) {
		return nil
	}
	_, err := schedulestore.WaitFresh(ctx, tx, slot.ID, slot.Disposition, tx.Now, slot.ErrorMessage)
	return err
}

// waitingFresh reports whether a slot of a schedule waits for a source.
func waitingFresh(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule) (bool, error) {
	if len(RulesOf(sch).Needs) == 0 { // as most
		return false, nil
	}
	open, err := schedulestore.In(tx).OpenSlots(ctx, sch.ID, mostOpen)
	return slices.ContainsFunc(open, waitsFresh), err
}

// waiting is the slot that waits for a source; false if none does.
func (d Details) waiting() (schedulestore.Slot, bool) {
	i := slices.IndexFunc(d.Open, waitsFresh)
	if i < 0 {
		return schedulestore.Slot{}, false
	}
	return d.Open[i], true
}

// waitingWords says for what a slot waits.
func (d Details) waitingWords(now time.Time) string {
	slot, _ := d.waiting()
	name := "The slot of " + pawl.FormatTime(slot.ScheduledFor)
	if len(d.stale) == 0 {
		return name + " starts now: what it needs was fetched."
	}
	deadline, _ := firstDeadline(d.stale, slot.WaitsSince)
	return name + " waits for " + terms.StaleWords(d.stale, now) + ", until " + pawl.FormatTime(deadline) + " at most."
}

// staleSource is the source that the schedule waits for, or needs first.
func (d Details) staleSource() terms.Stale {
	if len(d.stale) > 0 {
		return d.stale[0]
	}
	for _, n := range RulesOf(d.Row).Needs {
		return terms.Stale{Need: n}
	}
	return terms.Stale{}
}
