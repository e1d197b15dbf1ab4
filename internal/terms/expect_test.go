package terms

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/when"
)

// What makes no sense is refused with its place, the reason and what to do.
func TestWhatMakesNoSenseIsNotExpected(t *testing.T) {
	source, schedule := About{Kind: pawl.KindSource, Scheduled: true}, About{Kind: pawl.KindSchedule, Scheduled: true}
	for _, c := range []struct {
		expect client.Expect
		about  About
		want   string // place: message; hint
	}{
		{client.Expect{FreshWithin: "2h", DoneBy: "07:00", Rows: "usual", OnTime: new(99.5)}, source, ""},
		{client.Expect{Rows: "100", OnTime: new(100.0)}, source, ""},
		{client.Expect{}, schedule, ""},
		{client.Expect{FreshWithin: "soon"}, schedule, `[expect freshWithin]: "soon" is not a length of time; Write a length of time such as 90s, 2h or 3d.`},
		{client.Expect{FreshWithin: "0s"}, schedule, `[expect freshWithin]: "0s" is not a length of time; Write a length of time such as 90s, 2h or 3d.`},
		{client.Expect{FreshWithin: "500d"}, schedule, `[expect freshWithin]: "500d" is longer than a year; Write a length of time such as 90s, 2h or 3d.`},
		{client.Expect{DoneBy: "7:00"}, schedule, `[expect doneBy]: "7:00" is not a time of day; Write a time of day such as "07:00".`},
		{client.Expect{DoneBy: "24:00"}, schedule, `[expect doneBy]: "24:00" is not a time of day; Write a time of day such as "07:00".`},
		{client.Expect{DoneBy: strings.Repeat("9", 1000)}, schedule, `[expect doneBy]: "` + strings.Repeat("9", 80) + `"... is not a time of day; Write a time of day such as "07:00".`},
		{client.Expect{DoneBy: "07:00"}, About{Kind: pawl.KindWorkflow}, `[expect doneBy]: nothing of the workflow is due by a schedule, so doneBy means nothing; Expect freshWithin instead.`},
		{client.Expect{DoneBy: "07:00"}, About{Kind: pawl.KindSource, Scheduled: true, Every: 72 * time.Hour}, `[expect doneBy]: it is not due every day: its interval of 3d counts from when it last ran; Expect freshWithin instead.`},
		{client.Expect{Rows: "100"}, schedule, ""},
		{client.Expect{Rows: "many"}, source, `[expect rows]: "many" is not a number of rows; Write rows: usual, or the least number of rows, such as rows: 100.`},
		{client.Expect{Rows: "0"}, source, `[expect rows]: "0" is not a number of rows; Write rows: usual, or the least number of rows, such as rows: 100.`},
		{client.Expect{Rows: "1.5"}, source, `[expect rows]: "1.5" is not a number of rows; Write rows: usual, or the least number of rows, such as rows: 100.`},
		{client.Expect{OnTime: new(0.0)}, source, `[expect onTime]: 0 is not a percentage above 0; Write how many of 100 starts are on time, such as 99.5.`},
		{client.Expect{OnTime: new(101.0)}, source, `[expect onTime]: 101 is not a percentage above 0; Write how many of 100 starts are on time, such as 99.5.`},
		{client.Expect{OnTime: new(math.NaN())}, source, `[expect onTime]: NaN is not a percentage above 0; Write how many of 100 starts are on time, such as 99.5.`},
		{client.Expect{OnTime: new(99.0)}, About{Kind: pawl.KindWorkflow}, `[expect onTime]: nothing of the workflow is due by a schedule, so onTime means nothing; Expect freshWithin instead.`},
	} {
		var got []string
		CheckExpect(&c.expect, c.about, func(path []any, message, hint string) {
			got = append(got, fmt.Sprintf("%v: %s; %s", path, message, hint))
		})
		if text := strings.Join(got, "\n"); text != c.want {
			t.Errorf("%+v:\n%s\nwant\n%s", c.expect, text, c.want)
		}
	}
	CheckExpect(nil, schedule, func([]any, string, string) { t.Error("nothing is a fault") })
}

// Rows are a number in JSON where they are one, and what is stored is read again.
func TestExpectationsHaveOneForm(t *testing.T) {
	for _, c := range []struct {
		expect      *client.Expect
		text, words string
	}{
		{nil, "", ""},
		{&client.Expect{}, "", ""},
		{&client.Expect{FreshWithin: "2h", Rows: "100"}, `{"freshWithin":"2h","rows":100}`, "a success every 2h, at least 100 rows"},
		{&client.Expect{DoneBy: "07:00", Rows: "usual", OnTime: new(99.5)}, `{"doneBy":"07:00","rows":"usual","onTime":99.5}`, "done by 07:00, as many rows as usual, 99.5% of starts on time"},
	} {
		if got := ExpectText(c.expect); got != c.text {
			t.Errorf("%s, want %s", got, c.text)
		}
		if back := ExpectText(ParseExpect(c.text)); back != c.text {
			t.Errorf("%s is read as %s", c.text, back)
		}
		if got := ExpectWords(c.expect); got != c.words {
			t.Errorf("%s, want %s", got, c.words)
		}
	}
	if ParseExpect(`{"freshWithin":7}`) != nil || VerdictsOf(`{"freshWithin":7}`, "") != nil {
		t.Error("what cannot be read is expected")
	}
	var e client.Expect
	if err := json.Unmarshal([]byte(`{"rows":{}}`), &e); err == nil {
		t.Errorf("%+v", e)
	}
}

func TestFreshIsSinceTheNewestSuccess(t *testing.T) {
	e, now := &client.Expect{FreshWithin: "2h"}, time.Date(2030, 1, 31, 9, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		from, success time.Duration // ago; zero: none
		met           bool
		since         time.Duration
		sentence      string
	}{
		{time.Hour, 0, true, 0, "A success is at most 2h old."},
		{3 * time.Hour, 0, false, time.Hour, "It has not succeeded since 2030-01-31T06:00:00.000Z; a success is expected every 2h."},
		{0, 2 * time.Hour, true, 0, "A success is at most 2h old."},
		{0, 2*time.Hour + time.Second, false, time.Second, "It last succeeded at 2030-01-31T06:59:59.000Z; a success is expected every 2h."},
		{time.Hour, 5 * time.Hour, true, 0, "A success is at most 2h old."}, // it runs again since an hour
	} {
		ago := func(d time.Duration) time.Time {
			if d == 0 {
				return time.Time{}
			}
			return now.Add(-d)
		}
		v := JudgeFresh(e, now, ago(c.from), ago(c.success))
		if v.Met != c.met || !v.Since.Equal(ago(c.since)) || v.Sentence != c.sentence {
			t.Errorf("%+v: %+v", c, v)
		}
	}
}

func cron(t *testing.T, expression, zone string) when.Schedule {
	t.Helper()
	loc, err := when.LoadZone(zone)
	if err != nil {
		t.Fatal(err)
	}
	s, err := when.Cron(expression, loc)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Days on which nothing is due do not count, a night's work counts for the day that
// it begins on, and clocks that change do not matter.
func TestDaysEndAtTheTimeOfDay(t *testing.T) {
	const berlin = "Europe/Berlin"
	every := func(d time.Duration) when.Schedule { s, _ := when.Every(d); return s }
	for _, c := range []struct {
		name         string
		times        when.Schedule
		zone, doneBy string
		now          string
		begun, over  string // the days
		deadline     string
	}{
		{"the morning before", cron(t, "0 3 * * 1-5", berlin), berlin, "07:00", "2026-11-17T05:59:00Z", "2026-11-17", "2026-11-16", "2026-11-16T06:00:00Z"},
		{"at the minute", cron(t, "0 3 * * 1-5", berlin), berlin, "07:00", "2026-11-17T06:00:00Z", "2026-11-17", "2026-11-17", "2026-11-17T06:00:00Z"},
		{"on a Sunday", cron(t, "0 3 * * 1-5", berlin), berlin, "07:00", "2026-11-15T20:00:00Z", "2026-11-13", "2026-11-13", "2026-11-13T06:00:00Z"},
		{"at night, before its end", cron(t, "0 22 * * 5", berlin), berlin, "07:00", "2026-11-14T05:59:00Z", "2026-11-13", "2026-11-06", "2026-11-07T06:00:00Z"},
		{"at night, after it", cron(t, "0 22 * * 5", berlin), berlin, "07:00", "2026-11-14T06:00:00Z", "2026-11-13", "2026-11-13", "2026-11-14T06:00:00Z"},
		{"summer time begins", cron(t, "30 2 * * *", berlin), berlin, "07:00", "2026-03-29T05:00:00Z", "2026-03-29", "2026-03-29", "2026-03-29T05:00:00Z"},
		{"in the hour that is skipped", cron(t, "0 1 * * *", berlin), berlin, "02:30", "2026-03-29T01:30:00Z", "2026-03-29", "2026-03-29", "2026-03-29T01:30:00Z"},
		{"summer time ends", cron(t, "0 1 * * *", berlin), berlin, "07:00", "2026-10-25T05:59:00Z", "2026-10-25", "2026-10-24", "2026-10-24T05:00:00Z"},
		{"a midnight that is skipped", cron(t, "0 5 * * *", "America/Santiago"), "America/Santiago", "06:00", "2026-09-06T10:00:00Z", "2026-09-06", "2026-09-06", "2026-09-06T09:00:00Z"},
		{"every hour", every(time.Hour), "UTC", "07:00", "2026-11-17T06:59:00Z", "2026-11-17", "2026-11-16", "2026-11-16T07:00:00Z"},
		{"every 12 hours", every(12 * time.Hour), "UTC", "07:00", "2026-11-17T07:00:00Z", "2026-11-16", "2026-11-16", "2026-11-17T07:00:00Z"},
		{"every 3 days", every(72 * time.Hour), "UTC", "07:00", "2026-11-17T07:00:00Z", "", "", "0001-01-01T00:00:00Z"},
		{"not for weeks", cron(t, "0 3 1 1 *", "UTC"), "UTC", "07:00", "2026-11-17T07:00:00Z", "", "", "0001-01-01T00:00:00Z"},
		{"what another release wrote", cron(t, "0 3 * * *", "UTC"), "UTC", "7 am", "2026-11-17T07:00:00Z", "", "", "0001-01-01T00:00:00Z"},
	} {
		zone, err := when.LoadZone(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		begun, over := Days(c.doneBy, zone, []when.Schedule{c.times}, now)
		if begun.Name != c.begun || over.Name != c.over || over.Deadline.UTC().Format(time.RFC3339) != c.deadline {
			t.Errorf("%s: %s, %s until %s", c.name, begun.Name, over.Name, over.Deadline.UTC().Format(time.RFC3339))
		}
	}
}

func TestADayIsDoneOrNot(t *testing.T) {
	e, end := &client.Expect{DoneBy: "07:00"}, time.Date(2030, 1, 31, 7, 0, 0, 0, time.UTC)
	over := Day{Name: "2030-01-31", Deadline: end}
	const met = "It is done by 07:00 (UTC) on each day on which it is due."
	for _, c := range []struct {
		over Day
		from time.Time
		done string
		want string
	}{
		{Day{}, time.Time{}, "", met},
		{over, end.Add(-time.Hour), "2030-01-31", met},
		{over, end, "", met}, // it was expected only afterwards
		{over, end.Add(-time.Hour), "2030-01-30", "No run that stands for 2030-01-31 has succeeded; it should have been done by 07:00 (UTC)."},
	} {
		if v := JudgeDone(e, time.UTC, c.over, c.from, c.done); v.Sentence != c.want || v.Met != (c.want == met) || !v.Met && !v.Since.Equal(end) {
			t.Errorf("%+v: %+v", c, v)
		}
	}
}

// Far fewer than usual is fewer than a quarter of the median, unless as few come every
// now and then.
func TestUsualIsWhatFetchesBrought(t *testing.T) {
	at := time.Date(2030, 1, 31, 9, 0, 0, 0, time.UTC)
	few := []int64{0, 0, 0, 120, 120, 120, 120, 120, 120, 120, 120, 120, 120, 120, 120, 120, 120, 120, 120, 120}
	for _, c := range []struct {
		rows   client.ExpectRows
		got    int64
		before []int64
		want   string
	}{
		{"100", 100, nil, ""},
		{"100", 99, nil, "The fetch that ended at 2030-01-31T09:00:00.000Z brought 99 rows; at least 100 are expected."},
		{"2", 1, nil, "The fetch that ended at 2030-01-31T09:00:00.000Z brought 1 row; at least 2 are expected."},
		{"usual", 0, []int64{5, 5, 5, 5}, ""}, // too few to know
		{"usual", 0, []int64{5, 5, 5, 5, 5}, "The fetch that ended at 2030-01-31T09:00:00.000Z brought 0 rows; usually it brings about 5."},
		{"usual", 30, []int64{120, 110, 130, 120, 125}, ""},
		{"usual", 29, []int64{120, 110, 130, 120, 125}, "The fetch that ended at 2030-01-31T09:00:00.000Z brought 29 rows; usually it brings about 120."},
		{"usual", 0, []int64{0, 0, 0, 0, 0}, ""},
		{"usual", 0, []int64{0, 3, 2, 0, 4}, ""}, // as it often is
		{"usual", 0, few, ""},
		{"usual", 0, few[2:], "The fetch that ended at 2030-01-31T09:00:00.000Z brought 0 rows; usually it brings about 120."},
	} {
		v := JudgeRows(&client.Expect{Rows: c.rows}, Brought{Kind: pawl.KindSource, At: at, Rows: c.got}, c.before)
		if v.Met != (c.want == "") || !v.Met && (v.Sentence != c.want || !v.Since.Equal(at)) {
			t.Errorf("%+v: %+v", c, v)
		}
	}
}

// What producers and slots bring is told in their own words; what is not told is none.
func TestRowsAreToldInTheWordsOfTheirKind(t *testing.T) {
	at := time.Date(2030, 1, 31, 9, 0, 0, 0, time.UTC)
	fives := []int64{5, 5, 5, 5, 5}
	for _, c := range []struct {
		rows client.ExpectRows
		b    Brought
		want string
	}{
		{"5", Brought{Kind: pawl.KindWorkflow, Handler: "look", Rows: 5}, "A run of a producer publishes at least 5 events."},
		{"usual", Brought{Kind: pawl.KindWorkflow, Handler: "look", Rows: 5}, "A run of a producer publishes as many events as usual."},
		{"5", Brought{Kind: pawl.KindWorkflow, Handler: "look", Rows: 1}, "The run of look that ended at 2030-01-31T09:00:00.000Z published 1 event; at least 5 are expected."},
		{"usual", Brought{Kind: pawl.KindWorkflow, Handler: "look"}, "The run of look that ended at 2030-01-31T09:00:00.000Z published 0 events; usually it publishes about 5."},
		{"usual", Brought{Kind: pawl.KindSchedule, Rows: 5}, "A run tells of as many rows as usual."},
		{"5", Brought{Kind: pawl.KindSchedule, Rows: 4}, "The run that ended at 2030-01-31T09:00:00.000Z told of 4 rows; at least 5 are expected."},
		{"5", Brought{Kind: pawl.KindSchedule, Untold: true}, "The run that ended at 2030-01-31T09:00:00.000Z told of no number of rows; at least 5 are expected."},
		{"usual", Brought{Kind: pawl.KindSchedule, Untold: true}, "The run that ended at 2030-01-31T09:00:00.000Z told of no number of rows; usually it tells of about 5."},
	} {
		c.b.At = at
		if v := JudgeRows(&client.Expect{Rows: c.rows}, c.b, fives); v.Sentence != c.want || v.Met == strings.HasPrefix(c.want, "The ") {
			t.Errorf("%+v: %+v", c, v)
		}
	}
}

func TestStartsAreOnTime(t *testing.T) {
	for _, c := range []struct {
		percent      float64
		starts, late int
		met          bool
	}{{100, 0, 0, true}, {100, 1, 1, false}, {99.5, 200, 1, true}, {99.5, 200, 2, false}, {50, 3, 1, true}} {
		v := JudgeOnTime(&client.Expect{OnTime: &c.percent}, time.Now(), c.starts, c.late)
		if v.Met != c.met {
			t.Errorf("%+v: %+v", c, v)
		}
		if c.late == 2 && v.Sentence != "2 of its last 200 starts were more than a minute late; 99.5% are expected on time." {
			t.Error(v.Sentence)
		}
	}
}
