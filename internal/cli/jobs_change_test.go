package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
)

func TestManyJobsAreRetriedAndCancelled(t *testing.T) {
	for verb, says := range map[string]string{"retry": "3 jobs will run again", "cancel": "3 jobs cancelled"} {
		t.Run(verb, func(t *testing.T) {
			f := newFake(t, map[string]fakeJSON{"POST /api/v1/jobs:" + verb: {200, `{"matched":4,"changed":3,"nextCursor":null}`}})
			r := f.run(verb, "jobs", "--task", "mail", "--lane", "l", "--key", "k", "--state", "failed", "--error", "refused", "--older-than", "2h")
			r.expect(t, pawl.ExitDone, "1 job ended or changed meanwhile")
			if r.stdout != says+"\n" {
				t.Errorf("stdout %q", r.stdout)
			}
			want := `{"filter":{"task":"mail","lane":"l","key":"k","state":"failed","error":"refused","olderThan":"2h"}}`
			if diff := cmp.Diff([]string{want}, f.sent()); diff != "" {
				t.Error(diff)
			}
			f.set("POST /api/v1/jobs:"+verb, fakeJSON{200, `{"matched":4,"changed":0,"dryRun":true,"nextCursor":null}`})
			if r := f.run(verb, "jobs", "--task", "mail", "--dry-run"); r.stdout != map[string]string{"retry": "4 jobs would run again\n", "cancel": "4 jobs would be cancelled\n"}[verb] {
				t.Errorf("dry run: %q", r.stdout)
			}
		})
	}
}

func TestManyJobsAreNotChangedByMistake(t *testing.T) {
	f := newFake(t, nil)
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"retry without a filter":  {[]string{"retry", "jobs"}, "needs to be told which"},
		"cancel without a filter": {[]string{"cancel", "jobs", "--dry-run"}, "needs to be told which"},
		"retry one by filter":     {[]string{"retry", "job", "42", "--task", "mail"}, "these flags pick jobs"},
		"cancel one by filter":    {[]string{"cancel", "0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e", "--dry-run"}, "these flags pick jobs"},
		"retry of nothing":        {[]string{"retry", "slot"}, "needs more arguments"},
		"retry by an odd flag":    {[]string{"retry", "jobs", "--owner", "me"}, "--owner"},
	} {
		t.Run(name, func(t *testing.T) { f.run(tt.args...).expect(t, pawl.ExitUsage, tt.says) })
	}
	if f.requests() != "" {
		t.Errorf("asked %s", f.requests())
	}
}
