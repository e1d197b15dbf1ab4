package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
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
