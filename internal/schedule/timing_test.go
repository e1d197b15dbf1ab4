package schedule

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

func timed(name string, cron client.Cron, t client.Timing) client.ScheduleRequest {
	in := ask(name, "")
	in.Cron, in.Timing = cron, t
	return in
}

func (k *kit) calendar(name string, days ...string) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) error {
		_, _, _, err := k.s.Calendars().Apply(ctx, tx, client.CalendarRequest{Name: name, Days: days}, "tester")
		return err
	})
}

// refusedAt tries to create a schedule and returns where it is wrong.
func (k *kit) refusedAt(in client.ScheduleRequest) (pointers []string) {
	k.t.Helper()
	e := k.try(func(ctx context.Context, tx *store.Tx) error {
		_, err := k.s.Create(ctx, tx, k.owner, in, "tester")
		return err
	})
	if e == nil || e.Code != pawl.CodeInvalid {
		k.t.Fatalf("%+v: %v", in.Timing, e)
	}
	for _, f := range e.Fields {
		pointers = append(pointers, f.Pointer+": "+f.Message)
	}
	return pointers
}

func (k *kit) whyOf(sch schedulestore.Schedule, at time.Time) (y lane.Why) {
	k.t.Helper()
	y, err := k.s.Why(k.t.Context(), lane.Viewer{UserID: k.owner, Owner: k.owner}, sch.Name, at)
	if err != nil {
		k.t.Fatal(err)
	}
	return y
}

// Several expressions, an interval and one instant make slots like one expression
// does, and each ends where it should.
func TestTimesOfSchedules(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		several := k.create(timed("several", client.Crons("2 * * * *", "4 * * * *"), client.Timing{}))
		interval := k.create(timed("interval", "", client.Timing{Interval: "90s"}))
		once := k.create(timed("once", "", client.Timing{At: "2000-01-01T01:03:00+01:00"}))
		bounded := k.create(timed("bounded", "* * * * *", client.Timing{From: "2000-01-01T00:02:00Z", Until: "2000-01-01T00:03:00Z"}))
		k.pass(5*time.Minute + time.Second)
		k.wantStory(several, "00:02 success", "00:04 success", "01:02 pending")
		k.wantStory(interval, "00:01 success", "00:03 success", "00:04 success", "00:06 pending")
		k.wantStory(once, "00:03 success")
		k.wantStory(bounded, "00:02 success", "00:03 success")
		for _, sch := range []schedulestore.Schedule{once, bounded} {
			if y := k.whyOf(sch, time.Time{}); !strings.HasPrefix(y.Next, "No further slot is planned: it") || !y.NextAt.IsZero() || y.State != "Idle" {
				t.Errorf("%s: %s, %v, %s", sch.Name, y.Next, y.NextAt, y.State)
			}
		}
		// What has ended is looked after by nobody, and is not taken for broken.
		if n, err := k.s.Reconcile(t.Context()); err != nil || n != 0 {
			t.Errorf("%d repaired, %v", n, err)
		}
		if stale := k.column(`select name from schedules where enabled = 1 and next_run_at is null and ended = 0`); len(stale) != 0 {
			t.Errorf("stale: %v", stale)
		}
	})
}

// A schedule that ended goes on when it is changed, with the slots of the new times.
func TestAScheduleThatEndedGoesOn(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(timed("s", "* * * * *", client.Timing{Until: "2000-01-01T00:01:00Z"}))
		k.pass(3 * time.Minute)
		k.wantStory(sch, "00:01 success")
		k.update(sch, client.SchedulePatch{TimingPatch: client.TimingPatch{Until: new("")}})
		k.pass(time.Minute + time.Second)
		k.wantStory(sch, "00:01 success", "00:04 success", "00:05 pending")
		k.update(sch, client.SchedulePatch{TimingPatch: client.TimingPatch{Interval: new("2m")}}) // takes the place of cron
		if now := k.schedule(sch.ID); now.Cron != "" || TimingOf(now).Interval != "2m" {
			t.Errorf("%+v", now)
		}
		k.pass(2*time.Minute + time.Second)
		k.wantStory(sch, "00:01 success", "00:04 success", "00:05 skipped superseded", "00:06 success", "00:08 pending")
	})
}

// maxRuns counts the slots that begin by themselves, whatever the policy, across
// restarts; what people ask for does not count.
func TestMaxRuns(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		var all []schedulestore.Schedule
		for _, policy := range policies() {
			in := timed(string(policy), "* * * * *", client.Timing{MaxRuns: 3})
			in.ConcurrencyPolicy = policy
			all = append(all, k.create(in))
		}
		k.pass(90 * time.Second)
		for _, sch := range all {
			k.write(func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.RunNow(ctx, tx, k.owner, sch.ID, "tester")
				return err
			})
		}
		k.pass(45 * time.Second)
		k.restart(10 * time.Second)
		k.pass(4 * time.Minute)
		for _, sch := range all {
			k.wantStory(sch, "00:01 success", "00:01 success", "00:02 success", "00:03 success")
			if y := k.whyOf(sch, time.Time{}); !strings.Contains(y.Next, "as many as maxRuns allows") || k.schedule(sch.ID).Begun != 3 {
				t.Errorf("%s: %s, begun %d", sch.Name, y.Next, k.schedule(sch.ID).Begun)
			}
			k.update(sch, client.SchedulePatch{TimingPatch: client.TimingPatch{MaxRuns: new(int64(4))}})
		}
		k.pass(3 * time.Minute)
		for _, sch := range all {
			if got := k.schedule(sch.ID); got.Begun != 4 || !got.NextRunAt.IsZero() {
				t.Errorf("%s: begun %d, next %v", sch.Name, got.Begun, got.NextRunAt)
			}
		}
	})
}

// A slot with jitter keeps its instant and starts later, always by the same, also
// after a restart in between; it is not missed for that.
func TestJitterDelaysStarts(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(timed("s", "0 * * * *", client.Timing{Jitter: "30m"}))
		var start time.Time
		k.read(func(ctx context.Context, tx *store.Tx) error {
			times, err := k.s.timesOf(ctx, tx, sch)
			start = times.Start(at(60))
			return err
		})
		late := start.Sub(at(60))
		if late < 5*time.Minute || late > 30*time.Minute {
			k.t.Logf("the jitter is %v", late)
		}
		k.pass(58 * time.Minute)
		if y := k.whyOf(sch, time.Time{}); !strings.Contains(fmt.Sprint(y.Gates), "It starts at "+pawl.FormatTime(start)+", by its jitter.") || !y.NextAt.Equal(at(60)) {
			t.Errorf("before it is due: %v, next %v", y.Gates, y.NextAt)
		}
		k.restart(min(late, 5*time.Minute)) // it comes due while nobody is there, and starts later
		k.pass(time.Until(start) - time.Second)
		if late > 5*time.Minute {
			k.wantStory(sch, "01:00 pending")
			if y := k.whyOf(sch, time.Time{}); !strings.Contains(fmt.Sprint(y.Gates), "by its jitter") || !y.NextAt.Equal(start) || y.Pending != 0 {
				t.Errorf("%v, next %v", y.Gates, y.NextAt)
			}
		}
		k.pass(5 * time.Second)
		k.wantStory(sch, "01:00 success", "02:00 pending")
		if got := k.slots(sch)[0].StartedAt; got.Before(start) || got.After(start.Add(10*time.Second)) {
			t.Errorf("it started at %v, want %v", got, start)
		}
	})
}

// What never runs is refused, with the reason; so is what is no time.
func TestWhatNeverRunsIsRefused(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.calendar("always", "0001-01-01/9999-12-31")
		for _, tt := range []struct {
			cron client.Cron
			in   client.Timing
			want string
		}{
			{"* * * * *", client.Timing{Except: []string{"* * * * *"}}, "/except: it never runs: the exceptions leave out every slot"},
			{"* * * * *", client.Timing{Except: []string{"calendar:always"}}, "/except: it never runs: the exceptions leave out every slot"},
			{"* * * * *", client.Timing{Except: []string{"calendar:none"}}, `/except/0: there is no calendar "none"`},
			{"", client.Timing{At: "1999-12-24T18:00:00Z"}, "/at: it never runs: 1999-12-24T18:00:00Z is in the past (it is 2000-01-01T00:00:00.000Z now)"},
			{"* * * * *", client.Timing{Until: "1999-12-31"}, "/until: it never runs: nothing is left before 1999-12-31"},
			{"0 9 * * *", client.Timing{From: "2000-01-02T10:00:00Z", Until: "2000-01-03T08:00:00Z"}, "/until: it never runs: no slot is between 2000-01-02T10:00:00Z and 2000-01-03T08:00:00Z"},
			{"", client.Timing{}, "/cron: one of cron, interval and at is needed"},
			{"* * * * *", client.Timing{Interval: "5m"}, "/cron: cron, interval and at exclude each other: keep one of them"},
			{"* * * * *", client.Timing{MaxRuns: -1}, "/maxRuns: must be from 1 to 1000000000"},
			{"* * * * *", client.Timing{Jitter: "1w"}, "/jitter: interval"},
		} {
			if got := k.refusedAt(timed("s", tt.cron, tt.in)); len(got) != 1 || !strings.HasPrefix(got[0], tt.want) {
				t.Errorf("%q %+v: %q", tt.cron, tt.in, got)
			}
		}
		if n := k.column(`select id from schedules`); len(n) != 0 {
			t.Errorf("%d schedules are there", len(n))
		}
	})
}

// The same definition changes nothing, also after its instant has passed or its
// calendar was changed.
func TestTheSameTimesChangeNothing(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.calendar("holidays", "2000-01-05")
		apply := func(in client.ScheduleRequest) (what string) {
			k.write(func(ctx context.Context, tx *store.Tx) (err error) {
				what, _, _, err = k.s.Apply(ctx, tx, k.owner, in, "tester")
				return err
			})
			return what
		}
		list := []client.ScheduleRequest{
			timed("once", "", client.Timing{At: "2000-01-01T00:01:00Z"}),
			timed("interval", "", client.Timing{Interval: "30s", Jitter: "2s"}),
			timed("holidays", client.Crons("0 * * * *", "30 * * * *"), client.Timing{Except: []string{"calendar:holidays"}, MaxRuns: 5}),
		}
		for _, want := range []string{Created, Unchanged} {
			for _, in := range list {
				if got := apply(in); got != want {
					t.Errorf("%s: %s, want %s", in.Name, got, want)
				}
			}
		}
		k.pass(2 * time.Minute)
		k.calendar("holidays", "2000-01-06")
		for _, in := range list {
			if got := apply(in); got != Unchanged {
				t.Errorf("%s: %s after a while", in.Name, got)
			}
			in.MaxRuns, in.Except, in.Jitter = 7, nil, ""
			if in.At != "" {
				continue
			}
			if got := apply(in); got != Updated {
				t.Errorf("%s: %s with other times", in.Name, got)
			}
		}
	})
}

// A change of a calendar plans the schedules that use it anew, and no others: a
// slot that waits is excluded, and waits again when the day is taken back.
func TestAChangedCalendarPlansAnew(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.calendar("holidays", "1999-12-31")
		k.calendar("holidays_x", "1999-12-31")
		uses := k.create(timed("uses", "0 12 * * *", client.Timing{Except: []string{"calendar:holidays"}}))
		other := k.create(timed("other", "0 12 * * *", client.Timing{Except: []string{"calendar:holidays_x"}}))
		plain := k.create(timed("plain", "0 12 * * *", client.Timing{}))
		k.calendar("holidays", "2000-01-01/2000-01-02")
		k.wantStory(uses, "12:00 skipped excluded", "12:00 pending")
		if now := k.schedule(uses.ID); !now.NextRunAt.Equal(time.Date(2000, 1, 3, 12, 0, 0, 0, time.UTC)) || now.Revision != uses.Revision+1 {
			t.Errorf("%+v", now)
		}
		if slot := k.slots(uses)[0]; slot.ErrorMessage != "The time is left out: except the calendar holidays has 2000-01-01/2000-01-02." {
			t.Errorf("%q", slot.ErrorMessage)
		}
		if y := k.whyOf(uses, time.Date(2000, 1, 2, 12, 0, 0, 0, time.UTC)); !strings.Contains(y.Around.Text, "the calendar holidays has 2000-01-01/2000-01-02") {
			t.Errorf("why: %s", y.Around.Text)
		}
		for _, sch := range []schedulestore.Schedule{other, plain} {
			if now := k.schedule(sch.ID); now.Revision != sch.Revision {
				t.Errorf("%s was planned anew", sch.Name)
			}
		}
		k.calendar("holidays", "2000-01-02")
		k.wantStory(uses, "12:00 pending", "12:00 skipped superseded")
		k.pass(12*time.Hour + time.Minute)
		if got := k.graph.executed(uses.ID); !slices.Equal(got, []string{"12:00"}) {
			t.Errorf("executed %v", got)
		}
		// A backfill goes by the days that were in force.
		k.calendar("holidays", "2000-01-01/2000-12-31")
		if slot := k.slots(uses)[0]; slot.Status != "success" {
			t.Errorf("%+v", slot)
		}
	})
}

// A calendar that is used cannot be deleted, and cannot leave out everything; who
// may not see a schedule is not told its name.
func TestACalendarIsUsed(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.calendar("holidays", "2000-01-05")
		sch := k.create(timed("mine", "0 12 * * *", client.Timing{Except: []string{"calendar:holidays"}, Until: "2000-01-07"}))
		remove := func(owner string) *pawl.Error {
			return k.try(func(ctx context.Context, tx *store.Tx) error {
				return k.s.Calendars().Delete(ctx, tx, "holidays", owner, "tester")
			})
		}
		if e := remove(k.owner); e == nil || e.Reason != "calendar_used" || !strings.Contains(e.Msg, "schedule mine") {
			t.Errorf("%v", e)
		}
		if e := remove("somebody"); e == nil || e.Reason != "calendar_used" || strings.Contains(e.Msg, "mine") || !strings.Contains(e.Msg, "1 others") {
			t.Errorf("%v", e)
		}
		e := k.try(func(ctx context.Context, tx *store.Tx) error {
			_, _, _, err := k.s.Calendars().Apply(ctx, tx, client.CalendarRequest{Name: "holidays", Days: []string{"2000-01-01/2000-01-31"}}, "tester")
			return err
		})
		if e == nil || e.Code != pawl.CodeInvalid || e.Fields[0].Pointer != "/days" || !strings.Contains(e.Fields[0].Message, "never runs") {
			t.Errorf("%v", e)
		}
		k.wantStory(sch, "12:00 pending")
		k.update(sch, client.SchedulePatch{TimingPatch: client.TimingPatch{Except: &[]string{}}})
		k.write(func(ctx context.Context, tx *store.Tx) error {
			return k.s.Calendars().Delete(ctx, tx, "holidays", k.owner, "tester")
		})
		if e := remove(k.owner); e == nil || e.Code != pawl.CodeNotFound {
			t.Errorf("deleted twice: %v", e)
		}
		k.refusedAt(timed("late", "0 12 * * *", client.Timing{Except: []string{"calendar:holidays"}}))
		k.calendar("holidays", "2000-01-05") // again; its versions go on
		if got := k.column(`select revision from calendar_versions where name = 'holidays' order by revision`); !slices.Equal(got, []string{"1", "2"}) {
			t.Errorf("revisions %v", got)
		}
	})
}

// A crash on either side of a calendar's change leaves all of it or nothing.
func TestACalendarChangesWholeOrNotAtAll(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.calendar("holidays", "1999-12-31")
		var all []schedulestore.Schedule
		for i := range 5 {
			all = append(all, k.create(timed(fmt.Sprint("s", i), "0 12 * * *", client.Timing{Except: []string{"calendar:holidays"}})))
		}
		e := k.try(func(ctx context.Context, tx *store.Tx) error {
			if _, _, _, err := k.s.Calendars().Apply(ctx, tx, client.CalendarRequest{Name: "holidays", Days: []string{"2000-01-01"}}, "tester"); err != nil {
				return err
			}
			return &pawl.Error{Code: pawl.CodeInternal, Msg: "died before the commit"}
		})
		if e == nil {
			t.Fatal("no error")
		}
		k.kill()
		k.start()
		for _, sch := range all {
			k.wantStory(sch, "12:00 pending")
		}
		k.calendar("holidays", "2000-01-01")
		k.kill()
		k.start()
		for _, sch := range all {
			k.wantStory(sch, "12:00 skipped excluded", "12:00 pending")
		}
		k.pass(36*time.Hour + time.Minute)
		for _, sch := range all {
			if got := k.slots(sch); len(got) != 3 || got[1].Status != "success" || got[1].ScheduledFor.Day() != 2 {
				t.Errorf("%v", k.story(sch))
			}
		}
	})
}

// 29 February, a day that is left out, and a backfill over it: what is excluded is
// not made up for.
func TestABackfillLeavesOutExceptions(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(timed("s", "0 12 * * *", client.Timing{Except: []string{"1999-12-25/1999-12-26"}}))
		k.write(func(ctx context.Context, tx *store.Tx) error {
			plan, err := k.s.plan(ctx, tx, sch, BackfillAsk{From: time.Date(1999, 12, 24, 0, 0, 0, 0, time.UTC), To: time.Date(1999, 12, 29, 0, 0, 0, 0, time.UTC), PerMinute: 1})
			var days []int
			for _, slot := range plan.Slots {
				days = append(days, slot.At.Day())
			}
			if !slices.Equal(days, []int{24, 27, 28}) {
				t.Errorf("days %v", days)
			}
			return err
		})
	})
}

// A plain why names what keeps a schedule from running at the time before its next one.
func TestWhyNamesTheException(t *testing.T) {
	onSQLite(t, func(t *testing.T, k *kit) {
		in := ask("s", "")
		in.Cron, in.Except = "0 * * * *", []string{"* 1 * * *"}
		sch := k.create(in)
		k.pass(30 * time.Minute)
		want := `The next slot is that of 2000-01-01T02:00:00.000Z. 2000-01-01T01:00:00.000Z is left out: except "* 1 * * *".`
		if gates := k.whyOf(sch, time.Time{}).Gates; gates[2].Text != want {
			t.Errorf("%+v", gates)
		}
		k.pass(time.Hour)
		if gates := k.whyOf(sch, time.Time{}).Gates; gates[2].Text != "The next slot is that of 2000-01-01T02:00:00.000Z." {
			t.Errorf("%+v", gates)
		}
	})
}

// What people ask for does not count towards maxRuns, and is not kept from running by
// it.
func TestASpentScheduleRunsOnRequest(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(timed("s", "* * * * *", client.Timing{MaxRuns: 1}))
		k.pass(90 * time.Second)
		k.runNow(sch)
		k.pass(time.Second)
		k.wantStory(sch, "00:01 success", "00:01 success")
		if now := k.schedule(sch.ID); now.Begun != 1 {
			t.Errorf("%d count", now.Begun)
		}
	})
}

// A slot whose job comes too early, by whatever wakes it, waits for its time.
func TestASlotThatIsWokenEarlyWaits(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(ask("s", ""))
		k.change(`update jobs set run_at = $1 where task = $2`, time.Now().UnixMilli(), TaskName)
		k.pass(30 * time.Second)
		k.wantStory(sch, "00:01 pending")
		k.pass(40 * time.Second)
		k.wantStory(sch, "00:01 success", "00:02 pending")
	})
}

// Of an instant to come the schedule tells whether it has a slot then, and else which is
// the next.
func TestWhyOfATimeToCome(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(timed("s", "*/10 * * * *", client.Timing{Except: []string{"30 * * * *"}, Until: "2000-01-01T01:00"}))
		k.pass(15 * time.Minute)
		for minute, want := range map[int]string{
			20: "The slot of 2000-01-01T00:20:00.000Z waits.",
			40: "That time is in the future. Its slot is to come.",
			41: "That time is in the future. The next slot from then on is that of 2000-01-01T00:50:00.000Z.",
			30: `Nothing runs at 2000-01-01T00:30:00.000Z: except "30 * * * *".`,
			70: "Nothing runs at 2000-01-01T01:10:00.000Z: the schedule has ended.",
			71: "That time is in the future.",
		} {
			if got := k.whyOf(sch, at(minute)).Around.Text; got != want {
				t.Errorf("of minute %d: %s", minute, got)
			}
		}
		k.pauseFor(sch, 0, "")
		if got := k.whyOf(sch, at(40)).Around.Text; got != "That time is in the future." {
			t.Errorf("while it is paused: %s", got)
		}
	})
}

// An interval counts on whatever else is changed, and anew once it is another one.
func TestAnIntervalCountsOn(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(timed("s", "", client.Timing{Interval: "10m"}))
		k.pass(3 * time.Minute)
		if now := k.update(sch, client.SchedulePatch{TimingPatch: client.TimingPatch{Until: new("2999-01-01")}}); !now.NextRunAt.Equal(at(10)) {
			t.Errorf("with an end it runs next at %s", now.NextRunAt)
		}
		if now := k.update(sch, client.SchedulePatch{TimingPatch: client.TimingPatch{Interval: new("20m")}}); !now.NextRunAt.Equal(at(23)) {
			t.Errorf("with another interval it runs next at %s", now.NextRunAt)
		}
	})
}

// A change is judged as what is new: a zone in which the instant is over is refused, and
// so is a policy that nobody knows.
func TestAChangeThatNeverRunsIsRefused(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(timed("s", "", client.Timing{At: "2000-01-01T00:30"}))
		for place, in := range map[string]client.SchedulePatch{
			"/at":            {Timezone: new("Asia/Tokyo")},
			"/missed/policy": {Missed: &client.Missed{Policy: "some"}},
			"/missed/within": {Missed: &client.Missed{Policy: "last", Within: "soon"}},
		} {
			e := k.try(func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.Update(ctx, tx, k.owner, sch.ID, in, "tester")
				return err
			})
			if e.Code != pawl.CodeInvalid || len(e.Fields) != 1 || e.Fields[0].Pointer != place {
				t.Errorf("%s: %+v", place, e)
			}
		}
		k.update(sch, client.SchedulePatch{Timezone: new("America/New_York")})
	})
}
