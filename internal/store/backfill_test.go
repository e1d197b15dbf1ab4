package store

import (
	"context"
	"testing"
	"time"
)

// The pace of a backfill is told by its slots: by when they began or were passed
// over, or by when they were made due while they wait.
func TestLastBackfillStartIsThatOfItsSlots(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		s := graphSchedule(t, db, "s")
		var made, began time.Time
		last := func() time.Time {
			return mustRead(t, db, func(ctx context.Context, tx *Tx) (time.Time, error) { return tx.LastBackfillStart(ctx, "b") })
		}
		if got := last(); !got.IsZero() {
			t.Errorf("without slots: %s", got)
		}
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			made = tx.Now
			_, err := tx.InsertSlots(ctx, NewSlot{ScheduleID: s.ID, ScheduledFor: at(1), Trigger: "backfill", BackfillID: "b"},
				NewSlot{ScheduleID: s.ID, ScheduledFor: at(2), Trigger: "backfill", BackfillID: "other"})
			return err
		})
		if got := last(); !got.Equal(made) {
			t.Errorf("while it waits: %s, want %s", got, made)
		}
		var slot Slot
		mustWrite(t, db, func(ctx context.Context, tx *Tx) (err error) {
			tx.Now = tx.Now.Add(time.Second)
			began = tx.Now
			if slot, err = tx.GetSlot(ctx, s.ID, at(1)); err == nil {
				_, err = tx.StartSlot(ctx, slot.ID, SlotStart{RunID: "r"})
			}
			return err
		})
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			tx.Now = tx.Now.Add(time.Hour)
			_, err := tx.CloseSlot(ctx, slot.ID, SlotEnd{Status: "success", Disposition: "fired"})
			return err
		})
		if got := last(); !got.Equal(began) {
			t.Errorf("after it ran: %s, want %s", got, began)
		}
	})
}

// A backfill names the grant of its own slots, until they begin.
func TestBackfillNamesTheGrantOfSlotsThatHaveNotBegun(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		s := graphSchedule(t, db, "s")
		set := func(backfill, grant string) (slot Slot) {
			mustWrite(t, db, func(ctx context.Context, tx *Tx) (err error) {
				if err = tx.SetBackfillGrant(ctx, backfill, s.ID, at(1), grant); err == nil {
					slot, err = tx.GetSlot(ctx, s.ID, at(1))
				}
				return err
			})
			return slot
		}
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			_, err := tx.InsertSlots(ctx, NewSlot{ScheduleID: s.ID, ScheduledFor: at(1), Trigger: "backfill", BackfillID: "b"})
			return err
		})
		for _, c := range []struct{ backfill, grant, want string }{{"b", "g", "g"}, {"other", "h", "g"}, {"b", "", ""}, {"b", "g", "g"}} {
			if got := set(c.backfill, c.grant).GrantID; got != c.want {
				t.Errorf("%s sets %q: it is %q", c.backfill, c.grant, got)
			}
		}
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			slot, err := tx.GetSlot(ctx, s.ID, at(1))
			if err == nil {
				_, err = tx.StartSlot(ctx, slot.ID, SlotStart{RunID: "r"})
			}
			return err
		})
		if got := set("b", "h").GrantID; got != "g" {
			t.Errorf("after it began it is %q", got)
		}
	})
}
