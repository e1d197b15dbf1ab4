package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
)

// What a schedule runs is shown as it was written, and one that is over says so.
func TestDescribeShowsACommandAsItWasWritten(t *testing.T) {
	s := client.Schedule{Name: "once", Enabled: true, Run: &client.PlainRun{Command: []string{"/bin/sh", "-c", `a <b >&2 && echo \u003e`}}}
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	text, err := describeSchedule(raw, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"a <b >&2 && echo \\u003e"`, "No further slot is planned."} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %s:\n%s", want, text)
		}
	}
}

// A schedule that a daily cap holds back does not run next: that is what is said first.
func TestDescribeSaysFirstThatADailyCapHoldsAScheduleBack(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	s := client.Schedule{Name: "poems", Enabled: true, GraphID: "http:poet", NextRunAt: client.At(now.Add(time.Minute)), CappedUntil: client.At(now.Add(time.Hour)), Issue: "Paused until 01:00 UTC: the daily cap is reached."}
	for _, over := range []bool{false, true} {
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		text, err := describeSchedule(raw, now)
		if err != nil {
			t.Fatal(err)
		}
		if held := strings.Contains(text, "Paused until 01:00 UTC"); held == over || strings.Contains(text, "It runs next") != over {
			t.Errorf("the cap is over: %t\n%s", over, text)
		}
		s.CappedUntil, s.Issue = client.At(now.Add(-time.Second)), ""
	}
}

// What is kept of an answer has its headers.
func TestDescribeShowsTheHeadersOfAnAnswer(t *testing.T) {
	d := newDescription(time.Now())
	describeOutput(d, &client.PlainOutput{Status: 503, Body: "later", Headers: map[string]string{"Retry-After": "7", "Date": "to\u001bday"}})
	if text := d.String(); !strings.Contains(text, "Headers:\n  Date: to\\u001bday\n  Retry-After: 7\n") {
		t.Error(text)
	}
}

// A schedule that needs attention says so, and what for, where it is described.
func TestDescribeTellsWhatASchedulesAttentionIsFor(t *testing.T) {
	h := serve(t)
	defer h.end()
	h.write("fails.yaml", "kind: schedule\nname: fails\nrun: {url: \"http://127.0.0.1:1/\"}\ncron: 0 3 * * *\n")
	h.shows([]string{"apply", "-f", "fails.yaml"}, "created")
	h.shows([]string{"run", "schedule", "fails"}, "will run now")
	h.until("loopback address", "get", "slots", "fails")
	h.shows([]string{"describe", "schedule", "fails"}, "Attention:    The run of ", "127.0.0.1 is a loopback address")
}
