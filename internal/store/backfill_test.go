package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// The pace of a backfill is told by its slots: by when they began or were passed
// over, or by when they were made due while they wait.
func TestLastBackfillStartIsThatOfItsSlots(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		s := graphSchedule(t, db, "s")
		var made, began time.Time
		last := func() time.Time {
			return mustRead(t, db, func(ctx context.Context, tx *store.Tx) (time.Time, error) {
				return schedulestore.In(tx).LastBackfillStart(ctx, "b")
			})
		}
		if got := last(); !got.IsZero() {
			t.Errorf("without slots: %s", got)
		}
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			made = tx.Now
			_, err := schedulestore.In(tx).InsertSlots(ctx, schedulestore.NewSlot{ScheduleID: s.ID, ScheduledFor: store.AtForTest(1), Trigger: "backfill", BackfillID: "b"},
				schedulestore.NewSlot{ScheduleID: s.ID, ScheduledFor: store.AtForTest(2), Trigger: "backfill", BackfillID: "other"})
			return err
		})
		if got := last(); !got.Equal(made) {
			t.Errorf("while it waits: %s, want %s", got, made)
		}
		var slot schedulestore.Slot
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
			tx.Now = tx.Now.Add(time.Second)
			began = tx.Now
			if slot, err = schedulestore.In(tx).GetSlot(ctx, s.ID, store.AtForTest(1)); err == nil {
				_, err = schedulestore.In(tx).StartSlot(ctx, slot.ID, schedulestore.SlotStart{RunID: "r"})
			}
			return err
		})
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			tx.Now = tx.Now.Add(time.Hour)
			_, err := schedulestore.In(tx).CloseSlot(ctx, slot.ID, schedulestore.SlotEnd{Status: "success", Disposition: "fired"})
			return err
		})
		if got := last(); !got.Equal(began) {
			t.Errorf("after it ran: %s, want %s", got, began)
		}
	})
}

// A backfill names the grant of its own slots, until they begin.
func TestBackfillNamesTheGrantOfSlotsThatHaveNotBegun(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		s := graphSchedule(t, db, "s")
		set := func(backfill, grant string) (slot schedulestore.Slot) {
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
				if err = schedulestore.In(tx).SetBackfillGrant(ctx, backfill, s.ID, store.AtForTest(1), grant); err == nil {
					slot, err = schedulestore.In(tx).GetSlot(ctx, s.ID, store.AtForTest(1))
				}
				return err
			})
			return slot
		}
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			_, err := schedulestore.In(tx).InsertSlots(ctx, schedulestore.NewSlot{ScheduleID: s.ID, ScheduledFor: store.AtForTest(1), Trigger: "backfill", BackfillID: "b"})
			return err
		})
		for _, c := range []struct{ backfill, grant, want string }{{"b", "g", "g"}, {"other", "h", "g"}, {"b", "", ""}, {"b", "g", "g"}} {
			if got := set(c.backfill, c.grant).GrantID; got != c.want {
				t.Errorf("%s sets %q: it is %q", c.backfill, c.grant, got)
			}
		}
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			slot, err := schedulestore.In(tx).GetSlot(ctx, s.ID, store.AtForTest(1))
			if err == nil {
				_, err = schedulestore.In(tx).StartSlot(ctx, slot.ID, schedulestore.SlotStart{RunID: "r"})
			}
			return err
		})
		if got := set("b", "h").GrantID; got != "g" {
			t.Errorf("after it began it is %q", got)
		}
	})
}
