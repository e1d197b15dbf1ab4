package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	pawl "github.com/pawlrun/pawl"
)

const failedJob = `{"id":"42","task":"http","payload":{"url":"http://desk/1"},"runAt":"2026-01-01T00:00:00.000Z","lane":"till","key":"k1",` +
	`"state":"failed","attempt":3,"maxAttempts":3,"createdAt":"2026-01-01T00:00:00.000Z","finishedAt":"2026-01-01T00:01:00.000Z",` +
	`"lastError":"desk answered 500","node":"n1","later":"a field of a later version"}`

const scheduledJob = `{"id":"43","task":"log","payload":null,"runAt":"2999-01-01T00:00:00.000Z","state":"scheduled","attempt":0,"maxAttempts":0,"createdAt":"2026-01-01T00:00:00.000Z"}`

func jobAPI(t *testing.T) *fake {
	return newFake(t, map[string]fakeJSON{
		"GET /api/v1/jobs":            {200, `{"items":[` + failedJob + `,` + scheduledJob + `]}`},
		"GET /api/v1/jobs/42":         {200, failedJob},
		"DELETE /api/v1/jobs/42":      {204, ``},
		"DELETE /api/v1/jobs/50":      {409, `conflict`},
		"POST /api/v1/jobs/42/retry":  {200, failedJob},
		"POST /api/v1/jobs/43/retry":  {409, `not_failed`},
		"GET /api/v1/jobs/forbidden":  {403, `forbidden`},
		"GET /api/v1/jobs/impossible": {500, `internal`},
	})
}

func TestGetListsInATable(t *testing.T) {
	r := jobAPI(t).run("get", "jobs")
	r.expect(t, pawl.ExitDone)
	lines := strings.Split(r.stdout, "\n")
	if !strings.HasPrefix(lines[0], "ID   TASK   STATE       WHEN") || strings.Contains(lines[0], "PAYLOAD") {
		t.Errorf("titles: %s", lines[0])
	}
	for i, words := range [][]string{1: {"42", "http", "failed", " ago", "3/3", "till", "desk answered 500"}, 2: {"43", "log", "scheduled", "in ", "-"}} {
		for _, w := range words {
			if !strings.Contains(lines[i], w) {
				t.Errorf("row %d lacks %q: %s", i, w, lines[i])
			}
		}
	}
	if wide := jobAPI(t).run("get", "jobs", "-o", "wide").stdout; !strings.Contains(wide, "PAYLOAD") || !strings.Contains(wide, "k1") || !strings.Contains(wide, `{"url":"http://desk/1"}`) {
		t.Errorf("wide:\n%s", wide)
	}
}

func TestKindsHaveSingularAndAlias(t *testing.T) {
	for _, word := range []string{"jobs", "job", "j", "JOBS"} {
		jobAPI(t).run("get", word).expect(t, pawl.ExitDone)
	}
}

func TestMachineOutputKeepsEveryField(t *testing.T) {
	f := jobAPI(t)
	var list struct {
		Items []map[string]any `json:"items"`
	}
	if err := json.Unmarshal([]byte(f.run("get", "jobs", "-o", "json").stdout), &list); err != nil || len(list.Items) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	if list.Items[0]["later"] != "a field of a later version" {
		t.Errorf("json: %v", list.Items[0])
	}
	var one map[string]any
	if err := yaml.Unmarshal([]byte(f.run("get", "job", "42", "-o", "yaml").stdout), &one); err != nil {
		t.Fatal(err)
	}
	if one["id"] != "42" || one["later"] != "a field of a later version" {
		t.Errorf("yaml: %v", one)
	}
}

func TestEmptyListIsToldOnStderr(t *testing.T) {
	f := newFake(t, map[string]fakeJSON{"GET /api/v1/jobs": {200, `{"items":[]}`}})
	r := f.run("get", "jobs")
	r.expect(t, pawl.ExitDone, "No jobs.")
	if r.stdout != "" {
		t.Errorf("stdout: %s", r.stdout)
	}
	if got := f.run("get", "jobs", "-o", "json").stdout; strings.Join(strings.Fields(got), "") != `{"items":[]}` {
		t.Errorf("json: %s", got)
	}
}

func TestFiltersAndLimitReachTheServer(t *testing.T) {
	f := newFake(t, map[string]fakeJSON{"GET /api/v1/jobs": {200, `{"items":[` + failedJob + `],"nextCursor":"c"}`}})
	f.run("get", "jobs", "--state", "failed", "--lane", "till", "--limit", "1").expect(t, pawl.ExitDone, "--limit 0 shows all")
	if got, want := f.requests(), "GET /api/v1/jobs?lane=till&limit=1&state=failed"; got != want {
		t.Errorf("asked %q, want %q", got, want)
	}
}

func TestRefusalsHaveTheirExitCodes(t *testing.T) {
	f := jobAPI(t)
	f.run("get", "job", "7").expect(t, pawl.ExitNotFound, "there is no such thing")
	f.run("describe", "job", "7").expect(t, pawl.ExitNotFound)
	f.run("delete", "job", "7").expect(t, pawl.ExitNotFound)
	f.run("delete", "job", "50").expect(t, pawl.ExitRefused, "refused because of conflict")
	f.run("retry", "job", "43").expect(t, pawl.ExitRefused, "not_failed")
	f.run("get", "job", "forbidden").expect(t, pawl.ExitNotAllowed)
	f.run("get", "job", "impossible").expect(t, pawl.ExitFailed)
	f.run("get", "jobs", "--token", "wrong").expect(t, pawl.ExitNotAllowed, "PAWL_TOKEN")
}

func TestDeleteAndRetrySayWhatTheyDid(t *testing.T) {
	f := jobAPI(t)
	if r := f.run("delete", "job", "42"); r.stdout != "job 42 deleted\n" {
		t.Errorf("delete: %+v", r)
	}
	if r := f.run("retry", "job", "42"); r.stdout != "job 42 will run again\n" {
		t.Errorf("retry: %+v", r)
	}
}

func TestDescribeTellsAJobInWords(t *testing.T) {
	r := jobAPI(t).run("describe", "job", "42")
	r.expect(t, pawl.ExitDone)
	for _, w := range []string{"Job 42 runs the task http.", "failed for good after 3 attempts", "pawl retry job 42", "desk answered 500", "2026-01-01T00:01:00.000Z", `"url": "http://desk/1"`} {
		if !strings.Contains(r.stdout, w) {
			t.Errorf("lacks %q:\n%s", w, r.stdout)
		}
	}
}

func TestStoryOfAJobSaysWhyItIsAsItIs(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	tests := map[string]string{
		`{"state":"scheduled","runAt":"2026-01-01T12:00:08Z"}`:                                  "It waits for its time, which is in 8s.",
		`{"state":"scheduled","attempt":2,"runAt":"2026-01-01T12:00:04Z","lastError":"broken"}`: "It failed in 2 attempts; the next one is in 4s.",
		`{"state":"pending"}`:                                    "It is due and waits for a free worker.",
		`{"state":"pending","lane":"till"}`:                      "It is due and waits until the lane till is free",
		`{"state":"running","startedAt":"2026-01-01T11:59:57Z"}`: "It is running for 3s.",
		`{"state":"running"}`:                                    "It is running.",
		`{"state":"cancelled"}`:                                  "It was cancelled and will not run.",
		`{"state":"succeeded","attempt":1,"runAt":"2026-01-01T11:00:00Z","startedAt":"2026-01-01T11:00:00.002Z","finishedAt":"2026-01-01T11:00:01Z"}`: "It is done; it started 2ms after its time and took 998ms.",
		`{"state":"odd"}`: "It is odd.",
	}
	for raw, want := range tests {
		got, err := describeJob(json.RawMessage(raw), now)
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %v, lacks %q:\n%s", raw, err, want, got)
		}
	}
}
