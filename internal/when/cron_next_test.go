package when

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// the vectors are answers of Debian cron's own scheduler.
func TestNextAgreesWithDebianCron(t *testing.T) {
	data, err := os.ReadFile("testdata/cron-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vectors []struct {
			Expr, Timezone string
			After          time.Time
			Next           []time.Time
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) != 301 {
		t.Fatalf("%d vectors, want 301", len(file.Vectors))
	}
	for _, v := range file.Vectors {
		got := mustCron(t, v.Expr, v.Timezone).NextN(v.After, len(v.Next))
		if !equalTimes(got, v.Next) {
			t.Errorf("%q in %s after %v:\n got %v\nwant %v", v.Expr, v.Timezone, v.After, got, v.Next)
		}
	}
}

// what the expressions mean, and what clock changes do to them.
func TestNextFollowsTheRulesOfCron(t *testing.T) {
	tests := []struct {
		name, expression, zone, after string
		want                          string // instants separated by blanks
	}{
		{"seconds are cut off", "* * * * *", "", "2026-01-01T00:00:59.999Z", "2026-01-01T00:01:00Z"},
		{"strictly after", "0 0 * * *", "", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
		{"last day", "0 0 L * *", "", "2028-01-31T00:00:00Z", "2028-02-29T00:00:00Z 2028-03-31T00:00:00Z 2028-04-30T00:00:00Z"},
		{"days before the last", "0 0 L-3 * *", "", "2026-02-01T00:00:00Z", "2026-02-25T00:00:00Z 2026-03-28T00:00:00Z"},
		{"L-30 is the first of long months", "0 0 L-30 * *", "", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z 2026-05-01T00:00:00Z"},
		{"last Friday", "0 0 * * 5L", "", "2026-01-01T00:00:00Z", "2026-01-30T00:00:00Z 2026-02-27T00:00:00Z"},
		{"second Friday", "0 0 * * FRI#2", "", "2026-01-01T00:00:00Z", "2026-01-09T00:00:00Z 2026-02-13T00:00:00Z"},
		{"fifth Monday", "0 0 * * 1#5", "", "2026-01-01T00:00:00Z", "2026-03-30T00:00:00Z 2026-06-29T00:00:00Z"},
		{"either day matches", "0 0 13 * 5", "", "2026-02-07T00:00:00Z", "2026-02-13T00:00:00Z 2026-02-20T00:00:00Z 2026-02-27T00:00:00Z 2026-03-06T00:00:00Z 2026-03-13T00:00:00Z"},
		{"either day matches with L", "0 0 L * 5#1", "", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z 2026-01-31T00:00:00Z 2026-02-06T00:00:00Z"},
		{"both days with a star", "0 0 */2 * 1", "", "2026-01-01T00:00:00Z", "2026-01-05T00:00:00Z 2026-01-19T00:00:00Z 2026-02-09T00:00:00Z"},
		{"a star anywhere but first is no star", "0 0 1 * 1,*", "", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
		{"leap day across 2100", "0 0 29 2 *", "", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"leap day on a Sunday across 2100", "0 0 29 2 */7", "", "2088-02-29T00:00:00Z", "2128-02-29T00:00:00Z"},
		{"gap, fixed: first minute after", "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z 2026-03-30T00:30:00Z"},
		{"gap, fixed: several collapse", "0,15,30 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z 2026-03-29T01:15:00Z 2026-03-29T01:30:00Z 2026-03-30T00:00:00Z"},
		{"gap, fixed: not again once it ran", "30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"},
		{"gap, wildcard: nothing", "*/30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-30T00:00:00Z"},
		{"fold, fixed: first pass only", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z 2026-10-26T01:30:00Z"},
		{"fold, fixed: asked between the passes", "0 2,3 * * *", "Europe/Berlin", "2026-10-25T00:10:00Z", "2026-10-25T02:00:00Z"},
		{"fold, fixed: asked in the second pass", "30 2,3 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", "2026-10-25T02:30:00Z"},
		{"fold, wildcard: both passes", "30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z 2026-10-25T01:30:00Z 2026-10-25T02:30:00Z"},
		{"half an hour, gap", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-03T15:30:00Z 2026-10-04T15:15:00Z"},
		{"half an hour, fold", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", "2026-04-04T14:45:00Z 2026-04-05T15:15:00Z"},
		{"gap at midnight", "0 0 * * *", "America/Havana", "2026-03-07T12:00:00Z", "2026-03-08T05:00:00Z 2026-03-09T04:00:00Z"},
		{"fold across midnight", "30 23 * * *", "America/Santiago", "2026-04-04T12:00:00Z", "2026-04-05T02:30:00Z 2026-04-06T03:30:00Z"},
		{"a day left out is not made up for", "0 12 * * *", "Pacific/Apia", "2011-12-29T20:00:00Z", "2011-12-29T22:00:00Z 2011-12-30T22:00:00Z"},
		{"past the table, 31 December of a leap year", "0 * * * *", "Europe/Berlin", "2040-12-31T21:30:00Z", "2040-12-31T22:00:00Z 2040-12-31T23:00:00Z 2041-01-01T00:00:00Z"},
		{"past the table, from before that day", "0 12 * * *", "Europe/Berlin", "2044-12-30T10:00:00Z", "2044-12-30T11:00:00Z 2044-12-31T11:00:00Z 2045-01-01T11:00:00Z"},
		{"the year 1", "0 0 1 1 *", "", "0001-01-01T00:00:00Z", "0002-01-01T00:00:00Z"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var want []time.Time
			for text := range strings.FieldsSeq(tt.want) {
				want = append(want, mustTime(t, text))
			}
			got := mustCron(t, tt.expression, tt.zone).NextN(mustTime(t, tt.after), len(want))
			if !equalTimes(got, want) {
				t.Errorf("%q in %s after %s:\n got %v\nwant %v", tt.expression, tt.zone, tt.after, got, want)
			}
		})
	}
}

// X-47, C-74: around clock changes of all zones, Next agrees with the oracle.
func TestNextAgreesWithMinuteByMinuteWalk(t *testing.T) {
	names := strings.Fields(zoneNames)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "zone")
		zone, err := LoadZone(name)
		if err != nil {
			t.Fatal(err)
		}
		year := rapid.IntRange(1975, 2060).Draw(t, "year")
		middle := time.Date(year, 1, 1, 12, 0, 0, 0, time.UTC).AddDate(0, 0, rapid.IntRange(0, 364).Draw(t, "day"))
		if changes := offsetChanges(middle, middle.AddDate(1, 0, 0), zone); len(changes) > 0 {
			middle = rapid.SampledFrom(changes).Draw(t, "change")
		}
		from, to := middle.Add(-30*time.Hour), middle.Add(30*time.Hour)
		minutes := wallMinutes(from, to, zone)
		for range 5 {
			e := drawExpr(t)
			s, err := Cron(e.String(), zone)
			if err != nil {
				continue // a day that no month has
			}
			compareWithOracle(t, s, e, minutes)
		}
	})
}

// Rare days over many years: in UTC a day is enough of a step.
func TestNextAgreesWithDayByDayWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawExpr(t)
		zero := oracleField{"0", func(time.Time) bool { return true }}
		e.minute, e.hour = zero, zero
		s, err := Cron(e.String(), nil)
		if err != nil {
			return // a day that no month has
		}
		start := time.Date(rapid.IntRange(1890, 2110).Draw(t, "year"), 1, 1, 0, 0, 0, 0, time.UTC)
		next, _ := s.Next(start.Add(-time.Minute))
		for d := range 9 * 366 {
			date := start.AddDate(0, 0, d)
			if e.matches(date) != next.Equal(date) {
				t.Fatalf("%q: %v is a match: %v; next is %v", e, date, e.matches(date), next)
			}
			if next.Equal(date) {
				next, _ = s.Next(next)
			}
		}
	})
}

// compareWithOracle compares all instants in the window, except for its first
// six hours, in which the oracle has not seen a change that went before.
func compareWithOracle(t interface {
	Helper()
	Fatalf(string, ...any)
}, s Schedule, e oracleExpr, minutes []minuteOfWall) {
	t.Helper()
	begin, end := minutes[6*60].utc, minutes[len(minutes)-1].utc
	next, ok := s.Next(begin.Add(-time.Nanosecond))
	for _, want := range e.fires(minutes) {
		if want.Before(begin) {
			continue
		}
		if !ok || !next.Equal(want) {
			t.Fatalf("%s: next is %v, want %v", s, next, want)
			return
		}
		next, ok = s.Next(next)
	}
	if ok && !next.After(end) {
		t.Fatalf("%s: next is %v, want nothing until %v", s, next, end)
	}
}

// C-74: extreme instants neither hang nor go backwards.
func TestNextEndsForExtremeInstants(t *testing.T) {
	for _, expression := range []string{"* * * * *", "30 2 * * *", "0 0 29 2 */7"} {
		s := mustCron(t, expression, "Europe/Berlin")
		for _, after := range []time.Time{
			{}, time.Unix(0, 0), time.Unix(math.MinInt32, 0), time.Unix(math.MaxInt32, 0),
			time.Date(-200000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1893, 3, 31, 23, 6, 31, 5, time.UTC),
		} {
			if next, ok := s.Next(after); !ok || !next.After(after) || next.Unix()%60 != 0 {
				t.Errorf("%s: Next(%v) = %v, %v", s, after, next, ok)
			}
		}
		for _, after := range []time.Time{
			time.Date(9999, 12, 31, 23, 59, 0, 0, time.UTC), time.Date(200000, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(math.MaxInt64/2, 0),
		} {
			if next, ok := s.Next(after); ok || !next.IsZero() {
				t.Errorf("%s: Next(%v) = %v, %v; want none", s, after, next, ok)
			}
		}
	}
}

func TestNextTakesAnythingBeforeTheYearOneForItsBeginning(t *testing.T) {
	want := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, year := range []int{0, -1, -200000} {
		if next, ok := mustCron(t, "* * * * *", "").Next(time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC)); !ok || !next.Equal(want) {
			t.Errorf("year %d: %v, %v", year, next, ok)
		}
	}
}

// an hour that the zone's clocks skip on just that day, every year.
func TestCronRefusesWhatTheZoneAlwaysSkips(t *testing.T) {
	const lastSundayOfMarchAtTwo = "*/15 2 * 3 7L"
	_, err := Parse(KindCron, lastSundayOfMarchAtTwo, "Europe/Berlin")
	if err == nil || !strings.Contains(err.Error(), "never happens in Europe/Berlin") {
		t.Errorf("error = %v", err)
	}
	mustCron(t, lastSundayOfMarchAtTwo, "America/New_York")
	mustCron(t, "15 2 * 3 7L", "Europe/Berlin") // fixed: runs after the gap
}

func mustTime(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
