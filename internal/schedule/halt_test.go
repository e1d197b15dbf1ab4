package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// halted is what the process of the kit knows of the switch.
func (k *kit) halted() store.HaltMark {
	if m := k.halt.Load(); m != nil {
		return *m
	}
	return store.HaltMark{}
}

// hold keeps a job from running until the halt is lifted, as the queue does.
func (k *kit) hold(j store.Job) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held == nil {
		k.held = map[int64]int64{}
	}
	k.held[j.ID] = j.RunAt.UnixMilli()
	return j.RunAt.Add(100 * 365 * 24 * time.Hour)
}

// letGo lets the jobs that were held run.
func (k *kit) letGo() {
	k.t.Helper()
	k.mu.Lock()
	held := k.held
	k.held = nil
	k.mu.Unlock()
	for id, at := range held {
		k.change(`update jobs set run_at = $2 where id = $1`, id, at)
	}
}

// haltAll and liftAll move the switch. heard says whether the process knows it.
func (k *kit) haltAll(heard bool) (h store.Halt) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) (err error) {
		h, _, err = tx.BeginHalt(ctx, "ada", "the shop is closed")
		return err
	})
	if heard {
		k.halt.Store(&h.HaltMark)
	}
	return h
}

func (k *kit) liftAll() {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) error {
		h, _, err := tx.LiftHalt(ctx, "ada")
		k.halt.Store(&h.HaltMark)
		return err
	})
	k.letGo()
}

func missedBy(name, policy string, concurrency pawl.ConcurrencyPolicy) client.ScheduleRequest {
	in := ask(name, concurrency)
	if policy != "" {
		in.Missed = &client.Missed{Policy: policy}
	}
	return in
}

// While everything is halted due slots wait, and afterwards they were missed,
// whatever the concurrency policy is and however short the halt was.
func TestWhatComesDueInAHaltWaitsAndWasMissed(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		var all []schedulestore.Schedule
		for _, policy := range policies() {
			all = append(all, k.create(ask(string(policy), policy)))
		}
		k.pass(90 * time.Second)
		k.haltAll(true)
		k.pass(3 * time.Minute) // 00:04:30
		for _, sch := range all {
			k.wantStory(sch, "00:01 success", "00:02 pending")
		}
		k.liftAll()
		k.pass(time.Second)
		for _, sch := range all {
			k.wantStory(sch, "00:01 success", "00:02 skipped halted", "00:03 skipped halted", "00:04 skipped halted", "00:05 pending")
			for _, slot := range k.slots(sch)[1:4] {
				if want := "Everything was halted from 2000-01-01T00:01:30.000Z to 2000-01-01T00:04:30.000Z by ada: the shop is closed."; slot.ErrorMessage != want {
					t.Errorf("%s\nwant %s", slot.ErrorMessage, want)
				}
			}
		}
		for _, at := range []time.Time{at(3), at(3).Add(time.Second)} { // of a slot, and beside it
			if got := k.whyOf(all[0], at).Around.Text; strings.Count(got, "Everything was halted") != 1 || !strings.HasPrefix(got, "The slot of 2000-01-01T00:03:00.000Z was skipped (halted)") {
				t.Errorf("at %s: %s", at, got)
			}
		}
		k.pass(time.Minute)
		for _, sch := range all {
			if got := k.graph.executed(sch.ID); !slices.Equal(got, []string{"00:01", "00:05"}) {
				t.Errorf("executed %v", got)
			}
			k.wholeStory(sch)
		}
		k.pass(20 * time.Second)
		k.haltAll(true) // 00:05:51
		k.pass(10 * time.Second)
		k.liftAll()
		k.pass(time.Minute)
		for _, sch := range all {
			if got := k.story(sch)[5]; got != "00:06 skipped halted" {
				t.Errorf("after a short halt: %s", got)
			}
		}
	})
}

// The missed policy of the definition says what becomes of what came due in a halt.
func TestTheMissedPolicyDecidesAboutAHalt(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		want := map[string][]string{
			"skip": {"00:01", "00:06"},
			"last": {"00:01", "00:05", "00:06"},
			"all":  {"00:01", "00:02", "00:03", "00:04", "00:05", "00:06"},
		}
		all := map[string]schedulestore.Schedule{}
		for policy := range want {
			all[policy] = k.create(missedBy(policy, policy, pawl.PolicyQueue))
		}
		k.pass(90 * time.Second)
		k.haltAll(true)
		k.pass(4 * time.Minute) // 00:05:30
		k.liftAll()
		k.pass(time.Minute)
		for policy, sch := range all {
			if got := k.graph.executed(sch.ID); !slices.Equal(got, want[policy]) {
				t.Errorf("%s executed %v, want %v: %v", policy, got, want[policy], k.story(sch))
			}
			k.wholeStory(sch)
		}
	})
}

// A slot that was to be made up for and waits for others is not judged again by
// later halts of which it is none.
func TestTwoHaltsInARow(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(missedBy("s", "all", pawl.PolicyQueue))
		k.pass(90 * time.Second)
		k.haltAll(true)
		k.pass(time.Minute) // 00:02:30
		k.liftAll()
		k.haltAll(true) // nobody looked meanwhile
		k.pass(time.Minute)
		k.liftAll() // 00:03:30
		k.pass(time.Minute)
		if got := k.graph.executed(sch.ID); !slices.Equal(got, []string{"00:01", "00:02", "00:03", "00:04"}) {
			t.Errorf("executed %v: %v", got, k.story(sch))
		}
		skip := k.create(missedBy("skip", "", pawl.PolicyQueue))
		k.pass(10 * time.Second)
		k.haltAll(true) // 00:04:40
		k.pass(30 * time.Second)
		k.liftAll() // 00:05:10
		k.haltAll(true)
		k.pass(time.Minute) // 00:06:10
		k.liftAll()
		k.pass(time.Second)
		for i, want := range []string{"00:05 skipped halted", "00:06 skipped halted"} {
			if got := k.slots(skip)[i]; k.story(skip)[i] != want || !strings.Contains(got.ErrorMessage, "from 2000-01-01T00:0"+fmt.Sprint(4+i)) {
				t.Errorf("%s: %s", k.story(skip)[i], got.ErrorMessage)
			}
		}
	})
}

// Of very many instants one row tells, and it covers nothing beside the halt. What
// nobody was there for is told apart.
func TestALongHaltIsARange(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.record = 3
		k.restart(0)
		sch := k.create(ask("s", ""))
		k.pass(30 * time.Second)
		k.haltAll(true)
		k.pass(30 * time.Minute)
		k.liftAll()
		k.kill()
		k.nobody(10 * time.Minute) // nobody was there to see that it is lifted
		k.start()
		all := map[string]int64{}
		for i, slot := range k.slots(sch) {
			all[slot.Disposition] += max(1, slot.Count)
			if i > 0 && slot.ScheduledFor.Sub(k.slots(sch)[i-1].Last()) != time.Minute {
				t.Errorf("after %s comes %s", k.slots(sch)[i-1].Last(), slot.ScheduledFor)
			}
		}
		if all["halted"] != 30 || all["skipped_missed"] != 9 || all[""] != 1 {
			t.Errorf("%v: %v", all, k.story(sch))
		}
		if rows := k.slots(sch); len(rows) > 12 {
			t.Errorf("%d rows", len(rows))
		}
	})
}

// What has begun goes on to its end, after a crash as well; another attempt of what
// failed waits, and so does the answer of a person.
func TestWhatHasBegunGoesOnInAHalt(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.takes = 3 * time.Minute
		sch := k.create(ask("s", ""))
		k.pass(70 * time.Second)
		k.haltAll(true)
		k.pass(time.Minute)
		k.restart(10 * time.Second) // which is no gap
		k.pass(3 * time.Minute)
		if got := k.story(sch)[0]; got != "00:01 success" {
			t.Errorf("%v", k.story(sch))
		}
		if got := k.graph.executed(sch.ID); len(got) != 1 {
			t.Errorf("executed %v", got)
		}
	})
}

// A crash on either side of the switch: a process that did not hear of the halt
// before it died finds it, and one that was to lift it does so once.
func TestACrashBesideTheSwitch(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(ask("s", ""))
		k.pass(90 * time.Second)
		h := k.haltAll(false)
		k.halt.Store(&h.HaltMark) // as a new process reads it before it starts anything
		k.restart(5 * time.Second)
		k.pass(2 * time.Minute)
		if got := k.graph.executed(sch.ID); !slices.Equal(got, []string{"00:01"}) {
			t.Errorf("executed %v", got)
		}
		err := k.db.Write(context.Background(), func(ctx context.Context, tx *store.Tx) error {
			if _, _, err := tx.LiftHalt(ctx, "ada"); err != nil {
				return err
			}
			return errCrash // before the commit
		})
		if !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		k.restart(5 * time.Second)
		k.pass(time.Minute)
		if got := k.graph.executed(sch.ID); !slices.Equal(got, []string{"00:01"}) {
			t.Errorf("a halt that was not lifted is: executed %v", got)
		}
		k.liftAll()
		k.restart(5 * time.Second) // after the commit
		k.pass(time.Minute)
		if got := k.graph.executed(sch.ID); len(got) != 2 {
			t.Errorf("executed %v: %v", got, k.story(sch))
		}
		k.wholeStory(sch)
	})
}

// What a person wants to start is refused, with what to do about it.
func TestNothingIsStartedByHandInAHalt(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(ask("s", ""))
		b, _ := k.planFor(sch, at(-100), at(-90), 10)
		k.pass(90 * time.Second)
		k.haltAll(false) // what this process has heard does not matter
		for what, start := range map[string]store.Func{
			"run": func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.RunNow(ctx, tx, k.owner, sch.ID, "t")
				return err
			},
			"retry": func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.RetrySlot(ctx, tx, k.owner, sch.ID, at(1), "t")
				return err
			},
			"plan": func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.PlanBackfill(ctx, tx, k.owner, sch.ID, BackfillAsk{From: at(-100), To: at(-90)}, "t")
				return err
			},
			"confirm": func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.Confirm(ctx, tx, k.owner, b.ID, b.Hash, "t")
				return err
			},
		} {
			e := k.try(start)
			if e.Reason != lane.ReasonHalted || e.Code != pawl.CodeConflict || !strings.Contains(e.Hint, "pawl unhalt") || !strings.Contains(e.Msg, "the shop is closed") {
				t.Errorf("%s: %+v", what, e)
			}
		}
	})
}

// What a person asked for before a halt waits for its end, and then runs: it was not
// missed, whatever the definition says of missed slots.
func TestWhatAPersonAskedForBeforeAHaltRunsAfterIt(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		in := missedBy("s", "skip", "")
		in.Cron = "0 0 1 1 *"
		sch := k.create(in)
		k.pass(30 * time.Second)
		slot := k.runNow(sch)
		k.haltAll(true)
		k.pass(5 * time.Minute)
		waits := slot.ScheduledFor.Format("15:04") + " pending"
		if story := k.story(sch); story[0] != waits {
			t.Errorf("in the halt: %v", story)
		}
		k.liftAll()
		k.pass(time.Minute)
		if story := k.story(sch); story[0] != slot.ScheduledFor.Format("15:04")+" success" {
			t.Errorf("afterwards: %v", story)
		}
	})
}

// Which halt was in force at an instant, and where ranges of instants end, so that each
// is of one halt or of none.
func TestStretchesOfHalts(t *testing.T) {
	first := store.Halt{HaltMark: store.HaltMark{ID: 1, Lifted: at(20)}, Since: at(10)}
	second := store.Halt{HaltMark: store.HaltMark{ID: 2}, Since: at(30)}
	list := stretches{first, second}
	for minute, want := range map[int]int64{9: 0, 10: 1, 19: 1, 20: 0, 29: 0, 30: 2, 500: 2} {
		if got := list.at(at(minute)).ID; got != want {
			t.Errorf("at minute %d it is halt %d, want %d", minute, got, want)
		}
	}
	before := func(minute int) time.Time { return at(minute).Add(-time.Millisecond) }
	for name, c := range map[string]struct {
		after, now int
		want       []time.Time
	}{
		"all of them":         {0, 40, []time.Time{before(10), before(20), before(30), at(40)}},
		"from within the one": {15, 40, []time.Time{before(20), before(30), at(40)}},
		"before the second":   {0, 25, []time.Time{before(10), before(20), at(25)}},
		"none":                {21, 25, []time.Time{at(25)}},
	} {
		if got := list.ends(at(c.after), at(c.now)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Another attempt of what failed begins after the halt; one that was given back goes
// on at its executor, and is no start.
func TestAnotherAttemptWaitsForTheEndOfAHalt(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.answer = func(_ string, attempt int) contract.RunAnswerV1 {
			return contract.RunAnswerV1{OK: attempt > 1, Retry: attempt == 1, ErrorCode: contract.Internal, ErrorMessage: "no"}
		}
		sch := k.create(ask("s", ""))
		k.pass(60*time.Second + 100*time.Millisecond)
		k.haltAll(true)
		k.pass(30 * time.Second)
		if got := k.graph.executed(sch.ID); !slices.Equal(got, []string{"00:01"}) || k.story(sch)[0] != "00:01 running" {
			t.Errorf("in the halt: executed %v: %v", got, k.story(sch))
		}
		k.liftAll()
		k.pass(10 * time.Second)
		if got := k.graph.executed(sch.ID); !slices.Equal(got, []string{"00:01 x2"}) || k.story(sch)[0] != "00:01 success" {
			t.Errorf("after it: executed %v: %v", got, k.story(sch))
		}
		k.graph.set(func() { k.graph.answer, k.graph.takes = nil, time.Minute })
		k.pass(30 * time.Second) // 00:02:10
		k.stop()
		k.haltAll(true)
		k.start()
		k.pass(2 * time.Minute)
		if got := k.graph.executed(sch.ID); !slices.Equal(got, []string{"00:01 x2", "00:02"}) || k.story(sch)[1] != "00:02 success" {
			t.Errorf("what was given back: executed %v: %v", got, k.story(sch))
		}
	})
}
