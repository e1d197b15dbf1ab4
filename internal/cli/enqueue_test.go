package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

func TestEnqueueAsksForAJob(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"http":    {[]string{"http", "https://a.example/x", "--in", "10s"}, `{"delay":"10s","payload":{"url":"https://a.example/x"},"task":"http"}`},
		"request": {[]string{"http", "https://a.example", "--method", "put", "--header", "X-A: b:c", "--body", `{"n":1}`}, `{"payload":{"body":{"n":1},"headers":{"X-A":"b:c"},"method":"PUT","url":"https://a.example"},"task":"http"}`},
		"log":     {[]string{"log", "--message", "hi", "--at", "2030-01-31T09:00:00+01:00"}, `{"payload":{"message":"hi"},"runAt":"2030-01-31T08:00:00.000Z","task":"log"}`},
		"all":     {[]string{"own", "--payload", `[1]`, "--lane", "l", "--key", "k", "--key-mode", "keep", "--priority", "-1", "--max-attempts", "3"}, `{"key":"k","keyMode":"keep","lane":"l","maxAttempts":3,"payload":[1],"priority":-1,"task":"own"}`},
		"nothing": {[]string{"own"}, `{"task":"own"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, map[string]fakeJSON{"POST /api/v1/jobs": {201, `{"id":"7","runAt":"2030-01-31T08:00:00Z"}`}})
			r := f.run(append([]string{"enqueue"}, tt.args...)...)
			r.expect(t, pawl.ExitDone, "pawl get job 7 -w")
			if !strings.HasPrefix(r.stdout, "job 7 runs in ") {
				t.Errorf("stdout %q", r.stdout)
			}
			if diff := cmp.Diff([]string{tt.want}, f.sent()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEnqueueRefusesWhatItCannotMean(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"no url":           {[]string{"http"}, "needs a URL"},
		"url of another":   {[]string{"log", "https://a"}, "only the task http"},
		"message of http":  {[]string{"http", "https://a", "--message", "x"}, "only the task log"},
		"two payloads":     {[]string{"http", "https://a", "--payload", "{}"}, "--payload replaces"},
		"two times":        {[]string{"log", "--in", "1s", "--at", "2030-01-01T00:00:00Z"}, "cannot go together"},
		"no JSON":          {[]string{"own", "--payload", "{"}, "not JSON"},
		"header":           {[]string{"http", "https://a", "--header", "x"}, "NAME: VALUE"},
		"no instant":       {[]string{"log", "--at", "soon"}, "--at"},
		"file that is not": {[]string{"own", "--payload", "@absent"}, "--payload"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, nil)
			f.run(append([]string{"enqueue"}, tt.args...)...).expect(t, pawl.ExitUsage, tt.says)
			if f.requests() != "" {
				t.Errorf("asked %s", f.requests())
			}
		})
	}
}

// jobFile writes a file of jobs into the folder of a test.
func jobFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.jsonl")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEnqueueSendsTheLinesOfAFile(t *testing.T) {
	f := newFake(t, map[string]fakeJSON{"POST /api/v1/jobs:bulk": {201, `{"items":[{"id":"7"},{"id":"8"}]}`}})
	lines := "\n{\"task\": \"log\"}\r\n\n  {\"task\":\"http\",\"payload\":{\"n\":12345678901234567890}}"
	f.run("enqueue", "--file", jobFile(t, lines)).expect(t, pawl.ExitDone, "")
	call := f.call()
	call.stdin = lines
	r := call.run(t, "enqueue", "--file", "-", "-o", "json")
	want := `{"jobs":[{"task":"log"},{"task":"http","payload":{"n":12345678901234567890}}]}`
	if diff := cmp.Diff([]string{want, want}, f.sent()); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(r.stdout, `"id": "8"`) {
		t.Errorf("stdout %q", r.stdout)
	}
}

// A file that is too much for one request is several.
func TestEnqueueSendsALongFileInParts(t *testing.T) {
	f := newFake(t, map[string]fakeJSON{"POST /api/v1/jobs:bulk": {201, `{"items":[{"id":"7"}]}`}})
	f.run("enqueue", "--file", jobFile(t, strings.Repeat("{\"task\":\"log\"}\n", client.MaxBulkJobs+1))).expect(t, pawl.ExitDone, "")
	large := `{"task":"log","payload":"` + strings.Repeat("x", 3<<20) + "\"}\n"
	f.run("enqueue", "--file", jobFile(t, strings.Repeat(large, 5))).expect(t, pawl.ExitDone, "")
	var counts []int
	for _, body := range f.sent() {
		counts = append(counts, strings.Count(body, `"task"`))
		if len(body) > 8<<20 {
			t.Errorf("a request of %d bytes", len(body))
		}
	}
	if diff := cmp.Diff([]int{client.MaxBulkJobs, 1, 2, 2, 1}, counts); diff != "" {
		t.Error(diff)
	}
}

func TestEnqueueNamesBadLinesOfAFile(t *testing.T) {
	f := newFake(t, map[string]fakeJSON{"POST /api/v1/jobs:bulk": {422, `{"status":422,"code":"invalid","detail":"The request has a fault.","errors":[{"pointer":"/jobs/1/task","message":"is not a task of this server"}]}`}})
	f.run("enqueue", "--file", jobFile(t, "{\"task\":\"log\"}\n\n{\"task\":\"lag\"}\n")).expect(t, pawl.ExitFailed, "line 3: /task is not a task of this server")
	none := newFake(t, nil)
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"not JSON":       {[]string{"--file", jobFile(t, "{\"task\":\"log\"}\n{\n")}, "line 2 is not JSON"},
		"a long line":    {[]string{"--file", jobFile(t, strings.Repeat("x", 9<<20))}, "line 1: has more than"},
		"no file":        {[]string{"--file", "absent"}, "--file"},
		"a task":         {[]string{"log", "--file", "-"}, "does not take"},
		"another flag":   {[]string{"--file", "-", "--lane", "l"}, "--file and --lane cannot go together"},
		"nothing at all": {nil, "needs more arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			none.run(append([]string{"enqueue"}, tt.args...)...).expect(t, pawl.ExitUsage, tt.says)
		})
	}
	if none.requests() != "" {
		t.Errorf("asked %s", none.requests())
	}
}

func TestEnqueueWaitsForTheEndOfAJob(t *testing.T) {
	for name, tt := range map[string]struct {
		job, stdout, says string
		exit              int
	}{
		"result":    {`{"id":"7","state":"succeeded","result":{"n":1}}`, `{"n":1}`, "", pawl.ExitDone},
		"no result": {`{"id":"7","state":"succeeded"}`, "job 7 succeeded", "", pawl.ExitDone},
		"failed":    {`{"id":"7","state":"failed","lastError":"it broke\nbadly"}`, "", "job 7 failed: it broke", pawl.ExitFailed},
		"cancelled": {`{"id":"7","state":"cancelled"}`, "", "job 7 was cancelled", pawl.ExitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, map[string]fakeJSON{"POST /api/v1/jobs": {201, `{"id":"7","runAt":"2030-01-31T08:00:00Z"}`}, "GET /api/v1/jobs/7": {200, tt.job}})
			r := f.run("enqueue", "own", "--wait")
			r.expect(t, tt.exit, tt.says)
			if strings.TrimSpace(r.stdout) != tt.stdout || !strings.Contains(f.requests(), "GET /api/v1/jobs/7?wait=20s") {
				t.Errorf("stdout %q, asked %s", r.stdout, f.requests())
			}
		})
	}
}
