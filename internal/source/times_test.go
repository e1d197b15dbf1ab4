package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/timing"
)

// halfPast is an expression whose instants are half an hour away, and the last of
// them.
func halfPast() (cron string, last time.Time) {
	now := time.Now().UTC()
	last = now.Truncate(time.Minute).Add(-30 * time.Minute)
	return fmt.Sprintf("%d * * * *", last.Minute()), last
}

// ranBefore makes a source look as if its last run had stood for an instant.
func (k *kit) ranBefore(name string, stood time.Time) {
	k.t.Helper()
	v := k.look(name)
	plan := v.plan
	plan.Since = 1
	k.change(`update source_state set plan = $1, stood_for = $2, last_success_at = $2 where source_id = $3`, plan.Encode(), stood.UnixMilli(), v.source.ID)
	k.change(`update source_definitions set created_at = $1 where name = $2`, stood.Add(-time.Hour).UnixMilli(), name)
	k.change(`update runs set scheduled_for = $1, created_at = $1, ended_at = $1 where lane = $2`, stood.UnixMilli(), name)
}

// stands are the instants that the runs of a source stand for, as they were told
// to the server in a parameter, each as hours before the last.
func (k *kit) stands(last time.Time) (out []string) {
	k.t.Helper()
	k.api.mu.Lock()
	defer k.api.mu.Unlock()
	for _, text := range k.api.requests {
		u, err := url.Parse(text)
		if err != nil {
			k.t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, u.Query().Get("at"))
		if err != nil || u.Query().Get("day") != at.In(time.FixedZone("", 9*3600)).Format(time.DateOnly) {
			k.t.Fatalf("%s: %v", text, err)
		}
		out = append(out, fmt.Sprint(int(last.Sub(at).Hours())))
	}
	k.api.requests = nil
	return out
}

const told = "params: [{name: at, value: \"{scheduledFor}\"}, {name: day, value: \"{scheduledFor:date}\"}]\n"

// Surface 2, 1: a source runs for the instants that it could not run at as its
// definition says; without a word about it one fetch stands for all of them, as
// ever.
func TestSourcesRunLateAsTheySay(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for _, test := range []struct {
			name, missed string
			want         []string
		}{
			{"nothing", "", []string{"3"}},
			{"skip", ", missed: {policy: skip}", nil},
			{"last", ", missed: {policy: last}", []string{"0"}},
			{"old", ", missed: {policy: last, within: 20m}", nil},
			{"all", ", missed: {policy: all}", []string{"3", "2", "1", "0"}},
			{"within", ", missed: {policy: all, within: 2h}", []string{"1", "0"}},
			{"except", ", missed: {policy: all}, except: [\"EXCEPT\"]", []string{"3", "1", "0"}},
		} {
			cron, last := halfPast()
			local := last.Add(-2 * time.Hour).In(time.FixedZone("", 9*3600))
			missed := strings.ReplaceAll(test.missed, "EXCEPT", fmt.Sprintf("* %d * * *", local.Hour()))
			src := k.apply(definition(test.name, "/whole", told+"schedule: {cron: \""+cron+"\", timezone: Asia/Tokyo"+missed+"}\n"))
			k.work(src)
			k.ranBefore(test.name, last.Add(-4*time.Hour))
			k.api.requests = nil
			k.start("another")
			var until time.Time
			for range 10 {
				if until = k.work(src); until.After(time.Now()) {
					break
				}
			}
			if got := k.stands(last); !slices.Equal(got, test.want) {
				t.Errorf("%s: it ran for %v, want %v", test.name, got, test.want)
			}
			if next := last.Add(time.Hour); !until.Equal(next) || !k.look(test.name).dueAt().Equal(next) {
				t.Errorf("%s: it runs next at %v, want %v", test.name, until, next)
			}
			for _, at := range k.column(`select cast(scheduled_for as text) from runs where lane = $1 and trigger = 'schedule' and scheduled_for % 60000 <> 0`, test.name) {
				t.Errorf("%s: a run stands for %s", test.name, at)
			}
		}
	})
}

// The instant is stored with the begin of its run: a crash on either side of any
// step loses none and repeats none, and every attempt tells the server the same.
func TestACrashKeepsTheInstantsOfASource(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		cron, last := halfPast()
		for crash := 1; ; crash++ {
			name := fmt.Sprintf("s%d", crash)
			src := k.apply(definition(name, "/whole", told+"schedule: {cron: \""+cron+"\", timezone: Asia/Tokyo, missed: {policy: all}}\n"))
			k.work(src)
			k.ranBefore(name, last.Add(-2*time.Hour))
			k.api.requests = nil
			left := crash
			k.fault = func(string) error {
				if left--; left == 0 {
					return errFault
				}
				return nil
			}
			_, err := k.s.work(t.Context(), k, src.ID)
			k.fault = nil
			if err != nil && !errors.Is(err, errFault) {
				t.Fatal(err)
			}
			k.start("n")
			for range 5 {
				if k.work(src).After(time.Now()) {
					break
				}
			}
			if got := slices.Compact(k.stands(last)); !slices.Equal(got, []string{"1", "0"}) {
				t.Errorf("crash %d: it ran for %v", crash, got)
			}
			committed := k.column(`select cast(scheduled_for as text) from runs where status = 'committed' and lane = $2 and scheduled_for > $1 order by scheduled_for`, last.Add(-90*time.Minute).UnixMilli(), name)
			if want := []string{fmt.Sprint(last.Add(-time.Hour).UnixMilli()), fmt.Sprint(last.UnixMilli())}; !slices.Equal(committed, want) {
				t.Errorf("crash %d: %v are committed, want %v", crash, committed, want)
			}
			if left > 0 {
				break
			}
		}
	})
}

// A retry stands for the instant of the first attempt; a run that was asked for
// takes none.
func TestAttemptsOfASourceStandForOneInstant(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		cron, last := halfPast()
		src := k.apply(definition("s", "/whole", told+"schedule: {cron: \""+cron+"\", timezone: Asia/Tokyo, missed: {policy: all}}\n"))
		k.work(src)
		k.ranBefore("s", last.Add(-2*time.Hour))
		k.api.requests = nil
		k.api.on(func(int, http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
		k.work(src)
		k.api.on(nil)
		k.change(`update retries set next_retry_at = 1`)
		for range 3 {
			k.work(src)
		}
		if got := slices.Compact(k.stands(last)); !slices.Equal(got, []string{"1", "0"}) {
			t.Errorf("it ran for %v", got)
		}
		before := k.look("s").dueAt()
		k.write(func(ctx context.Context, tx *store.Tx) error { return k.s.RunNow(ctx, tx, "s", "ada") })
		k.work(src)
		if after := k.look("s").dueAt(); !after.Equal(before) || k.look("s").row.Trigger != "manual" {
			t.Errorf("a run that was asked for moves the next one from %v to %v", before, after)
		}
	})
}

// from, until and except leave out, the first run too, and a jitter moves the start
// and not the instant.
func TestSourcesKeepTheirLimits(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		cron, last := halfPast()
		from := last.Add(90 * time.Minute).Format(time.RFC3339)
		src := k.apply(definition("from", "/whole", "schedule: {cron: \""+cron+"\", from: \""+from+"\", jitter: 20m}\n"))
		until := k.work(src)
		v := k.look("from")
		if at := last.Add(2 * time.Hour); k.api.asked() != 0 || !v.instant().Equal(at) || !until.Equal(v.dueAt()) || !until.After(at) || !until.Before(at.Add(20*time.Minute)) {
			t.Errorf("it runs at %v for %v", until, v.instant())
		}
		if g := v.gateSchedule(); g.Open || !strings.Contains(g.Text, "it has never run. "+pawl.FormatTime(last.Add(time.Hour))+" is left out: the schedule begins at ") {
			t.Errorf("%+v", g)
		}
		k.start("another")
		if again := k.look("from").dueAt(); !again.Equal(until) {
			t.Errorf("another process starts it at %v", again)
		}
		src = k.apply(definition("ends", "/whole", "schedule: {cron: \""+cron+"\", until: \""+last.Add(61*time.Minute).Format(time.RFC3339)+"\"}\n"))
		k.work(src)
		k.change(`update source_state set last_success_at = $1 where source_id = $2`, last.Add(61*time.Minute).UnixMilli(), src.ID)
		if at := k.work(src); !at.IsZero() || k.look("ends").gateSchedule().Text != "Its schedule has ended." {
			t.Errorf("it ends, and runs at %v", at)
		}
		list, _, err := k.s.Due(t.Context(), "", time.Time{}, 10)
		if err != nil || len(list) != 1 || list[0].Name != "from" || !list[0].Next.Equal(until) {
			t.Errorf("due are %+v, %v", list, err)
		}
	})
}

// A change of a calendar plans the sources that use it anew; nothing that was left
// out becomes missed by it. One that is used stays, and none may leave nothing.
func TestCalendarsOfSources(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		calendar := func(days ...string) error {
			return k.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				_, _, _, err := k.s.cfg.Calendars.Apply(ctx, tx, client.CalendarRequest{Name: "free", Days: days}, "tester")
				return err
			})
		}
		remove := func(owner string) error {
			return k.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				return k.s.cfg.Calendars.Delete(ctx, tx, "free", owner, "tester")
			})
		}
		cron, last := halfPast()
		near := last.Add(-24*time.Hour).Format(time.DateOnly) + "/" + last.Add(24*time.Hour).Format(time.DateOnly)
		if err := calendar(near); err != nil {
			t.Fatal(err)
		}
		for name, missed := range map[string]string{"one": "", "all": ", missed: {policy: all}"} {
			src := k.apply(definition(name, "/whole", "schedule: {cron: \""+cron+"\", except: [\"calendar:free\"]"+missed+"}\n"))
			if until := k.work(src); k.api.asked() != 0 || until.Before(last.Add(24*time.Hour)) {
				t.Fatalf("%s: it runs at %v", name, until)
			}
			k.ranBefore(name, last.Add(-10*time.Hour))
		}
		revision := k.look("all").source.Revision
		if err := calendar("2020-01-01"); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"one", "all"} {
			if at := k.look(name).dueAt(); !at.Equal(last.Add(time.Hour)) {
				t.Errorf("%s: it runs at %v, want %v", name, at, last.Add(time.Hour))
			}
		}
		if now := k.look("all").source.Revision; now == revision {
			t.Error("a run that was decided on before can begin")
		}
		for at, want := range map[time.Duration]string{-time.Hour: "No run of one stood for it", 0: "No run of one stood for it"} {
			y, err := k.s.Why(t.Context(), lane.Viewer{}, "one", last.Add(at))
			if err != nil || !strings.Contains(y.Around.Text, want) {
				t.Errorf("%v: %q, %v", at, y.Around.Text, err)
			}
		}
		if err := calendar(near); err != nil {
			t.Fatal(err)
		}
		if y, err := k.s.Why(t.Context(), lane.Viewer{}, "all", last); err != nil || !strings.Contains(y.Around.Text, "Nothing of all runs then: except the calendar free has ") {
			t.Errorf("%q, %v", y.Around.Text, err)
		}
		if err := remove(""); err == nil || !strings.Contains(err.Error(), "is used by source all, source one") {
			t.Errorf("the calendar is deleted: %v", err)
		}
		if err := remove("somebody"); err == nil || strings.Contains(err.Error(), "source") {
			t.Errorf("somebody who sees only what is theirs reads: %v", err)
		}
		if err := calendar("0001-01-01/9999-12-31"); pawl.ErrorCode(err) != pawl.CodeInvalid {
			t.Errorf("a calendar of all days: %v", err)
		}
	})
}

// A schedule that never runs is refused with its place, and nothing is changed; one
// that was planned before may have ended.
func TestASourceThatNeverRunsIsRefused(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for schedule, want := range map[string]string{
			`{interval: 5m, except: ["calendar:nobody"]}`: `/schedule/except/0: there is no calendar "nobody"`,
			`{cron: "0 3 * * *", until: "2024-12-24"}`:    `/schedule/until: it never runs: nothing is left before 2024-12-24`,
			`{interval: 5m, except: ["* * * * *"]}`:       `/schedule/except: it never runs: the exceptions leave out every instant`,
		} {
			d := k.define(definition("s", "/whole", "schedule: "+schedule+"\n"))
			err := k.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.Apply(ctx, tx, d, "tester")
				return err
			})
			e, _ := errors.AsType[*pawl.Error](err)
			if e == nil || len(e.Fields) != 1 || e.Fields[0].Pointer+": "+e.Fields[0].Message != want {
				t.Errorf("%s: %+v, want %s", schedule, err, want)
			}
			if _, err := k.s.DryRun(t.Context(), d); pawl.ErrorCode(err) != pawl.CodeInvalid {
				t.Errorf("%s: a dry run says %v", schedule, err)
			}
		}
		if n := k.column(`select name from source_definitions`); len(n) != 0 {
			t.Errorf("there are %v", n)
		}
		cron, last := halfPast()
		soon := definition("s", "/whole", "schedule: {cron: \""+cron+"\", until: \""+last.Add(61*time.Minute).Format(time.RFC3339)+"\"}\n")
		k.apply(soon)
		k.change(`update source_definitions set definition = replace(definition, $1, '2024-01-01'), version = 'x'`, last.Add(61*time.Minute).Format(time.RFC3339))
		ended := strings.Replace(soon, last.Add(61*time.Minute).Format(time.RFC3339), "2024-01-01", 1)
		k.apply(ended + "description: another\n")
	})
}

// Very many missed instants cost nothing before they run, and no more than a
// thousand do.
func TestVeryManyMissedOfASource(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		src := k.apply(definition("s", "/whole", "schedule: {interval: 1m, missed: {policy: all}}\n"))
		k.work(src)
		now := time.Now().UTC().Truncate(time.Millisecond)
		begin := now.Add(-100_000 * time.Minute)
		k.ranBefore("s", begin)
		k.change(`update source_state set plan = $1`, timing.Plan{Anchor: begin.UnixMilli(), Since: begin.UnixMilli()}.Encode())
		v := k.look("s")
		if late := v.now.Sub(v.instant()).Minutes(); late < 998 || late > 1001 {
			t.Errorf("the first is %v minutes late", late)
		}
		k.work(src)
		if got := k.look("s"); got.row.Status != pawl.StatusCommitted || !got.instant().After(v.instant()) {
			t.Errorf("%+v", got.row)
		}
	})
}
