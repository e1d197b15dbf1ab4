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
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// C-11, C-59, C-60, C-79, X-30: what came due while nobody was there is recorded
// as missed, never executed, but for what came due a moment ago, and one slot
// follows.
func TestAnOutageIsRecordedAndNotMadeUpFor(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		var all []schedulestore.Schedule
		for _, policy := range policies() {
			all = append(all, k.create(ask(string(policy), policy)))
		}
		k.pass(90 * time.Second)
		k.restart(4 * time.Minute) // 00:05:30
		for _, sch := range all {
			k.wantStory(sch, "00:01 success", "00:02 skipped skipped_missed", "00:03 skipped skipped_missed", "00:04 skipped skipped_missed", "00:05 pending")
			if now := k.schedule(sch.ID); !now.NextRunAt.Equal(at(5)) {
				t.Errorf("the next one is at %s", now.NextRunAt)
			}
		}
		k.pass(time.Minute)
		for _, sch := range all {
			if got := k.graph.executed(sch.ID); !slices.Equal(got, []string{"00:01", "00:05", "00:06"}) {
				t.Errorf("executed %v", got)
			}
			if jobs := k.column(`select key from jobs where key like $1`, sch.ID+"%"); len(jobs) != 1 {
				t.Errorf("jobs %v, want one", jobs)
			}
		}
	})
}

// a rolling restart drops nothing, wherever it falls.
func TestARollingRestartDropsNothing(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(ask("s", ""))
		var want []string
		for i := range 6 {
			k.pass(time.Duration(10+9*i) * time.Second)
			k.restart(35 * time.Second)
		}
		k.pass(time.Minute)
		for m := 1; at(m).Before(time.Now()); m++ {
			want = append(want, at(m).Format("15:04"))
		}
		if got := k.graph.executed(sch.ID); !slices.Equal(got, want) {
			t.Errorf("executed %v, want %v: %v", got, want, k.story(sch))
		}
	})
}

// a process that stood still has missed what came due meanwhile, even if
// the job comes before the clock.
func TestAStandstillIsAGapToo(t *testing.T) {
	onSQLite(t, func(t *testing.T, k *kit) {
		sch := k.create(ask("s", ""))
		k.pass(90 * time.Second)
		k.nobody(4*time.Minute + 5*time.Second)
		k.runDue() // before anybody beats
		k.jobs.Wait()
		k.wantStory(sch, "00:01 success", "00:02 skipped skipped_missed", "00:03 skipped skipped_missed", "00:04 skipped skipped_missed", "00:05 pending")
	})
}

// what a run kept waiting was not missed. After an outage during that run,
// what came due before the outage still runs, what came due in it does not, and
// every instant has its slot.
func TestASlotDelayedByARunIsNotMissed(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		for _, c := range []struct {
			policy pawl.ConcurrencyPolicy
			before []string
		}{
			{pawl.PolicyQueue, []string{"success", "skipped coalesced", "skipped coalesced"}},
			{pawl.PolicyForbid, []string{"skipped skipped_overlap", "skipped skipped_overlap", "skipped skipped_overlap"}},
		} {
			k.pass(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)))
			k.graph.takes = 10*time.Minute + 5*time.Second
			sch := k.create(ask(string(c.policy), c.policy))
			k.pass(4*time.Minute + 30*time.Second)
			k.restart(4 * time.Minute) // x:08:30, the run goes on
			k.graph.takes = time.Second
			k.pass(7 * time.Minute)
			want := []string{"success"}
			want = append(want, c.before...)
			want = append(want, "skipped skipped_missed", "skipped skipped_missed", "skipped skipped_missed")
			var got []string
			for _, words := range k.story(sch)[:7] {
				_, rest, _ := strings.Cut(words, " ")
				got = append(got, rest)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", c.policy, k.story(sch), want)
			}
			k.wholeStory(sch)
			if both := k.graph.overlaps(sch.ID); both != "" {
				t.Errorf("%s: runs overlap: %s", c.policy, both)
			}
			k.write(func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.Delete(ctx, tx, k.owner, sch.ID, "t")
				return err
			})
		}
	})
}

// wholeStory fails unless every instant since the first slot has one row, and
// the ones that are closed one disposition.
func (k *kit) wholeStory(sch schedulestore.Schedule) {
	k.t.Helper()
	slots := k.slots(sch)
	for i, slot := range slots {
		if i > 0 && slot.ScheduledFor.Sub(slots[i-1].ScheduledFor) != time.Minute {
			k.t.Errorf("after %s comes %s", slots[i-1].ScheduledFor, slot.ScheduledFor)
		}
		if (slot.Disposition == "") != (slot.Status == "pending" || slot.Status == "running") {
			k.t.Errorf("slot %+v", slot)
		}
	}
}

// C-12..C-15, C-59, C-76, X-54, X-59: the reconciler gives a schedule back what
// it lacks, and touches nothing that is healthy.
func TestTheReconcilerHealsAndTouchesNothingElse(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.takes = 3 * time.Minute
		sch := k.create(ask("s", ""))
		reconcile := func() int {
			t.Helper()
			n, err := k.s.Reconcile(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		whole := func() []string {
			return k.column(`select id || status || updated_at from schedule_runs union all select id || coalesce(next_run_at, 0) || revision from schedules union all
				select key || run_at || rev from jobs order by 1`)
		}
		for _, place := range []string{"before the slot", "during the run", "long during the run"} {
			before := whole()
			if n := reconcile(); n != 0 || !slices.Equal(whole(), before) {
				t.Errorf("%s: %d repaired, %v became %v", place, n, before, whole())
			}
			k.pass(80 * time.Second)
		}
		k.pass(2 * time.Minute)
		k.change(`delete from schedule_runs where status = 'pending'`)
		for name, damage := range map[string]string{
			"the slot and next_run_at NULL": `update schedules set next_run_at = null`,
			"the slot and next_run_at past": `update schedules set next_run_at = 5`,
			"the slot, but not its job":     `update schedules set next_run_at = 6`,
		} {
			k.graph.takes = 0
			k.pass(time.Until(time.Now().Truncate(time.Minute).Add(5*time.Minute + 10*time.Second)))
			k.change(`delete from schedule_runs where status = 'pending'`)
			if !strings.Contains(name, "not its job") {
				k.change(`delete from jobs`)
			}
			k.change(damage)
			if n := reconcile(); n != 1 {
				t.Errorf("%s: %d repaired", name, n)
			}
			next := time.Now().Truncate(time.Minute).Add(time.Minute)
			if now := k.schedule(sch.ID); !now.NextRunAt.Equal(next) {
				t.Errorf("%s: the next one is at %s, want %s", name, now.NextRunAt, next)
			}
			if n := reconcile(); n != 0 {
				t.Errorf("%s: %d repaired again", name, n)
			}
			k.pass(65 * time.Second)
			if got := k.graph.executed(sch.ID); got[len(got)-1] != next.Format("15:04") {
				t.Errorf("%s: executed %v, want %s at the end", name, got, next)
			}
		}
		// A slot that lost its job, and a run that did.
		k.graph.takes = 30 * time.Second
		k.pass(time.Until(time.Now().Truncate(time.Minute).Add(70 * time.Second)))
		k.kill()
		k.change(`delete from jobs`)
		k.change(`update schedules set next_run_at = 1`)
		k.start()
		if n := reconcile(); n != 1 {
			t.Errorf("a run without a job: %d repaired", n)
		}
		k.pass(time.Minute)
		for _, slot := range k.slots(sch) {
			if slot.Status == "running" && time.Since(slot.StartedAt) > 45*time.Second {
				t.Errorf("the run was not found again: %v", k.story(sch))
			}
		}
	})
}

// C-12, C-13, C-73: the task of the reconciler comes again in five minutes, for
// ever.
func TestTheReconcilerComesBack(t *testing.T) {
	onSQLite(t, func(t *testing.T, k *kit) {
		now := time.Now()
		err := k.s.reconcileTask().Run(t.Context(), nil)
		if want := queue.Snooze(now.Add(5 * time.Minute)); fmt.Sprintf("%#v", err) != fmt.Sprintf("%#v", want) {
			t.Errorf("it ends with %#v, want %#v", err, want)
		}
		if job := k.s.Standing()[0]; job.Task != ReconcileName || job.Key != ReconcileName || !job.RunAt.IsZero() {
			t.Errorf("the job is %+v", job)
		}
	})
}

// lesson 58: a database that fails during the claim decides nothing.
func TestADatabaseErrorDuringTheClaimDecidesNothing(t *testing.T) {
	onSQLite(t, func(t *testing.T, k *kit) {
		sch := k.create(ask("s", ""))
		k.nobody(time.Until(sch.NextRunAt))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(&pawl.Error{Code: pawl.CodeUnavailable, Msg: "the database is away"})
		if _, err := k.s.work(ctx, &turn{fence: k.fence}, sch.ID, sch.NextRunAt); err == nil {
			t.Error("it went well")
		}
		stale := k.fence
		stale.Epoch--
		if _, err := k.s.work(t.Context(), &turn{fence: stale}, sch.ID, sch.NextRunAt); !errors.Is(err, pawl.ErrLeaseLost) {
			t.Errorf("without the lease: %v", err)
		}
		k.wantStory(sch, "00:01 pending")
		k.pass(time.Second)
		k.wantStory(sch, "00:01 success", "00:02 pending")
	})
}

// C-11, X-30: a server that dies in the seconds after its first schedule was
// made has noted nothing yet; what came due while it was away was missed all
// the same.
func TestMissedSinceTheFirstSeconds(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		in := ask("s", "")
		in.Cron = "* * * * *"
		sch := k.create(in)
		if alive := k.column(`select count(*) || '' from schedule_runs where status = 'pending'`); alive[0] != "1" {
			t.Fatal(alive)
		}
		k.restart(3*24*time.Hour + 10*time.Second)
		k.pass(30 * time.Second)
		if ran := k.graph.executed(sch.ID); len(ran) != 1 { // that of ten seconds ago
			t.Errorf("%v ran late", ran)
		}
		if first := k.slots(sch)[0]; first.Disposition != "skipped_missed" {
			t.Errorf("%+v", first)
		}
		k.pass(time.Minute)
		if ran := k.graph.executed(sch.ID); len(ran) != 2 {
			t.Errorf("afterwards %v ran", ran)
		}
	})
}

// The same for who claims the slot before anybody has noted anything.
func TestAClaimSeesThatNobodyEverWasThere(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(ask("s", ""))
		k.nobody(24 * time.Hour)
		if !k.runDue() { // without a start, and so without its look back
			t.Fatal("nothing is due")
		}
		k.jobs.Wait()
		if ran := k.graph.executed(sch.ID); len(ran) != 0 {
			t.Errorf("%v ran late", ran)
		}
	})
}

// After a missed slot that nothing came due after the next one is planned at once, and
// what runs late plans nothing twice.
func TestAMissedSlotIsFollowedByTheNext(t *testing.T) {
	for policy, want := range map[string][]string{
		"skip": {"00:05 skipped skipped_missed", "00:05 pending"},
		"last": {"00:05 success", "00:05 pending"},
	} {
		t.Run(policy, func(t *testing.T) {
			inTime(t, func(t *testing.T, k *kit) {
				in := missedBy("s", policy, "")
				in.Cron = "5 0 * * *"
				sch := k.create(in)
				k.pass(3 * time.Minute)
				k.restart(10 * time.Minute)
				if got := k.schedule(sch.ID).NextRunAt; policy == "skip" && !got.Equal(at(24*60+5)) {
					t.Errorf("next at %s", got)
				}
				k.pass(time.Minute)
				k.wantStory(sch, want...)
				if got := k.schedule(sch.ID).NextRunAt; !got.Equal(at(24*60 + 5)) {
					t.Errorf("next at %s", got)
				}
			})
		})
	}
}

// While missed slots run one after the other, the next instant of the schedule is the
// one to come.
func TestTheNextInstantIsToComeWhileMissedSlotsRun(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.takes = 10 * time.Second
		in := missedBy("s", "all", "")
		in.Cron = "*/5 * * * *"
		sch := k.create(in)
		k.pass(30 * time.Second)
		k.restart(17 * time.Minute) // 00:17:30
		for range 5 {
			k.pass(5 * time.Second)
			if got := k.schedule(sch.ID).NextRunAt; !got.Equal(at(20)) {
				t.Errorf("the next is %s: %v", got, k.story(sch))
			}
		}
		k.pass(3 * time.Minute)
		k.wantStory(sch, "00:05 success", "00:10 success", "00:15 success", "00:20 success", "00:25 pending")
	})
}
