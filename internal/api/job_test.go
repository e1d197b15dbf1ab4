package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
)

// A job that was accepted runs, and can be looked at before and after.
func TestJobIsEnqueuedRunsAndIsRemembered(t *testing.T) {
	both(t, func(r *rig) {
		p := r.do("POST", "/api/v1/jobs", `{"task":"echo","payload":{"n":12345678901234567890.5}}`).want(http.StatusCreated)
		j := p.job()
		if p.header.Get("Location") != "/api/v1/jobs/"+j.ID || j.ID == "" {
			t.Errorf("location %q of job %q", p.header.Get("Location"), j.ID)
		}
		if got := r.waitRun(); got != `echo {"n":12345678901234567890.5}` {
			t.Errorf("ran %q: a payload is passed on to the letter", got)
		}
		done := r.waitState(j.ID, store.JobSucceeded)
		if done.StartedAt.IsZero() || done.FinishedAt.IsZero() || done.Attempt != 1 || done.LastError != "" || done.Task != "echo" {
			t.Errorf("finished as %+v", done)
		}
		if d := done.CreatedAt.Sub(j.CreatedAt.Time).Abs(); d > time.Second {
			t.Errorf("created at %v, told %v later", j.CreatedAt, d)
		}
		r.audited("job.create", "job:"+j.ID)
	})
}

// Every field of the request comes back, and instants have one form.
func TestJobKeepsWhatWasAsked(t *testing.T) {
	both(t, func(r *rig) {
		p := r.do("POST", "/api/v1/jobs", map[string]any{
			"task": "echo", "payload": []int{1, 2}, "runAt": "2033-05-18T05:33:20.1234+02:00", "key": "k 1", "keyMode": "keep", "lane": "líne/1",
			"priority": -1, "maxAttempts": 1000,
		}).want(http.StatusCreated)
		var raw map[string]any
		p.into(&raw)
		want := map[string]any{
			"task": "echo", "runAt": "2033-05-18T03:33:20.123Z", "key": "k 1", "lane": "líne/1", "priority": -1.0, "maxAttempts": 1000.0,
			"state": "scheduled", "attempt": 0.0, "startedAt": nil, "finishedAt": nil, "lastError": nil, "node": nil, "createdBy": "admin",
		}
		for name, value := range want {
			if got, ok := raw[name]; !ok || got != value {
				t.Errorf("%s is %v, want %v", name, got, value)
			}
		}
		created, _ := raw["createdAt"].(string)
		if _, err := time.Parse(pawl.TimeFormat, created); err != nil {
			t.Errorf("createdAt %q: %v", created, err)
		}
		j := p.job()
		again := r.do("GET", "/api/v1/jobs/"+j.ID, nil).want(http.StatusOK)
		if string(again.body) != string(p.body) {
			t.Errorf("created as\n%s\nread as\n%s", p.body, again.body)
		}
	})
}

func TestJobWithoutFieldsIsNowAndOrdinary(t *testing.T) {
	both(t, func(r *rig) {
		before := time.Now().Add(-time.Second)
		j := r.enqueue(map[string]any{"task": "echo"})
		if j.RunAt.Before(before) || j.RunAt.After(time.Now().Add(time.Second)) || j.State != string(store.JobPending) || *j.MaxAttempts != 5 || *j.Priority != 0 {
			t.Errorf("got %+v", j)
		}
		if got := r.waitRun(); got != "echo {}" {
			t.Errorf("ran %q", got)
		}
		null := r.do("POST", "/api/v1/jobs", `{"task":"echo","payload":null,"runAt":null,"key":null}`).want(http.StatusCreated).job()
		if got := r.waitRun(); got != "echo null" || null.Key != "" {
			t.Errorf("ran %q, key %v", got, null.Key)
		}
	})
}

func TestDelayIsFromNow(t *testing.T) {
	both(t, func(r *rig) {
		j := r.enqueue(map[string]any{"task": "echo", "delay": "1h30m"})
		if d := time.Until(j.RunAt.Time); d < 89*time.Minute || d > 90*time.Minute || j.State != string(store.JobScheduled) {
			t.Errorf("due in %v, %s", d, j.State)
		}
	})
}

func TestKeyModesReachTheQueue(t *testing.T) {
	both(t, func(r *rig) {
		first := r.enqueue(map[string]any{"task": "echo", "key": "k", "delay": "1h", "payload": 1})
		kept := r.enqueue(map[string]any{"task": "echo", "key": "k", "keyMode": "keep", "delay": "2h", "payload": 2})
		if kept.ID != first.ID || string(kept.Payload) != "1" {
			t.Errorf("keep: %s %s", kept.ID, kept.Payload)
		}
		preserved := r.enqueue(map[string]any{"task": "echo", "key": "k", "keyMode": "preserve_run_at", "delay": "3h", "payload": 3})
		if string(preserved.Payload) != "3" || !preserved.RunAt.Equal(first.RunAt.Time) {
			t.Errorf("preserve_run_at: %s at %v", preserved.Payload, preserved.RunAt)
		}
		replaced := r.enqueue(map[string]any{"task": "echo", "key": "k", "delay": "4h", "payload": 4})
		if string(replaced.Payload) != "4" || replaced.RunAt.Equal(first.RunAt.Time) {
			t.Errorf("replace: %s at %v", replaced.Payload, replaced.RunAt)
		}
		if n := r.count(`select count(*) from jobs`); n != 1 {
			t.Errorf("%d jobs", n)
		}
	})
}

func TestUnknownJobIsNotFound(t *testing.T) {
	both(t, func(r *rig) {
		for _, id := range []string{"1", "0", "-1", "007", "abc", "99999999999999999999999", "1.5", "%00", "a%2Fb"} {
			for _, how := range [][2]string{{"GET", ""}, {"DELETE", ""}, {"POST", "/retry"}} {
				r.do(how[0], "/api/v1/jobs/"+id+how[1], nil).problem(http.StatusNotFound, "not_found")
			}
		}
	})
}

func TestCancelRemovesAWaitingJob(t *testing.T) {
	both(t, func(r *rig) {
		j := r.enqueue(map[string]any{"task": "echo", "delay": "1h", "key": "k", "lane": "l"})
		if p := r.do("DELETE", "/api/v1/jobs/"+j.ID, nil).want(http.StatusNoContent); len(p.body) != 0 {
			t.Errorf("204 with %q", p.body)
		}
		got := r.do("GET", "/api/v1/jobs/"+j.ID, nil).want(http.StatusOK).job()
		if got.State != string(store.JobCancelled) || got.FinishedAt.IsZero() || string(got.Key) != "k" || string(got.Lane) != "l" || r.count(`select count(*) from jobs`) != 0 {
			t.Errorf("left as %+v", got)
		}
		r.audited("job.cancel", "job:"+j.ID)
		again := r.do("DELETE", "/api/v1/jobs/"+j.ID, nil).problem(http.StatusConflict, "conflict")
		if again.Detail != "The job has been cancelled already." {
			t.Errorf("detail %q", again.Detail)
		}
		if n := r.count(`select count(*) from audit_log where action <> 'job.create'`); n != 1 {
			t.Errorf("%d audit entries: what was refused is not noted", n)
		}
	})
}

// audited looks for the one entry of that action.
func (r *rig) audited(action, subject string) store.AuditEntry {
	r.t.Helper()
	entries, err := r.db.AuditLog(r.t.Context(), 0, 100)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Action == action && e.Subject == subject {
			if want := "admin (token " + r.find(r.admin).ID + ")"; e.Actor != want || e.At.IsZero() {
				r.t.Errorf("actor %q, want %q", e.Actor, want)
			}
			return e
		}
	}
	r.t.Errorf("no audit entry %s of %s in %+v", action, subject, entries)
	return store.AuditEntry{}
}

func TestCancelStopsARunningJob(t *testing.T) {
	both(t, func(r *rig) {
		j := r.enqueue(map[string]any{"task": "block"})
		r.waitRun()
		if got := r.do("GET", "/api/v1/jobs/"+j.ID, nil).want(http.StatusOK).job(); got.State != string(store.JobRunning) || string(got.Node) != "node-1" {
			t.Errorf("runs as %+v", got)
		}
		r.do("DELETE", "/api/v1/jobs/"+j.ID, nil).want(http.StatusNoContent)
		r.eventually("the job stops", func() bool { return r.queue.Running() == 0 })
		r.waitState(j.ID, store.JobCancelled)
	})
}

func TestCancelOfAnEndedJobIsRefused(t *testing.T) {
	both(t, func(r *rig) {
		j := r.enqueue(map[string]any{"task": "echo"})
		r.waitState(j.ID, store.JobSucceeded)
		if p := r.do("DELETE", "/api/v1/jobs/"+j.ID, nil).problem(http.StatusConflict, "conflict"); p.Detail != "The job has succeeded already." {
			t.Errorf("detail %q", p.Detail)
		}
	})
}

func TestFailedJobCanBeRetriedAndCancelled(t *testing.T) {
	both(t, func(r *rig) {
		for _, key := range []any{nil, "k"} {
			body := map[string]any{"task": "fail", "lane": "l", "payload": map[string]int{"a": 1}}
			if key != nil {
				body["key"] = key
			}
			j := r.enqueue(body)
			failed := r.waitState(j.ID, store.JobFailed)
			if failed.Attempt != 1 || failed.LastError == "" || string(failed.LastError) != "it broke" {
				t.Fatalf("failed as %+v", failed)
			}
			// Make the task one that succeeds, so that the second run shows.
			r.exec(`update jobs set task = 'echo' where state = 1`)
			again := r.do("POST", "/api/v1/jobs/"+j.ID+"/retry", nil).want(http.StatusOK).job()
			if again.ID != j.ID || again.State != string(store.JobPending) || again.Attempt != 0 || again.LastError != "" || (key == nil) != (again.Key == "") {
				t.Errorf("retried as %+v", again)
			}
			if got := r.waitRun(); got != `echo {"a":1}` {
				t.Errorf("ran %q", got)
			}
			done := r.waitState(j.ID, store.JobSucceeded)
			if (key == nil) != (done.Key == "") {
				t.Errorf("remembered with key %v", done.Key)
			}
			r.audited("job.retry", "job:"+j.ID)
			if p := r.do("POST", "/api/v1/jobs/"+j.ID+"/retry", nil).problem(http.StatusConflict, "conflict"); !strings.Contains(p.Detail, "succeeded") {
				t.Errorf("detail %q", p.Detail)
			}
		}
		j := r.enqueue(map[string]any{"task": "fail"})
		r.waitState(j.ID, store.JobFailed)
		r.do("DELETE", "/api/v1/jobs/"+j.ID, nil).want(http.StatusNoContent)
		r.waitState(j.ID, store.JobCancelled)
	})
}

// exec changes the database behind the API's back.
func (r *rig) exec(sql string, args ...any) {
	r.t.Helper()
	r.write(func(ctx context.Context, tx *store.Tx) error { _, err := tx.Exec(ctx, sql, args...); return err })
}

// A list goes through all jobs, present and past, each once and the newest
// first.
func TestJobListPagesThroughEverything(t *testing.T) {
	both(t, func(r *rig) {
		var want []string
		for i := range 23 {
			body := map[string]any{"task": "echo", "lane": "a", "delay": "1h"}
			if i%2 == 0 {
				body["lane"] = "b"
			}
			j := r.enqueue(body)
			if i%3 == 0 {
				r.do("DELETE", "/api/v1/jobs/"+j.ID, nil).want(http.StatusNoContent)
			}
			want = append([]string{j.ID}, want...)
		}
		var got []string
		cursor := ""
		for pages := 0; ; pages++ {
			page := r.list("limit=5" + cursor)
			if len(page.Items) > 5 || pages > 5 {
				t.Fatalf("page %d has %d items", pages, len(page.Items))
			}
			for _, j := range page.Items {
				got = append(got, j.ID)
			}
			if page.NextCursor == "" {
				break
			}
			cursor = "&cursor=" + string(page.NextCursor)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("listed\n%v\nwant\n%v", got, want)
		}
		for query, n := range map[string]int{
			"": 23, "lane=b": 12, "state=cancelled": 8, "state=scheduled": 15, "state=scheduled&lane=a": 7, "state=succeeded": 0, "state=failed": 0,
			"task=echo&limit=500": 23, "task=other": 0, "key=none": 0, "state=pending": 0, "state=running": 0,
		} {
			if page := r.list(query); len(page.Items) != n || page.NextCursor != "" {
				t.Errorf("?%s has %d items, want %d; next %v", query, len(page.Items), n, page.NextCursor)
			}
		}
	})
}

func (r *rig) list(query string) (page client.Page[client.Job]) {
	r.t.Helper()
	r.do("GET", "/api/v1/jobs?"+query, nil).want(http.StatusOK).into(&page)
	return page
}

func TestEmptyListIsAnArray(t *testing.T) {
	both(t, func(r *rig) {
		if p := r.do("GET", "/api/v1/jobs", nil).want(http.StatusOK); string(p.body) != `{"items":[],"nextCursor":null}`+"\n" {
			t.Errorf("got %s", p.body)
		}
	})
}

func TestBadListParametersAreRefused(t *testing.T) {
	both(t, func(r *rig) {
		r.do("GET", "/api/v1/jobs?limit=%zz", nil).problem(http.StatusBadRequest, "malformed")
		for query, pointer := range map[string]string{
			"limit=1&limit=2": "/limit", "limit=0": "/limit", "limit=501": "/limit", "limit=x": "/limit", "limit=1.5": "/limit", "cursor=garbage": "/cursor", "cursor=" + url.QueryEscape("ä\x00"): "/cursor",
			"cursor=am9iOg": "/cursor", "cursor=am9iOi0x": "/cursor", "cursor=am9iOmFiYw": "/cursor", "cursor=dG9rZW46MQ": "/cursor",
			"state=done": "/state", "status=failed": "/status", "lane=%00": "/lane", "lane=%ff": "/lane", "key=" + strings.Repeat("x", 257): "/key", "task=%20a": "/task",
		} {
			p := r.do("GET", "/api/v1/jobs?"+query, nil).problem(http.StatusUnprocessableEntity, "invalid")
			if len(p.Errors) == 0 || p.Errors[0].Pointer != pointer {
				t.Errorf("?%s: %+v, want a fault at %s", query, p.Errors, pointer)
			}
		}
	})
}

func TestPayloadOfAJobIsShownWhileItIsThere(t *testing.T) {
	both(t, func(r *rig) {
		j := r.enqueue(map[string]any{"task": "echo", "payload": map[string]string{"a": "<&>"}, "delay": "1h"})
		page := r.list("key=")
		if len(page.Items) != 1 || !json.Valid(page.Items[0].Payload) || string(page.Items[0].Payload) != `{"a":"\u003c\u0026\u003e"}` {
			t.Errorf("listed %+v of %s", page.Items, j.ID)
		}
	})
}
