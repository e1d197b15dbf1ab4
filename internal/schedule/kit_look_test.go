package schedule

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// slots are those of a schedule, the oldest first.
func (k *kit) slots(sch schedulestore.Schedule) (list []schedulestore.Slot) {
	k.t.Helper()
	k.read(func(ctx context.Context, tx *store.Tx) (err error) {
		list, err = schedulestore.In(tx).ListSlots(ctx, schedulestore.SlotFilter{ScheduleID: sch.ID}, time.Time{}, "", 10_000)
		return err
	})
	slices.Reverse(list)
	return list
}

// story is the slots in short: the time of day, status, disposition and code.
func (k *kit) story(sch schedulestore.Schedule) (out []string) {
	k.t.Helper()
	for _, slot := range k.slots(sch) {
		words := []string{slot.ScheduledFor.Format("15:04"), slot.Status}
		if slot.Disposition != "" && slot.Disposition != "fired" {
			words = append(words, slot.Disposition)
		}
		if slot.ErrorCode != "" {
			words = append(words, slot.ErrorCode)
		}
		out = append(out, strings.Join(words, " "))
	}
	return out
}

func (k *kit) wantStory(sch schedulestore.Schedule, want ...string) {
	k.t.Helper()
	if got := k.story(sch); !slices.Equal(got, want) {
		k.t.Errorf("the slots are\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// runOf is the newest attempt of the slot that runs.
func (k *kit) runOf(sch schedulestore.Schedule) (r runstore.Run) {
	k.t.Helper()
	k.read(func(ctx context.Context, tx *store.Tx) error {
		running, err := schedulestore.In(tx).RunningSlots(ctx, sch.ID, 10)
		if err != nil || len(running) != 1 {
			return fmt.Errorf("%d slots run: %w", len(running), err)
		}
		r, err = newestOf(ctx, tx, running[0])
		return err
	})
	return r
}
