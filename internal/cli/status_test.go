package cli

import (
	"encoding/json"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
)

const (
	idleLane = `{"kind":"source","name":"prices","id":"1","status":"Idle","lastActivity":{"text":""}}`
	sickLane = `{"kind":"workflow","name":"bills","id":"2","status":"Needs attention","issue":"It is waiting for your approval.","lastActivity":{"text":""}}`
	ready    = `{"status":"ok","checks":{"database":"ok"}}`
)

func statusAPI(t *testing.T, lanes ...string) *fake {
	t.Helper()
	return newFake(t, map[string]fakeJSON{
		"GET /readyz":       {200, ready},
		"GET /api/v1/lanes": {200, `{"items":[` + strings.Join(lanes, ",") + `],"nextCursor":null}`},
		"GET /api/v1/jobs":  {200, `{"items":[],"nextCursor":null}`},
	})
}

func TestStatusTellsByItsExitCode(t *testing.T) {
	r := statusAPI(t, idleLane).run("status")
	r.expect(t, pawl.ExitDone)
	if !strings.Contains(r.stdout, "Nothing needs attention: 1 lane, 1 idle.") {
		t.Errorf("got %q", r.stdout)
	}
	r = statusAPI(t, idleLane, sickLane).run("status")
	r.expect(t, pawl.ExitFailed, "1 of 2 lanes needs attention")
	if !strings.Contains(r.stdout, "bills") || !strings.Contains(r.stdout, "waiting for your approval") || strings.Contains(r.stdout, "prices") {
		t.Errorf("got:\n%s", r.stdout)
	}
	f := statusAPI(t, idleLane)
	f.answer["GET /readyz"] = fakeJSON{200, `{"status":"unavailable","checks":{"queue":"starting"}}`}
	f.status = map[string]int{"/readyz": 503}
	r = f.run("status")
	r.expect(t, pawl.ExitFailed, "the server cannot do its work")
	if !strings.Contains(r.stdout, "starting") {
		t.Errorf("got:\n%s", r.stdout)
	}
}

func TestStatusForPrograms(t *testing.T) {
	f := statusAPI(t, idleLane, sickLane)
	f.answer["GET /api/v1/jobs"] = fakeJSON{403, "forbidden"}
	r := f.run("status", "-o", "json")
	r.expect(t, pawl.ExitFailed)
	var got struct {
		Ready      bool
		Lanes      map[string]int
		Attention  []struct{ Name string }
		FailedJobs *int
	}
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
		t.Fatal(err)
	}
	if !got.Ready || got.Lanes["Idle"] != 1 || len(got.Attention) != 1 || got.Attention[0].Name != "bills" || got.FailedJobs != nil {
		t.Errorf("got %+v", got)
	}
	f.answer["GET /api/v1/jobs"] = fakeJSON{200, `{"items":[{"id":"1"}]}`}
	if r := f.run("status"); !strings.Contains(r.stdout, "1 job failed for good") || !strings.Contains(f.requests(), "GET /api/v1/jobs?limit=200&state=failed") {
		t.Errorf("got:\n%s%s", r.stdout, f.requests())
	}
}

func TestLanesCanBeChosenByTheirStatus(t *testing.T) {
	for _, word := range []string{"Needs attention", "needs-attention", "NEEDS_ATTENTION"} {
		r := statusAPI(t, idleLane, sickLane).run("get", "lanes", "--status", word)
		r.expect(t, pawl.ExitDone)
		if !strings.Contains(r.stdout, "bills") || strings.Contains(r.stdout, "prices") {
			t.Errorf("%s:\n%s", word, r.stdout)
		}
	}
	statusAPI(t, idleLane).run("get", "lane", "prices", "--status", "Idle").expect(t, pawl.ExitUsage, "--status does not apply")
}

// U23: what has only one name needs no kind.
func TestWhyNeedsNoKindWhereTheNameIsTheOnlyOne(t *testing.T) {
	f := statusAPI(t, idleLane, sickLane, `{"kind":"source","name":"both","id":"3"}`, `{"kind":"schedule","name":"both","id":"4"}`)
	f.answer["GET /api/v1/lanes/workflow/bills/why"] = fakeJSON{200, `{"kind":"workflow","name":"bills","status":"Needs attention"}`}
	f.run("why", "bills").expect(t, pawl.ExitDone)
	f.run("why", "both").expect(t, pawl.ExitUsage, `a source and a schedule have the name "both"`, "pawl why source both")
	f.run("why", "price").expect(t, pawl.ExitNotFound, `no workflow, source or schedule has the name "price"`, "Did you mean prices?")
	f.run("why", "..").expect(t, pawl.ExitUsage)
	f.run("why", "token", "x").expect(t, pawl.ExitUsage, "does not apply")
}

const (
	oneRun   = "01a1df2f-7a0e-7b01-b589-1e8549bbc357"
	otherRun = "01a1df2f-7a0e-7b01-b589-ffffff000000"
)

func TestPartOfAnIdIsEnough(t *testing.T) {
	item := func(id string) string {
		return `{"id":"` + id + `","kind":"workflow","lane":"bills","status":"committed","phase":"committed"}`
	}
	f := newFake(t, map[string]fakeJSON{
		"GET /api/v1/runs":                        {200, `{"items":[` + item(oneRun) + "," + item(otherRun) + `]}`},
		"GET /api/v1/runs/" + oneRun:              {200, item(oneRun)},
		"POST /api/v1/runs/" + oneRun + "/cancel": {200, item(oneRun)},
		"GET /api/v1/lanes":                       {200, `{"items":[]}`},
	})
	for _, args := range [][]string{{"describe", "run", "49bbc357"}, {"get", "run", "1E8549BBC357"}, {"why", "run", oneRun[:26]}, {"why", "49bbc357"}, {"describe", "run", oneRun}} {
		r := f.run(args...)
		r.expect(t, pawl.ExitDone)
		if !strings.Contains(r.stdout, oneRun) {
			t.Errorf("%v:\n%s", args, r.stdout)
		}
	}
	if r := f.run("cancel", "49bbc357"); r.code != pawl.ExitDone || r.stdout != "run "+oneRun+" cancelled\n" {
		t.Errorf("%+v", r)
	}
	f.answer["GET /api/v1/jobs"] = fakeJSON{200, `{"items":[{"id":"380466501013753856","task":"log"},{"id":"380466501013753857","task":"log"}]}`}
	f.answer["GET /api/v1/jobs/380466501013753856"] = fakeJSON{200, `{"id":"380466501013753856","task":"log","state":"scheduled"}`}
	f.run("why", "job", "753856").expect(t, pawl.ExitDone)
	f.run("why", "job", "380466").expect(t, pawl.ExitUsage, "can be any of 2 jobs")
	// What could be another one changes nothing.
	f.run("cancel", "01a1df2f").expect(t, pawl.ExitUsage, "can be any of 2 runs", "Write more of it")
	f.run("cancel", "abcdef").expect(t, pawl.ExitNotFound, "begins or ends with abcdef")
	f.run("cancel", "bc357").expect(t, pawl.ExitNotFound) // too short to be looked for
	if n := strings.Count(f.requests(), "/cancel"); n != 2 {
		t.Errorf("%d were cancelled:\n%s", n, f.requests())
	}
}
