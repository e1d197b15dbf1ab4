package schedule

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// C-09, C-58, X-62: with Queue one slot waits for the end of the run and later
// ones are coalesced into it; nothing overlaps.
func TestQueueLetsOneSlotWait(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.takes = 150 * time.Second
		sch := k.create(ask("s", pawl.PolicyQueue))
		k.pass(8 * time.Minute)
		k.wantStory(sch, "00:01 success", "00:02 success", "00:03 skipped coalesced", "00:04 running", "00:05 skipped coalesced", "00:06 skipped coalesced")
		if slots := k.slots(sch); !slots[2].Into.Equal(slots[1].ScheduledFor) || !slots[5].Into.Equal(slots[3].ScheduledFor) {
			t.Errorf("they are coalesced into %s and %s", slots[2].Into, slots[5].Into)
		}
		if both := k.graph.overlaps(sch.ID); both != "" {
			t.Errorf("runs overlap: %s", both)
		}
	})
}

// C-82, X-62: with Forbid what comes due during a run is skipped, also when that
// run is one that a person asked for.
func TestForbidSkipsWhatComesDueDuringARun(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.takes = 150 * time.Second
		sch := k.create(ask("s", pawl.PolicyForbid))
		k.pass(6*time.Minute + 50*time.Second)
		k.wantStory(sch, "00:01 success", "00:02 skipped skipped_overlap", "00:03 skipped skipped_overlap", "00:04 success", "00:05 skipped skipped_overlap", "00:06 skipped skipped_overlap", "00:07 pending")
		k.runNow(sch)
		k.pass(3 * time.Minute) // until 00:09:50; the manual run ends at 00:09:20
		if got := k.story(sch)[6:]; !slices.Equal(got, []string{"00:06 success", "00:07 skipped skipped_overlap", "00:08 skipped skipped_overlap", "00:09 skipped skipped_overlap", "00:10 pending"}) {
			t.Errorf("beside a manual run: %v", got)
		}
		if both := k.graph.overlaps(sch.ID); both != "" {
			t.Errorf("runs overlap: %s", both)
		}
	})
}

// C-82, X-62: with Allow every slot starts on time, beside the others.
func TestAllowRunsSlotsBesideEachOther(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.takes = 150 * time.Second
		sch := k.create(ask("s", pawl.PolicyAllow))
		k.pass(4*time.Minute + 10*time.Second)
		k.wantStory(sch, "00:01 success", "00:02 running", "00:03 running", "00:04 running", "00:05 pending")
		for _, slot := range k.slots(sch)[:4] {
			if !slot.StartedAt.Equal(slot.ScheduledFor) {
				t.Errorf("the slot of %s started at %s", slot.ScheduledFor, slot.StartedAt)
			}
		}
	})
}

// C-82, X-62: with Replace the run is cancelled at the execution service, and
// the new slot starts when it has ended.
func TestReplaceCancelsTheRunBefore(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.takes = 150 * time.Second
		sch := k.create(ask("s", pawl.PolicyReplace))
		k.pass(3*time.Minute + 10*time.Second)
		k.wantStory(sch, "00:01 error aborted", "00:02 error aborted", "00:03 running", "00:04 pending")
		if k.graph.overlaps(sch.ID) != "" || !slices.Contains(k.graph.cancelled(), pawl.SlotKey(sch.ID, at(1))) {
			t.Errorf("runs overlap, or nobody cancelled: %v", k.graph.cancelled())
		}
		if slot := k.slots(sch)[2]; slot.StartedAt.Sub(slot.ScheduledFor) > time.Second {
			t.Errorf("the new one started at %s", slot.StartedAt)
		}
		if len(k.notices) != 0 {
			t.Errorf("people were told %v of what is meant to be", k.notices)
		}
	})
}

// Replace also ends a slot that nobody executes at the moment, because it
// waits for a person or for its next attempt.
func TestReplaceEndsWhatWaits(t *testing.T) {
	onSQLite(t, func(t *testing.T, k *kit) {
		k.graph.answer = func(key string, _ int) contract.RunAnswerV1 {
			switch key[len(key)-len("01:00.000Z"):] {
			case "01:00.000Z":
				return contract.RunAnswerV1{Interrupt: []byte(`"may I?"`)}
			case "02:00.000Z":
				return contract.RunAnswerV1{ErrorCode: contract.RateLimit, Retry: true, RetryAfterMS: 120_000}
			}
			return contract.RunAnswerV1{OK: true}
		}
		sch := k.create(ask("s", pawl.PolicyReplace))
		k.pass(6 * time.Minute)
		k.wantStory(sch, "00:01 error aborted", "00:02 error aborted", "00:03 success", "00:04 success", "00:05 success", "00:06 success", "00:07 pending")
		if got := k.graph.executed(sch.ID); len(got) != 6 {
			t.Errorf("executed %v", got)
		}
	})
}

// the cancellation of a run that is about to start reaches it a moment
// later.
func TestReplaceInsists(t *testing.T) {
	onSQLite(t, func(t *testing.T, k *kit) {
		k.graph.takes = time.Hour
		k.graph.down = func() error {
			if time.Now().Before(at(2).Add(2 * time.Second)) {
				return errDown // so the first cancellation finds nothing
			}
			return nil
		}
		sch := k.create(ask("s", pawl.PolicyReplace))
		k.pass(2*time.Minute + 50*time.Second)
		k.wantStory(sch, "00:01 error aborted", "00:02 running", "00:03 pending")
	})
}

// a policy that is changed while a slot runs changes nothing for
// that slot: it is found again after a crash and gets its outcome.
func TestAPolicyChangeDoesNotLoseTheRunUnderWay(t *testing.T) {
	onSQLite(t, func(t *testing.T, k *kit) {
		for _, from := range policies() {
			for _, to := range policies() {
				k.pass(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
				k.graph.takes = 20 * time.Second
				sch := k.create(ask("s", from))
				first := sch.NextRunAt
				k.pass(65 * time.Second)
				k.update(sch, client.SchedulePatch{ConcurrencyPolicy: &to})
				k.restart(time.Second)
				k.pass(50 * time.Second)
				slots := k.slots(sch)
				if slots[0].Status != "success" || len(slots) < 2 || slots[1].Status == "skipped" {
					t.Errorf("%s to %s: %v", from, to, k.story(sch))
				}
				if got := k.graph.executed(sch.ID); got[0] != first.Format("15:04") {
					t.Errorf("%s to %s: executed %v", from, to, got)
				}
				k.write(func(ctx context.Context, tx *store.Tx) error {
					_, err := k.s.Delete(ctx, tx, k.owner, sch.ID, "t")
					return err
				})
				k.pass(time.Minute)
			}
		}
	})
}

// a slot that is passed over leaves the attempts of the one that runs
// alone.
func TestASkippedSlotGivesNoNewAttempts(t *testing.T) {
	onSQLite(t, func(t *testing.T, k *kit) {
		k.graph.takes = 25 * time.Second
		k.graph.answer = func(string, int) contract.RunAnswerV1 {
			return contract.RunAnswerV1{ErrorCode: contract.Internal, Retry: true, RetryAfterMS: 30_000}
		}
		sch := k.create(ask("s", pawl.PolicyForbid))
		k.pass(130 * time.Second)
		at := time.Now()
		k.write(func(ctx context.Context, tx *store.Tx) error { // a slot that comes due meanwhile
			if _, err := schedulestore.In(tx).InsertSlots(ctx, schedulestore.NewSlot{ScheduleID: sch.ID, ScheduledFor: at, Trigger: triggerSchedule, Revision: sch.Revision}); err != nil {
				return err
			}
			return k.s.arm(ctx, tx, sch, at, at)
		})
		k.pass(3 * time.Minute)
		if slot := k.slots(sch)[0]; slot.Status != "error" || slot.Attempts != 3 {
			t.Errorf("it had %d attempts: %v", slot.Attempts, k.story(sch))
		}
	})
}

// A run on request that waits for a person is in the way of slots, and each that is
// passed over is followed by the next.
func TestSlotsFollowEachOtherBesideARunOnRequest(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.answer = func(string, int) contract.RunAnswerV1 {
			return contract.RunAnswerV1{Interrupt: json.RawMessage(`"May I?"`)}
		}
		sch := k.create(ask("s", pawl.PolicyForbid))
		k.pass(30 * time.Second)
		k.runNow(sch)
		k.pass(2 * time.Minute)
		k.wantStory(sch, "00:00 running", "00:01 skipped skipped_overlap", "00:02 skipped skipped_overlap", "00:03 pending")
	})
}
