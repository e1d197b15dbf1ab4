package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

const whyMail = `{"kind":"workflow","name":"mail-to-sheet","id":"w1","status":"Needs attention","issue":"It failed 5 times in a row.","schedule":"Every 5 minutes",` +
	`"nextAt":null,"lastActivity":{"at":"2026-01-01T00:00:00.000Z","text":"Deployed"},"pending":0,"paused":false,"labels":{},` +
	`"at":"2026-01-01T00:00:00.000Z","next":"It does nothing until then.",` +
	`"gates":[{"name":"wanted","open":true,"text":"It is enabled."},{"name":"healthy","open":false,"text":"It failed 5 times in a row."}],` +
	`"recent":[{"id":"` + runID + `","handler":"addRow","status":"paused:transient","updatedAt":"2026-01-01T00:00:00.000Z","error":{"message":"sheet answered 503"}}],` +
	`"around":{"at":"2026-01-01T09:00:00.000Z","text":"Nothing ran."}}`

func TestVerbsSayWhatTheyDid(t *testing.T) {
	for _, tt := range []struct{ args, asked, said string }{
		{"run workflow mail-to-sheet", "POST /api/v1/workflows/mail-to-sheet/run", "workflow mail-to-sheet will run now\n"},
		{"pause workflow mail-to-sheet", "POST /api/v1/workflows/mail-to-sheet/pause", "workflow mail-to-sheet paused\n"},
		{"resume wf mail-to-sheet", "POST /api/v1/workflows/mail-to-sheet/resume", "workflow mail-to-sheet resumed\n"},
		{"cancel " + runID, "POST /api/v1/runs/" + runID + "/cancel", "run " + runID + " cancelled\n"},
		{"cancel run " + runID, "POST /api/v1/runs/" + runID + "/cancel", "run " + runID + " cancelled\n"},
		{"skip " + inputID, "POST /api/v1/inputs/" + inputID + "/skip", "input " + inputID + " skipped\n"},
	} {
		f := workflowAPI(t)
		r := f.run(strings.Fields(tt.args)...)
		r.expect(t, pawl.ExitDone)
		if r.stdout != tt.said || r.stderr != "" || f.requests() != tt.asked {
			t.Errorf("%s: asked %s, said %s%s", tt.args, f.requests(), r.stdout, r.stderr)
		}
	}
}

// a run now is refused with a reason for programs.
func TestRefusalsTellTheirReason(t *testing.T) {
	f := workflowAPI(t)
	for _, tt := range []struct{ args, reason string }{
		{"run workflow bills", "(backing_off)"}, {"cancel " + firstRun, "(sent_already)"}, {"pause workflow bills", "refused because of conflict"},
	} {
		r := f.run(strings.Fields(tt.args)...)
		r.expect(t, pawl.ExitRefused, tt.reason)
		if r.stdout != "" {
			t.Errorf("%s: %s", tt.args, r.stdout)
		}
	}
}

func TestManyArePausedByTheirLabels(t *testing.T) {
	f := workflowAPI(t)
	r := f.run("pause", "workflows", "-l", "team=data")
	r.expect(t, pawl.ExitDone)
	if r.stdout != "workflow mail-to-sheet paused\n" {
		t.Errorf("got %s", r.stdout)
	}
	if want := "GET /api/v1/lanes?limit=200\nPOST /api/v1/workflows/mail-to-sheet/pause"; f.requests() != want {
		t.Errorf("asked %s", f.requests())
	}
	f.run("resume", "-l", "team=data", "-l", "tier=1").expect(t, pawl.ExitDone)
	f.run("pause", "-l", "team=nobody").expect(t, pawl.ExitNotFound, "nothing has the labels team=nobody")
}

func TestOneRefusalDoesNotSpareTheOthers(t *testing.T) {
	f := workflowAPI(t)
	f.answer["GET /api/v1/lanes"] = fakeJSON{200, `{"items":[` + billLane + `,` + strings.Replace(mailLane, `"team":"data"`, `"team":"money"`, 1) + `]}`}
	r := f.run("pause", "workflows", "-l", "team=money")
	r.expect(t, pawl.ExitRefused, "pause workflow bills: refused because of conflict")
	if r.stdout != "workflow mail-to-sheet paused\n" {
		t.Errorf("got %s", r.stdout)
	}
}

func TestWhyTellsEveryCondition(t *testing.T) {
	f := workflowAPI(t)
	r := f.run("why", "workflow", "mail-to-sheet", "--at", "2026-01-01T09:00:00Z")
	r.expect(t, pawl.ExitDone)
	for _, w := range []string{
		"The workflow mail-to-sheet needs attention.\nIt failed 5 times in a row.\nIt does nothing until then.\nAt 2026-01-01T09:00:00.000Z: Nothing ran.\n",
		"wanted      yes   It is enabled.", "healthy     no    It failed 5 times in a row.", runID + "   addRow    paused:transient", "sheet answered 503",
	} {
		if !strings.Contains(r.stdout, w) {
			t.Errorf("lacks %q:\n%s", w, r.stdout)
		}
	}
	if want := "GET /api/v1/lanes/workflow/mail-to-sheet/why?at=2026-01-01T09%3A00%3A00.000Z"; f.requests() != want {
		t.Errorf("asked %s", f.requests())
	}
	if r := f.run("why", "workflow", "mail-to-sheet", "-o", "json"); !strings.Contains(r.stdout, `"gates": [`) {
		t.Errorf("json: %s", r.stdout)
	}
}

func TestNextShowsTheSoonestFirst(t *testing.T) {
	now := time.Now().UTC()
	lane := func(name string, in time.Duration) string {
		return `{"kind":"workflow","name":"` + name + `","status":"Idle","schedule":"Every hour","nextAt":"` + pawl.FormatTime(now.Add(in)) + `"}`
	}
	f := newFake(t, map[string]fakeJSON{"GET /api/v1/lanes": {200, `{"items":[` +
		strings.Join([]string{lane("late", 30*time.Hour), lane("later", 2*time.Hour), lane("overdue", -time.Hour), lane("soon", time.Hour), billLane}, ",") + `]}`}})
	r := f.run("next")
	r.expect(t, pawl.ExitDone)
	var names []string
	for line := range strings.SplitSeq(strings.TrimSpace(r.stdout), "\n") {
		if fields := strings.Fields(line); fields[0] != "WHEN" {
			names = append(names, strings.Fields(line[strings.Index(line, "workflow"):])[1])
		}
	}
	if diff := cmp.Diff([]string{"overdue", "soon", "later"}, names); diff != "" {
		t.Errorf("%s\n%s", diff, r.stdout)
	}
	var list struct{ Items []client.WorkflowSummary }
	if err := json.Unmarshal([]byte(f.run("next", "--hours", "40", "-o", "json").stdout), &list); err != nil || len(list.Items) != 4 {
		t.Errorf("%v, %v", list, err)
	}
	f.answer["GET /api/v1/lanes"] = fakeJSON{200, `{"items":[]}`}
	f.run("next").expect(t, pawl.ExitDone, "Nothing is scheduled to run")
}

func TestPublishSendsAnEvent(t *testing.T) {
	dir := folder(t, map[string]string{"mail.json": `{"from":"file"}`})
	tests := map[string]struct {
		args []string
		want string
	}{
		"plain": {[]string{"--payload", `{"from": "ann"}`}, `{"messageId":"m1","payload":{"from":"ann"},"topic":"mail.received"}`},
		"empty": {nil, `{"messageId":"m1","payload":null,"topic":"mail.received"}`},
		"file":  {[]string{"--payload", "@mail.json"}, `{"messageId":"m1","payload":{"from":"file"},"topic":"mail.received"}`},
		"stdin": {[]string{"--payload", "-"}, `{"messageId":"m1","payload":{"from":"stdin"},"topic":"mail.received"}`},
		"input": {[]string{"--input", "mail:message:a:b", "--title", "Mail"}, `{"input":{"id":"a:b","source":"mail","title":"Mail","type":"message"},"messageId":"m1","payload":null,"topic":"mail.received"}`},
		"named": {[]string{"--input", "mail:message:7"}, `{"input":{"id":"7","source":"mail","title":"7","type":"message"},"messageId":"m1","payload":null,"topic":"mail.received"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := workflowAPI(t)
			c := f.call()
			c.dir, c.stdin = dir, `{"from":"stdin"}`
			r := c.run(t, append([]string{"publish", "mail-to-sheet", "mail.received", "--id", "m1"}, tt.args...)...)
			r.expect(t, pawl.ExitDone)
			if diff := cmp.Diff([]string{tt.want}, f.sent()); diff != "" {
				t.Error(diff)
			}
			if r.stdout != "event m1 published to mail.received of workflow mail-to-sheet\n" {
				t.Errorf("got %s", r.stdout)
			}
		})
	}
}

func TestPublishTellsOfADuplicate(t *testing.T) {
	f := workflowAPI(t)
	if r := f.run("publish", "bills", "t", "--id", "m1"); r.stdout != "event m1 was known to t of workflow bills already; it is consumed\n" {
		t.Errorf("got %+v", r)
	}
	f.answer["POST /api/v1/workflows/bills/events"] = fakeJSON{200, `{"status":"pending","duplicate":true,"changed":true}`}
	if r := f.run("publish", "bills", "t", "--id", "m1"); !strings.Contains(r.stdout, "it has the new payload now") {
		t.Errorf("got %+v", r)
	}
	if r := f.run("publish", "bills", "t", "--id", "m1", "-o", "json"); !strings.Contains(r.stdout, `"changed": true`) {
		t.Errorf("got %+v", r)
	}
}
