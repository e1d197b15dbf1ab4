package api

import (
	"context"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

type listSlotsInput struct {
	SchedulePath
	PageInput
	Status  string `query:"status" enum:"pending,running,success,error,skipped" doc:"Only slots with this status."`
	Trigger string `query:"trigger" enum:"schedule,manual,backfill,retry" doc:"Only slots that came about like this."`
}

const slotCursor = "slot"

// listSlots are all instants of a schedule that are known, with what became of
// each.
func (a *API) listSlots(ctx context.Context, in *listSlotsInput) (*pageOutput[client.Slot], error) {
	return a.slots(ctx, in, false)
}

// listScheduleRuns are the slots that started (C-81), or those of the status that
// is asked for: what waits or was passed over never started (C-69).
func (a *API) listScheduleRuns(ctx context.Context, in *listSlotsInput) (*pageOutput[client.Slot], error) {
	return a.slots(ctx, in, in.Status == "")
}

func (a *API) slots(ctx context.Context, in *listSlotsInput, ran bool) (*pageOutput[client.Slot], error) {
	at, _, err := in.placeInTime(slotCursor)
	if err != nil {
		return nil, err
	}
	out := &pageOutput[client.Slot]{}
	err = a.readScheduleBy(ctx, in.SchedulePath, a.schedules.Kept, func(ctx context.Context, tx *store.Tx, s schedulestore.Schedule) error {
		list, next, err := schedulestore.In(tx).SlotsOf(ctx, schedulestore.SlotFilter{ScheduleID: s.ID, Status: in.Status, Trigger: in.Trigger, Ran: ran}, at, in.Limit)
		if err != nil {
			return err
		}
		cursor := ""
		if !next.IsZero() {
			cursor = timeCursor(next, s.ID)
		}
		slots := mapAll(list, schedule.SlotOf)
		out.Body = pageOf(slots, slotCursor, cursor)
		return addOutputs(ctx, tx, out.Body.Items, shortOutput)
	})
	return out, err
}
