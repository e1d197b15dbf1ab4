package schedule

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/calendarstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

func (k *kit) pauseFor(sch schedulestore.Schedule, d time.Duration, note string) {
	k.t.Helper()
	terms := lane.PauseTerms{Note: note}
	if d != 0 {
		terms.Until = time.Now().Add(d)
	}
	k.write(func(ctx context.Context, tx *store.Tx) error {
		_, err := k.s.Pause(ctx, tx, k.owner, sch.ID, "ada (token x)", terms)
		return err
	})
}

func (k *kit) pauseOf(sch schedulestore.Schedule) (p runstore.Pause) {
	k.t.Helper()
	k.read(func(ctx context.Context, tx *store.Tx) error {
		l, err := runstore.In(tx).GetLane(ctx, pawl.KindSchedule, sch.ID)
		p = l.Pause
		return err
	})
	return p
}

func (k *kit) wantNext(sch schedulestore.Schedule, want string) {
	k.t.Helper()
	if y := k.whyOf(sch, time.Time{}); y.Next != want {
		k.t.Errorf("next: %s", y.Next)
	}
}

// A schedule that is paused until an instant goes on then by itself, and what came due
// meanwhile becomes what it becomes by an ordinary resume: nothing.
func TestAPauseEndsByItself(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		paused, resumed := k.create(ask("paused", "")), k.create(ask("resumed", ""))
		k.pass(90 * time.Second)
		k.pauseFor(paused, 3*time.Minute, "the printer is being repaired")
		k.pauseFor(resumed, 0, "")
		d, err := k.s.Describe(t.Context(), k.owner, paused.ID)
		words := "It is paused until 2000-01-01T00:04:30.000Z, by ada since 2000-01-01T00:01:30.000Z: the printer is being repaired. It then continues by itself."
		if err != nil || d.State != "Stopped" || d.Issue != "paused" || d.Sentence != words || !d.NextAt.IsZero() {
			t.Errorf("it is %q: %s (%v), next %v", d.State, d.Sentence, err, d.NextAt)
		}
		k.wantNext(paused, "It does nothing until its pause is over, at 2000-01-01T00:04:30.000Z.")
		gate := k.whyOf(paused, time.Time{}).Gates[0]
		if gate.Open || !gate.Until.Equal(k.pauseOf(paused).Until) || !strings.Contains(gate.Text, "until 2000-01-01T00:04:30.000Z, by ada") {
			t.Errorf("the gate: %+v", gate)
		}
		if d, err = k.s.Describe(t.Context(), k.owner, resumed.ID); err != nil || d.Sentence != "It is paused, by ada since 2000-01-01T00:01:30.000Z; resume it to continue." {
			t.Errorf("the other one: %s (%v)", d.Sentence, err)
		}
		k.pass(2 * time.Minute)
		if why := k.whyOf(paused, at(3)).Around.Text; !strings.Contains(why, "It is paused since 2000-01-01T00:01:30.000Z by ada") {
			t.Errorf("while it is paused: %s", why)
		}
		k.pass(time.Minute)
		on := true
		k.update(resumed, client.SchedulePatch{Enabled: &on})
		k.pass(2 * time.Minute)
		for _, sch := range []schedulestore.Schedule{paused, resumed} {
			const off = "skipped skipped_disabled"
			k.wantStory(sch, "00:01 success", "00:02 "+off, "00:03 "+off, "00:04 "+off, "00:05 success", "00:06 success", "00:07 pending")
			why := k.whyOf(sch, at(3)).Around.Text
			if !strings.Contains(why, "The slot of 2000-01-01T00:03:00.000Z was skipped (skipped_disabled): It was paused from 2000-01-01T00:01:30.000Z to 2000-01-01T00:04:30.000Z by ada") {
				t.Errorf("%s at 00:03: %s", sch.Name, why)
			}
			if d, err := k.s.Describe(t.Context(), k.owner, sch.ID); err != nil || d.State != "Idle" || k.pauseOf(sch) != (runstore.Pause{}) {
				t.Errorf("%s is %q afterwards: %s (%v)", sch.Name, d.State, d.Sentence, err)
			}
		}
		if n := k.audited("schedule.resume"); n != 1 {
			t.Errorf("%d lines tell that it went on", n)
		}
	})
}

// Pausing again replaces the end and the note, whichever is sooner; resuming forgets
// both, and a definition that is applied keeps them.
func TestAPauseIsReplaced(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(ask("s", ""))
		k.pauseFor(sch, time.Minute, "one")
		k.pass(30 * time.Second)
		since := k.pauseOf(sch).At
		k.pauseFor(sch, 5*time.Minute, "two")
		k.write(func(ctx context.Context, tx *store.Tx) error {
			in := ask("s", "")
			in.Cron, in.Enabled = "*/2 * * * *", nil
			what, _, now, err := k.s.Apply(ctx, tx, k.owner, in, "file")
			if what != Updated || now.Enabled {
				t.Errorf("apply: %s %v", what, now.Enabled)
			}
			return err
		})
		k.pass(4 * time.Minute)
		if p := k.pauseOf(sch); k.schedule(sch.ID).Enabled || p.Note != "two" || p.By != "ada" || !p.At.Equal(since) || !p.Until.Equal(since.Add(5*time.Minute+30*time.Second)) {
			t.Errorf("%+v", p)
		}
		lines := func() int { return len(k.column(`select action from audit_log where action = 'schedule.pause'`)) }
		before := lines()
		for range 2 { // the same again is not told again
			k.pauseFor(sch, 0, "three")
			if n := lines() - before; n != 1 {
				t.Errorf("%d lines tell of one pause", n)
			}
		}
		k.pass(5 * time.Minute)
		if p := k.pauseOf(sch); k.schedule(sch.ID).Enabled || p.Note != "three" || !p.Until.IsZero() {
			t.Errorf("%+v", p)
		}
		k.pauseFor(sch, time.Hour, "")
		k.pauseFor(sch, time.Minute, "")
		k.pass(61 * time.Second)
		if !k.schedule(sch.ID).Enabled {
			t.Error("the nearer end was not kept")
		}
		k.pauseFor(sch, time.Minute, "")
		on, off := true, false
		k.update(sch, client.SchedulePatch{Enabled: &on})
		k.update(sch, client.SchedulePatch{Enabled: &off})
		k.pass(2 * time.Minute)
		if k.schedule(sch.ID).Enabled {
			t.Error("the end of a pause that was resumed ended another one")
		}
		for _, terms := range []lane.PauseTerms{{Until: time.Now()}, {Until: time.Now().Add(-time.Hour)}, {Until: time.Now().AddDate(11, 0, 0)}, {Note: "a\nb"}, {Note: strings.Repeat("x", 501)}} {
			e := k.try(func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.Pause(ctx, tx, k.owner, sch.ID, "ada", terms)
				return err
			})
			if e == nil || e.Code != pawl.CodeInvalid || len(e.Fields) != 1 || e.Hint == "" {
				t.Errorf("%v: %v", terms, e)
			}
		}
	})
}

// A crash on either side of the end of a pause, or a restart over it, on whatever node,
// loses and repeats nothing.
func TestACrashAroundTheEndOfAPause(t *testing.T) {
	for _, place := range []string{"continuing", "continued", "down"} {
		t.Run(place, func(t *testing.T) {
			inTime(t, func(t *testing.T, k *kit) {
				sch := k.create(ask("s", ""))
				k.pauseFor(sch, 2*time.Minute+30*time.Second, "")
				crashed := k.crashOnce(place)
				k.pass(time.Minute)
				if place == "down" {
					k.restart(2 * time.Minute)
				}
				k.pass(3*time.Minute + 30*time.Second)
				if !crashed() && place != "down" {
					t.Error("it did not crash")
				}
				if n := k.audited("schedule.resume"); n != 1 || !k.schedule(sch.ID).Enabled {
					t.Errorf("%d lines, %+v", n, k.schedule(sch.ID))
				}
				for _, slot := range k.story(sch) {
					if at, what, _ := strings.Cut(slot, " "); at > "00:03" && what != "success" && what != "pending" {
						t.Errorf("%s is %s", at, what)
					}
				}
			})
		})
	}
}

// A person's pause and a daily cap hold a schedule back together, and neither ends the
// other; nor does a halt, whichever is over first.
func TestAPauseBesideACapAndAHalt(t *testing.T) {
	for name, c := range map[string]struct {
		capped, paused time.Duration
		meanwhile      string // at 00:04:30, when the first of them is over
	}{
		"the cap ends first":   {4 * time.Minute, 7 * time.Minute, "It is paused until 2000-01-01T00:07:00.000Z, by ada since 2000-01-01T00:02:00.000Z. It then continues by itself."},
		"the pause ends first": {7*time.Minute + 30*time.Second, 4 * time.Minute, "Paused until 00:07 UTC: the daily cap of 2 USD is reached. It then continues by itself."},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T, k *kit) {
				begin := time.Now()
				k.capUntil(begin.Add(c.capped).UTC())
				sch := k.create(ask("s", ""))
				k.pass(2 * time.Minute)
				k.pauseFor(sch, 30*time.Second, "") // so that its end is looked at while both hold
				k.pauseFor(sch, time.Until(begin.Add(c.paused)), "")
				d, err := k.s.Describe(t.Context(), k.owner, sch.ID)
				if err != nil || d.State != "Stopped" || !strings.HasPrefix(d.Sentence, "It is paused until") {
					t.Errorf("with both it is %q: %s (%v)", d.State, d.Sentence, err)
				}
				k.haltAll(true)
				k.pass(2*time.Minute + 30*time.Second)
				k.liftAll()
				if d, err = k.s.Describe(t.Context(), k.owner, sch.ID); err != nil || d.Sentence != c.meanwhile {
					t.Errorf("after the first it is %q: %s (%v)", d.State, d.Sentence, err)
				}
				capped, paused, capFirst := !d.Row.CappedUntil.IsZero(), !k.pauseOf(sch).Until.IsZero(), c.capped < c.paused
				if capped == capFirst || paused != capFirst {
					t.Errorf("after the first it is capped: %v, paused: %v", capped, paused)
				}
				k.pass(3*time.Minute + 15*time.Second) // to 00:07:45: no slot is due before 00:08
				if now := k.schedule(sch.ID); !now.Enabled || !now.CappedUntil.IsZero() || now.Issue != "" {
					t.Errorf("%+v", now)
				}
				k.pass(105 * time.Second)
				if d, err = k.s.Describe(t.Context(), k.owner, sch.ID); err != nil || d.State != "Idle" {
					t.Errorf("at the end it is %q: %s (%v)", d.State, d.Sentence, err)
				}
				story := k.story(sch)
				if !slices.Contains(story, "00:08 success") || slices.ContainsFunc(story, func(s string) bool { return s < "00:07" && strings.HasSuffix(s, "success") }) {
					t.Error(story)
				}
			})
		})
	}
}

// What disabled a schedule beside the person stays when the pause is over.
func TestAPauseEndsNothingElse(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(ask("s", ""))
		k.pauseFor(sch, time.Minute, "")
		k.change(`update schedules set issue = 'all credits are used up.' where id = $1`, sch.ID)
		k.change(`update lanes set state = 'Needs attention' where id = $1`, sch.ID)
		k.pass(2 * time.Minute)
		d, err := k.s.Describe(t.Context(), k.owner, sch.ID)
		if err != nil || d.Row.Enabled || d.State != "Needs attention" || !strings.Contains(d.Sentence, "all credits are used up") {
			t.Errorf("it is %q: %s (%v)", d.State, d.Sentence, err)
		}
		e := k.try(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.RunNow(ctx, tx, k.owner, sch.ID, "ada")
			return err
		})
		if e.Reason != ReasonPaused || e.Msg != `schedule "s" is disabled: all credits are used up` || e.Hint == "" {
			t.Errorf("%+v", e)
		}
	})
}

// The end of a pause does nothing to a schedule that is on, however that came.
func TestTheEndOfAPauseLeavesAScheduleThatIsOn(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(ask("s", ""))
		k.pauseFor(sch, time.Minute, "")
		k.change(`update schedules set enabled = 1 where id = $1`, sch.ID)
		k.change(`update lanes set state = 'Idle' where id = $1`, sch.ID)
		k.pass(2 * time.Minute)
		if n := k.audited("schedule.resume"); n != 0 || !k.schedule(sch.ID).Enabled {
			t.Errorf("%d lines tell that it went on", n)
		}
	})
}

// Whoever starts a slot of a schedule that is off is told who paused it, if a person
// did, and what else disabled it.
func TestWhatIsOffIsRefusedWithTheReason(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(ask("s", ""))
		k.pass(30 * time.Second)
		k.pauseFor(sch, time.Hour, "the printer is being repaired")
		refusal := func() string {
			var told []string
			for _, start := range []store.Func{
				func(ctx context.Context, tx *store.Tx) error {
					_, err := k.s.RunNow(ctx, tx, k.owner, sch.ID, "t")
					return err
				},
				func(ctx context.Context, tx *store.Tx) error {
					_, err := k.s.RetrySlot(ctx, tx, k.owner, sch.ID, at(1), "t")
					return err
				},
			} {
				e := k.try(start)
				if e.Reason != ReasonPaused || e.Hint == "" {
					t.Errorf("%+v", e)
				}
				told = append(told, e.Msg)
			}
			if told[0] != told[1] {
				t.Errorf("%q", told)
			}
			return told[0]
		}
		if got, want := refusal(), `schedule "s" is paused until 2000-01-01T01:00:30.000Z, by ada since 2000-01-01T00:00:30.000Z: the printer is being repaired`; got != want {
			t.Error(got)
		}
		k.change(`update schedules set issue = 'all credits are used up.' where id = $1`, sch.ID)
		if got, want := refusal(), `schedule "s" is disabled: all credits are used up`; got != want {
			t.Error(got)
		}
		k.change(`update schedules set issue = '' where id = $1`, sch.ID)
		k.change(`update lanes set paused_at = null, paused_until = null where id = $1`, sch.ID)
		if got, want := refusal(), `schedule "s" is disabled`; got != want {
			t.Error(got)
		}
	})
}

// The end of a pause waits for whoever changes a calendar of the schedule, and holds
// nothing meanwhile that they need; what they change of the schedule stays.
func TestTheEndOfAPauseWaitsForACalendar(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.calendar("holidays", "2999-01-01")
		sch := k.create(timed("s", "* * * * *", client.Timing{Except: []string{"calendar:holidays"}}))
		k.pauseFor(sch, time.Minute, "")
		k.nobody(2 * time.Minute)
		var over sync.WaitGroup
		k.write(func(ctx context.Context, tx *store.Tx) error {
			if _, err := calendarstore.In(tx).Hold(ctx, "holidays"); err != nil {
				return err
			}
			over.Go(func() {
				if _, err := k.s.proceed(context.Background(), sch.ID); err != nil {
					t.Error(err)
				}
			})
			if tx.ForUpdate() != "" { // else nobody else writes
				k.someoneWaits(ctx, tx)
				var id string
				if err := tx.QueryRow(ctx, `select id from schedules where id = $1 for update nowait`, sch.ID).Scan(&id); err != nil {
					return fmt.Errorf("who waits for the calendar has the schedule: %w", err)
				}
			}
			hourly := client.Cron("0 * * * *")
			_, err := k.s.Update(ctx, tx, k.owner, sch.ID, client.SchedulePatch{Cron: &hourly}, "tester")
			return err
		})
		over.Wait()
		if now := k.schedule(sch.ID); !now.Enabled || now.Cron != "0 * * * *" || !now.NextRunAt.Equal(at(60)) {
			t.Errorf("%+v", now)
		}
	})
}

// someoneWaits comes back once another transaction waits for a row.
func (k *kit) someoneWaits(ctx context.Context, tx *store.Tx) {
	k.t.Helper()
	for range 20_000 {
		var waiting int
		if err := tx.QueryRow(ctx, `select count(*) from pg_locks where not granted and pid in (select pid from pg_stat_activity where datname = current_database())`).Scan(&waiting); err != nil {
			k.t.Fatal(err)
		}
		if waiting > 0 {
			return
		}
	}
	k.t.Error("nobody waits")
}
