package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
)

func TestDescribeTellsAWorkflowInWords(t *testing.T) {
	r := workflowAPI(t).run("describe", "workflow", "mail-to-sheet")
	r.expect(t, pawl.ExitDone)
	for _, w := range []string{
		"The workflow mail-to-sheet is idle.\nIt looks for work again in ", "Schedule:     Every 5 minutes", "Version:      3 (0123456789ab)", "File:         mail.workflow.ts",
		"Labels:       team=data", "Topics:       mail.received, row.added", "Producers:\n  NAME", "pollMail   Every 5 minutes   in ",
		"addRow   mail.received   prepare, mutate, next   row.added   in ", "pawl why workflow mail-to-sheet",
	} {
		if !strings.Contains(r.stdout, w) {
			t.Errorf("lacks %q:\n%s", w, r.stdout)
		}
	}
}

// one run carries its whole chain of retries.
func TestDescribeTellsARunWithItsChainCallAndLog(t *testing.T) {
	r := workflowAPI(t).run("describe", "run", runID)
	r.expect(t, pawl.ExitDone)
	for _, w := range []string{
		"Run " + runID + " is attempt 2 of the consumer addRow of the workflow mail-to-sheet.\nIt failed for a temporary reason. Another attempt follows automatically; pawl why workflow mail-to-sheet shows when.\n",
		"Phases:       preparing > prepared > [mutating] > mutated > emitting > committed", "Trigger:      event (", "Took:         2s", "Error:        sheet answered 503",
		"Prepared:\n  {\n    \"data\": {", "Call:         sheet.append\nOutcome:      failed: it did not happen\nTitle:        Add a row for Ann", "Arguments:\n  {\n    \"row\": [",
		"1     " + firstRun + "   crashed", "2     " + runID + "   paused:transient", "this run", "preparing   info    one mail\\u001b[2J",
	} {
		if !strings.Contains(r.stdout, w) {
			t.Errorf("lacks %q:\n%s", w, r.stdout)
		}
	}
	if strings.Contains(r.stdout, "\x1b") {
		t.Error("a control code of a script reaches the terminal")
	}
}

func TestStoryOfARunSaysWhatComesNext(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	consumer := `"kind":"workflow","lane":"mail","handler":"addRow","handlerType":"consumer","phase":"mutating","attempt":1`
	tests := map[string]string{
		`{` + consumer + `,"status":"committed"}`:                                                                   "It is done.",
		`{` + consumer + `,"status":"cancelled"}`:                                                                   "It was cancelled before anything was sent.",
		`{` + consumer + `,"status":"active","updatedAt":"2026-01-01T11:59:57Z"}`:                                   "It is running, in phase mutating for 3s.",
		`{` + consumer + `,"status":"crashed"}`:                                                                     "Another attempt follows immediately.",
		`{` + consumer + `,"status":"failed:logic"}`:                                                                "pawl apply -f FILE",
		`{` + consumer + `,"status":"failed:internal"}`:                                                             "pawl resume workflow mail",
		`{` + consumer + `,"status":"paused:approval"}`:                                                             "It is waiting for a person.",
		`{` + consumer + `,"status":"paused:reconciliation"}`:                                                       "Nothing is sent again until that is known.",
		`{` + consumer + `,"status":"paused:transient"}`:                                                            "pawl why workflow mail shows when",
		`{` + consumer + `,"status":"crashed","chain":[{"attempt":2,"id":"next","status":"active"}]}`:               "attempt 2 continues its work: run next, which is active.",
		`{"handlerType":"schedule","kind":"schedule","lane":"s","attempt":1,"status":"failed:logic"}`:               "It is failed:logic.",
		`{"handlerType":"later","phase":"x","status":"odd","mutation":{"tool":"a","method":"b","state":"applied"}}`: "Outcome:      applied: it happened",
	}
	tests[`{`+consumer+`,"status":"committed","count":60,"through":"2026-01-01T11:00:00Z"}`] = "It stands for the 60 runs until 2026-01-01T11:00:00.000Z, which found nothing to do and are kept as one."
	for raw, want := range tests {
		got, err := describeRun(json.RawMessage(raw), now)
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %v, lacks %q:\n%s", raw, err, want, got)
		}
	}
}

// Of runs that are folded the list tells how many they are, and when the last began.
func TestListsTellHowManyRunsAreFolded(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	row, err := runRow(json.RawMessage(`{"id":"r","lane":"mail","handler":"look","status":"committed","endedAt":"2026-01-01T01:00:00Z","count":60,"through":"2026-01-01T11:00:00Z"}`), now)
	if err != nil || row[1] != "mail/look (60 idle runs)" || row[3] != "1h ago" {
		t.Errorf("%q, %v", row, err)
	}
}

func TestDescribeTellsAnInputInWords(t *testing.T) {
	r := workflowAPI(t).run("describe", "input", inputID)
	r.expect(t, pawl.ExitDone)
	for _, w := range []string{
		"Mail from Ann: Hello\nWork on it is not finished. Give it up with: pawl skip " + inputID, "External id:  m1", "needs_reconcile   sheet.append   Add a row for Ann   " + runID,
		"mail.received   m1        reserved",
	} {
		if !strings.Contains(r.stdout, w) {
			t.Errorf("lacks %q:\n%s", w, r.stdout)
		}
	}
	for status, want := range map[string]string{"done": "It is done; it led to 0 outputs.", "skipped": "It was skipped", "orphaned": "no event was published", "odd": "It is odd."} {
		got, err := describeInput(json.RawMessage(`{"status":"`+status+`"}`), time.Now())
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %v\n%s", status, err, got)
		}
	}
}

// Every proposal of a repairer is shown with its difference.
func TestDescribeShowsProposedRepairs(t *testing.T) {
	f := newFake(t, map[string]fakeJSON{
		"GET /api/v1/workflows/w":         {200, `{"kind":"workflow","name":"w","status":"Idle"}`},
		"GET /api/v1/workflows/w/repairs": {200, `{"items":[{"runId":"r1","state":"rejected","reason":"it adds a topic","explanation":"adds x","repairer":"command","script":"a\nc\n","baseScript":"a\nb\n","createdAt":"2026-01-01T00:00:00.000Z"}],"nextCursor":null}`},
	})
	r := call{env: map[string]string{"PAWL_URL": f.server.URL, "PAWL_TOKEN": "right"}}.run(t, "describe", "workflow", "w")
	r.expect(t, 0)
	for _, want := range []string{"rejected by command, for run r1", "because: it adds a topic", "    -b\n    +c\n"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("lacks %q:\n%s", want, r.stdout)
		}
	}
}
