package when

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlrun/pawl"
)

// one of interval and cron, not both, not neither; no zero and nothing
// below the host's minimum. A-77: an unknown kind is an error.
func TestNewRefusesWhatIsNotOneSchedule(t *testing.T) {
	for _, tt := range []struct {
		spec      Spec
		msg, hint string
	}{
		{Spec{}, "neither an interval nor a cron expression", `"5m"`},
		{Spec{Interval: "5m", Cron: "* * * * *"}, "both an interval and a cron expression", "one of the two"},
		{Spec{Interval: "5m", Timezone: "UTC"}, "a time zone with an interval", "remove it"},
		{Spec{Interval: "0m"}, "longer than zero", "such as 90s"},
		{Spec{Interval: "30s", MinInterval: time.Minute}, `"30s", which is too short`, "1m"},
		{Spec{Cron: "* * * *"}, "4 fields", "five fields"},
		{Spec{Cron: "* * * * *", Timezone: "Berlin"}, `unknown time zone "Berlin"`, "Europe/Berlin"},
	} {
		_, err := New(tt.spec)
		checkInvalid(t, fmt.Sprintf("%+v", tt.spec), err, tt.msg, tt.hint)
	}
	_, err := Parse("rrule", "x", "")
	checkInvalid(t, "rrule", err, `unknown kind "rrule"`, "interval and cron")
	for _, d := range []time.Duration{0, -time.Second, 1500 * time.Millisecond, time.Nanosecond} {
		_, err := Every(d)
		checkInvalid(t, d.String(), err, "has the interval "+d.String(), "whole number of seconds")
	}
	_, err = Cron("* * * * *", time.Local)
	checkInvalid(t, "Local", err, `unknown time zone "Local"`, "not allowed")
}

func checkInvalid(t *testing.T, what string, err error, msg, hint string) {
	t.Helper()
	e, ok := errors.AsType[*pawl.Error](err)
	if !ok || e.Code != pawl.CodeInvalid || !strings.Contains(e.Msg, msg) || !strings.Contains(e.Hint, hint) {
		t.Errorf("%s: error %#v; want %q and %q", what, err, msg, hint)
	}
}

// kind, value and zone are what is stored, and give the schedule back.
func TestParseGivesBackAStoredSchedule(t *testing.T) {
	after := time.Date(2026, 3, 28, 4, 53, 7, 0, time.UTC)
	for _, tt := range []struct {
		spec Spec
		kind Kind
		text string
	}{
		{Spec{Interval: "90s", MinInterval: time.Minute}, KindInterval, "every 90s"},
		{Spec{Interval: "1m", MinInterval: time.Minute}, KindInterval, "every 1m"},
		{Spec{Cron: "30 2 * * *", Timezone: "Europe/Berlin"}, KindCron, `cron "30 2 * * *" in Europe/Berlin`},
		{Spec{Cron: "@daily"}, KindCron, `cron "@daily" in UTC`},
	} {
		s, err := New(tt.spec)
		if err != nil {
			t.Fatal(err)
		}
		if s.Kind() != tt.kind || s.String() != tt.text {
			t.Errorf("kind %q, text %q; want %q, %q", s.Kind(), s, tt.kind, tt.text)
		}
		again, err := Parse(s.Kind(), s.Value(), s.Zone().String())
		if err != nil || !equalTimes(again.NextN(after, 5), s.NextN(after, 5)) {
			t.Errorf("%s came back as %s, %v", s, again, err)
		}
	}
}

// the next time of an interval is the given instant plus the interval.
func TestNextOfAnIntervalIsAnchoredToTheGivenInstant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(1, 1e9).Draw(t, "seconds")) * time.Second
		s, err := Every(d)
		if err != nil {
			t.Fatal(err)
		}
		after := time.Unix(rapid.Int64Range(-1e10, 1e11).Draw(t, "unix"), rapid.Int64Range(0, 999999999).Draw(t, "nanos"))
		next, ok := s.Next(after)
		if !ok || next.Sub(after) != d || next.Location() != time.UTC || s.Interval() != d {
			t.Fatalf("%v after %v: %v, %v", d, after, next, ok)
		}
	})
	s, _ := Every(time.Hour)
	if next, ok := s.Next(time.Date(9999, 12, 31, 23, 30, 0, 0, time.UTC)); ok || !next.IsZero() {
		t.Errorf("past the year 9999: %v, %v", next, ok)
	}
}

func TestZeroScheduleHasNothing(t *testing.T) {
	var s Schedule
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if next, ok := s.Next(now); ok || !next.IsZero() {
		t.Errorf("Next = %v, %v", next, ok)
	}
	if len(s.NextN(now, 3)) != 0 || len(s.Preview(now, 3)) != 0 || s.Kind() != "" || s.String() != "no schedule" {
		t.Errorf("the zero schedule has something: %v", s)
	}
}

func TestNextNReturnsNothingForNoneOrLess(t *testing.T) {
	s := mustCron(t, "* * * * *", "")
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for n, want := range map[int]int{-1: 0, 0: 0, 1: 1, 3: 3} {
		if got := len(s.NextN(now, n)); got != want {
			t.Errorf("NextN(%d) has %d instants, want %d", n, got, want)
		}
	}
}
