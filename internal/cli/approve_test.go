package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"

	pawl "github.com/pawlrun/pawl"
)

const (
	// The arguments turn a part of themselves around on the screen.
	sheetQuestion = `{"id":"a1","workflow":"mail-to-sheet","runId":"` + runID + `","tool":"sheet","method":"append","arguments":{"row":["ann","\u202egnp.exe` + "\u202e" + `"]},` +
		`"hash":"abc","title":"Nothing\u001b[2J to see` + "\u202e" + `","state":"pending","createdAt":"2026-01-01T00:00:00.000Z","expiresAt":"2999-01-01T00:00:00.000Z","decidedAt":null,"decidedBy":null}`
	askingRun = `{"id":"` + runID + `",` + runBasics + `,"trigger":"event","status":"paused:approval","attempt":1,"error":null,"updatedAt":"2026-01-01T00:00:00.000Z",` +
		`"prepareResult":{"data":1},"approval":` + sheetQuestion + `,"actions":[{"name":"approve"},{"name":"reject"},{"name":"cancel"}]}`
	lockedRun = `{"id":"` + firstRun + `",` + runBasics + `,"status":"paused:approval","attempt":1,"error":{"code":"locked","message":"the sheet is locked","class":"permission"},` +
		`"approval":null,"actions":[{"name":"approve"},{"name":"reject"},{"name":"resume"},{"name":"cancel"}]}`
)

func askingAPI(t *testing.T) *fake {
	f := newFake(t, map[string]fakeJSON{
		"GET /api/v1/approvals":  {200, `{"items":[` + sheetQuestion + `]}`},
		"GET /api/v1/runs/other": {200, strings.Replace(askingRun, "paused:approval", "active", 1)},
	})
	for id, body := range map[string]string{runID: askingRun, firstRun: lockedRun} {
		f.answer["GET /api/v1/runs/"+id] = fakeJSON{200, body}
		for _, verb := range []string{"approve", "reject", "resume", "resolve"} {
			f.answer["POST /api/v1/runs/"+id+"/"+verb] = fakeJSON{200, body}
		}
	}
	f.answer["POST /api/v1/runs/other/approve"] = fakeJSON{409, "changed"}
	return f
}

// A call is approved as it was read, so that another one is refused.
func TestApproveSendsTheHashOfWhatItRead(t *testing.T) {
	for _, tt := range []struct{ args, body, said string }{
		{"approve " + runID, `{"hash":"abc"}`, "run " + runID + " approved\n"},
		{"approve run " + runID + " --hash other", `{"hash":"other"}`, "run " + runID + " approved\n"},
		{"approve " + runID + " --always", `{"always":true,"hash":"abc"}`, "run " + runID + " approved; the workflow mail-to-sheet may call sheet.append without asking from now on\n"},
		{"approve " + firstRun, `{"hash":"none"}`, "run " + firstRun + " approved\n"}, // it asked nothing
	} {
		f := askingAPI(t)
		r := f.run(strings.Fields(tt.args)...)
		r.expect(t, pawl.ExitDone)
		if diff := cmp.Diff([]string{tt.body}, f.sent()); diff != "" || r.stdout != tt.said || r.stderr != "" {
			t.Errorf("%s: %s%s%s", tt.args, diff, r.stdout, r.stderr)
		}
	}
	r := askingAPI(t).run("approve", "other")
	if r.expect(t, pawl.ExitRefused, "(changed)"); r.stdout != "" {
		t.Errorf("%s", r.stdout)
	}
}

// On a terminal people see what will be sent before they are asked, and the
// script's words as such.
func TestApproveAsksOnATerminal(t *testing.T) {
	ask := func(stdin string, args ...string) (*fake, result) {
		f := askingAPI(t)
		c := f.call()
		c.terminal, c.stdin, c.env["NO_COLOR"] = true, stdin, "1"
		return f, c.run(t, append([]string{"approve"}, args...)...)
	}
	f, r := ask("y\n", runID)
	r.expect(t, pawl.ExitDone, "The workflow mail-to-sheet asks whether it may make this call:", "Asks for:     sheet.append\n", "Arguments:\n  {\n    \"row\": [\n      \"ann\",",
		`"\u202egnp.exe\u202e"`, `Script says:  "Nothing\x1b[2J to see\u202e" (written by the script, not verified)`, "Let it call sheet.append so? [y/N]")
	if strings.ContainsAny(r.stderr, "\x1b\u202e") || !slices.Equal(f.sent(), []string{`{"hash":"abc"}`}) || r.stdout != "run "+runID+" approved\n" {
		t.Errorf("sent %v:\n%s%s", f.sent(), r.stdout, r.stderr)
	}
	for _, stdin := range []string{"n\n", "\n", ""} {
		f, r := ask(stdin, runID)
		if r.expect(t, pawl.ExitRefused, "not done"); len(f.sent()) != 0 || r.stdout != "" {
			t.Errorf("%q: sent %v", stdin, f.sent())
		}
	}
	if _, r := ask("y\n", runID, "--always"); !strings.Contains(r.stderr, "with whatever arguments from now on? [y/N]") {
		t.Errorf("%s", r.stderr)
	}
	for _, args := range [][]string{{runID, "--yes"}, {runID, "--hash", "other"}, {firstRun}} { // nobody has to be asked
		if f, r := ask("", args...); r.code != pawl.ExitDone || len(f.sent()) != 1 || r.stderr != "" {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

func TestRejectAndResumeOfARun(t *testing.T) {
	for _, tt := range []struct{ args, asked, said string }{
		{"reject " + runID, "POST /api/v1/runs/" + runID + "/reject", "run " + runID + " rejected; its workflow is paused until you resume it\n"},
		{"resume run " + firstRun, "POST /api/v1/runs/" + firstRun + "/resume", "run " + firstRun + " resumed\n"},
	} {
		f := askingAPI(t)
		r := f.run(strings.Fields(tt.args)...)
		if r.expect(t, pawl.ExitDone); f.requests() != tt.asked || r.stdout != tt.said {
			t.Errorf("%s: asked %s, said %s", tt.args, f.requests(), r.stdout)
		}
	}
}

// Events carry neither, so a watch must not take their absence for a change.
func TestWatchedRunsLeaveOutWhatEventsDoNotCarry(t *testing.T) {
	brief, err := briefRun(json.RawMessage(askingRun))
	if err != nil || strings.Contains(string(brief), "approval\":") || strings.Contains(string(brief), "actions") {
		t.Errorf("%s, %v", brief, err)
	}
}

// Context 3.7: people say what became of a call.
func TestResolveSaysWhatHappened(t *testing.T) {
	for _, tt := range []struct{ args, body, said string }{
		{"--outcome happened", `{"outcome":"happened"}`, "it happened, and the run continues"},
		{`--outcome happened --result {"row":7}`, `{"outcome":"happened","result":{"row":7}}`, "it happened"},
		{"--outcome happened --result -", `{"outcome":"happened","result":[1]}`, "it happened"},
		{"--outcome did-not-happen", `{"outcome":"did-not-happen"}`, "it did not happen, and the work starts again"},
		{"--outcome did_not_happen", `{"outcome":"did-not-happen"}`, "it did not happen"},
		{"--outcome skip", `{"outcome":"skip"}`, "the run continues without it"},
		{"--outcome try-again", `{"outcome":"try-again"}`, "the other side is asked once more"},
	} {
		f := askingAPI(t)
		c := f.call()
		c.stdin = "[1]"
		r := c.run(t, append([]string{"resolve", runID}, strings.Fields(tt.args)...)...)
		r.expect(t, pawl.ExitDone)
		if diff := cmp.Diff([]string{tt.body}, f.sent()); diff != "" || !strings.HasPrefix(r.stdout, "run "+runID+" resolved: "+tt.said) {
			t.Errorf("%s: %s%s", tt.args, diff, r.stdout)
		}
	}
	for _, tt := range []struct{ args, says string }{
		{"", "Write --outcome happened|did-not-happen|skip|try-again."}, {"--outcome skipp", "Did you mean skip?"}, {"--outcome skip --result 1", "--result is for --outcome happened only"},
		{"--outcome happened --result {", "--result: this is not JSON"}, {"--outcome happened --result @absent", "--result: "},
	} {
		f := askingAPI(t)
		r := f.run(append([]string{"resolve", runID}, strings.Fields(tt.args)...)...)
		if r.expect(t, pawl.ExitUsage, tt.says); f.requests() != "" {
			t.Errorf("%s: asked %s", tt.args, f.requests())
		}
	}
	f := askingAPI(t)
	f.answer["POST /api/v1/runs/"+runID+"/resolve"] = fakeJSON{409, "reconciling"}
	f.run("resolve", runID, "--outcome", "skip").expect(t, pawl.ExitRefused, "(reconciling)")
}

// A watch shows new questions, and what became of those that it showed.
func TestWatchedApprovalsTellWhatBecameOfThem(t *testing.T) {
	f := askingAPI(t)
	used := strings.Replace(askingRun, `"state":"pending"`, `"state":"used"`, 1)
	f.answer["GET /api/v1/runs/"+runID] = fakeJSON{200, used}
	f.stream = streamed(
		`event: workflow`+"\n"+`data: {"what":"published","workflow":"mail-to-sheet"}`,
		`event: run`+"\n"+`data: {"what":"began","run":{"id":"other","lane":"bills","kind":"workflow","status":"active"}}`,
		`event: run`+"\n"+`data: {"what":"resumed","run":{"id":"`+runID+`","lane":"mail-to-sheet","kind":"workflow","status":"active"}}`,
		`event: workflow`+"\n"+`data: {"what":"approved","workflow":"mail-to-sheet"}`,
	)
	stdout, _ := watchUntil(t, f, "used", "get", "approvals", "-w", "--workflow", "mail-to-sheet", "-o", "json")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if len(lines) < 2 || !strings.Contains(lines[0], `"state":"pending"`) || !strings.Contains(lines[1], `"state":"used"`) {
		t.Errorf("got:\n%s", stdout)
	}
	asked := f.requests()
	if !strings.HasPrefix(asked, "GET /api/v1/approvals?limit=100&workflow=mail-to-sheet\n") || strings.Contains(asked, "runs/other") {
		t.Errorf("asked:\n%s", asked)
	}
}

func TestApprovalsAreListed(t *testing.T) {
	f := askingAPI(t)
	r := f.run("get", "approvals")
	r.expect(t, pawl.ExitDone)
	for _, w := range []string{"RUN ", runID + "   sheet.append   mail-to-sheet   ", "pending"} {
		if !strings.Contains(r.stdout, w) {
			t.Errorf("lacks %q:\n%s", w, r.stdout)
		}
	}
	if f.run("get", "approvals", "--state", "rejected"); f.requests() != "GET /api/v1/approvals?limit=100\nGET /api/v1/approvals?limit=100&state=rejected" {
		t.Errorf("asked %s", f.requests())
	}
	if wide := f.run("get", "approvals", "-o", "wide").stdout; !strings.Contains(wide, `{"row":["ann",`) || strings.ContainsAny(wide, "\x1b\u202e") {
		t.Errorf("%s", wide)
	}
	for _, args := range [][]string{{"get", "approval", runID}, {"describe", "approval", runID}} {
		f.run(args...).expect(t, pawl.ExitUsage, "pawl describe run RUN")
	}
	c := f.call()
	c.terminal, c.width, c.env["NO_COLOR"] = true, 80, "1"
	narrow := c.run(t, "get", "approvals").stdout
	for line := range strings.SplitSeq(narrow, "\n") {
		if text.StringWidthWithoutEscSequences(line) > 80 {
			t.Errorf("too wide: %s", line)
		}
	}
	if !strings.Contains(narrow, runID) {
		t.Errorf("the id is cut:\n%s", narrow)
	}
}

// Whoever reads about a run that waits for people is told what to type.
func TestDescribeTellsWhatPeopleCanDo(t *testing.T) {
	f := askingAPI(t)
	r := f.run("describe", "run", runID)
	r.expect(t, pawl.ExitDone)
	for _, w := range []string{
		"It asks whether it may call sheet.append with the arguments below. Let it: pawl approve " + runID + "\n", "Asks for:     sheet.append\nArguments:\n  {", `"\u202egnp.exe\u202e"`, "Answer:       none yet", "Expires:      2999-01-01",
		"(written by the script", "What you can do:", "pawl approve " + runID + "            lets it make this call, and no other", "pawl approve " + runID + " --always   the same, and mail-to-sheet may call sheet.append",
		"pawl reject " + runID + "             ends it;", "pawl cancel " + runID,
	} {
		if !strings.Contains(r.stdout, w) {
			t.Errorf("lacks %q:\n%s", w, r.stdout)
		}
	}
	if strings.ContainsAny(r.stdout, "\x1b\u202e") {
		t.Error("what cannot be seen reaches the terminal")
	}
	locked := f.run("describe", "run", firstRun).stdout
	if !strings.Contains(locked, "Fix the cause, then resume the run: pawl resume run "+firstRun) || strings.Contains(locked, "pawl approve") {
		t.Errorf("%s", locked)
	}
}

func TestStoryOfARunNamesTheCommand(t *testing.T) {
	asked := func(state string) string {
		return `{"id":"r","lane":"mail","status":"paused:approval","handlerType":"consumer","approval":{"tool":"a","method":"b","state":"` + state + `","decidedBy":"ann","decidedAt":"2026-01-01T00:00:00Z"},"actions":[]}`
	}
	for raw, want := range map[string][]string{
		asked("expired"):  {"Let it ask again: pawl resume run r", "Answer:       not answered in time"},
		asked("approved"): {"unless the workflow is paused: pawl resume workflow mail", "approved by ann; the call was not made yet"},
		asked("rejected"): {"It is waiting for a person.", "rejected by ann"},
		asked("odd"):      {"Answer:       odd"},
		`{"id":"r","status":"committed","approval":{"state":"used","decidedBy":"ann"}}`: {"It is done.", "approved by ann; the call was made"},
		`{"id":"r","status":"paused:reconciliation","handlerType":"consumer","actions":[{"name":"resolve","outcomes":["happened","did-not-happen","skip","try-again","odd"]}]}`: {
			"Look there, then say it: pawl resolve r --outcome happened|did-not-happen|skip|try-again", "pawl resolve r --outcome happened         it happened: the run continues", "pawl resolve r --outcome odd",
			"the call is made again", "its events are skipped", "asks the other side once more",
		},
		`{"id":"r","status":"paused:reconciliation","handlerType":"consumer","actions":[]}`:               {"Nothing is sent again until that is known."},
		`{"id":"r","status":"failed:logic","handlerType":"consumer","actions":[{"name":"resume"}]}`:       {"pawl apply -f FILE", "pawl resume run r"},
		`{"id":"r","status":"active","handlerType":"consumer","actions":[{"name":"cancel"}]}`:             {"pawl cancel r   ends it"},
		`{"id":"r","status":"active","handlerType":"consumer","actions":[{"name":"of a later version"}]}`: {"It is running"},
	} {
		got, err := describeRun(json.RawMessage(raw), time.Now())
		for _, w := range want {
			if err != nil || !strings.Contains(got, w) {
				t.Errorf("%s: %v, lacks %q:\n%s", raw, err, w, got)
			}
		}
	}
}

// Context 3.7.6: resuming a workflow that waits for something else is not said to
// have resumed it: what it waits for is said, and the command that ends it.
func TestResumeSaysWhatItDoesNotEnd(t *testing.T) {
	for code, helped := range map[string]bool{"approval": false, "outcome_unknown": false, "reconciling": false, "logic": true, "": true} {
		lane := `"kind":"workflow","name":"mail","status":"Needs attention","issue":"It is waiting for something.","issueCode":"` + code + `"`
		f := newFake(t, map[string]fakeJSON{
			"POST /api/v1/workflows/mail/resume":  {200, `{` + lane + `}`},
			"GET /api/v1/lanes/workflow/mail/why": {200, `{` + lane + `,"do":"pawl approve ` + runID + `"}`},
		})
		r := f.run("resume", "workflow", "mail")
		r.expect(t, pawl.ExitDone)
		if said := strings.Contains(r.stdout, "workflow mail resumed"); said != helped {
			t.Errorf("%s: %+v", code, r)
		}
		if !helped && (!strings.Contains(r.stdout, "waits for something else") || !strings.Contains(r.stderr, "It is waiting for something.") || !strings.Contains(r.stderr, "pawl approve "+runID)) {
			t.Errorf("%s: %+v", code, r)
		}
	}
}
