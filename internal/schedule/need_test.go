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
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/need/needtest"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/terms"
)

// fakeSources makes the sources prices and rates, fetched at midnight.
func (k *kit) fakeSources() {
	k.t.Helper()
	k.source = true
	k.needs.Provide(needtest.Source{})
	k.write(func(ctx context.Context, tx *store.Tx) error { return needtest.Make(ctx, tx, at(0)) })
}

// fetch ends a fetch well.
func (k *kit) fetch(name string) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) error { return needtest.Fetch(ctx, tx, k.needs, name) })
}

// asks tells how often prices were asked to fetch, and by whom.
func (k *kit) asks() string {
	return strings.Join(k.column(`select asks || coalesce(' ' || asked_by, '') from fakes where name = 'prices'`), ",")
}

// needing is a schedule of every ten minutes that needs prices of five, and waits
// for three.
func (k *kit) needing(policy pawl.ConcurrencyPolicy) client.ScheduleRequest {
	in := ask("s", policy)
	in.Cron = "*/10 * * * *"
	in.Needs = []client.Need{{Source: "prices", MaxAge: "5m", Wait: "3m"}}
	return in
}

// A slot whose source is fresh begins at its time, and nothing is written for it.
func TestASlotWhoseSourceIsFreshBeginsAtOnce(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.fakeSources()
		sch := k.create(k.needing(""))
		k.pass(6 * time.Minute)
		k.fetch("prices")
		writes := 0
		k.trace = func(sql string, _ []any) {
			if strings.Contains(sql, "needs") && (strings.HasPrefix(sql, "update") || strings.HasPrefix(sql, "insert")) {
				writes++
			}
		}
		k.pass(5 * time.Minute)
		k.trace = nil
		k.wantStory(sch, "00:10 success", "00:20 pending")
		if k.asks() != "0" || writes != 0 {
			t.Errorf("asked %s, %d writes", k.asks(), writes)
		}
	})
}

// A slot whose source is too old asks it once, waits, says so everywhere, and begins
// when the fetch has ended; what has begun goes on while the source grows old.
func TestASlotWaitsForItsSource(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.fakeSources()
		for _, policy := range policies() {
			in := k.needing(policy)
			in.Name = string(policy)
			sch := k.create(in)
			k.change(`update fakes set fetched = $1, asks = 0, asked = 0`, store.Millis(sch.NextRunAt.Add(-10*time.Minute)))
			k.pass(time.Until(sch.NextRunAt.Add(time.Minute)))
			when := sch.NextRunAt.Format("15:04")
			k.wantStory(sch, when+" pending waiting_fresh")
			if got := k.asks(); got != "1 schedule "+string(policy) {
				t.Errorf("asked %s", got)
			}
			k.wantState(sch, run.Running, "waits for source prices, 11m old, until "+pawl.FormatTime(sch.NextRunAt.Add(3*time.Minute))+" at most.")
			y := k.whyOf(sch, time.Time{})
			if i := slices.IndexFunc(y.Gates, func(g lane.Gate) bool { return g.Name == "fresh" }); i < 0 || y.Gates[i].Open || !strings.Contains(y.Gates[i].Text, "source prices, 11m old; at most 5m is allowed") {
				t.Errorf("%+v", y.Gates)
			}
			if slot := SlotOf(k.slots(sch)[0]); slot.Disposition != "waiting_fresh" || slot.WaitsSince.IsZero() || !strings.Contains(string(slot.Note), "It waits for source prices, 10m old, until") {
				t.Errorf("%+v", slot)
			}
			if y := k.whyOf(sch, sch.NextRunAt); !strings.Contains(y.Around.Text, "waits: It waits for source prices") {
				t.Errorf("%q", y.Around.Text)
			}
			k.fetch("prices")
			k.pass(time.Second)
			if got := k.graph.executed(sch.ID); !slices.Equal(got, []string{when}) {
				t.Errorf("%s executed %v", policy, got)
			}
			k.wantState(sch, run.Idle, "")
			if slot := SlotOf(k.slots(sch)[0]); slot.Disposition != "fired" || slot.Note != "" || !slot.WaitsSince.IsZero() {
				t.Errorf("%+v", slot)
			}
			k.delete(sch)
		}
		if notices := k.saidTo(); len(notices) != 0 {
			t.Errorf("people were told %v", notices)
		}
		if left := k.column(`select lane from needs`); len(left) != 0 {
			t.Errorf("deleted schedules need something: %v", left)
		}
	})
}

// At the end of its wait a slot does not run on stale data: it ends with an outcome of
// its own, people are told once, and the next slot goes on.
func TestASlotThatWaitedInVainDoesNotRun(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.fakeSources()
		for _, policy := range policies() {
			in := k.needing(policy)
			in.Name = string(policy)
			sch := k.create(in)
			k.notices = nil
			first := sch.NextRunAt
			k.change(`update fakes set fetched = $1`, store.Millis(first.Add(-time.Hour)))
			k.pass(time.Until(first.Add(25 * time.Minute)))
			k.wantStory(sch, first.Format("15:04")+" skipped skipped_stale", first.Add(10*time.Minute).Format("15:04")+" skipped skipped_stale", first.Add(20*time.Minute).Format("15:04")+" skipped skipped_stale", first.Add(30*time.Minute).Format("15:04")+" pending")
			k.wantState(sch, run.NeedsAttention, "did not run: It waited 3m for source prices, 1h23m old; at most 5m is allowed.")
			if told := k.saidTo(); len(told) != 1 {
				t.Errorf("people were told %q", told)
			}
			d, _ := k.s.Describe(t.Context(), k.owner, sch.ID)
			if d.Do != "pawl run source prices" || d.Issue != run.IssueStale {
				t.Errorf("%s, %s", d.Issue, d.Do)
			}
			k.change(`update fakes set paused = 1`)
			if d, _ := k.s.Describe(t.Context(), k.owner, sch.ID); d.Do != "pawl resume source prices" {
				t.Errorf("what is paused cannot be run: %s", d.Do)
			}
			k.change(`update fakes set paused = null`)
			k.fetch("prices")
			k.change(`update fakes set fetched = $1`, store.Millis(first.Add(29*time.Minute)))
			k.pass(6 * time.Minute)
			k.wantState(sch, run.Idle, "")
			if got := k.graph.executed(sch.ID); len(got) != 1 {
				t.Errorf("executed %v", got)
			}
			k.delete(sch)
		}
	})
}

// Wherever its process dies, a slot that waits is neither lost nor run twice, and
// still ends by its own deadline.
func TestAWaitSurvivesCrashes(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.fakeSources()
		sch := k.create(k.needing(""))
		start := sch.NextRunAt
		round := func(name string, fetched bool, during func()) {
			t.Helper()
			k.change(`update fakes set fetched = $1, asks = 0, asked = 0`, store.Millis(start.Add(-10*time.Minute)))
			k.pass(time.Until(start.Add(-time.Second)))
			before := k.graph.executed(sch.ID)
			during()
			k.pass(time.Until(start.Add(2 * time.Minute)))
			if fetched {
				k.fetch("prices")
				k.kill()
				k.start() // the fetch was committed, and nobody had looked
			}
			k.pass(time.Until(start.Add(5 * time.Minute)))
			after := k.graph.executed(sch.ID)[len(before):]
			if want := fetched; (len(after) == 1) != want || len(after) > 1 {
				t.Errorf("%s: executed %v", name, after)
			}
			if got := k.asks(); !strings.HasPrefix(got, "1 ") {
				t.Errorf("%s: asked %s", name, got)
			}
			if !fetched {
				k.wantState(sch, run.NeedsAttention, "did not run")
			}
			start = start.Add(10 * time.Minute)
		}
		for _, fetched := range []bool{true, false} {
			for _, place := range []string{"waiting", "waits"} {
				round(place, fetched, func() {
					died := k.crashOnce(place)
					k.pass(2 * time.Second)
					if !died() {
						t.Errorf("nobody died at %s", place)
					}
					k.crashAt(nil)
				})
			}
			round("while it waits", fetched, func() { k.pass(30 * time.Second); k.restart(time.Second) })
		}
	})
}

// A wait whose end came while nobody was there is over, unless the definition says
// that what was missed runs later.
func TestAWaitThatEndedWhileNobodyWasThere(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.fakeSources()
		in := k.needing("")
		skips := k.create(in)
		in.Name, in.Missed = "later", &client.Missed{Policy: "last", Within: "12h"}
		later := k.create(in)
		k.pass(time.Until(at(11)))
		k.restart(5 * time.Minute)
		k.pass(time.Second)
		k.wantStory(skips, "00:10 skipped skipped_stale", "00:20 pending")
		k.wantStory(later, "00:10 pending waiting_fresh")
		k.fetch("prices")
		k.pass(time.Second)
		k.wantStory(later, "00:10 success", "00:20 pending")
	})
}

// A manual run and the slots of a backfill need what the slots of the schedule do; so
// does a slot that a person runs again.
func TestEverySlotNeedsItsSource(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.fakeSources()
		k.pass(7 * time.Minute)
		sch := k.create(k.needing(""))
		k.runNow(sch)
		k.pass(time.Second)
		k.wantStory(sch, "00:07 pending waiting_fresh", "00:10 pending")
		e := k.try(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.RunNow(ctx, tx, k.owner, sch.ID, "t")
			return err
		})
		if e.Reason != ReasonRunActive || !strings.Contains(e.Msg, "waits for a source") {
			t.Errorf("%+v", e)
		}
		k.pass(4 * time.Minute)
		if got := k.story(sch); got[0] != "00:07 skipped skipped_stale" {
			t.Errorf("%v", got)
		}
		k.pass(3 * time.Minute) // 00:14
		k.wantStory(sch, "00:07 skipped skipped_stale", "00:10 skipped skipped_stale", "00:20 pending")
		if code := k.retrySlot(sch, 10); code != "" {
			t.Error(code)
		}
		k.pass(time.Second)
		k.wantStory(sch, "00:07 skipped skipped_stale", "00:10 pending waiting_fresh", "00:20 pending")
		k.fetch("prices")
		k.pass(time.Second)
		b, _ := k.planFor(sch, at(-30), at(0), 60)
		k.change(`update fakes set fetched = $1`, store.Millis(at(0)))
		k.confirm(b)
		k.pass(2 * time.Second)
		if got := k.column(`select disposition from schedule_runs where trigger = 'backfill'`); !slices.Equal(got, []string{"waiting_fresh"}) {
			t.Errorf("%v", got)
		}
		k.fetch("prices")
		k.pass(2 * time.Minute)
		if got := k.column(`select distinct status from schedule_runs where trigger = 'backfill'`); !slices.Equal(got, []string{"success"}) {
			t.Errorf("%v", got)
		}
	})
}

// A slot that waits begins when its schedule needs nothing any more, is closed with
// its schedule, and can be skipped; the lane says so each time.
func TestWhatEndsAWait(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.fakeSources()
		in := k.needing("")
		in.Needs = append(in.Needs, client.Need{Source: "rates", MaxAge: "1m", Wait: "8m"})
		sch := k.create(in)
		wait := func(minute int) {
			t.Helper()
			k.pass(time.Until(at(minute).Add(time.Second)))
			k.wantState(sch, run.Running, "waits for")
		}
		wait(10)
		k.wantState(sch, run.Running, "source prices, 10m old and source rates, 10m old")
		k.fetch("prices") // one of two
		k.pass(time.Second)
		k.wantState(sch, run.Running, "waits for source rates, 10m old, until 2000-01-01T00:18")
		k.update(sch, client.SchedulePatch{Needs: &[]client.Need{}})
		k.pass(time.Second)
		k.wantState(sch, run.Idle, "")
		if got := k.graph.executed(sch.ID); len(got) != 1 {
			t.Errorf("executed %v", got)
		}
		k.update(sch, client.SchedulePatch{Needs: &in.Needs})
		wait(20)
		k.update(sch, client.SchedulePatch{Labels: &map[string]string{"a": "b"}})
		if code := k.skipSlot(sch, 20); code != "" {
			t.Error(code)
		}
		k.wantState(sch, run.Idle, "")
		wait(30)
		off := false
		k.update(sch, client.SchedulePatch{Enabled: &off})
		k.wantState(sch, run.Stopped, "")
		on := true
		k.update(sch, client.SchedulePatch{Enabled: &on})
		wait(40)
		k.update(sch, client.SchedulePatch{Labels: &map[string]string{"a": "c"}}) // which forgets no wait
		k.fetch("prices")
		k.fetch("rates")
		k.pass(time.Second)
		k.wantState(sch, run.Idle, "")
		if got := k.graph.executed(sch.ID); len(got) != 2 {
			t.Errorf("executed %v", got)
		}
	})
}

// Slots that may run beside each other and came due while one waited do not wait one
// after the other.
func TestWaitsDoNotPileUp(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.fakeSources()
		for _, policy := range policies() {
			in := k.needing(policy)
			in.Name, in.Cron = string(policy), "* * * * *"
			k.create(in)
		}
		k.pass(40 * time.Minute)
		for _, text := range k.column(`select s.name || ' ' || count(*) || ' ' || min(r.scheduled_for) from schedule_runs r join schedules s on s.id = r.schedule_id where r.status = 'pending' group by s.name`) {
			var name string
			var n, oldest int64
			if _, err := fmt.Sscan(text, &name, &n, &oldest); err != nil || n > 2 || time.Since(time.UnixMilli(oldest)) > 5*time.Minute {
				t.Errorf("%s: the oldest is of %s (%v)", text, time.UnixMilli(oldest).UTC(), err)
			}
		}
	})
}

// A slot that may run beside others waits from its time on, and one that is alone from
// when its turn came.
func TestFromWhenAWaitCounts(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.fakeSources()
		all := map[pawl.ConcurrencyPolicy]schedulestore.Schedule{}
		for _, policy := range policies() {
			in := k.needing(policy)
			in.Name, in.Cron = string(policy), "* * * * *"
			all[policy] = k.create(in)
		}
		k.pass(9*time.Minute + 30*time.Second) // at 00:09 the slot of 00:06 has waited long enough
		for policy, want := range map[pawl.ConcurrencyPolicy][2]time.Time{pawl.PolicyAllow: {at(7), at(7)}, pawl.PolicyReplace: {at(9), at(9)}, pawl.PolicyQueue: {at(7), at(9)}} {
			slots := k.slots(all[policy])
			i := slices.IndexFunc(slots, waitsFresh)
			if i < 0 || !slots[i].ScheduledFor.Equal(want[0]) || !slots[i].WaitsSince.Equal(want[1]) {
				t.Errorf("%s: %v", policy, k.story(all[policy]))
			}
		}
	})
}

// A halt keeps a slot that waits from starting, and what it waited for counts after
// it.
func TestAHaltDoesNotEndAWait(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.fakeSources()
		sch := k.create(k.needing(""))
		k.pass(time.Until(at(11)))
		k.haltAll(true)
		k.fetch("prices")
		k.pass(time.Minute)
		if got := k.graph.executed(sch.ID); len(got) != 0 {
			t.Errorf("executed %v", got)
		}
		k.liftAll()
		k.pass(time.Second)
		if got := k.graph.executed(sch.ID); len(got) != 1 {
			t.Errorf("executed %v: %v", got, k.story(sch))
		}
	})
}

// A schedule that needs a source which is not there is refused with the place and a
// hint, and so are needs that mean nothing.
func TestNeedsAreChecked(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.fakeSources()
		in := k.needing("")
		create := func(list ...client.Need) []pawl.Field {
			in.Needs = list
			return k.try(func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.Create(ctx, tx, k.owner, in, "t")
				return err
			}).Fields
		}
		if f := create(client.Need{Source: "prices", MaxAge: "1h"}, client.Need{Source: "price", MaxAge: "1h"}); len(f) != 1 || f[0].Pointer != "/needs/1/source" || !strings.Contains(f[0].Message, `there is no source "price"; Did you mean prices?`) {
			t.Errorf("%+v", f)
		}
		var pointers []string
		for _, f := range create(client.Need{Source: "prices"}, client.Need{Source: "prices", MaxAge: "0s", Wait: "1y"}, client.Need{MaxAge: "999d", Wait: "8d"}) {
			pointers = append(pointers, f.Pointer)
		}
		if want := []string{"/needs/0/maxAge", "/needs/1/source", "/needs/1/maxAge", "/needs/1/wait", "/needs/2/source", "/needs/2/maxAge", "/needs/2/wait"}; !slices.Equal(pointers, want) {
			t.Errorf("%v", pointers)
		}
		if f := create(make([]client.Need, 21)...); len(f) != 1 || f[0].Pointer != "/needs" {
			t.Errorf("%+v", f)
		}
	})
}

// Who needs a source is named to whoever may know of it.
func TestWhoNeedsASourceIsNamed(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.fakeSources()
		in := k.needing("")
		sch := k.create(in)
		refusal := func(owner string) string {
			err := k.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error { return k.needs.RefuseDelete(ctx, tx, "prices", owner) })
			var e *pawl.Error
			if err == nil || !errors.As(err, &e) {
				return fmt.Sprint(err)
			}
			return e.Reason + ": " + e.Msg
		}
		for owner, want := range map[string]string{"": "schedule s", k.owner: "schedule s", k.user("bob"): "1 other"} {
			if got := refusal(owner); got != `source_needed: the source "prices" is needed by `+want {
				t.Errorf("%s", got)
			}
		}
		k.delete(sch)
		if got := refusal(""); got != "<nil>" {
			t.Error(got)
		}
	})
}

// Of several sources that are too old, the one that is waited for the shortest time ends
// the wait, wherever it stands.
func TestTheShortestWaitCounts(t *testing.T) {
	stale := func(source, wait string) terms.Stale {
		return terms.Stale{Need: client.Need{Source: source, MaxAge: "5m", Wait: wait}}
	}
	for _, list := range [][]terms.Stale{{stale("a", "3m"), stale("b", "9m")}, {stale("b", "9m"), stale("a", "3m")}} {
		if deadline, of := firstDeadline(list, at(10)); !deadline.Equal(at(13)) || of.Source != "a" {
			t.Errorf("%v for %s", deadline, of.Source)
		}
	}
}
