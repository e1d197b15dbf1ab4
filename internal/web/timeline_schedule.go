package web

import (
	"context"
	"net/url"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// hasSlots reports whether lanes of a kind are told by their slots.
func hasSlots(k lane.Kind) bool { return k.Kind() == pawl.KindSchedule }

// slotMarks are the slots of a schedule in the window, the newest first.
func slotMarks(ctx context.Context, tx *store.Tx, id string, w timelineWindow) (out []ranMark, err error) {
	slots, err := schedulestore.SlotMarks(ctx, tx, id, w.from, w.now, marksRead)
	for i := range slots {
		slot := &slots[i]
		outcome := slotOutcome(slot.Status, slot.Disposition)
		href := ""
		if slot.RunID != "" {
			href = "/runs/" + url.PathEscape(slot.RunID)
		}
		if slot.Count > 1 {
			text := instant(slot.ScheduledFor) + " to " + instant(slot.Through) + " · " + plural(slot.Count, "slot", "slots") + " · " + called(outcome)
			out = append(out, ranMark{latest(slot.ScheduledFor, w.from), slot.Through, tone(outcome), text, ""})
			continue
		}
		out = append(out, ranMark{latest(slot.ScheduledFor, slot.StartedAt), slot.CompletedAt, tone(outcome), instant(slot.ScheduledFor) + " · " + called(outcome), href})
	}
	return out, err
}
