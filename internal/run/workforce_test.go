package run

import (
	"testing"
	"time"
)

// with no worker anywhere nothing is idle or running, whatever a person
// wants; what a person stopped, or must look at anyway, stays what it is.
func TestNobodyIsThere(t *testing.T) {
	gone := Workforce{Missing: true}
	for _, c := range []struct {
		word      State
		issue     Issue
		want      State
		wantIssue Issue
	}{
		{Idle, IssueNone, NeedsAttention, IssueNoWorker},
		{Running, IssueNone, NeedsAttention, IssueNoWorker},
		{Running, IssueBackingOff, NeedsAttention, IssueNoWorker},
		{NeedsAttention, IssueApproval, NeedsAttention, IssueApproval},
		{Stopped, IssuePaused, Stopped, IssuePaused},
	} {
		if word, issue := gone.Over(c.word, c.issue); word != c.want || issue != c.wantIssue {
			t.Errorf("%s, %s is told as %s, %s", c.word, c.issue, word, issue)
		}
		if word, issue := (Workforce{}).Over(c.word, c.issue); word != c.word || issue != c.issue {
			t.Errorf("with a worker %s, %s is told as %s, %s", c.word, c.issue, word, issue)
		}
	}
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, w := range map[string]Workforce{
		"A worker is running.": {Seen: at},
		"No worker is running, and nothing runs until one starts.":                                   {Missing: true},
		"No worker has been seen since 2030-01-02T03:04:05.000Z, and nothing runs until one starts.": {Missing: true, Seen: at},
	} {
		if got := w.Sentence(); got != want {
			t.Errorf("%+v: %s", w, got)
		}
	}
}

// While everything is halted, what does not run at the moment is halted, with a
// worker or without. What a person stopped, or must look at, stays what it is.
func TestEverythingIsHalted(t *testing.T) {
	h := &Halt{Since: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), By: "ada", Note: "The shop is closed."}
	for _, c := range []struct {
		word      State
		issue     Issue
		want      State
		wantIssue Issue
	}{
		{Idle, IssueNone, Stopped, IssueHalted},
		{Running, IssueNone, Running, IssueNone},
		{Running, IssueBackingOff, Stopped, IssueHalted},
		{Running, IssueReconciling, Running, IssueReconciling}, // which goes on
		{NeedsAttention, IssueApproval, NeedsAttention, IssueApproval},
		{Stopped, IssuePaused, Stopped, IssuePaused},
	} {
		if word, issue := (Workforce{Halt: h}).Over(c.word, c.issue); word != c.want || issue != c.wantIssue {
			t.Errorf("%s, %s is told as %s, %s", c.word, c.issue, word, issue)
		}
	}
	if word, issue := (Workforce{Halt: h, Missing: true}).Over(Idle, IssueNone); word != Stopped || issue != IssueHalted {
		t.Errorf("without a worker: %s, %s", word, issue)
	}
	if got := h.Sentence(); got != "Everything has been halted since 2030-01-02T03:04:05.000Z by ada: The shop is closed." {
		t.Error(got)
	}
}

func TestCommandsCanBePasted(t *testing.T) {
	for want, words := range map[string][]string{
		"pawl resume workflow mail-to-sheet": {"resume", "workflow", "mail-to-sheet"},
		`pawl reset source 'a b$(c)'`:        {"reset", "source", "a b$(c)"},
		`pawl reset source 'it'\''s'`:        {"reset", "source", "it's"},
		`pawl reset source ''`:               {"reset", "source", ""},
	} {
		if got := Command(words...); got != want {
			t.Errorf("%v is %s", words, got)
		}
	}
}
