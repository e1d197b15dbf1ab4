package api

import (
	"context"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
)

func slotOf(s store.Slot) contract.ScheduleRunV1 {
	out := contract.ScheduleRunV1{
		ID: s.ID, ScheduleID: s.ScheduleID, RunID: orNull(s.RunID), ScheduledFor: contract.Instant{Time: s.ScheduledFor},
		StartedAt: contract.InstantOf(s.StartedAt), CompletedAt: contract.InstantOf(s.CompletedAt), Status: contract.SlotStatus(s.Status),
		AttemptCount: s.Attempts, TraceID: orNull(s.TraceID), CostUSD: contract.Micro(s.Cost), Trigger: s.Trigger,
		BackfillID: orNull(s.BackfillID), Revision: s.Revision, CoalescedInto: contract.InstantOf(s.Into),
	}
	if s.Disposition != "" {
		d := contract.Disposition(s.Disposition)
		out.Disposition = &d
	}
	if s.ErrorCode != "" {
		out.Error = &contract.SlotErrorV1{Code: contract.ErrorCode(s.ErrorCode), Message: s.ErrorMessage}
	} else {
		out.Note = orNull(s.ErrorMessage)
	}
	return out
}

// SlotError describes contract.SlotErrorV1, which can be null.
type SlotError contract.SlotErrorV1

type listSlotsInput struct {
	SchedulePath
	PageInput
	Status  string `query:"status" enum:"pending,running,success,error,skipped" doc:"Only slots with this status."`
	Trigger string `query:"trigger" enum:"schedule,manual,backfill" doc:"Only slots that came about like this."`
}

type listSlotsOutput struct {
	Body Page[contract.ScheduleRunV1]
}

const slotCursor = "slot"

// listSlots are all instants of a schedule that are known, with what became of
// each.
func (a *API) listSlots(ctx context.Context, in *listSlotsInput) (*listSlotsOutput, error) {
	return a.slots(ctx, in, false)
}

// listScheduleRuns are the slots that started (C-81), or those of the status that
// is asked for: what waits or was passed over never started (C-69).
func (a *API) listScheduleRuns(ctx context.Context, in *listSlotsInput) (*listSlotsOutput, error) {
	return a.slots(ctx, in, in.Status == "")
}

func (a *API) slots(ctx context.Context, in *listSlotsInput, ran bool) (*listSlotsOutput, error) {
	at, _, err := in.placeInTime(slotCursor)
	if err != nil {
		return nil, err
	}
	out := &listSlotsOutput{}
	err = a.readScheduleBy(ctx, in.SchedulePath, a.schedules.Kept, func(ctx context.Context, tx *store.Tx, s store.Schedule) error {
		list, next, err := tx.SlotsOf(ctx, store.SlotFilter{ScheduleID: s.ID, Status: in.Status, Trigger: in.Trigger, Ran: ran}, at, in.Limit)
		if err != nil {
			return err
		}
		cursor := ""
		if !next.IsZero() {
			cursor = timeCursor(next, s.ID)
		}
		out.Body = pageOf(mapAll(list, slotOf), slotCursor, cursor)
		return nil
	})
	return out, err
}

// slotWords says what was at an instant, by the slot of that time or the one
// before it.
func slotWords(s *store.Slot) string {
	slot := "The slot of " + pawl.FormatTime(s.ScheduledFor)
	switch contract.SlotStatus(s.Status) {
	case run.SlotPending:
		return slot + " waits."
	case run.SlotRunning:
		return slot + " runs since " + pawl.FormatTime(s.StartedAt) + "."
	case run.SlotSuccess:
		return slot + " ran, and ended at " + pawl.FormatTime(s.CompletedAt) + "."
	case run.SlotError:
		return slot + " failed (" + s.ErrorCode + "): " + s.ErrorMessage
	case run.SlotSkipped:
	}
	return slot + " was passed over (" + s.Disposition + "): " + s.ErrorMessage
}
