package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/billing"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// A daily cap that is reached holds a schedule back until the next day of the
// account's zone. Its own slots that come due before that are skipped without asking
// anybody. The job of the schedule's pauses ends it at that instant (proceed); a slot
// that comes due later ends it as well, should the job be late. A schedule that a person
// pauses meanwhile is paused: the end of either ends nothing of the other.

// causeCapped is why a schedule needs attention that a daily cap holds back.
const causeCapped = "capped"

// dayOver is the end of the day whose cap refused a run; zero if waiting does not
// help.
func dayOver(failure error) time.Time {
	if e, ok := errors.AsType[*billing.CapError](failure); ok {
		return e.Until
	}
	return time.Time{}
}

// cappedWords say until when a schedule is held back, by the clock of the account,
// and why.
func cappedWords(until time.Time, why string) string {
	return "Paused until " + until.Format("15:04") + " " + until.Location().String() + ": " + why + ". It then continues by itself."
}

// hold holds a schedule back until the day is over, and pauses the backfill that
// reached the cap, if one did.
func (a *attempt) hold(ctx context.Context, tx *store.Tx, sch *schedulestore.Schedule, until time.Time, why string) error {
	if err := a.pauseBackfill(ctx, tx); err != nil || !sch.DeletedAt.IsZero() {
		return err
	}
	known := !sch.CappedUntil.IsZero()
	sch.CappedUntil, sch.Issue = until, cappedWords(until, why)
	if err := schedulestore.In(tx).CapSchedule(ctx, sch.ID, until, sch.Issue); err != nil {
		return err
	}
	if err := lane.ArmContinue(ctx, tx, a.jobs, pawl.KindSchedule, sch.ID, until); err != nil || known {
		return err
	}
	a.log.Warn("a daily cap is reached", "schedule", sch.Name, "until", pawl.FormatTime(until), "why", why)
	return tx.Audit(ctx, "pawl", "schedule.capped", "schedule:"+sch.ID, map[string]string{"name": sch.Name, "until": pawl.FormatTime(until), "why": why})
}

// continued lets a schedule run again whose day is over, and says so once.
func (s *Service) continued(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule) (schedulestore.Schedule, error) {
	if sch.CappedUntil.IsZero() || sch.CappedUntil.After(tx.Now) {
		return sch, nil
	}
	until := sch.CappedUntil
	sch.CappedUntil, sch.Issue = time.Time{}, ""
	if err := schedulestore.In(tx).CapSchedule(ctx, sch.ID, time.Time{}, sch.Issue); err != nil {
		return sch, err
	}
	if err := tx.Audit(ctx, "pawl", "schedule.continued", "schedule:"+sch.ID, map[string]string{"name": sch.Name, "cappedUntil": pawl.FormatTime(until)}); err != nil {
		return sch, err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(sch.ID, sch.Name), What: "updated"})
	tx.AfterCommit(func() { s.log.Info("the day of a cap is over", "schedule", sch.Name, "enabled", sch.Enabled) })
	return sch, s.settleContinued(ctx, tx, sch.ID)
}

// settleContinued forgets what the cap said about a schedule, and nothing else.
func (s *Service) settleContinued(ctx context.Context, tx *store.Tx, id string) error {
	known, err := runstore.In(tx).GetLane(ctx, pawl.KindSchedule, id)
	if err != nil {
		return pawl.IgnoreNotFound(err)
	}
	health := known.Attention
	if known.Cause == string(run.IssuePrecondition)+":"+causeCapped {
		health = runstore.Attention{Text: "The daily cap no longer holds it back: it continues."}
		if known.State == string(run.Stopped) {
			health.Text = "The daily cap no longer holds it back, but it is paused."
		}
	}
	return s.settleAs(ctx, tx, known, health, "")
}

// underCap skips a slot of a schedule that is held back, and lets the schedule
// continue if the day is over.
func (a *attempt) underCap(ctx context.Context, tx *store.Tx) (held bool, err error) {
	switch sch := a.schedule; {
	case sch.CappedUntil.IsZero() || a.slot.Trigger != triggerSchedule:
		return false, nil
	case sch.CappedUntil.After(tx.Now):
		_, err := a.pass(ctx, tx, skipped(run.DispositionSkippedBudget, contract.InsufficientCredits, sch.Issue))
		return true, err
	}
	a.schedule, err = a.continued(ctx, tx, a.schedule)
	return false, err
}

// cappedGate tells whether a daily cap holds a schedule back.
func cappedGate(sch schedulestore.Schedule, now time.Time) lane.Gate {
	if sch.CappedUntil.After(now) {
		return lane.Gate{Name: "budget", Text: sch.Issue}
	}
	return lane.Gate{Name: "budget", Open: true, Text: "No daily cap holds it back."}
}

// cappedNext says what follows a hold.
func (d Details) cappedNext() string {
	words := "It does nothing until the day of its cap is over, at " + pawl.FormatTime(d.Row.CappedUntil)
	if next, ok := d.times.Next(d.Row.CappedUntil.Add(-time.Millisecond)); ok {
		return words + fmt.Sprintf("; the next slot that runs is that of %s.", pawl.FormatTime(next))
	}
	return words + "."
}

// uncapped is a schedule that a person wants to continue: it was given another
// grant, or enabled.
func uncapped(next, was schedulestore.Schedule, in client.SchedulePatch) bool {
	return !was.CappedUntil.IsZero() && (next.GrantID != was.GrantID || in.Enabled != nil && *in.Enabled)
}
