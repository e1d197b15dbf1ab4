package schedule

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// Why a slot cannot be run again, or passed over.
const (
	ReasonSlotWaits     = "slot_waits"
	ReasonSlotRuns      = "slot_runs"
	ReasonSlotSucceeded = "slot_succeeded"
	ReasonSlotClosed    = "slot_closed"
)

// RetrySlot runs a slot again that failed, was passed over, or of which nobody
// knows whether it ran, in the caller's transaction: as the schedule is now. One
// that succeeded is never run again.
func (s *Service) RetrySlot(ctx context.Context, tx *store.Tx, ownerID, id string, at time.Time, by string) (schedulestore.Slot, error) {
	const op = "retry slot"
	if err := lane.RefuseHalted(ctx, tx, op); err != nil {
		return schedulestore.Slot{}, err
	}
	sch, slot, err := s.holdForPerson(ctx, tx, ownerID, id, at)
	if err != nil {
		return schedulestore.Slot{}, err
	}
	name := slotName(sch, at)
	switch run.SlotStatus(slot.Status) {
	case run.SlotPending:
		return schedulestore.Slot{}, lane.Refuse(op, ReasonSlotWaits, name+" waits already", "")
	case run.SlotRunning:
		return schedulestore.Slot{}, lane.Refuse(op, ReasonSlotRuns, name+" runs", "Wait until it has ended, or cancel its run.")
	case run.SlotSuccess:
		return schedulestore.Slot{}, lane.Refuse(op, ReasonSlotSucceeded, name+" succeeded, and is not run again", "Run the schedule now: pawl run schedule "+sch.Name)
	case run.SlotError, run.SlotSkipped:
	}
	if !sch.Enabled {
		return schedulestore.Slot{}, refuseDisabled(ctx, tx, op, sch)
	}
	if err := s.reopen(ctx, tx, sch, slot, schedulestore.Again{Trigger: triggerRetry, Revision: sch.Revision}); err != nil {
		return schedulestore.Slot{}, err
	}
	if err := tx.Audit(ctx, by, "slot.retry", "schedule:"+id, map[string]string{"slot": pawl.FormatTime(at)}); err != nil {
		return schedulestore.Slot{}, err
	}
	if err := s.settleLane(ctx, tx, id); err != nil {
		return schedulestore.Slot{}, err
	}
	if err := s.arm(ctx, tx, sch, at, tx.Now); err != nil {
		return schedulestore.Slot{}, err
	}
	return schedulestore.In(tx).GetSlot(ctx, id, at)
}

// reopen makes a closed slot pending again, and lets the execution service follow
// what failed with another attempt.
func (s *Service) reopen(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, slot schedulestore.Slot, as schedulestore.Again) error {
	if err := execution.Reopen(ctx, tx, pawl.SlotKey(sch.ID, slot.ScheduledFor)); err != nil {
		return err
	}
	opened, err := schedulestore.In(tx).RetrySlot(ctx, slot.ID, as)
	if err != nil {
		return err
	}
	s.emitSlot(tx, sch, opened)
	return nil
}

// SkipSlot keeps a slot that waits from running, and ends the worry about one that
// failed or of which nobody knows whether it ran, in the caller's transaction.
func (s *Service) SkipSlot(ctx context.Context, tx *store.Tx, ownerID, id string, at time.Time, by string) (schedulestore.Slot, error) {
	const op = "skip slot"
	sch, slot, err := s.holdForPerson(ctx, tx, ownerID, id, at)
	if err != nil {
		return schedulestore.Slot{}, err
	}
	name := slotName(sch, at)
	switch run.SlotStatus(slot.Status) {
	case run.SlotRunning:
		return schedulestore.Slot{}, lane.Refuse(op, ReasonSlotRuns, name+" runs", "Cancel its run: pawl cancel "+slot.RunID)
	case run.SlotSuccess, run.SlotSkipped:
		return schedulestore.Slot{}, lane.Refuse(op, ReasonSlotClosed, name+" is over: it is "+slot.Status, "")
	case run.SlotPending:
		if err = schedulestore.In(tx).SkippedByPerson(ctx, slot.ID); err == nil {
			err = s.close(ctx, tx, sch, slot, skipped(run.DispositionExcluded, "", "A person skipped it."))
		}
	case run.SlotError:
		if slot, err = schedulestore.In(tx).SettleDoubt(ctx, slot.ID, "", ""); err == nil {
			err = s.calm(ctx, tx, sch, slot)
		}
	}
	if err != nil {
		return schedulestore.Slot{}, err
	}
	if err := tx.Audit(ctx, by, "slot.skip", "schedule:"+id, map[string]string{"slot": pawl.FormatTime(at)}); err != nil {
		return schedulestore.Slot{}, err
	}
	return schedulestore.In(tx).GetSlot(ctx, id, at)
}

// calm takes back what a closed slot says about its schedule, now that a person has
// decided about it.
func (s *Service) calm(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, slot schedulestore.Slot) error {
	s.emitSlot(tx, sch, slot)
	sch.Calm = false // whatever was read, it is to be written
	return s.noteIssue(ctx, tx, sch, run.IssueNone, "", slot.RunID, "")
}

// holdForPerson holds a schedule and one of its slots that a person decides about.
func (s *Service) holdForPerson(ctx context.Context, tx *store.Tx, ownerID, id string, at time.Time) (schedulestore.Schedule, schedulestore.Slot, error) {
	if _, err := s.Owned(ctx, tx, ownerID, id); err != nil {
		return schedulestore.Schedule{}, schedulestore.Slot{}, err
	}
	sch, err := schedulestore.In(tx).HoldSchedule(ctx, id)
	if err != nil {
		return schedulestore.Schedule{}, schedulestore.Slot{}, err
	}
	if err := s.setApart(ctx, tx, id, at); err != nil {
		return sch, schedulestore.Slot{}, err
	}
	slot, err := schedulestore.In(tx).HoldSlot(ctx, id, at)
	if errors.Is(err, pawl.ErrNotFound) {
		err = &pawl.Error{Code: pawl.CodeNotFound, Op: "hold slot", Msg: fmt.Sprintf("schedule %q has no slot at %s", sch.Name, pawl.FormatTime(at)), Hint: whichSlots(sch)}
	}
	return sch, slot, err
}

// whichSlots tells whoever named an instant without a slot which ones there are.
func whichSlots(sch schedulestore.Schedule) string {
	if sch.NextRunAt.IsZero() {
		return "List its slots: pawl get slots " + sch.Name
	}
	return fmt.Sprintf("List its slots: pawl get slots %s. The next one is that of %s; leave out later ones with except.", sch.Name, pawl.FormatTime(sch.NextRunAt))
}

func slotName(sch schedulestore.Schedule, at time.Time) string {
	return fmt.Sprintf("the slot of %s of schedule %q", pawl.FormatTime(at), sch.Name)
}

// Resolve ends the doubt about the run of a slot of which nobody knows whether it
// took place, in the caller's transaction: it happened, it did not and is done now,
// or that does not matter.
func (s *Service) Resolve(ctx context.Context, tx *store.Tx, r runstore.Run, outcome, by string) error {
	const op = "resolve run"
	sch, slot, err := s.slotOf(ctx, tx, r)
	if err != nil {
		return err
	}
	if !slot.Doubt {
		return lane.Refuse(op, "not_waiting", "it is known what became of "+slotName(sch, slot.ScheduledFor), "")
	}
	switch outcome {
	case "happened":
		closed, err := schedulestore.In(tx).SettleDoubt(ctx, slot.ID, string(run.SlotSuccess), "A person said that it ran.")
		if err != nil {
			return err
		}
		if err := tx.Audit(ctx, by, "run.resolve", "run:"+r.ID, map[string]string{"schedule": sch.Name, "outcome": outcome}); err != nil {
			return err
		}
		return s.calm(ctx, tx, sch, closed)
	case "did-not-happen":
		_, err = s.RetrySlot(ctx, tx, "", sch.ID, slot.ScheduledFor, by)
		return err
	case "skip":
		_, err = s.SkipSlot(ctx, tx, "", sch.ID, slot.ScheduledFor, by)
		return err
	}
	return &pawl.Error{Code: pawl.CodeInvalid, Op: op, Msg: "nobody else can be asked what became of it", Fields: []pawl.Field{{Pointer: "/outcome", Message: "must be happened, did-not-happen or skip"}}}
}

// doubt is what a slot of which nobody knows whether it ran asks people.
func doubt(sch schedulestore.Schedule, slot schedulestore.Slot) string {
	at := pawl.FormatTime(slot.ScheduledFor)
	return fmt.Sprintf("%s (the slot of %s). Run it again with: %s. Leave it with: %s.", strings.TrimSuffix(sentence(slot.ErrorMessage), "."), at,
		run.Command("retry", "slot", sch.Name, at), run.Command("skip", "slot", sch.Name, at))
}

func sentence(text string) string {
	if text == "" {
		return "It is unknown whether it ran."
	}
	if text[len(text)-1] != '.' {
		return text + "."
	}
	return text
}

// attentionOf is what the oldest doubtful slot of a schedule says about it; zero if
// there is none.
func attentionOf(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule) (runstore.Attention, error) {
	slot, err := schedulestore.In(tx).DoubtfulSlot(ctx, sch.ID)
	if err != nil {
		return runstore.Attention{}, pawl.IgnoreNotFound(err)
	}
	return runstore.Attention{
		Cause: string(run.IssueOutcomeUnknown) + ":" + pawl.FormatTime(slot.ScheduledFor), Issue: string(run.IssueOutcomeUnknown), Text: doubt(sch, slot),
	}, nil
}
