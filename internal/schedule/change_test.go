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
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

func (k *kit) runNow(sch schedulestore.Schedule) (slot schedulestore.Slot) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) (err error) {
		slot, err = k.s.RunNow(ctx, tx, k.owner, sch.ID, "tester")
		return err
	})
	return slot
}

// C-54, X-64, lesson 59: an edit supersedes the slot that waits; the next one is
// that of the new schedule, and runs what it says.
func TestAnEditSupersedesTheSlotThatWaits(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(ask("s", ""))
		cron := client.Cron("*/2 * * * *")
		now := k.update(sch, client.SchedulePatch{Cron: &cron, Input: json.RawMessage(`{"n":2}`)})
		if now.Revision != sch.Revision+1 || !now.NextRunAt.Equal(at(2)) {
			t.Errorf("it is %+v", now)
		}
		k.pass(3 * time.Minute)
		k.wantStory(sch, "00:01 skipped superseded", "00:02 success", "00:04 pending")
		if r := k.graph.seen(pawl.SlotKey(sch.ID, at(2))); r == nil || r.input != `{"n":2}` {
			t.Errorf("it ran as %+v", r)
		}
	})
}

// X-64, C-56: an edit that leaves the instants alone loses none of them, and
// runs none twice.
func TestAnEditOfTheInputKeepsTheSlot(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(ask("s", ""))
		for i := range 3 {
			k.update(sch, client.SchedulePatch{Input: json.RawMessage(`{"n":` + string(rune('2'+i)) + `}`)})
		}
		k.pass(2*time.Minute + time.Second)
		k.wantStory(sch, "00:01 success", "00:02 success", "00:03 pending")
		if r := k.graph.seen(pawl.SlotKey(sch.ID, at(1))); r == nil || r.input != `{"n":4}` || len(r.begun) != 1 {
			t.Errorf("it ran as %+v", r)
		}
		name, before := "other", k.schedule(sch.ID)
		now := k.update(sch, client.SchedulePatch{Name: &name})
		if now.Revision != before.Revision || now.Name != name || !now.NextRunAt.Equal(before.NextRunAt) {
			t.Errorf("a new name changed more than that: %+v", now)
		}
	})
}

// a slot that has begun goes on with what it began with, and under
// the grant it began under, through edits, crashes and attempts.
func TestARunGoesOnAsItBegan(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.answer = func(_ string, attempt int) contract.RunAnswerV1 {
			return contract.RunAnswerV1{OK: attempt == 2, ErrorCode: contract.Internal, Retry: true, RetryAfterMS: 10_000}
		}
		k.graph.takes = 10 * time.Second
		sch := k.create(ask("s", ""))
		k.pass(65 * time.Second)
		graph := "x:novel"
		now := k.update(sch, client.SchedulePatch{GraphID: &graph, Input: json.RawMessage(`{"n":2}`)})
		k.restart(time.Second)
		k.pass(50 * time.Second)
		k.wantStory(sch, "00:01 success", "00:02 pending")
		r := k.graph.seen(pawl.SlotKey(sch.ID, at(1)))
		if r.graphID != "x:poet" || r.input != `{"n":1}` || r.grantID != sch.GrantID || len(r.begun) != 2 || now.GrantID == sch.GrantID {
			t.Errorf("it ran %s with %s under %s, %d times", r.graphID, r.input, r.grantID, len(r.begun))
		}
		k.pass(30 * time.Second)
		if r := k.graph.seen(pawl.SlotKey(sch.ID, at(2))); r == nil || r.graphID != graph || r.grantID != now.GrantID {
			t.Errorf("the next one ran %+v", r)
		}
	})
}

// C-33, C-49, X-50, C-15, C-56: switched off nothing runs and no instant is
// next; switched on the next one of the future is, without what lies between.
func TestDisableAndEnable(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		off, on := false, true
		sch := k.create(ask("s", ""))
		k.pass(70 * time.Second)
		if now := k.update(sch, client.SchedulePatch{Enabled: &off}); !now.NextRunAt.IsZero() {
			t.Errorf("switched off it runs next at %s", now.NextRunAt)
		}
		if now := k.update(sch, client.SchedulePatch{Enabled: &on}); !now.NextRunAt.Equal(at(2)) {
			t.Errorf("switched on it runs next at %s", now.NextRunAt)
		}
		k.pass(time.Minute)
		k.wantStory(sch, "00:01 success", "00:02 success", "00:03 pending")
		k.update(sch, client.SchedulePatch{Enabled: &off})
		k.pass(3 * time.Minute) // 00:05:10
		if n, err := k.s.Reconcile(t.Context()); n != 0 || err != nil {
			t.Errorf("the reconciler repaired %d (%v)", n, err)
		}
		k.update(sch, client.SchedulePatch{Enabled: &on})
		k.pass(time.Minute)
		k.wantStory(sch, "00:01 success", "00:02 success", "00:03 skipped skipped_disabled", "00:04 skipped skipped_disabled", "00:05 skipped skipped_disabled", "00:06 success", "00:07 pending")
		k.change(`update schedules set enabled = 0`) // whoever did that: the slot finds out
		k.change(`update lanes set state = 'Stopped'`)
		k.pass(2 * time.Minute)
		if got := k.story(sch); got[len(got)-1] != "00:07 skipped skipped_disabled" {
			t.Errorf("%v", got)
		}
	})
}

// X-60, 3.18, lesson 60: a schedule that is deleted runs nothing more, its own
// grant is revoked, and its slots stay; a run under way gets its outcome.
func TestDeleteKeepsTheSlots(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.takes = 30 * time.Second
		sch := k.create(ask("s", pawl.PolicyAllow))
		k.pass(70 * time.Second)
		var revoked bool
		k.write(func(ctx context.Context, tx *store.Tx) (err error) {
			revoked, err = k.s.Delete(ctx, tx, k.owner, sch.ID, "t")
			return err
		})
		k.restart(time.Second)
		k.pass(3 * time.Minute)
		k.wantStory(sch, "00:01 success", "00:02 skipped skipped_disabled")
		k.read(func(ctx context.Context, tx *store.Tx) error {
			g, err := grant.Service{}.Get(ctx, tx, k.owner, sch.GrantID)
			if err != nil || g.RevokedAt.IsZero() || !revoked {
				t.Errorf("the grant is %+v (%v)", g, err)
			}
			return nil
		})
		if e := k.try(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.Owned(ctx, tx, k.owner, sch.ID)
			return err
		}); e.Code != pawl.CodeNotFound {
			t.Errorf("it can still be read: %v", e)
		}
		again := k.create(ask("s", "")) // the name is free
		if again.ID == sch.ID {
			t.Error("it is the same schedule")
		}
	})
}

// what waits for a person or for another attempt ends with its schedule.
func TestDeleteEndsWhatWaits(t *testing.T) {
	onSQLite(t, func(t *testing.T, k *kit) {
		for _, answer := range []contract.RunAnswerV1{
			{Interrupt: json.RawMessage(`"may I?"`)},
			{ErrorCode: contract.RateLimit, Retry: true, RetryAfterMS: 600_000},
		} {
			k.graph.answer = func(string, int) contract.RunAnswerV1 { return answer }
			sch := k.create(ask("s", ""))
			k.pass(70 * time.Second)
			k.write(func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.Delete(ctx, tx, k.owner, sch.ID, "t")
				return err
			})
			k.pass(time.Minute)
			if slots := k.slots(sch); len(slots) != 1 || slots[0].Status != "error" || slots[0].ErrorCode != "aborted" {
				t.Errorf("%+v: %v", answer, k.story(sch))
			}
		}
	})
}

// A grant that a person made is not revoked with the schedule.
func TestDeleteLeavesTheGrantOfAPerson(t *testing.T) {
	onSQLite(t, func(t *testing.T, k *kit) {
		in := ask("s", "")
		k.write(func(ctx context.Context, tx *store.Tx) error {
			g, err := grant.Service{}.Create(ctx, tx, k.owner, grant.Spec{Scopes: []string{grant.ScopeFor("x:poet")}})
			in.ExecutionGrantID = g.ID
			return err
		})
		sch := k.create(in)
		k.write(func(ctx context.Context, tx *store.Tx) error {
			revoked, err := k.s.Delete(ctx, tx, k.owner, sch.ID, "t")
			if g, _ := (grant.Service{}).Get(ctx, tx, k.owner, in.ExecutionGrantID); revoked || !g.RevokedAt.IsZero() {
				t.Errorf("it was revoked: %+v", g)
			}
			return err
		})
	})
}

// Run now makes a slot of this instant that leaves the chain alone. It is
// refused while the schedule is off, and while a slot runs unless the policy
// lets them run beside each other.
func TestRunNow(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.takes = 20 * time.Second
		now := func(sch schedulestore.Schedule) string {
			return k.try(func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.RunNow(ctx, tx, k.owner, sch.ID, "t")
				return err
			}).Reason
		}
		sch := k.create(ask("s", ""))
		slot := k.runNow(sch)
		if slot.Trigger != "manual" || !slot.ScheduledFor.Equal(at(0)) {
			t.Errorf("the slot is %+v", slot)
		}
		if got := now(sch); got != ReasonRunActive {
			t.Errorf("while it waits: %s", got)
		}
		k.pass(5 * time.Second)
		if got := now(sch); got != ReasonRunActive {
			t.Errorf("while it runs: %s", got)
		}
		k.pass(65 * time.Second)
		k.wantStory(sch, "00:00 success", "00:01 running")
		off := false
		k.update(sch, client.SchedulePatch{Enabled: &off})
		if got := now(sch); got != ReasonPaused {
			t.Errorf("while it is off: %s", got)
		}
		beside := k.create(ask("b", pawl.PolicyAllow))
		first, second := k.runNow(beside), k.runNow(beside)
		if first.ScheduledFor.Equal(second.ScheduledFor) {
			t.Error("two runs have one slot")
		}
		k.pass(25 * time.Second)
		if got := k.graph.executed(beside.ID); !slices.Equal(got, []string{"00:01", "00:01"}) {
			t.Errorf("executed %v", got)
		}
	})
}

// What a person asked for runs, whatever the schedule becomes before it begins.
func TestAnEditLeavesWhatAPersonAskedFor(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(ask("s", ""))
		k.pass(30 * time.Second)
		k.runNow(sch)
		hourly := client.Cron("0 * * * *")
		k.update(sch, client.SchedulePatch{Cron: &hourly})
		k.pass(time.Second)
		k.wantStory(sch, "00:00 success", "00:01 skipped superseded", "01:00 pending")
	})
}
