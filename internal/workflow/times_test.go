package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

func TestLimitsOfProducers(t *testing.T) {
	hold(t,
		behaviour{"a producer runs within its limits, its first time too", producerKeepsItsLimits},
		behaviour{"what came due while nobody was there runs as the script says", producerRunsLateAsItSays},
		behaviour{"of an interval, too", intervalRunsLateAsItSays},
		behaviour{"jitter moves the start and not the instant", jitterMovesTheStart},
		behaviour{"a crash on either side of a start or a commit loses and repeats no instant", crashKeepsInstants},
		behaviour{"the attempts of a run stand for the same instant", attemptsStandForOneInstant},
		behaviour{"a run that was asked for stands for no instant and takes none", askedForStandsForNone},
		behaviour{"very many missed instants are bounded", veryManyMissed},
		behaviour{"a change of a calendar plans producers anew, and one that is used stays", calendarsOfProducers},
		behaviour{"why tells what is left out, and what became of what was missed", whyTellsLimits},
		behaviour{"a schedule that never runs is refused, and changes nothing", neverRunsIsRefused},
		behaviour{"a deploy that leaves the schedule keeps its time", deployKeepsPlans},
		behaviour{"a replay sees the instant that the run stood for", replaySeesTheInstant},
	)
}

// standing is a producer that notes the instants that it runs for.
func standing(s Schedule, seen *[]string) definition {
	return producing(nil).producer("p", s, func(c *goCtx, _ []json.RawMessage) any {
		text := "none"
		if !c.scheduledFor.IsZero() {
			text = c.scheduledFor.Format("02 15:04")
		}
		*seen = append(*seen, text)
		return nothing{}
	})
}

// taken returns what was noted since the last call.
func taken(seen *[]string) string {
	list := strings.Join(*seen, ", ")
	*seen = nil
	return list
}

func producerKeepsItsLimits(t *testing.T, k *kit) {
	var seen []string
	from := time.Now().Add(5 * time.Hour).Format(time.RFC3339)
	until := time.Now().Add(30 * time.Hour).Format(time.RFC3339)
	w := k.deploy("limits", "1", standing(Schedule{Cron: "0 */2 * * *", From: from, Until: until, Except: []string{"* 8-21 * * *"}}, &seen))
	k.follow(w, 4*24*time.Hour)
	expect(t, "runs", taken(&seen), "01 06:00, 01 22:00, 02 00:00, 02 02:00, 02 04:00, 02 06:00")
	if d := k.look("limits"); !d.Schedules[0].NextRunAt.IsZero() || !d.NextAt.IsZero() || !strings.Contains(d.Lane.Schedule, "until") {
		t.Errorf("it has ended, and says %+v, %v, %q", d.Schedules[0], d.NextAt, d.Lane.Schedule)
	}
	now := k.deploy("limits-now", "1", standing(Schedule{Cron: "0 3 * * *", Until: time.Now().AddDate(0, 0, 2).Format(time.DateOnly)}, &seen))
	k.follow(now, 4*24*time.Hour)
	expect(t, "runs of one that is not left out now", taken(&seen), "05 00:00, 05 03:00, 06 03:00, 07 03:00")
}

func producerRunsLateAsItSays(t *testing.T, k *kit) {
	for _, test := range []struct {
		name   string
		missed *client.Missed
		want   string
	}{
		{"nothing", nil, "03:00, 07:00"},
		{"skip", &client.Missed{Policy: "skip"}, "07:00"},
		{"last", &client.Missed{Policy: "last"}, "06:00, 07:00"},
		{"too-old", &client.Missed{Policy: "last", Within: "20m"}, "07:00"},
		{"all", &client.Missed{Policy: "all"}, "03:00, 04:00, 05:00, 06:00, 07:00"},
		{"within", &client.Missed{Policy: "all", Within: "2h"}, "05:00, 06:00, 07:00"},
	} {
		var seen []string
		pass(time.Until(time.Now().Truncate(24 * time.Hour).Add(24*time.Hour + 30*time.Minute)))
		day := time.Now().Format("02 ")
		w := k.deploy("late-"+test.name, "1", standing(Schedule{Cron: "0 * * * *", Missed: test.missed}, &seen))
		k.follow(w, 2*time.Hour)
		expect(t, test.name+": runs", taken(&seen), day+"00:30, "+day+"01:00, "+day+"02:00")
		pass(4 * time.Hour) // 06:30
		k.start("after-" + test.name)
		k.follow(w, time.Hour)
		expect(t, test.name+": runs after a while", taken(&seen), day+strings.ReplaceAll(test.want, ", ", ", "+day))
		for _, r := range k.runs(w) {
			if r.Handler == "p" && (r.ScheduledFor.IsZero() || r.Trigger != triggerSchedule) {
				t.Errorf("%s: run %s stands for %v, by %s", test.name, r.ID, r.ScheduledFor, r.Trigger)
			}
		}
	}
}

// An interval whose missed instants matter has fixed ones: they count from the
// deploy, or from its from.
func intervalRunsLateAsItSays(t *testing.T, k *kit) {
	var seen []string
	pass(7 * time.Minute)
	w := k.deploy("every", "1", standing(Schedule{Interval: "20m", Missed: &client.Missed{Policy: "all", Within: "1h"}}, &seen))
	k.follow(w, 25*time.Minute) // 00:32
	pass(2 * time.Hour)
	k.follow(w, 10*time.Minute) // 02:42
	expect(t, "runs", taken(&seen), "01 00:07, 01 00:27, 01 01:47, 01 02:07, 01 02:27")
	begin := time.Now().Truncate(time.Hour).Format(time.RFC3339)
	w = k.deploy("every-from", "1", standing(Schedule{Interval: "25m", From: begin, Except: []string{"50 * * * *"}}, &seen))
	k.follow(w, 80*time.Minute) // 04:02
	expect(t, "runs", taken(&seen), "01 02:42, 01 03:15, 01 03:40")
}

func jitterMovesTheStart(t *testing.T, k *kit) {
	var seen []string
	w := k.deploy("jitter", "1", standing(Schedule{Cron: "0 * * * *", Jitter: "40m"}, &seen))
	k.follow(w, 12*time.Hour)
	late := map[time.Duration]bool{}
	for _, r := range k.runs(w) {
		if r.Handler != "p" || sameInstant(r.CreatedAt, r.ScheduledFor) && r.CreatedAt.Hour() == 0 {
			continue
		}
		d := r.CreatedAt.Sub(r.ScheduledFor)
		if d < 0 || d >= 40*time.Minute || r.ScheduledFor.Minute() != 0 {
			t.Errorf("the run of %v began at %v", r.ScheduledFor, r.CreatedAt)
		}
		late[d.Truncate(time.Minute)] = true
	}
	if len(late) < 6 {
		t.Errorf("they are late by %v", late)
	}
	want := "01 00:00, 01 01:00, 01 02:00, 01 03:00, 01 04:00, 01 05:00, 01 06:00, 01 07:00, 01 08:00, 01 09:00, 01 10:00, 01 11:00"
	if got := taken(&seen); got != want && got != want+", 01 12:00" {
		t.Errorf("runs: %s", got)
	}
	before := k.look("jitter").NextAt
	k.start("another")
	if after := k.look("jitter").NextAt; !after.Equal(before) || after.Minute() == 0 && after.Second() == 0 {
		t.Errorf("another process starts at %v, not %v", after, before)
	}
}

func crashKeepsInstants(t *testing.T, k *kit) {
	for i, place := range []string{"begun", "before commit", "committed"} {
		for _, through := range []bool{false, true} {
			k.through = through
			k.start(fmt.Sprintf("begin-%d-%v", i, through))
			pass(time.Until(time.Now().Truncate(24 * time.Hour).Add(24*time.Hour + 30*time.Minute)))
			var seen []string
			day := time.Now().Truncate(24 * time.Hour)
			w := k.deploy(fmt.Sprintf("crash-%d-%v", i, through), "1", standing(Schedule{Cron: "0 * * * *", Missed: &client.Missed{Policy: "all"}}, &seen))
			k.follow(w, time.Minute)
			pass(4 * time.Hour) // 04:31
			for n := 1; n <= 2; n++ {
				if !k.crashAt(w, place, n) {
					t.Errorf("%s: the run does not come by", place)
				}
			}
			k.follow(w, time.Minute)
			committed := map[string]int{}
			for _, r := range k.runs(w) {
				if r.Handler == "p" && r.Status == pawl.StatusCommitted && r.ScheduledFor.After(day.Add(31*time.Minute)) {
					committed[r.ScheduledFor.Format("15:04")]++
				}
			}
			expect(t, fmt.Sprintf("crash at %s (%v)", place, through), committed, map[string]int{"01:00": 1, "02:00": 1, "03:00": 1, "04:00": 1})
		}
	}
}

func attemptsStandForOneInstant(t *testing.T, k *kit) {
	var seen []string
	fails := 0
	d := standing(Schedule{Cron: "0 * * * *", Missed: &client.Missed{Policy: "last"}}, &seen)
	note := d.handlers["producers.p.handler"]
	w := k.deploy("attempts", "1", d.handler("producers.p.handler", func(c *goCtx, args []json.RawMessage) any {
		note(c, args)
		if fails > 0 {
			fails--
			c.tool("desk", "read", map[string]any{"fail": true})
		}
		return nothing{}
	}))
	k.follow(w, time.Minute)
	taken(&seen)
	fails = 3
	k.desk.fail(pawl.ClassTransient)
	k.follow(w, time.Hour)
	k.desk.clear()
	k.follow(w, 30*time.Minute)
	expect(t, "attempts", taken(&seen), "01 01:00, 01 01:00, 01 01:00, 01 01:00")
}

func askedForStandsForNone(t *testing.T, k *kit) {
	var seen []string
	pass(30 * time.Minute)
	w := k.deploy("asked", "1", standing(Schedule{Cron: "0 * * * *", Missed: &client.Missed{Policy: "all"}}, &seen))
	k.follow(w, time.Minute)
	taken(&seen)
	if err := k.runNow("asked"); err != nil {
		t.Fatal(err)
	}
	k.follow(w, time.Hour)
	expect(t, "runs", taken(&seen), "none, 01 01:00")
	pass(2 * time.Hour) // 03:31
	if err := k.runNow("asked"); err != nil {
		t.Fatal(err)
	}
	k.follow(w, time.Minute)
	expect(t, "runs that were asked for before those that were missed", taken(&seen), "none, 01 02:00, 01 03:00")
}

func veryManyMissed(t *testing.T, k *kit) {
	var seen []string
	w := k.deploy("many", "1", standing(Schedule{Cron: "* * * * *", Missed: &client.Missed{Policy: "all"}}, &seen))
	k.work(w)
	pass(100_000 * time.Minute)
	k.start("later")
	taken(&seen)
	if y := k.look("many"); y.NextAt.After(time.Now()) {
		t.Errorf("it is due at %v", y.NextAt)
	}
	k.work(w)
	first := time.Now().Add(-999 * time.Minute).Format("02 15:04")
	if len(seen) == 0 || seen[0] != first {
		t.Errorf("the first of %d that run late is that of %s, not %s", len(seen), seen[:min(3, len(seen))], first)
	}
	if a := k.around("many", time.Now().Add(-5000*time.Minute)); a.Stood != nil || !strings.Contains(a.Text, "No run of p stood for it: it could not begin at its time, and missed: all leaves it out") {
		t.Errorf("%q", a.Text)
	}
	if a := k.around("many", time.Now().Add(-999*time.Minute)); a.Stood == nil || !a.Stood.ScheduledFor.Equal(time.Now().Add(-999*time.Minute)) {
		t.Errorf("%q", a.Text)
	}
}

// calendar sets the days of a calendar.
func (k *kit) calendar(name string, days ...string) error {
	return k.do(func(ctx context.Context, tx *store.Tx) error {
		_, _, _, err := k.s.cfg.Calendars.Apply(ctx, tx, client.CalendarRequest{Name: name, Days: days}, "tester")
		return err
	})
}

func calendarsOfProducers(t *testing.T, k *kit) {
	var seen []string
	day := func(n int) string { return time.Now().Truncate(24*time.Hour).AddDate(0, 0, n).Format(time.DateOnly) }
	if err := k.calendar("free", day(1)); err != nil {
		t.Fatal(err)
	}
	w := k.deploy("calendars", "1", standing(Schedule{Cron: "0 12 * * *", Except: []string{"calendar:free"}}, &seen))
	first := k.workflow("calendars").Revision
	k.follow(w, 23*time.Hour)
	expect(t, "next", k.schedules(w)["p"].NextRunAt.Format(time.DateOnly), day(2))
	if err := k.calendar("free"); err != nil {
		t.Fatal(err)
	}
	expect(t, "next without the day", k.schedules(w)["p"].NextRunAt.Format(time.DateOnly), day(1))
	if err := k.calendar("free", day(1)+"/"+day(3)); err != nil {
		t.Fatal(err)
	}
	expect(t, "next with more days", k.schedules(w)["p"].NextRunAt.Format(time.DateOnly), day(4))
	if now := k.workflow("calendars").Revision; now != first+2 {
		t.Errorf("the revision is %d, was %d: a step that was decided on before is not refused", now, first)
	}
	k.start("later")
	k.follow(w, 5*24*time.Hour)
	expect(t, "runs", taken(&seen), fmt.Sprintf("%s 00:00, %[1]s 12:00, %[2]s 12:00, %[3]s 12:00", day(-5)[8:], day(-1)[8:], day(0)[8:]))
	err := k.do(func(ctx context.Context, tx *store.Tx) error {
		return k.s.cfg.Calendars.Delete(ctx, tx, "free", "", "tester")
	})
	if err == nil || !strings.Contains(err.Error(), "is used by workflow calendars") {
		t.Errorf("the calendar is deleted: %v", err)
	}
	err = k.do(func(ctx context.Context, tx *store.Tx) error {
		return k.s.cfg.Calendars.Delete(ctx, tx, "free", "somebody", "tester")
	})
	if err == nil || strings.Contains(err.Error(), "workflow calendars") {
		t.Errorf("somebody who sees only what is theirs reads %v", err)
	}
	if err := k.calendar("free", "0001-01-01/9999-12-31"); pawl.ErrorCode(err) != pawl.CodeInvalid {
		t.Errorf("a calendar of all days: %v", err)
	}
	if err := k.remove("calendars"); err != nil {
		t.Fatal(err)
	}
	if err := k.do(func(ctx context.Context, tx *store.Tx) error {
		return k.s.cfg.Calendars.Delete(ctx, tx, "free", "", "tester")
	}); err != nil {
		t.Errorf("nobody uses it any more: %v", err)
	}
}

func whyTellsLimits(t *testing.T, k *kit) {
	var seen []string
	day := time.Now()
	if err := k.calendar("why-free", day.AddDate(0, 0, 1).Format(time.DateOnly)); err != nil {
		t.Fatal(err)
	}
	missed := &client.Missed{Policy: "all", Within: "2h"}
	w := k.deploy("why-limits", "1", standing(Schedule{Cron: "0 * * * *", Except: []string{"calendar:why-free", "* 3 * * *"}, Missed: missed}, &seen))
	k.follow(w, 5*time.Hour+30*time.Minute)
	pass(4 * time.Hour) // 09:30
	k.follow(w, 26*time.Hour)
	for at, want := range map[time.Duration]string{
		3 * time.Hour:  `Nothing of p runs then: except "* 3 * * *".`,
		6 * time.Hour:  "No run of p stood for it: it could not begin at its time, and missed: all leaves it out. The one before it stood for 20",
		8 * time.Hour:  " of p stood for it. It began at ",
		9 * time.Hour:  " of p stood for it. It began at ",
		30 * time.Hour: "Nothing of p runs then: except the calendar why-free has ",
	} {
		a := k.around("why-limits", day.Add(at))
		if !strings.Contains(a.Text, want) {
			t.Errorf("%v: %q, want %q", at, a.Text, want)
		}
		if stood := a.Stood != nil; stood != strings.Contains(want, "It began") || stood && !a.Stood.ScheduledFor.Equal(day.Add(at)) {
			t.Errorf("%v: %+v", at, a.Stood)
		}
	}
	why, err := k.s.Why(t.Context(), lane.Viewer{}, "why-limits", time.Time{}) // at 11:30 of the day that is left out
	if i := slices.IndexFunc(why.Gates, func(g lane.Gate) bool { return g.Name == "due" }); err != nil || !strings.Contains(why.Gates[i].Text, pawl.FormatTime(day.Add(36*time.Hour))+" of p is left out: except the calendar why-free has ") {
		t.Errorf("why: %+v (%v)", why.Gates, err)
	}
	var marks int
	due, _, err := k.s.Due(t.Context(), "", time.Now().AddDate(0, 0, 30), 1000)
	for _, d := range due {
		if d.Name == "why-limits" && d.Schedule.Excluded(day.Add(30*time.Hour)) != "" {
			marks++
		}
	}
	if err != nil || marks != 1 {
		t.Errorf("what comes due does not know what is left out: %v", err)
	}
}

func neverRunsIsRefused(t *testing.T, k *kit) {
	if err := k.calendar("always", "0001-01-01/9999-12-31"); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		schedule Schedule
		want     string
	}{
		"over":    {Schedule{Cron: "0 3 * * *", Until: "2024-12-24"}, `producer "p": schedule: it never runs: nothing is left before 2024-12-24`},
		"all":     {Schedule{Interval: "5m", Except: []string{"calendar:always"}}, `producer "p": schedule: it never runs: the exceptions leave out every instant`},
		"unknown": {Schedule{Interval: "5m", Except: []string{"calendar:nobody"}}, `producer "p": schedule: there is no calendar "nobody"`},
		"date":    {Schedule{Interval: "5m", Except: []string{"2026-02-30"}}, `producer "p": schedule: "2026-02-30" is not a date of the calendar`},
		"policy":  {Schedule{Interval: "5m", Missed: &client.Missed{Policy: "some"}}, `producer "p": schedule.missed.policy must be skip, last or all, not "some"`},
		"within":  {Schedule{Interval: "5m", Missed: &client.Missed{Policy: "all", Within: "500d"}}, `producer "p": schedule.missed.within must be a length of time of at most a year`},
		"jitter":  {Schedule{Interval: "5m", Jitter: "48h"}, `producer "p": schedule: the jitter 48h is too long`},
		"zone":    {Schedule{Interval: "5m", From: "2026-01-01", Timezone: "Europe/Nowhere"}, `Europe/Nowhere`},
		"backs":   {Schedule{Interval: "5m", From: "2026-01-02", Until: "2026-01-01"}, `producer "p": schedule: 2026-01-01 lies before 2026-01-02`},
	} {
		for _, dry := range []bool{true, false} {
			_, err := k.s.Apply(t.Context(), Deploy{Filename: "w.ts", Script: k.define("never-"+name, "1", standing(test.schedule, new([]string))), By: "tester", DryRun: dry})
			if pawl.ErrorCode(err) != pawl.CodeInvalid || !strings.Contains(fmt.Sprint(fieldsIn(err)), test.want) || !strings.Contains(fmt.Sprint(fieldsIn(err)), "w.ts:1:1") {
				t.Errorf("%s: %v, want %q", name, fieldsIn(err), test.want)
			}
		}
		k.read(func(ctx context.Context, tx *store.Tx) error {
			if _, err := workflowstore.In(tx).WorkflowByName(ctx, "never-"+name); pawl.ErrorCode(err) != pawl.CodeNotFound {
				t.Errorf("%s: it is there: %v", name, err)
			}
			return nil
		})
	}
}

func fieldsIn(err error) []pawl.Field {
	e, _ := err.(*pawl.Error) //nolint:errorlint // what a deploy returns
	if e == nil {
		return nil
	}
	return e.Fields
}

func deployKeepsPlans(t *testing.T, k *kit) {
	var seen []string
	missed := &client.Missed{Policy: "all"}
	until := time.Now().Add(2 * time.Hour).Format(time.RFC3339)
	every := Schedule{Interval: "20m", Until: until, Missed: missed}
	w := k.deploy("keeps", "1", standing(every, &seen))
	k.follow(w, 30*time.Minute)
	before := k.schedules(w)["p"]
	k.deploy("keeps", "2", standing(every, &seen))
	if after := k.schedules(w)["p"]; after != before {
		t.Errorf("it was %+v, and is %+v", before, after)
	}
	k.follow(w, 3*time.Hour)
	expect(t, "runs", taken(&seen), "01 00:00, 01 00:20, 01 00:40, 01 01:00, 01 01:20, 01 01:40, 01 02:00")
	k.deploy("keeps", "3", standing(every, &seen)) // what was planned before may have ended
	every.Until = ""
	k.deploy("keeps", "4", standing(every, &seen))
	k.follow(w, 25*time.Minute)
	expect(t, "runs after a change", taken(&seen), "01 03:30, 01 03:50")
}

func replaySeesTheInstant(t *testing.T, k *kit) {
	var seen []string
	pass(30 * time.Minute)
	w := k.deploy("replay", "1", standing(Schedule{Cron: "0 * * * *", Jitter: "30m"}, &seen))
	k.follow(w, 2*time.Hour)
	if err := k.runNow("replay"); err != nil {
		t.Fatal(err)
	}
	k.work(w)
	did := taken(&seen)
	pass(24 * time.Hour)
	for _, r := range k.runs(w) {
		if r.Handler != "p" {
			continue
		}
		if again, err := k.s.Replay(t.Context(), r.ID, "", ""); err != nil || again.Failure != "" {
			t.Errorf("%+v, %v", again, err)
		}
	}
	if again := taken(&seen); !strings.HasPrefix(did, "01 00:30, 01 01:00") || !strings.HasSuffix(did, ", none") || len(strings.Split(again, ", ")) != len(strings.Split(did, ", ")) {
		t.Errorf("they ran for %s, and again for %s", did, again)
	} else {
		for one := range strings.SplitSeq(did, ", ") {
			if !strings.Contains(again, one) {
				t.Errorf("they ran for %s, and again for %s", did, again)
			}
		}
	}
}
