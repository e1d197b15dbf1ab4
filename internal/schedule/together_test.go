package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/pgtest/proxy"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// crashOnce lets the process die at a place, once. Whoever was there does nothing
// any more, as long as the test takes.
func (k *kit) crashOnce(place string) (crashed func() bool) {
	died := false
	k.crashAt(func(at string) error {
		k.mu.Lock()
		first := at == place && !died
		if first {
			died, k.crashed = true, true
		}
		k.mu.Unlock()
		if first {
			if at == "ending" || at == "ended" { // in a goroutine that outlives its caller
				<-k.dead
			}
			return errCrash
		}
		return nil
	})
	return func() bool { k.mu.Lock(); defer k.mu.Unlock(); return died }
}

// C-15, C-31, X-53, X-65: with the execution service in the process, a crash on
// either side of the common start and the common end, and between a start and the
// leaving of its run, loses nothing and repeats nothing.
func TestACrashOnEitherSideOfASetLosesNothing(t *testing.T) {
	withPoet(t, func(t *testing.T, k *kit) {
		for _, place := range []string{"starting", "claimed", "ending", "ended", "answered"} {
			k.pass(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
			var list []schedulestore.Schedule
			for i := range 5 {
				list = append(list, k.create(ask(fmt.Sprint(place, i), "")))
			}
			begun, asked := k.poet.wrote()
			crashed := k.crashOnce(place)
			k.pass(150 * time.Second)
			if !crashed() {
				t.Errorf("%s: it did not crash", place)
			}
			for _, sch := range list {
				slots := k.slots(sch)
				if len(slots) != 3 {
					t.Fatalf("%s: %v", place, k.story(sch))
				}
				for _, slot := range slots[:2] {
					if slot.Status != "success" || slot.Attempts != 1 || slot.TraceID != "t" {
						t.Errorf("%s: %+v", place, slot)
					}
				}
				k.write(func(ctx context.Context, tx *store.Tx) error {
					_, err := k.s.Delete(ctx, tx, k.owner, sch.ID, "t")
					return err
				})
			}
			keys, again := k.poet.wrote()
			if keys-begun != 10 {
				t.Errorf("%s: %d poems, want 10", place, keys-begun)
			}
			// Only a run that had left when the process died is asked for again.
			if more := again - asked - 10; more > 0 && place != "ending" && place != "claimed" {
				t.Errorf("%s: %d runs were started again", place, more)
			}
			if left := k.column(`select status from runs where status = 'active' union all select owner from execution_requests where ok is null`); len(left) > 0 {
				t.Errorf("%s: %v are left", place, left)
			}
		}
	})
}

// Slots of one instant are some statements for all of them, and end up as each
// would by itself.
func TestSlotsOfOneInstantGoTogether(t *testing.T) {
	withPoet(t, func(t *testing.T, k *kit) {
		const n = 60
		var list []schedulestore.Schedule
		for i := range n {
			list = append(list, k.create(ask(fmt.Sprintf("s%03d", i), "")))
		}
		k.nobody(time.Until(list[0].NextRunAt))
		before := k.statements.Load()
		k.pass(0)
		if used := k.statements.Load() - before; used > 10*n {
			t.Errorf("%d statements for %d slots", used, n)
		}
		for _, sch := range list {
			k.wantStory(sch, "00:01 success", "00:02 pending")
			now, slot := k.schedule(sch.ID), k.slots(sch)[0]
			if !now.LastRunAt.Equal(sch.NextRunAt) || !now.NextRunAt.Equal(sch.NextRunAt.Add(time.Minute)) {
				t.Errorf("last %s, next %s", now.LastRunAt, now.NextRunAt)
			}
			if slot.Attempts != 1 || slot.TraceID != "t" || slot.GrantID != sch.GrantID || slot.StartedAt.IsZero() || slot.CompletedAt.IsZero() || slot.RunID == "" {
				t.Errorf("%+v", slot)
			}
		}
		if got := k.column(`select distinct status || phase || coalesce(output_state, '') from runs`); !slices.Equal(got, []string{`committedcommitted{"poem":"leaf"}`}) {
			t.Errorf("the runs are %v", got)
		}
		if got := k.column(`select distinct ok || coalesce(owner, '-') || trace_id || output || cost from execution_requests`); !slices.Equal(got, []string{`1-t{"poem":"leaf"}0`}) {
			t.Errorf("the executions are %v", got)
		}
		if got := k.column(`select count(*) || '' from jobs where key is not null and lane is not null`); got[0] != fmt.Sprint(n) {
			t.Errorf("%s jobs wait", got[0])
		}
	})
}

// A slot that is not like the others is left out, or all go by themselves; each
// gets what it would have got alone.
func TestSlotsThatAreNotLikeTheOthersGoTheirOwnWay(t *testing.T) {
	for _, refused := range []bool{false, true} {
		t.Run(fmt.Sprintf("refused=%v", refused), func(t *testing.T) { checkOwnWays(t, refused) })
	}
}

func checkOwnWays(t *testing.T, refused bool) {
	t.Helper()
	withPoet(t, func(t *testing.T, k *kit) {
		want := map[string]string{
			"plain": "00:01 success", "forbid": "00:01 success", "allow": "00:01 success", "replace": "00:01 success", "off": "00:01 skipped skipped_disabled",
			"revoked": "00:01 skipped skipped_grant grant_revoked", "capped": "00:01 success", "known": "00:01 error invalid_request", "gone": "00:01 skipped skipped_disabled",
		}
		made := map[string]schedulestore.Schedule{}
		for name := range want {
			if name == "known" && !refused {
				continue
			}
			in := ask(name, map[string]pawl.ConcurrencyPolicy{"forbid": pawl.PolicyForbid, "allow": pawl.PolicyAllow, "replace": pawl.PolicyReplace}[name])
			made[name] = k.create(in)
		}
		at := made["plain"].NextRunAt
		k.change(`update execution_grants set revoked_at = 1 where id = $1`, made["revoked"].GrantID)
		k.change(`update execution_grants set runs_per_day = 1 where id = $1`, made["capped"].GrantID)
		k.change(`update schedules set enabled = 0 where id = $1`, made["off"].ID)
		k.change(`update lanes set state = 'Stopped' where id = $1`, made["off"].ID)
		k.change(`update schedules set deleted_at = 1 where id = $1`, made["gone"].ID)
		if refused { // its key was used for something else, so that the start of all is refused
			k.change(`insert into execution_requests (idempotency_key, request_hash, run_id, graph_id, grant_id, created_at, updated_at, ok) values ($1, 'other', 'r', 'x:poet', 'g', 0, 0, 1)`,
				pawl.SlotKey(made["known"].ID, at))
		}
		k.pass(time.Until(at) + time.Second)
		for name, sch := range made {
			if got := k.story(sch); got[0] != want[name] {
				t.Errorf("%s: %v, want %s", name, got, want[name])
			}
		}
		if reserved := k.column(`select count(*) || '' from execution_requests where grant_id = $1`, made["capped"].GrantID); reserved[0] != "1" {
			t.Errorf("the one with a cap ran %s times", reserved[0])
		}
		k.pass(time.Minute)
		if got := k.story(made["capped"]); got[1] != "00:02 skipped skipped_budget insufficient_credits" {
			t.Errorf("over its cap: %v", got)
		}
		if got := k.story(made["plain"]); got[1] != "00:02 success" {
			t.Errorf("beside it: %v", got)
		}
	})
}

// A slot begins and ends together with others only if everything is as it mostly
// is; each of these sends it its own way.
func TestOnlySlotsLikeMostGoTogether(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 1, 0, 0, time.UTC)
	next := now.Add(time.Minute)
	pending := schedulestore.Held{
		Schedule: schedulestore.Schedule{Enabled: true, Calm: true, Revision: 3, Policy: string(pawl.PolicyForbid), NextRunAt: next},
		Slot:     schedulestore.Slot{Status: "pending", Trigger: triggerSchedule, Revision: 3, ScheduledFor: now},
		LastEnd:  now,
	}
	running := pending
	running.Slot.Status, running.Slot.RunID = "running", "r"
	if !canBegin(pending, pending.Slot.ScheduledFor, now) || !goesOn(running, "r", next, now) {
		t.Fatal("a slot like most goes its own way")
	}
	for name, change := range map[string]func(h *schedulestore.Held){
		"status":   func(h *schedulestore.Held) { h.Slot.Status = "success" },
		"disabled": func(h *schedulestore.Held) { h.Schedule.Enabled = false },
		"revision": func(h *schedulestore.Held) { h.Schedule.Revision++ },
		"allow":    func(h *schedulestore.Held) { h.Schedule.Policy = string(pawl.PolicyAllow) },
		"replace":  func(h *schedulestore.Held) { h.Schedule.Policy = string(pawl.PolicyReplace) },
		"failures": func(h *schedulestore.Held) { h.Failures = true },
		"others":   func(h *schedulestore.Held) { h.Running, h.Open = true, true },
	} {
		begins, goes := pending, running
		change(&begins)
		change(&goes)
		if canBegin(begins, begins.Slot.ScheduledFor, now) || goesOn(goes, "r", next, now) {
			t.Errorf("%s: it goes with the others", name)
		}
	}
	for name, change := range map[string]func(h *schedulestore.Held){
		"manual":  func(h *schedulestore.Held) { h.Slot.Trigger = triggerManual },
		"granted": func(h *schedulestore.Held) { h.Slot.GrantID = "g" },
		"early":   func(h *schedulestore.Held) { h.Slot.ScheduledFor = now.Add(time.Millisecond) },
		"late":    func(h *schedulestore.Held) { h.Slot.ScheduledFor = now.Add(-grace - time.Millisecond) },
		"forbid":  func(h *schedulestore.Held) { h.LastEnd = now.Add(time.Millisecond) },
	} {
		h := pending
		change(&h)
		if canBegin(h, h.Slot.ScheduledFor, now) {
			t.Errorf("%s: it begins with the others", name)
		}
	}
	for name, change := range map[string]func(h *schedulestore.Held){
		"another run": func(h *schedulestore.Held) { h.Slot.RunID = "s" },
		"not well":    func(h *schedulestore.Held) { h.Schedule.Calm = false },
		"waiting":     func(h *schedulestore.Held) { h.Open = true },
		"another day": func(h *schedulestore.Held) { h.Schedule.NextRunAt = next.Add(time.Minute) },
	} {
		h := running
		change(&h)
		if goesOn(h, "r", next, now) {
			t.Errorf("%s: it ends with the others", name)
		}
	}
	if goesOn(running, "r", next, next) {
		t.Error("what came due meanwhile is not looked at")
	}
}

// holdEnds keeps slots from ending until release is called: those that come are one
// set then.
func (k *kit) holdEnds() (release func()) {
	held := make(chan struct{})
	for range 2 { // as many sets as can be under way
		go k.s.ends.Do(&ending{}, func([]*ending) { <-held })
	}
	synctest.Wait()
	return func() { close(held) }
}

// What somebody does to one slot while many end refuses the end of all of them;
// each ends by itself then.
func TestARefusedSetSpoilsNobody(t *testing.T) {
	withPoet(t, func(t *testing.T, k *kit) {
		var list []schedulestore.Schedule
		for i := range 8 {
			list = append(list, k.create(ask(fmt.Sprint("s", i), "")))
		}
		release, arrived := k.holdEnds(), 0
		k.crashAt(func(at string) error {
			k.mu.Lock()
			defer k.mu.Unlock()
			if at == "ending" {
				arrived++
			}
			return nil
		})
		k.pass(time.Until(list[0].NextRunAt) + time.Second)
		k.mu.Lock()
		if arrived != len(list) {
			t.Errorf("%d slots are ending", arrived)
		}
		k.mu.Unlock()
		k.write(func(ctx context.Context, tx *store.Tx) error { // its run is another one's now
			n, err := tx.Exec(ctx, `update execution_requests set owner = 'other' where run_id = (select run_id from schedule_runs where schedule_id = $1 and status = 'running')`, list[0].ID)
			if n != 1 {
				t.Errorf("%d runs are another one's now", n)
			}
			return err
		})
		release()
		k.pass(20 * time.Second)
		for _, sch := range list[1:] {
			k.wantStory(sch, "00:01 success", "00:02 pending")
		}
		k.wantStory(list[0], "00:01 running")
		k.pass(30 * time.Second) // its lease ends, and it is asked for again
		k.wantStory(list[0], "00:01 success", "00:02 pending")
		if keys, asked := k.poet.wrote(); keys != 8 || asked != 9 {
			t.Errorf("%d poems, asked %d times", keys, asked)
		}
	})
}

// Usage is charged with the outcome; the slot is closed after it.
func TestASlotThatCostsSomethingIsCharged(t *testing.T) {
	withPoet(t, func(t *testing.T, k *kit) {
		k.poet.usage = &runner.Usage{Unit: "a", Cost: 5}
		sch := k.create(ask("s", ""))
		k.pass(time.Until(sch.NextRunAt) + time.Second)
		k.wantStory(sch, "00:01 success", "00:02 pending")
		if slot := k.slots(sch)[0]; slot.Cost != 5 {
			t.Errorf("%+v", slot)
		}
		if got := k.column(`select count(*) || '' from charge_receipts`); got[0] != "1" {
			t.Errorf("%s receipts", got[0])
		}
	})
}

// What changed about a schedule while its slot ran decides what follows.
func TestASetEndsAsTheScheduleIsThen(t *testing.T) {
	withPoet(t, func(t *testing.T, k *kit) {
		k.poet.takes = 10 * time.Second
		off, cron := false, client.Cron("*/2 * * * *")
		changes := map[string]func(sch schedulestore.Schedule){
			"off":  func(sch schedulestore.Schedule) { k.update(sch, client.SchedulePatch{Enabled: &off}) },
			"cron": func(sch schedulestore.Schedule) { k.update(sch, client.SchedulePatch{Cron: &cron}) },
			"manual": func(sch schedulestore.Schedule) { // waits for the end of this one
				k.write(func(ctx context.Context, tx *store.Tx) error {
					_, err := schedulestore.In(tx).InsertSlots(ctx, schedulestore.NewSlot{ScheduleID: sch.ID, ScheduledFor: tx.Now, Revision: sch.Revision, Trigger: triggerManual})
					return err
				})
			},
			"ill": func(sch schedulestore.Schedule) {
				k.change(`update lanes set state = 'Needs attention', cause = 'failed:x', issue = 'failed', text = 'x' where id = $1`, sch.ID)
			},
			"cancel": func(sch schedulestore.Schedule) {
				r := k.runOf(sch)
				k.write(func(ctx context.Context, tx *store.Tx) error { return k.s.cancelRun(ctx, tx, r, "t") })
			},
		}
		made := map[string]schedulestore.Schedule{}
		for name := range changes {
			made[name] = k.create(ask(name, ""))
		}
		k.pass(time.Until(made["off"].NextRunAt) + 5*time.Second)
		for name, change := range changes {
			change(made[name])
		}
		k.pass(50 * time.Second)
		for name, sch := range made {
			story := k.story(sch)
			switch name {
			case "off":
				k.wantStory(sch, "00:01 success")
			case "manual":
				if len(story) != 3 || story[1] != "00:01 success" || story[2] != "00:02 pending" { // its end woke it
					t.Errorf("%s: %v", name, story)
				}
			case "ill":
				k.read(func(ctx context.Context, tx *store.Tx) error {
					l, err := runstore.In(tx).GetLane(ctx, pawl.KindSchedule, sch.ID)
					if l.State != "Idle" || l.Cause != "" {
						t.Errorf("it ended well, and its lane is %+v", l)
					}
					return err
				})
			}
			if status := k.slots(sch)[0].Status; status != "success" && name != "cancel" {
				t.Errorf("%s: %v", name, story)
			}
		}
	})
}

// when the answer to the commit of a start or of an end is lost, the run is
// started once all the same, and the slot gets its outcome.
func TestALostAnswerStartsNothingTwice(t *testing.T) {
	for _, end := range []bool{false, true} {
		p := proxy.New(t, pgtest.URL(t))
		k := newKitWith(t, p.URL(), &poet{keys: map[string]int{}})
		in := ask("s", "")
		in.Cron = "0 0 1 1 *"
		sch := k.create(in)
		at := time.Now().UTC().Truncate(time.Millisecond)
		k.change(`delete from jobs`)
		k.change(`delete from schedule_runs`)
		k.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := schedulestore.In(tx).InsertSlots(ctx, schedulestore.NewSlot{ScheduleID: sch.ID, ScheduledFor: at, Revision: sch.Revision, Trigger: triggerSchedule})
			return err
		})
		if end {
			k.crashAt(func(place string) error {
				if place == "ending" {
					k.crashAt(nil)
					p.LoseAnswers("COMMIT", 1)
				}
				return nil
			})
		} else {
			p.LoseAnswers("COMMIT", 1)
		}
		begun := time.Now()
		again, err := k.s.work(t.Context(), &turn{fence: k.fence}, sch.ID, at)
		if !end && !errors.Is(err, pawl.ErrUnavailable) {
			t.Errorf("it ended with %v", err)
		}
		if _, asked := k.poet.wrote(); !end && asked != 0 {
			t.Errorf("a run left whose claim is in doubt")
		}
		for tries := 0; k.slots(sch)[0].Status != "success" && tries < 5; tries++ {
			again, err = k.s.work(t.Context(), &turn{fence: k.fence}, sch.ID, at)
		}
		if err != nil || p.Lost() != 1 {
			t.Errorf("again at %s: %v; %d answers were lost", again, err, p.Lost())
		}
		if keys, asked := k.poet.wrote(); keys != 1 || asked != 1 {
			t.Errorf("it was started %d times", asked)
		}
		if took := time.Since(begun); took > 20*time.Second {
			t.Errorf("it waited %s for a claim of which it knows that nothing left", took)
		}
		if slots := k.slots(sch); len(slots) != 2 || slots[0].Status != "success" || slots[0].Attempts != 1 || slots[1].Status != "pending" {
			t.Errorf("the slots are %v", k.story(sch))
		}
		if jobs := k.column(`select count(*) || '' from jobs`); jobs[0] != "1" {
			t.Errorf("%s jobs wait for the next slot", jobs[0])
		}
	}
}
