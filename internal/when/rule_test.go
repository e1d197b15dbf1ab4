package when

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlrun/pawl"
)

func mustRule(t testing.TB, r Rule, c Context) Schedule {
	t.Helper()
	s, err := r.Schedule(c)
	if err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	return s
}

// holidays finds one calendar, of the days that are given.
func holidays(days ...string) func(string) (Calendar, error) {
	return func(name string) (Calendar, error) {
		if name != "holidays" {
			return Calendar{}, &pawl.Error{Code: pawl.CodeInvalid, Msg: fmt.Sprintf("there is no calendar %q", name)}
		}
		return NewCalendar(days)
	}
}

// Limits leave what they should, around clock changes, midnights and leap days.
func TestRuleNext(t *testing.T) {
	anchor := mustTime(t, "2026-01-01T10:07:00Z")
	tests := []struct {
		name  string
		rule  Rule
		after string
		want  string
	}{
		{"several expressions", Rule{Cron: []string{"0 3 * * 1-5", "0 5 * * 0"}, Timezone: "Europe/Berlin"}, "2026-11-19T12:00:00Z", "2026-11-20T02:00:00Z 2026-11-22T04:00:00Z 2026-11-23T02:00:00Z"},
		{"the same minute once", Rule{Cron: []string{"0 3 * * *", "0 3 * * 1"}}, "2026-11-15T12:00:00Z", "2026-11-16T03:00:00Z 2026-11-17T03:00:00Z"},
		{"from a date", Rule{Cron: []string{"0 0 * * *"}, Timezone: "Europe/Berlin", From: "2026-12-01"}, "2026-11-15T12:00:00Z", "2026-11-30T23:00:00Z 2026-12-01T23:00:00Z"},
		{"from an instant", Rule{Cron: []string{"0 * * * *"}, From: "2026-12-01T08:00:00+01:00"}, "2026-11-15T12:00:00Z", "2026-12-01T07:00:00Z 2026-12-01T08:00:00Z"},
		{"until a date, which counts", Rule{Cron: []string{"0 23 * * *"}, Timezone: "Europe/Berlin", Until: "2026-11-16"}, "2026-11-15T12:00:00Z", "2026-11-15T22:00:00Z 2026-11-16T22:00:00Z end"},
		{"until an instant, which counts", Rule{Cron: []string{"0 * * * *"}, Until: "2026-11-15T14:00:00Z"}, "2026-11-15T12:00:00Z", "2026-11-15T13:00:00Z 2026-11-15T14:00:00Z end"},
		{"until a local time", Rule{Cron: []string{"0 * * * *"}, Timezone: "Europe/Berlin", Until: "2026-11-15T14:30"}, "2026-11-15T12:00:00Z", "2026-11-15T13:00:00Z end"},
		{"a date", Rule{Cron: []string{"0 9 * * *"}, Timezone: "Europe/Berlin", Except: []string{"2026-12-25"}}, "2026-12-24T00:00:00Z", "2026-12-24T08:00:00Z 2026-12-26T08:00:00Z"},
		{"a date is that of the zone", Rule{Cron: []string{"30 23 * * *"}, Except: []string{"2026-12-25"}, Timezone: "America/New_York"}, "2026-12-25T00:00:00Z", "2026-12-25T04:30:00Z 2026-12-27T04:30:00Z"},
		{"a range with both ends", Rule{Cron: []string{"0 9 * * *"}, Except: []string{"2026-12-24/2027-01-01"}}, "2026-12-23T00:00:00Z", "2026-12-23T09:00:00Z 2027-01-02T09:00:00Z"},
		{"ranges that overlap", Rule{Cron: []string{"0 9 * * *"}, Except: []string{"2026-12-24/2026-12-28", "2026-12-26/2026-12-30", "2026-12-25"}}, "2026-12-23T12:00:00Z", "2026-12-31T09:00:00Z"},
		{"weekends", Rule{Cron: []string{"0 9 * * *"}, Except: []string{"* * * * 6", "* * * * 0"}}, "2026-11-20T12:00:00Z", "2026-11-23T09:00:00Z"},
		{"hours", Rule{Cron: []string{"0 * * * *"}, Except: []string{"* 0-21 * * *"}}, "2026-11-20T12:00:00Z", "2026-11-20T22:00:00Z 2026-11-20T23:00:00Z 2026-11-21T22:00:00Z"},
		{"eleven months", Rule{Cron: []string{"*/2 * * * *"}, Except: []string{"*/2 * * 1-11 *"}}, "2026-01-01T00:00:00Z", "2026-12-01T00:00:00Z 2026-12-01T00:02:00Z"},
		{"a calendar", Rule{Cron: []string{"0 9 * * *"}, Except: []string{"calendar:holidays"}}, "2026-12-24T12:00:00Z", "2026-12-27T09:00:00Z"},
		{"a leap day", Rule{Cron: []string{"0 0 29 2 *"}, Except: []string{"2028-02-29"}}, "2026-11-15T12:00:00Z", "2032-02-29T00:00:00Z"},
		{"a leap day on Sundays only", Rule{Cron: []string{"0 0 29 2 *"}, Except: []string{"* * * * 1-6"}}, "2060-01-01T00:00:00Z", "2060-02-29T00:00:00Z 2088-02-29T00:00:00Z 2128-02-29T00:00:00Z"},
		{"once", Rule{At: "2026-12-24T18:00:00+01:00"}, "2026-11-15T12:00:00Z", "2026-12-24T17:00:00Z end"},
		{"once, in the zone", Rule{At: "2026-12-24T18:00", Timezone: "Europe/Berlin"}, "2026-11-15T12:00:00Z", "2026-12-24T17:00:00Z end"},
		{"once and over", Rule{At: "2026-12-24T18:00:00+01:00"}, "2026-12-24T17:00:00Z", "end"},
		{"an interval has an anchor", Rule{Interval: "90m"}, "2026-01-01T12:00:00Z", "2026-01-01T13:07:00Z 2026-01-01T14:37:00Z"},
		{"an interval begins at its from", Rule{Interval: "90m", From: "2026-02-01"}, "2026-01-01T12:00:00Z", "2026-02-01T00:00:00Z 2026-02-01T01:30:00Z"},
		{"an interval keeps its phase over days that are left out", Rule{Interval: "7h", Except: []string{"2026-01-02"}}, "2026-01-01T12:00:00Z", "2026-01-01T17:07:00Z 2026-01-03T04:07:00Z"},
		// 29 March 2026: 02:00 becomes 03:00 in Berlin; 25 October: 03:00 becomes 02:00.
		{"a day of a clock change is left out", Rule{Cron: []string{"30 2 * * *"}, Timezone: "Europe/Berlin", Except: []string{"2026-03-29"}}, "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z"},
		{"the day before it", Rule{Cron: []string{"*/30 * * * *"}, Timezone: "Europe/Berlin", Except: []string{"2026-03-28"}}, "2026-03-27T22:30:00Z", "2026-03-28T23:00:00Z 2026-03-28T23:30:00Z 2026-03-29T00:00:00Z 2026-03-29T00:30:00Z 2026-03-29T01:00:00Z"},
		{"the repeated hour is left out in both passes", Rule{Cron: []string{"0 * * * *"}, Timezone: "Europe/Berlin", Except: []string{"* 2 * * *"}}, "2026-10-24T23:30:00Z", "2026-10-25T02:00:00Z"},
		{"a time that is made up for is that of its minute", Rule{Cron: []string{"30 2 * * *"}, Timezone: "Europe/Berlin", Except: []string{"30 2 * * *"}}, "2026-11-15T12:00:00Z", "2027-03-28T01:00:00Z 2028-03-26T01:00:00Z"},
		{"a day without midnight", Rule{Cron: []string{"0 * * * *"}, Timezone: "America/Havana", From: "2026-03-08"}, "2026-03-01T00:00:00Z", "2026-03-08T05:00:00Z"},
		{"a midnight that comes twice", Rule{Cron: []string{"30 * * * *"}, Timezone: "America/Santiago", Until: "2026-04-04"}, "2026-04-05T02:00:00Z", "2026-04-05T02:30:00Z 2026-04-05T03:30:00Z end"},
		{"the day after it is left out", Rule{Cron: []string{"30 * * * *"}, Timezone: "America/Santiago", Except: []string{"2026-04-05"}}, "2026-04-05T02:00:00Z", "2026-04-05T02:30:00Z 2026-04-05T03:30:00Z 2026-04-06T04:30:00Z"},
		{"a day that Apia never had", Rule{Cron: []string{"0 12 * * *"}, Timezone: "Pacific/Apia", Except: []string{"2011-12-30"}}, "2011-12-29T20:00:00Z", "2011-12-29T22:00:00Z 2011-12-30T22:00:00Z"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := mustRule(t, tt.rule, Context{Anchor: anchor, Calendar: holidays("2026-12-25/2026-12-26")})
			at := mustTime(t, tt.after)
			for want := range strings.FieldsSeq(tt.want) {
				next, ok := s.Next(at)
				if want == "end" {
					if ok {
						t.Fatalf("after %v: %v, want the end", at, next)
					}
					break
				}
				if !ok || !next.Equal(mustTime(t, want)) {
					t.Fatalf("after %v: %v, %v; want %s", at, next, ok, want)
				}
				if within, ok := s.NextWithin(at, next); ok {
					t.Errorf("NextWithin has %v before %v", within, next)
				}
				if within, ok := s.NextWithin(at, next.Add(time.Millisecond)); !ok || !within.Equal(next) {
					t.Errorf("NextWithin = %v, %v; want %v", within, ok, next)
				}
				if why := s.Excluded(next); why != "" {
					t.Errorf("%v is excluded: %s", next, why)
				}
				at = next
			}
		})
	}
}

// What never runs is found out soon, whatever excludes it.
func TestRuleThatNeverRuns(t *testing.T) {
	now := mustTime(t, "2026-11-15T12:00:00Z")
	for _, r := range []Rule{
		{Cron: []string{"* * * * *"}, Except: []string{"* * * * *"}},
		{Cron: []string{"*/2 * * * *"}, Except: []string{"*/2 * * * *"}, Timezone: "Europe/Berlin"},
		{Cron: []string{"0 9 * * 1"}, Except: []string{"* * * * 0-3", "* * * * 4-6"}, Timezone: "Australia/Lord_Howe"},
		{Cron: []string{"0 9 29 2 *"}, Except: []string{"* * 29 2 *"}},
		{Cron: []string{"0 9 * * *"}, Except: []string{"0001-01-01/9999-12-31"}},
		{Cron: []string{"0 9 * * *"}, From: "2026-12-24", Until: "2026-12-25", Except: []string{"calendar:holidays"}},
		{Interval: "2m", Except: []string{"* * * * *"}},
		{Interval: "2m", From: "2026-12-01", Except: []string{"*/2 * * * *"}},
		{Interval: "1s", Except: []string{"* 0-11 * * *", "* 12-23 * * *"}},
		{At: "2026-12-25T09:00:00Z", Except: []string{"calendar:holidays"}},
		{Cron: []string{"0 9 * * *"}, Until: "2025-01-01"},
	} {
		s := mustRule(t, r, Context{Calendar: holidays("2026-12-24", "2026-12-25"), Anchor: now})
		if next, ok := s.Next(now); ok {
			t.Errorf("%+v: %v", r, next)
		}
	}
}

// Every fault is told, with its place.
func TestRuleFaults(t *testing.T) {
	long := make([]string, 101)
	for i := range long {
		long[i] = "2026-12-25"
	}
	for _, tt := range []struct {
		rule Rule
		want []string // pointer, and a part of the message
	}{
		{Rule{}, []string{"/cron", "one of cron, interval and at"}},
		{Rule{Cron: []string{"0 9 * * *"}, Interval: "5m"}, []string{"/cron", "keep one"}},
		{Rule{Interval: "5m", At: "2026-12-24T18:00:00Z"}, []string{"/interval", "keep one"}},
		{Rule{Cron: []string{"0 9 * *"}}, []string{"/cron", "4 fields"}},
		{Rule{Cron: []string{"0 9 * * *", "61 * * * *"}}, []string{"/cron/1", "61"}},
		{Rule{Cron: []string{"0 9 * * *"}, Timezone: "Europe/Berlni"}, []string{"/timezone", "Berlni"}},
		{Rule{Interval: "5x"}, []string{"/interval", "unit"}},
		{Rule{Interval: "500s"}, []string{"/interval", "too short"}},
		{Rule{At: "tomorrow"}, []string{"/at", "tomorrow"}},
		{Rule{At: "2026-12-24"}, []string{"/at", "is not an instant"}},
		{Rule{Cron: []string{"0 9 * * *"}, From: "2026-02-30"}, []string{"/from", "2026-02-30"}},
		{Rule{Cron: []string{"0 9 * * *"}, Until: "soon"}, []string{"/until", "soon"}},
		{Rule{Cron: []string{"0 9 * * *"}, From: "2026-12-02", Until: "2026-12-01"}, []string{"/until", "lies before"}},
		{Rule{Cron: []string{"0 9 * * *"}, Except: []string{"2026-12-24", "2026-13-01"}}, []string{"/except/1", "2026-13-01"}},
		{Rule{Cron: []string{"0 9 * * *"}, Except: []string{"2026-12-24/2026-12-23"}}, []string{"/except/0", "ends before"}},
		{Rule{Cron: []string{"0 9 * * *"}, Except: []string{"2026-12-24/"}}, []string{"/except/0", "date"}},
		{Rule{Cron: []string{"0 9 * * *"}, Except: []string{""}}, []string{"/except/0", "neither a date"}},
		{Rule{Cron: []string{"0 9 * * *"}, Except: []string{"* * * * 9"}}, []string{"/except/0", "9"}},
		{Rule{Cron: []string{"0 9 * * *"}, Except: []string{"calendar:"}}, []string{"/except/0", "names no calendar"}},
		{Rule{Cron: []string{"0 9 * * *"}, Except: []string{"calendar:../x"}}, []string{"/except/0", "names no calendar"}},
		{Rule{Cron: []string{"0 9 * * *"}, Except: []string{"calendar:nobody"}}, []string{"/except/0", "there is no calendar"}},
		{Rule{Cron: []string{"0 9 * * *"}, Except: []string{"christmas"}}, []string{"/except/0", "neither a date"}},
		{Rule{Cron: []string{"0 9 * * *"}, Except: long}, []string{"/except", "at most 100"}},
		{Rule{Cron: slices.Repeat([]string{"0 9 * * *"}, 21)}, []string{"/cron", "at most 20"}},
		{Rule{Cron: []string{"0 9 * * *"}, Jitter: "fast"}, []string{"/jitter", "digits"}},
		{Rule{Cron: []string{"0 9 * * *"}, Jitter: "25h"}, []string{"/jitter", "too long"}},
		{Rule{Cron: []string{"61 * * * *"}, From: "x", Until: "y", Except: []string{"z"}, Jitter: "w"}, []string{"/cron", "61", "/from", "x", "/until", "y", "/except/0", "z", "/jitter", "w"}},
	} {
		_, err := tt.rule.Schedule(Context{Calendar: holidays(), MinInterval: 10 * time.Minute})
		e, ok := errors.AsType[*pawl.Error](err)
		if !ok || e.Code != pawl.CodeInvalid || len(e.Fields) != len(tt.want)/2 {
			t.Errorf("%+v: %v, %d fields", tt.rule, err, len(e.Fields))
			continue
		}
		for i, f := range e.Fields {
			if f.Pointer != tt.want[2*i] || !strings.Contains(f.Message, tt.want[2*i+1]) {
				t.Errorf("%+v: %s %s; want %s", tt.rule, f.Pointer, f.Message, tt.want[2*i:2*i+2])
			}
		}
	}
}

// Without a server no calendar can be looked up; its name is still checked.
func TestRuleWithoutCalendars(t *testing.T) {
	r := Rule{Cron: []string{"0 9 * * *"}, Except: []string{" calendar:holidays "}}
	mustRule(t, r, Context{})
	if names := r.Calendars(); !slices.Equal(names, []string{"holidays"}) {
		t.Errorf("names %q", names)
	}
}

// Next agrees with a walk through all minutes of a few days.
func TestRuleAgreesWithMinuteByMinuteWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/New_York", "America/Havana", "America/Santiago", "Australia/Lord_Howe", "Asia/Kolkata"}).Draw(t, "zone")
		loc, err := LoadZone(zone)
		if err != nil {
			t.Fatal(err)
		}
		start := rapid.SampledFrom([]time.Time{
			time.Date(2026, 3, 6, 12, 0, 0, 0, time.UTC), time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC), time.Date(2026, 10, 23, 12, 0, 0, 0, time.UTC),
			time.Date(2026, 4, 3, 12, 0, 0, 0, time.UTC), time.Date(2028, 2, 27, 12, 0, 0, 0, time.UTC), time.Date(2026, 10, 31, 12, 0, 0, 0, time.UTC),
		}).Draw(t, "start")
		end := start.AddDate(0, 0, 4)
		day := func(name string) string {
			return start.AddDate(0, 0, rapid.IntRange(-1, 5).Draw(t, name)).Format(time.DateOnly)
		}
		r := Rule{Timezone: zone, Cron: rapid.SliceOfN(rapid.SampledFrom([]string{"*/20 * * * *", "30 2 * * *", "0 0-5/2 * * *", "15 * * * 1-5", "0 0 * * *", "45 23 L * *"}), 1, 3).Draw(t, "cron")}
		for range rapid.IntRange(0, 3).Draw(t, "exceptions") {
			first, last := day("first"), day("last")
			if last < first {
				first, last = last, first
			}
			r.Except = append(r.Except, rapid.SampledFrom([]string{first, first + "/" + last, "* 2 * * *", "*/40 * * * *", "* * * * 0", "* * 1,29 * *"}).Draw(t, "except"))
		}
		if rapid.Bool().Draw(t, "bounded") {
			r.From = start.AddDate(0, 0, 1).Format(time.DateOnly)
			r.Until = start.AddDate(0, 0, 3).Format(time.DateOnly)
		}
		s, err := r.Schedule(Context{})
		if err != nil {
			t.Fatal(err)
		}
		want := walkRule(t, r, loc, start, end)
		for at := start; ; {
			next, ok := s.NextWithin(at, end)
			if !ok {
				break
			}
			if len(want) == 0 || !next.Equal(want[0]) {
				t.Fatalf("%+v after %v: %v, want %v", r, at, next, want[:min(1, len(want))])
			}
			want, at = want[1:], next
		}
		if len(want) > 0 {
			t.Fatalf("%+v: misses %v", r, want)
		}
	})
}

// walkRule lists the instants of the expressions and drops those whose local
// date and time are left out, by another way: formatted texts.
func walkRule(t *rapid.T, r Rule, zone *time.Location, start, end time.Time) (out []time.Time) {
	seen := map[time.Time]bool{}
	for _, text := range r.Cron {
		plain, err := Cron(text, zone)
		if err != nil {
			t.Fatal(err)
		}
		for at := start; ; {
			next, ok := plain.Next(at)
			if !ok || !next.Before(end) {
				break
			}
			seen[next], at = true, next
		}
	}
	for at := range seen {
		local := at.In(zone)
		date := local.Format(time.DateOnly)
		dropped := r.From != "" && date < r.From || r.Until != "" && date > r.Until
		for _, e := range r.Except {
			first, last, ranged := strings.Cut(e, "/2")
			switch {
			case e == "* 2 * * *":
				dropped = dropped || local.Hour() == 2
			case e == "*/40 * * * *":
				dropped = dropped || local.Minute()%40 == 0
			case e == "* * * * 0":
				dropped = dropped || local.Weekday() == time.Sunday
			case e == "* * 1,29 * *":
				dropped = dropped || local.Day() == 1 || local.Day() == 29
			case ranged:
				dropped = dropped || first <= date && date <= "2"+last
			default:
				dropped = dropped || e == date
			}
		}
		if !dropped {
			out = append(out, at)
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return out
}

// A start is later than its instant by less than the jitter and before the next
// instant, and the same whenever it is asked for.
func TestJitter(t *testing.T) {
	r := Rule{Cron: []string{"*/5 * * * *"}, Jitter: "2m"}
	one, again, other := mustRule(t, r, Context{Seed: "a"}), mustRule(t, r, Context{Seed: "a"}), mustRule(t, r, Context{Seed: "b"})
	at, distinct, differ := mustTime(t, "2026-11-15T12:00:00Z"), map[time.Duration]bool{}, 0
	var sum time.Duration
	const n = 500
	for range n {
		late := one.Start(at).Sub(at)
		if late < 0 || late >= 2*time.Minute || !one.Start(at).Equal(again.Start(at)) {
			t.Fatalf("start of %v is %v", at, one.Start(at))
		}
		if !other.Start(at).Equal(one.Start(at)) {
			differ++
		}
		distinct[late], sum = true, sum+late
		at, _ = one.Next(at)
	}
	if len(distinct) < n*9/10 || differ < n*9/10 || sum/n < 50*time.Second || sum/n > 70*time.Second {
		t.Errorf("%d distinct, %d differ, average %v", len(distinct), differ, sum/n)
	}
	wide := mustRule(t, Rule{Cron: []string{"* * * * *"}, Jitter: "1h"}, Context{Seed: "a"})
	for at := mustTime(t, "2026-11-15T12:00:00Z"); at.Hour() == 12; {
		next, _ := wide.Next(at)
		if start := wide.Start(at); start.Before(at) || !start.Before(next) {
			t.Fatalf("start of %v is %v", at, start)
		}
		at = next
	}
	plain := mustRule(t, Rule{Cron: []string{"* * * * *"}}, Context{Seed: "a"})
	if at := mustTime(t, "2026-11-15T12:00:00Z"); !plain.Start(at).Equal(at) {
		t.Error("jitter without jitter")
	}
}

func TestRuleInWords(t *testing.T) {
	for _, tt := range []struct {
		rule Rule
		want string
	}{
		{Rule{Cron: []string{"0 3 * * 1-5", "0 5 * * 0"}, Timezone: "Europe/Berlin"}, "Mondays to Fridays at 03:00 Berlin time; Sundays at 05:00 Berlin time"},
		{Rule{At: "2026-12-24T18:00:00+01:00", Timezone: "Europe/Berlin"}, "Once, Thu 2026-12-24 18:00:00 Berlin time"},
		{Rule{Cron: []string{"0 9 * * *"}, From: "2026-12-01", Until: "2027-06-30"}, "Daily at 09:00 UTC, from 2026-12-01, until 2027-06-30"},
		{Rule{Cron: []string{"0 9 * * *"}, Until: "2027-06-30T10:00:00Z"}, "Daily at 09:00 UTC, until 2027-06-30 10:00:00"},
		{Rule{Interval: "90m", Except: []string{"2026-12-24/2026-12-26", "* * * * 6"}, Jitter: "1h"}, `Every 90 minutes, except 3 days and "* * * * 6", up to 1 hour later`},
	} {
		if got := mustRule(t, tt.rule, Context{Anchor: time.Unix(0, 0)}).Describe(); got != tt.want {
			t.Errorf("%+v: %s; want %s", tt.rule, got, tt.want)
		}
	}
}

func TestExcludedSaysWhy(t *testing.T) {
	s := mustRule(t, Rule{Cron: []string{"0 9 * * *"}, Except: []string{"2026-12-24", "calendar:holidays", "* * * * 6"}, From: "2026-12-01", Until: "2027-01-31"}, Context{Calendar: holidays("2026-12-25/2026-12-26")})
	for at, want := range map[string]string{
		"2026-12-24T09:00:00Z": "except 2026-12-24",
		"2026-12-25T09:00:00Z": "except the calendar holidays has 2026-12-25/2026-12-26",
		"2026-12-19T09:00:00Z": `except "* * * * 6"`,
		"2026-11-19T09:00:00Z": "the schedule begins at 2026-12-01T00:00:00Z",
		"2027-02-01T09:00:00Z": "the schedule has ended",
		"2026-12-28T09:00:00Z": "",
	} {
		if got := s.Excluded(mustTime(t, at)); got != want {
			t.Errorf("%s: %q, want %q", at, got, want)
		}
		if why, would := s.ExcludedAt(mustTime(t, at)); would != (want != "") || would && why != want {
			t.Errorf("%s: %q, %v", at, why, would)
		}
		if _, would := s.ExcludedAt(mustTime(t, at).Add(time.Minute)); would {
			t.Errorf("a minute after %s is no instant", at)
		}
	}
}

func TestCalendarFaults(t *testing.T) {
	for _, days := range [][]string{{"2026-12-25", "x"}, {"2026-12-26/2026-12-25"}, {"* * * * *"}, slices.Repeat([]string{"2026-12-25"}, MostCalendarDays+1)} {
		if _, err := NewCalendar(days); pawl.ErrorCode(err) != pawl.CodeInvalid {
			t.Errorf("%.40q: %v", days, err)
		}
	}
	c, err := NewCalendar([]string{"2026-12-25", "2026-12-24/2026-12-26", "2024-02-29"})
	if err != nil || c.Days() != 4 {
		t.Errorf("%d days, %v", c.Days(), err)
	}
}

func BenchmarkRuleNext(b *testing.B) {
	s := mustRule(b, Rule{Cron: []string{"0 9 * * *", "0 17 * * 1-5"}, Timezone: "Europe/Berlin", Except: []string{"* * * * 6", "2026-12-24/2027-01-01"}}, Context{})
	after := time.Date(2026, 12, 23, 18, 0, 0, 0, time.UTC)
	b.ReportAllocs()
	for b.Loop() {
		s.Next(after)
	}
}
