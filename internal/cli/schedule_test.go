package cli

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
)

const (
	grantID    = "0192f0c1-0000-7c3a-9d2e-3f1a2b4c5d6e"
	backfillID = "0192f0c1-1111-7c3a-9d2e-3f1a2b4c5d6e"

	poetJSON = `{"id":"` + poetID + `","name":"morning-poet","ownerUserId":"u1","executionGrantId":"` + grantID + `","graphId":"langgraph:poet","input":{"topic":"autumn"},"cron":"0 9 * * *",` +
		`"timezone":"Europe/Berlin","concurrencyPolicy":"Queue","enabled":true,"labels":{"team":"poems"},"nextRunAt":"2030-01-01T08:00:00.000Z","lastRunAt":null,"createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z"}`
	slotsJSON = `{"items":[` +
		`{"id":"a","scheduleId":"` + poetID + `","runId":"` + runID + `","scheduledFor":"2026-01-02T08:00:00.000Z","status":"error","disposition":"fired","attemptCount":3,"error":{"code":"timeout","message":"no answer"},"costUsd":0.25,"trigger":"schedule"},` +
		`{"id":"b","scheduleId":"` + poetID + `","runId":null,"scheduledFor":"2026-01-01T08:00:00.000Z","status":"skipped","disposition":"skipped_missed","attemptCount":0,"error":null,"note":"Nobody was there.","costUsd":0,"trigger":"schedule"}]}`
	grantJSON = `{"id":"` + grantID + `","userId":"u1","billingAccountId":"b1","scopes":["graph:execute:langgraph:poet"],"caps":{"usdPerDay":2,"usdPerRun":null,"runsPerDay":10},` +
		`"wildcardConsentAt":null,"automatic":true,"expiresAt":null,"revokedAt":null,"createdAt":"2026-01-01T00:00:00.000Z"}`
)

// planJSON is a backfill in a state.
func planJSON(state string, begun, success, failed int) string {
	number := func(n int) string { return string(rune('0' + n)) }
	return `{"id":"` + backfillID + `","scheduleId":"` + poetID + `","from":"2026-01-01T00:00:00.000Z","to":"2026-01-04T00:00:00.000Z","hash":"h1","state":"` + state + `","perMinute":60,"estimateUsd":0.75,` +
		`"total":3,"skipped":1,"begun":` + number(begun) + `,"counts":{"pending":0,"running":` + number(begun-success-failed) + `,"success":` + number(success) + `,"error":` + number(failed) + `,"skipped":0},` +
		`"slots":[{"at":"2026-01-01T08:00:00.000Z","graphId":"langgraph:poet"}]}`
}

// scheduleAPI is a server with one schedule.
func scheduleAPI(t *testing.T) *fake {
	t.Helper()
	at := "/api/v1/schedules/" + poetID
	return newFake(t, map[string]fakeJSON{
		"GET /api/v1/schedules":                             {200, `{"items":[` + poetJSON + `]}`},
		"GET " + at:                                         {200, poetJSON},
		"POST " + at + "/pause":                             {200, `{"pause":{"since":"2026-01-01T00:00:00.000Z","until":"2026-01-01T02:00:00.000Z","by":"ada","note":null}}`},
		"POST " + at + "/resume":                            {200, poetJSON},
		"DELETE " + at:                                      {200, `{"id":"` + poetID + `","grantRevoked":true}`},
		"POST " + at + "/run":                               {202, `{}`},
		"GET " + at + "/slots":                              {200, slotsJSON},
		"GET " + at + "/next":                               {200, `{"schedule":"At 09:00","enabled":true,"items":[{"at":"2030-03-31T07:00:00.000Z","local":"2030-03-31T09:00:00+02:00","clockChange":"clocks go forward"}]}`},
		"POST " + at + "/backfill":                          {201, planJSON("planned", 0, 0, 0)},
		"GET " + at + "/backfills":                          {200, `{"items":[` + planJSON("done", 3, 3, 0) + `]}`},
		"GET /api/v1/questions":                             {200, `{"items":[{"runId":"` + runID + `","schedule":"morning-poet","question":{"ask":"Which title?"},"askedAt":"2026-01-01T00:00:00.000Z"}]}`},
		"GET /api/v1/grants":                                {200, `{"items":[` + grantJSON + `]}`},
		"POST /api/v1/grants":                               {201, grantJSON},
		"GET /api/v1/grants/" + grantID:                     {200, grantJSON},
		"POST /api/v1/grants/" + grantID + "/revoke":        {200, grantJSON},
		"GET /api/v1/billing/receipts":                      {200, `{"items":[{"id":"c1","runId":"` + runID + `","scheduleId":"` + poetID + `","attempt":1,"executor":"langgraph","model":"m-1","inputTokens":10,"outputTokens":20,"amountUsd":0.0123,"createdAt":"2026-01-01T00:00:00.000Z"}]}`},
		"GET /api/v1/lanes/schedule/" + poetID + "/why":     {200, `{"kind":"schedule","name":"morning-poet","gates":[{"name":"enabled","open":true,"text":"It is enabled."}]}`},
		"GET /api/v1/backfills/" + backfillID:               {200, planJSON("done", 3, 3, 0)},
		"POST /api/v1/backfills/" + backfillID + "/confirm": {200, planJSON("running", 0, 0, 0)},
		"POST /api/v1/backfills/" + backfillID + "/cancel":  {200, planJSON("cancelled", 0, 0, 0)},
		"POST /api/v1/backfills/" + backfillID + "/pause":   {409, "wrong_state"},
		"GET /api/v1/runs/" + runID:                         {200, `{"id":"` + runID + `","kind":"schedule","lane":"morning-poet","status":"paused:approval","question":{"question":{"ask":"Which title?"},"answer":null}}`},
		"POST /api/v1/runs/" + runID + "/approve":           {200, `{}`},
		"POST /api/v1/runs/" + runID + "/reject":            {200, `{"kind":"schedule"}`},
	})
}

// says fails the test unless a command succeeds and shows all of the words.
func (f *fake) says(args []string, words ...string) {
	f.t.Helper()
	r := f.run(args...)
	r.expect(f.t, pawl.ExitDone)
	for _, w := range words {
		if !strings.Contains(r.stdout, w) {
			f.t.Errorf("%v lacks %q:\n%s", args, w, r.stdout)
		}
	}
}

func TestSchedulesAreFoundByNameAndById(t *testing.T) {
	f := scheduleAPI(t)
	f.says([]string{"get", "schedules"}, "morning-poet", "enabled", "langgraph:poet", "0 9 * * *")
	f.says([]string{"get", "schedule", "morning-poet"}, "morning-poet")
	f.says([]string{"get", "schedule", poetID, "-o", "json"}, `"graphId": "langgraph:poet"`)
	f.run("get", "schedule", "morning-poem").expect(t, pawl.ExitNotFound, `there is no schedule "morning-poem"`, "Did you mean morning-poet?")
	f.says([]string{"get", "slots", "morning-poet"}, "morning-poet", "fired", "timeout: no answer", "skipped_missed", "Nobody was there.", "0.25 USD")
	f.says([]string{"get", "slots"}, "morning-poet", "skipped_missed")
	f.answer["GET /api/v1/schedules/"+poetID+"/slots"] = fakeJSON{200, strings.Replace(slotsJSON, `"note":`, `"through":"2026-01-01T09:00:00.000Z","count":61,"note":`, 1)}
	f.says([]string{"get", "slots", "morning-poet"}, "61 slots to 2026-01-01T09:00:00.000Z: Nobody was there.")
	f.says([]string{"describe", "schedule", "morning-poet"}, "0 succeeded, 1 failed and 61 were passed over.")
	f.says([]string{"get", "receipts", "--schedule", "morning-poet"}, "0.0123 USD", "m-1")
	if want := "/api/v1/billing/receipts?limit=100&schedule=" + poetID; !strings.Contains(f.requests(), want) {
		t.Errorf("asked %s", f.requests())
	}
}

func TestVerbsOfSchedules(t *testing.T) {
	at := " /api/v1/schedules/" + poetID
	for _, tt := range []struct{ args, asked, said, sent string }{
		{"run schedule morning-poet", "POST" + at + "/run", "schedule morning-poet will run now\n", ""},
		{"pause schedule morning-poet --until 2h --note holidays", "POST" + at + "/pause", "schedule morning-poet paused until 2026-01-01T02:00:00.000Z\n", `{"until":"2h","note":"holidays"}`},
		{"pause schedule morning-poet --until 2100-01-01T00:00:00+01:00", "POST" + at + "/pause", "schedule morning-poet paused until 2026-01-01T02:00:00.000Z\n", `{"until":"2099-12-31T23:00:00.000Z"}`},
		{"resume schedule " + poetID, "POST" + at + "/resume", "schedule " + poetID + " resumed\n", ""},
		{"delete schedule morning-poet --yes", "DELETE" + at, "schedule morning-poet deleted; the grant that was made for it is revoked; what it did: pawl get slots " + poetID + "\n", ""},
	} {
		f := scheduleAPI(t)
		r := f.run(strings.Fields(tt.args)...)
		r.expect(t, pawl.ExitDone)
		if r.stdout != tt.said || !strings.HasSuffix(f.requests(), tt.asked) || strings.Join(f.sent(), "") != tt.sent {
			t.Errorf("%s: asked %s, sent %v, said %s", tt.args, f.requests(), f.sent(), r.stdout)
		}
	}
}

func TestScheduleIsDescribedInWords(t *testing.T) {
	scheduleAPI(t).says([]string{"describe", "schedule", "morning-poet"},
		"The schedule morning-poet runs the graph langgraph:poet.", "It runs next in", "Queue: a slot that comes due", "active, 2 USD a day, 10 runs a day", "It is enabled.",
		"Next instants (At 09:00)", "clocks go forward", "skipped_missed", "0 succeeded, 1 failed and 1 were passed over. Together they cost 0.25 USD.", `"topic": "autumn"`)
}

func TestGrantsAreMadeListedAndRevoked(t *testing.T) {
	f := scheduleAPI(t)
	r := f.run("grant", "create", "--graph", "langgraph:poet", "--usd-per-day", "2.50", "--runs-per-day", "10", "--expires", "2030-01-01T00:00:00Z")
	r.expect(t, pawl.ExitDone, "Granted to run langgraph:poet, for at most 2.5 USD a day, 10 runs a day.")
	if r.stdout != grantID+"\n" {
		t.Errorf("said %s", r.stdout)
	}
	f.run("grant", "create", "--all-graphs", "--consent").expect(t, pawl.ExitDone)
	want := []string{
		`{"graphs":["langgraph:poet"],"caps":{"usdPerDay":2.5,"runsPerDay":10},"expiresAt":"2030-01-01T00:00:00.000Z"}`,
		`{"graphs":["*"],"wildcardConsent":true}`,
	}
	if got := f.sent(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("sent %v", got)
	}
	f.says([]string{"grant", "list"}, grantID, "langgraph:poet", "active", "2 USD a day, 10 runs a day")
	f.says([]string{"describe", "grant", grantID}, "lets langgraph:poet run in the name of the user u1", "made for one schedule")
	f.says([]string{"grant", "revoke", grantID}, "grant "+grantID+" revoked")
	c := f.call()
	c.terminal, c.stdin, c.env["NO_COLOR"] = true, "\n", "1"
	c.run(t, "grant", "create", "--all-graphs").expect(t, pawl.ExitRefused, "Let every graph, of now and later, run in your name")
}

// C-79: nobody runs the past without having seen what it comes to.
func TestBackfillShowsItsPlanAndAsks(t *testing.T) {
	args := []string{"backfill", "morning-poet", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-04T00:00:00Z", "--per-minute", "60"}
	plan := []string{"Slots:        3", "1 that ran, or wait, already", "60 a minute: about 3s", "about 0.75 USD", "2026-01-01T08:00:00.000Z"}
	f := scheduleAPI(t)
	f.run(args...).expect(t, pawl.ExitUsage, append(plan, "--yes")...)
	if asked := f.requests(); strings.Contains(asked, "confirm") || !strings.Contains(asked, "/cancel") {
		t.Errorf("asked %s", asked)
	}
	f = scheduleAPI(t)
	r := f.run(append(args, "--yes")...)
	r.expect(t, pawl.ExitDone, append(plan, "3 of 3 slots\n")...)
	if want := "backfill " + backfillID + " done: 3 succeeded, 0 failed, 0 passed over\n"; r.stdout != want {
		t.Errorf("said %s", r.stdout)
	}
	if got := f.sent(); len(got) != 2 || got[0] != `{"from":"2026-01-01T00:00:00.000Z","perMinute":60,"to":"2026-01-04T00:00:00.000Z"}` || got[1] != `{"hash":"h1"}` {
		t.Errorf("sent %v", got)
	}
	f.answer["GET /api/v1/backfills/"+backfillID] = fakeJSON{200, planJSON("done", 3, 2, 1)}
	f.run(append(args, "--yes")...).expect(t, pawl.ExitFailed, "1 slot failed", "pawl get slots morning-poet --status error")
	c := f.call()
	c.terminal, c.stdin, c.env["NO_COLOR"] = true, "y\n", "1"
	c.run(t, args...).expect(t, pawl.ExitFailed, "Run 3 slots of morning-poet? [y/N]", "[##############################] 3 of 3 slots, 1 failed\n")
	f.says([]string{"backfill", "--cancel", backfillID}, "cancelled; slots that have begun go on")
	f.run("backfill", "--pause", backfillID).expect(t, pawl.ExitRefused, "(wrong_state)")
	f.says([]string{"get", "backfill", backfillID}, "done", "3 of 3")
	f.says([]string{"get", "backfills", "morning-poet"}, backfillID, "3 of 3")
	f.says([]string{"get", "backfills", "-o", "wide"}, backfillID, "morning-poet") // of all schedules
	f.says([]string{"get", "questions"}, runID, "morning-poet", "Which title?")
}

func TestInterruptedBackfillGoesOn(t *testing.T) {
	f := scheduleAPI(t)
	f.answer["GET /api/v1/backfills/"+backfillID] = fakeJSON{200, planJSON("running", 1, 0, 0)}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	p, _, stderr := f.call().process(t, "backfill", "morning-poet", "--from", "2026-01-01", "--to", "2026-01-04", "--yes")
	ended := make(chan int, 1)
	go func() { ended <- Run(ctx, p) }()
	stderr.await(ctx, t, "0 of 3 slots, 1 running")
	cancel()
	if code := <-ended; code != pawl.ExitDone || !strings.Contains(stderr.String(), "The backfill continues in the background.\n") || !strings.Contains(stderr.String(), "--cancel "+backfillID) {
		t.Errorf("code %d: %s", code, stderr)
	}
	if strings.Contains(f.requests(), "/cancel") {
		t.Errorf("asked %s", f.requests())
	}
}

func TestQuestionsOfGraphsAreAnswered(t *testing.T) {
	f := scheduleAPI(t)
	f.says([]string{"approve", runID}, "run "+runID+" answered")
	f.says([]string{"approve", runID, "--answer", `{"title":"Autumn"}`}, "answered")
	if got := strings.Join(f.sent(), " "); got != `{"answer":true} {"answer":{"title":"Autumn"}}` {
		t.Errorf("sent %s", got)
	}
	f.run("approve", runID, "--always").expect(t, pawl.ExitUsage, "--always and --hash are for the calls of workflows")
	f.says([]string{"describe", "run", runID}, "The graph asks the question below.", "Which title?")
	if r := f.run("reject", runID); r.stdout != "run "+runID+" rejected\n" {
		t.Errorf("reject: %+v", r)
	}
	c := f.call()
	c.terminal, c.stdin, c.env["NO_COLOR"] = true, "n\n", "1"
	c.run(t, "approve", runID).expect(t, pawl.ExitRefused, "Which title?", "Answer it so? [y/N]")
}

func TestWatchOfSlotsShowsWhatBecomesOfThem(t *testing.T) {
	f := scheduleAPI(t)
	f.stream = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if r.URL.Query().Get("kind") != "schedule" {
			t.Errorf("follows %s", r.URL.RawQuery)
		}
		flush := http.NewResponseController(w)
		_ = flush.Flush()
		again := time.NewTicker(5 * time.Millisecond)
		defer again.Stop()
		for !strings.Contains(f.requests(), "/slots") { // what there is comes first
			select {
			case <-again.C:
			case <-r.Context().Done():
				return
			}
		}
		f.mu.Lock()
		f.answer["GET /api/v1/schedules/"+poetID+"/slots"] = fakeJSON{200, strings.Replace(slotsJSON, "skipped_missed", "superseded", 1)}
		f.mu.Unlock()
		_, _ = io.WriteString(w, "id: 1\nevent: schedule\ndata: {\"what\":\"slot\",\"schedule\":\""+poetID+"\"}\n\n")
		_ = flush.Flush()
		<-r.Context().Done()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	p, stdout, stderr := f.call().process(t, "get", "slots", "morning-poet", "-w")
	ended := make(chan int, 1)
	go func() { ended <- Run(ctx, p) }()
	stdout.await(ctx, t, "superseded")
	cancel()
	if code := <-ended; code != pawl.ExitDone || strings.Count(stdout.String(), "timeout: no answer") != 1 {
		t.Errorf("code %d: %s%s", code, stdout, stderr)
	}
}
