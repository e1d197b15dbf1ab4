package schedule

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/when"
)

func everyMinute(t *testing.T) when.Schedule {
	t.Helper()
	schedule, err := when.Parse(when.KindCron, "* * * * *", "UTC")
	if err != nil {
		t.Fatal(err)
	}
	return schedule
}

// C-74: the next instant is in the future, and of very many that passed the first
// and the latest are told one by one.
func TestDueBetweenIsBounded(t *testing.T) {
	schedule := everyMinute(t)
	due, next := dueBetween(schedule, at(0), at(3), nil, maxRecorded)
	if diff := cmp.Diff(minutes(1, 2, 3), firsts(due)); diff != "" || !next.Equal(at(4)) {
		t.Errorf("next %s, due (-want +got):\n%s", next, diff)
	}
	due, next = dueBetween(schedule, at(0), at(100_000), nil, maxRecorded)
	n := len(due)
	if n > 5*maxRecorded || !due[n-1].first.Equal(at(100_000)) || due[n-maxRecorded].count != 1 || due[maxRecorded-1].count != 1 || !next.Equal(at(100_001)) {
		t.Errorf("%d are due until %v, next %s", n, due[n-1], next)
	}
	if all := covered(due); all != 100_000 {
		t.Errorf("%d are due", all)
	}
}

func covered(list []span) (all int64) {
	for _, d := range list {
		all += d.count
	}
	return all
}

// Whatever rows there are, the instants that no row covers are each in one span,
// in order, and no span reaches over a row.
func TestDueBetweenFindsWhatNoRowCovers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		every := rapid.IntRange(1, 3).Draw(rt, "every")
		rule := when.Rule{Cron: []string{fmt.Sprintf("*/%d * * * *", every)}}
		if rapid.Bool().Draw(rt, "interval") {
			rule = when.Rule{Interval: fmt.Sprintf("%dm", every)}
		}
		times, err := rule.Schedule(when.Context{Anchor: at(0)})
		if err != nil {
			rt.Fatal(err)
		}
		end := rapid.IntRange(0, 2000).Draw(rt, "minutes")
		var known []schedulestore.Stretch
		for m := rapid.IntRange(-5, 2000).Draw(rt, "first row"); m < end; m += rapid.IntRange(1, 500).Draw(rt, "on") {
			row := schedulestore.Stretch{First: at(m).Add(time.Duration(rapid.IntRange(0, 1).Draw(rt, "off")) * time.Second)}
			m += rapid.IntRange(0, 50).Draw(rt, "long")
			row.Last = at(m).Add(time.Second)
			known = append(known, row)
		}
		due, next := dueBetween(times, at(0), at(end), known, rapid.IntRange(0, 3).Draw(rt, "most"))
		covers := func(at time.Time) bool {
			return slices.ContainsFunc(known, func(s schedulestore.Stretch) bool { return !at.Before(s.First) && !at.After(s.Last) })
		}
		var want, got []time.Time
		n, _ := times.Next(at(0))
		for ; !n.After(at(end)); n, _ = times.Next(n) {
			if !covers(n) {
				want = append(want, n)
			}
		}
		for _, d := range due {
			count := int64(0)
			for one := d.first; !one.After(d.last); one, _ = times.Next(one) {
				got, count = append(got, one), count+1
			}
			if count != d.count {
				rt.Errorf("%v has %d instants", d, count)
			}
			if slices.ContainsFunc(known, func(s schedulestore.Stretch) bool { return s.First.After(d.first) && s.First.Before(d.last) }) {
				rt.Errorf("a row is in %v", d)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || !next.Equal(n) {
			rt.Errorf("next %s, want %s; due (-want +got):\n%s", next, n, diff)
		}
	})
}

// A row of many is split around an instant, or around what is none, and its parts
// have all the others.
func TestARowOfManyIsSplit(t *testing.T) {
	hourly, err := when.Rule{Interval: "1h"}.Schedule(when.Context{Anchor: at(0)})
	if err != nil {
		t.Fatal(err)
	}
	daily, err := when.Parse(when.KindCron, "0 * * * *", "Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	row := schedulestore.Slot{ScheduledFor: at(60), Through: at(600), Count: 10}
	part := func(first, last int, count int64) schedulestore.Stretch {
		return schedulestore.Stretch{First: at(first * 60), Last: at(last * 60), Count: count}
	}
	for _, times := range []when.Schedule{hourly, daily} {
		for _, c := range []struct {
			at   time.Time
			want []schedulestore.Stretch
		}{
			{at(60), []schedulestore.Stretch{part(1, 1, 1), part(2, 10, 9)}},
			{at(120), []schedulestore.Stretch{part(1, 1, 1), part(2, 2, 1), part(3, 10, 8)}},
			{at(300), []schedulestore.Stretch{part(1, 4, 4), part(5, 5, 1), part(6, 10, 5)}},
			{at(301), []schedulestore.Stretch{part(1, 5, 5), part(6, 10, 5)}},
			{at(540), []schedulestore.Stretch{part(1, 8, 8), part(9, 9, 1), part(10, 10, 1)}},
			{at(600), []schedulestore.Stretch{part(1, 9, 9), part(10, 10, 1)}},
		} {
			if diff := cmp.Diff(c.want, partsOf(times, row, c.at)); diff != "" {
				t.Errorf("%s at %s (-want +got):\n%s", times, c.at, diff)
			}
		}
	}
}

// C-11: a hundred thousand instants that nobody was there for are a thousand rows
// (and that of the slot that waited) and one that covers the others; each has the
// row that covers it, and the schedule goes on after the last. It takes a few
// statements.
func TestManyMissedInstantsAreOneRow(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(ask("s", ""))
		k.pass(90 * time.Second)
		const gap = 100_000
		before := k.statements.Load()
		k.restart(gap * time.Minute)
		if n := k.statements.Load() - before; n > 40 {
			t.Errorf("it took %d statements", n)
		}
		list := k.slots(sch)
		all, many := int64(0), schedulestore.Slot{}
		for _, slot := range list {
			if slot.Disposition == "skipped_missed" {
				all += max(1, slot.Count)
			}
			if slot.Count > 0 {
				many = slot
			}
		}
		// That of 30 seconds before the end still runs.
		if all != gap-1 || len(list) != 1+1+maxRecorded+1+1 || many.Count != gap-maxRecorded-2 || !many.ScheduledFor.Equal(at(3+maxRecorded)) || !many.Through.Equal(at(gap)) {
			t.Fatalf("%d are covered by %d rows, the last by %+v", all, len(list), many)
		}
		for _, m := range []int{2, 1002, 1003, 50_000, gap} {
			y := k.whyOf(sch, at(m))
			if y.Slot == nil || y.Slot.Disposition != "skipped_missed" || !strings.Contains(y.Around.Text, "No worker was running") {
				t.Errorf("minute %d: %+v, %s", m, y.Slot, y.Around.Text)
			} else if m > 1002 && (y.Slot.Count != gap-maxRecorded-2 || !y.Slot.Through.Equal(at(gap)) || !strings.Contains(y.Around.Text, "The 98998 slots from")) {
				t.Errorf("minute %d: %+v, %s", m, y.Slot, y.Around.Text)
			}
		}
		k.pass(time.Minute)
		if now := k.schedule(sch.ID); !now.NextRunAt.After(at(gap + 1)) {
			t.Errorf("the next one is at %v", now.NextRunAt)
		}
		k.restart(10 * time.Second) // nothing is recorded again
		if n := len(k.slots(sch)); n > len(list)+2 {
			t.Errorf("%d rows, were %d", n, len(list))
		}
	})
}

// A year of seconds is as quick.
func TestAYearOfMissedSecondsIsQuick(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(timed("s", "", client.Timing{Interval: "1s"}))
		k.pass(1500 * time.Millisecond)
		k.restart(365 * 24 * time.Hour)
		all := int64(0)
		for _, slot := range k.slots(sch) {
			all += max(1, slot.Count)
		}
		if want := int64(365*24*3600 + 2); all < want-2 || all > want+2 {
			t.Errorf("%d instants have a row, want %d", all, want)
		}
	})
}

// What the definition says runs, the latest ones, and whatever else came due has
// a row.
func TestThePolicyRunsTheLatestOfMany(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.record = 3
		k.restart(0)
		for _, c := range []struct {
			missed string
			within string
			later  int
		}{{"last", "", 1}, {"last", "100s", 0}, {"all", "", 3}, {"all", "5m", 2}} {
			in := ask(c.missed+c.within, "")
			in.Missed = &client.Missed{Policy: c.missed, Within: c.within}
			in.Cron = "*/3 * * * *"
			k.pass(time.Until(time.Now().Truncate(3 * time.Minute).Add(3*time.Minute + 50*time.Second)))
			sch := k.create(in)
			k.restart(301 * time.Minute) // the last one was due 110 seconds ago
			var later []schedulestore.Slot
			all := int64(0)
			rows := k.slots(sch)
			for i, slot := range rows {
				if i > 0 && slot.ScheduledFor.Sub(rows[i-1].Last()) != 3*time.Minute {
					t.Errorf("%s: after %s comes %s", in.Name, rows[i-1].Last(), slot.ScheduledFor)
				}
				all += max(1, slot.Count)
				if slot.Status == "pending" && slot.ScheduledFor.Before(time.Now().Add(-grace)) {
					later = append(later, slot)
				}
			}
			if len(later) != c.later || all != 101 || len(rows) > 10 {
				t.Errorf("%s: %d of %d run later: %v", in.Name, len(later), all, k.story(sch))
			}
			if n := len(later); n > 0 && time.Since(later[n-1].ScheduledFor) > 2*time.Minute {
				t.Errorf("%s: the last that runs is %s", in.Name, later[n-1].ScheduledFor)
			}
			k.pass(time.Minute)
			if got := k.graph.executed(sch.ID); len(got) != c.later {
				t.Errorf("%s: executed %v", in.Name, got)
			}
			k.write(func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.Delete(ctx, tx, k.owner, sch.ID, "t")
				return err
			})
		}
	})
}

// A backfill runs instants of a row that covers many: the first, one in the
// middle, the last, and then all of it. None runs twice, and those that are left
// stay covered.
func TestABackfillRunsInstantsOfARange(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.record = 3
		k.restart(0)
		sch := k.create(ask("s", ""))
		k.pass(90 * time.Second)
		k.restart(30 * time.Minute) // until 00:31:30
		ran := func() int { return len(k.graph.executed(sch.ID)) }
		was := ran()
		for i, m := range []int{6, 20, 30} {
			b, plan := k.planFor(sch, at(m), at(m).Add(time.Second), 60)
			if len(plan.Slots) != 1 || plan.Slots[0].Was != "skipped_missed" {
				t.Errorf("minute %d: %+v", m, plan)
			}
			k.confirm(b)
			k.pass(10 * time.Second)
			if got := ran(); got < was+i+1 {
				t.Errorf("minute %d: %d ran", m, got)
			}
		}
		for m, want := range map[int]string{6: "success", 7: "skipped", 20: "success", 19: "skipped", 21: "skipped", 29: "skipped", 30: "success"} {
			if y := k.whyOf(sch, at(m)); y.Slot == nil || y.Slot.Status != want {
				t.Errorf("minute %d: %+v, want %s", m, y.Slot, want)
			}
		}
		k.wantWhole(sch)
		b, plan := k.planFor(sch, at(3).Add(time.Second), at(31), 600)
		if len(plan.Slots) != 24 || plan.Skipped != 3 { // 4 to 30 without the three
			t.Errorf("%d planned, %d skipped", len(plan.Slots), plan.Skipped)
		}
		k.confirm(b)
		k.pass(2 * time.Minute)
		k.wantWhole(sch)
		for m := 4; m <= 30; m++ {
			if y := k.whyOf(sch, at(m)); y.Slot == nil || y.Slot.Status != "success" || y.Slot.AttemptCount != 1 || y.Slot.Count != 0 {
				t.Errorf("minute %d: %+v", m, y.Slot)
			}
		}
	})
}

// wantWhole is wholeStory for rows that may cover many.
func (k *kit) wantWhole(sch schedulestore.Schedule) {
	k.t.Helper()
	slots := k.slots(sch)
	for i, slot := range slots {
		if i > 0 && slot.ScheduledFor.Sub(slots[i-1].Last()) != time.Minute {
			k.t.Errorf("after %s comes %s", slots[i-1].Last(), slot.ScheduledFor)
		}
		if slot.Count == 1 || slot.Count > 1 && slot.Last().Sub(slot.ScheduledFor) != time.Duration(slot.Count-1)*time.Minute || (slot.Count == 0) != slot.Through.IsZero() {
			k.t.Errorf("%d instants from %s to %s", slot.Count, slot.ScheduledFor, slot.Last())
		}
	}
}

// A person runs one of many again, and nothing that is none of them.
func TestASlotOfARangeIsRetried(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.record = 3
		k.restart(0)
		sch := k.create(ask("s", ""))
		k.pass(90 * time.Second)
		k.restart(30 * time.Minute)
		before := k.story(sch)
		refused := k.try(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.RetrySlot(ctx, tx, k.owner, sch.ID, at(12).Add(time.Second), "t")
			return err
		})
		if refused.Code != pawl.CodeNotFound {
			t.Errorf("what is no instant: %v", refused)
		}
		refused = k.try(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.SkipSlot(ctx, tx, k.owner, sch.ID, at(12), "t")
			return err
		})
		if refused.Reason != ReasonSlotClosed || !slices.Equal(before, k.story(sch)) {
			t.Errorf("what is skipped already: %v, %v", refused, k.story(sch))
		}
		k.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.RetrySlot(ctx, tx, k.owner, sch.ID, at(12), "t")
			return err
		})
		k.pass(10 * time.Second)
		if y := k.whyOf(sch, at(12)); y.Slot.Status != "success" || y.Slot.Count != 0 {
			t.Errorf("%+v", y.Slot)
		}
		k.wantWhole(sch)
		if got := k.graph.executed(sch.ID); !slices.Contains(got, "00:12") || len(got) > 3 {
			t.Errorf("executed %v", got)
		}
	})
}

// A change while a run goes on for long supersedes what waited, in rows and a row.
func TestALongRunLeavesNoHole(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.record = 3
		k.restart(0)
		sch := k.create(timed("s", "", client.Timing{Interval: "1s"}))
		k.graph.takes = 500 * time.Second
		k.pass(200 * time.Second)
		k.update(sch, client.SchedulePatch{TimingPatch: client.TimingPatch{Interval: new("1h")}})
		total, rows := int64(0), 0
		for _, slot := range k.slots(sch) {
			if slot.Disposition == "superseded" {
				total, rows = total+max(1, slot.Count), rows+1
			}
		}
		if total != 199 || rows != 4 {
			t.Errorf("%d are superseded in %d rows, want 199", total, rows)
		}
	})
}

// A run on request while nobody worked, which is no instant of the schedule, is in
// no row of many.
func TestARangeGoesAroundOtherSlots(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.record = 2
		k.restart(0)
		sch := k.create(ask("s", pawl.PolicyAllow))
		k.pass(90 * time.Second)
		k.kill()
		k.nobody(15*time.Minute + 7*time.Second) // 00:16:37
		k.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.RunNow(ctx, tx, k.owner, sch.ID, "t")
			return err
		})
		k.nobody(15 * time.Minute)
		k.start()
		var rows []string
		for _, slot := range k.slots(sch) {
			if slot.Count > 0 {
				rows = append(rows, slot.ScheduledFor.Format("15:04")+" "+slot.Through.Format("15:04"))
			}
		}
		if !slices.Equal(rows, []string{"00:05 00:16", "00:17 00:30"}) {
			t.Errorf("the rows of many are %v: %v", rows, k.story(sch))
		}
		if y := k.whyOf(sch, at(20)); y.Slot == nil || y.Slot.Disposition != "skipped_missed" {
			t.Errorf("%+v", y.Slot)
		}
	})
}

// A job of an instant that a row of many covers starts nothing, and neither does a
// clock that goes back.
func TestWhatARangeCoversDoesNotStart(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.record = 2
		k.restart(0)
		sch := k.create(ask("s", ""))
		k.pass(90 * time.Second)
		k.restart(30 * time.Minute)
		was := k.story(sch)
		if again, err := k.s.work(t.Context(), &turn{fence: k.fence}, sch.ID, at(20)); err != nil || !again.IsZero() {
			t.Errorf("again %s, %v", again, err)
		}
		k.write(func(ctx context.Context, tx *store.Tx) error {
			next, err := k.s.setNext(ctx, tx, sch, everyMinute(t), at(20))
			if want := k.slots(sch)[len(was)-1].ScheduledFor; !next.Equal(want) {
				t.Errorf("after a row of many comes %s, want %s", next, want)
			}
			return err
		})
		if got := k.story(sch); !slices.Equal(got, was) {
			t.Errorf("%v became %v", was, got)
		}
	})
}
