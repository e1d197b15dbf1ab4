package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// change asks for something to be done to the jobs of a filter.
func (r *rig) change(token, verb string, body any) (out client.ChangedJobs) {
	r.t.Helper()
	r.as(token, "POST", "/api/v1/jobs:"+verb, body).want(http.StatusOK).into(&out)
	return out
}

// present adds rows of jobs behind the API's back, which no node runs. Their ids tell
// how many hours ago they were made.
func (r *rig) present(owner, task, lane, lastError string, state, hoursAgo, n int) {
	r.t.Helper()
	series := `with recursive s (i) as (select 0 union all select i + 1 from s where i + 1 < $8)`
	r.exec(series+` insert into jobs (id, bucket, run_at, max_attempts, task, owner, lane, payload, created_at, last_error, state, attempt)
		select cast($1 as bigint) + cast(s.i as bigint) * 100000 + cast($7 as bigint), case when cast($6 as bigint) > 0 then -1 else 0 end, 99999999999999, 1, $2, $3, $4, '{}', 0, $5, cast($6 as bigint), 1 from s`,
		store.IDAt(time.Now().Add(-time.Duration(hoursAgo)*time.Hour)), task, owner, store.NullText(lane), store.NullText(lastError), state, r.count(`select count(*) from jobs`), n)
}

func TestFailedJobsAreRetriedByFilter(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("mail", nil)
		me := r.user.ID
		r.present(me, "mail", "a", "connection refused: 10.0.0.1", 1, 5, 3)
		r.present(me, "mail", "b", "Connection refused", 1, 5, 3)
		r.present(me, "gone", "a", "connection refused", 1, 1, 3)
		r.present(me, "mail", "a", "", 2, 5, 3)
		for _, c := range []struct {
			filter string
			want   int
		}{
			{`{"error":"connection refused"}`, 6}, {`{"error":"connection%"}`, 0}, {`{"lane":"a"}`, 6}, {`{"lane":"a","task":"mail"}`, 3},
			{`{"state":"failed"}`, 9}, {`{"olderThan":"2h"}`, 6}, {`{"olderThan":"1d"}`, 0}, {`{"task":"nobody"}`, 0}, {`{"key":"k"}`, 0},
		} {
			got := r.change(r.admin, "retry", `{"dryRun":true,"filter":`+c.filter+`}`)
			if got != (client.ChangedJobs{Matched: c.want, DryRun: true}) {
				t.Errorf("%s: %+v, want %d", c.filter, got, c.want)
			}
		}
		if n := r.count(`select count(*) from jobs where state = 1`); n != 9 {
			t.Fatalf("a dry run left %d failed jobs", n)
		}
		if got := r.change(r.admin, "retry", `{"filter":{"task":"mail","error":"refused"}}`); got != (client.ChangedJobs{Matched: 6, Changed: 6}) {
			t.Errorf("%+v", got)
		}
		if claimed := r.claim(r.admin, "mail", 100); len(claimed) != 2 || claimed[0].Attempt != 1 { // one of each lane
			t.Errorf("claimed %+v", claimed)
		}
		if n := r.count(`select count(*) from audit_log where action = 'job.retry' and detail like '%filter%'`); n != 6 {
			t.Errorf("%d audit entries", n)
		}
		if n := r.count(`select count(*) from jobs where state = 1`); n != 3 {
			t.Errorf("%d failed jobs are left", n)
		}
	})
}

// What was retried by a filter runs, on a node that has read it before.
func TestJobsRetriedByFilterRunAgain(t *testing.T) {
	both(t, func(r *rig) {
		for range 5 {
			r.waitState(r.enqueue(map[string]any{"task": "fail", "payload": "p", "lane": "l"}).ID, store.JobFailed)
		}
		r.exec(`update jobs set task = 'echo' where state = 1`)
		if got := r.change(r.admin, "retry", `{"filter":{"lane":"l"}}`); got.Changed != 5 {
			t.Errorf("%+v", got)
		}
		for range 5 {
			if what := r.waitRun(); what != `echo "p"` {
				t.Errorf("ran %q", what)
			}
		}
	})
}

func TestJobsAreCancelledByFilter(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("mail", nil)
		running := r.enqueue(map[string]any{"task": "block", "lane": "run"})
		r.waitRun()
		waiting := r.enqueue(map[string]any{"task": "echo", "lane": "run"})
		later := r.enqueue(map[string]any{"task": "echo", "lane": "later", "delay": "1h", "key": "k"})
		r.enqueue(map[string]any{"task": "mail", "lane": "m"})
		held := r.claim(r.admin, "mail", 1)
		failed := r.enqueue(map[string]any{"task": "fail", "lane": "f"})
		r.waitState(failed.ID, store.JobFailed)
		if got := r.change(r.admin, "cancel", `{"filter":{"state":"scheduled"},"dryRun":true}`); got.Matched != 1 {
			t.Errorf("scheduled: %+v", got)
		}
		for _, filter := range []string{`{"key":"k"}`, `{"task":"mail","state":"running"}`, `{"state":"failed"}`} {
			if got := r.change(r.admin, "cancel", `{"filter":`+filter+`}`); got != (client.ChangedJobs{Matched: 1, Changed: 1}) {
				t.Errorf("%s: %+v", filter, got)
			}
		}
		if got := r.change(r.admin, "cancel", `{"filter":{"lane":"run"}}`); got.Changed != 2 {
			t.Errorf("%+v", got)
		}
		for _, id := range []string{running.ID, waiting.ID, later.ID, held[0].ID, failed.ID} {
			r.waitState(id, store.JobCancelled)
			r.audited("job.cancel", "job:"+id)
		}
		r.eventually("the job stops", func() bool { return r.queue.Running() == 0 })
		var told client.Leases
		r.do("POST", "/api/v1/tasks/mail/complete", map[string]any{"items": []any{inHand(held[0])}}).want(200).into(&told)
		if string(told.Items[0].Code) != client.LeaseCancelled {
			t.Errorf("its worker is told %+v", told.Items[0])
		}
	})
}

func TestBadJobFiltersAreRefused(t *testing.T) {
	both(t, func(r *rig) {
		r.enqueue(map[string]any{"task": "echo", "delay": "1h"})
		for _, c := range []struct{ verb, body, pointer string }{
			{"cancel", `{"filter":{}}`, "/filter"}, {"retry", `{"filter":{}}`, "/filter"}, {"cancel", `{}`, "/filter"}, {"cancel", `{"filter":null}`, "/filter"},
			{"cancel", `{"filter":{"task":""}}`, "/filter/task"}, {"cancel", `{"filter":{"owner":"x"}}`, "/filter/owner"}, {"cancel", `{"filter":{"internal":true}}`, "/filter/internal"},
			{"cancel", `{"filter":{"state":"succeeded"}}`, "/filter/state"}, {"retry", `{"filter":{"state":"pending"}}`, "/filter/state"},
			{"cancel", `{"filter":{"lane":"a\u0000"}}`, "/filter/lane"}, {"cancel", `{"filter":{"error":"\n"}}`, "/filter/error"},
			{"cancel", `{"filter":{"olderThan":"soon"}}`, "/filter/olderThan"}, {"cancel", `{"filter":{"olderThan":"99999d"}}`, "/filter/olderThan"}, {"cancel", `{"filter":{"olderThan":"-1h"}}`, "/filter/olderThan"},
			{"cancel", `{"filter":{"task":"echo"},"limit":1001}`, "/limit"}, {"cancel", `{"filter":{"task":"echo"},"limit":0}`, "/limit"},
			{"cancel", `{"filter":{"task":"echo"},"cursor":"garbage"}`, "/cursor"}, {"cancel", `{"filter":{"task":"echo"},"cursor":"dG9rZW46MQ"}`, "/cursor"},
		} {
			p := r.do("POST", "/api/v1/jobs:"+c.verb, c.body).problem(http.StatusUnprocessableEntity, "invalid")
			if len(p.Errors) == 0 || p.Errors[0].Pointer != c.pointer || p.Hint == "" {
				t.Errorf("%s %s: %+v, want a fault at %s", c.verb, c.body, p.Errors, c.pointer)
			}
		}
		r.do("POST", "/api/v1/jobs:cancel", `{"filter":{"task":"`+strings.Repeat("x", 10<<20)+`"}}`).problem(http.StatusRequestEntityTooLarge, "too_large")
		r.do("DELETE", "/api/v1/jobs:cancel", nil).problem(http.StatusMethodNotAllowed, "method_not_allowed")
		if n := r.count(`select count(*) from jobs where owner <> ''`); n != 1 {
			t.Errorf("%d jobs are left", n)
		}
	})
}

// A filter picks what its caller could change one by one: never Pawl's own, and
// others' only with jobs:admin.
func TestJobFiltersReachNobodyElsesJobs(t *testing.T) {
	both(t, func(r *rig) {
		mallory := r.token("mallory", userstore.RoleOperator, "jobs:write")
		them := r.find(mallory).User.ID
		for _, owner := range []string{"", r.user.ID, them} {
			r.present(owner, "t", "l", "broke", 1, 3, 2)
			r.present(owner, "pawl.workflow", "l", "broke", 1, 3, 1)
			r.present(owner, "t", "l", "", 0, 3, 2)
			r.present(owner, "t", "l", "", 2, 3, 1)
		}
		left := func(owner string) int {
			return r.count(`select count(*) from jobs where owner = $1 and state <> 1`, owner)
		}
		for _, filter := range []string{`{"task":"t"}`, `{"lane":"l"}`, `{"error":"broke"}`, `{"state":"failed"}`, `{"olderThan":"1h"}`, `{"task":"pawl.workflow"}`} {
			r.change(mallory, "retry", `{"filter":`+filter+`}`)
		}
		if a, b, c := left(""), left(r.user.ID), left(them); a != 3 || b != 3 || c != 6 {
			t.Errorf("mallory left %d of Pawl, %d of the admin and %d of their own that wait", a, b, c)
		}
		r.change(mallory, "cancel", `{"filter":{"lane":"l"}}`)
		r.change(r.admin, "retry", `{"filter":{"lane":"l"}}`)
		if a, b, c := left(""), left(r.user.ID), left(them); a != 3 || b != 6 || c != 0 {
			t.Errorf("then %d of Pawl, %d of the admin and %d of mallory wait", a, b, c)
		}
		for _, filter := range []string{`{"lane":"l"}`, `{"task":"pawl.workflow"}`, `{"olderThan":"0s"}`} {
			r.change(r.admin, "cancel", `{"filter":`+filter+`}`)
		}
		if n := r.count(`select count(*) from jobs where lane = 'l'`); n != 6 || left("") != 3 {
			t.Errorf("%d jobs are left", n)
		}
		eve := r.token("eve", userstore.RoleViewer, "*")
		r.as(eve, "POST", "/api/v1/jobs:cancel", `{"filter":{"lane":"l"},"dryRun":true}`).problem(http.StatusForbidden, "forbidden")
		r.as("", "POST", "/api/v1/jobs:retry", `{"filter":{"lane":"l"}}`).problem(http.StatusUnauthorized, "unauthorized")
	})
}

// However many a filter matches, one request changes a thousand and looks at a
// bounded number; cursors lead through all, and each is changed once.
func TestAFilterThatMatchesVeryManyGoesInParts(t *testing.T) {
	both(t, func(r *rig) {
		const rare, common = 3000, 25_000
		r.present(r.user.ID, "common", "", "broke", 1, 30, common)
		r.present(r.user.ID, "rare", "", "broke", 1, 2, rare)
		changed, requests := 0, 0
		for cursor := ""; ; requests++ {
			got := r.change(r.admin, "retry", fmt.Sprintf(`{"filter":{"task":"rare"}%s}`, cursor))
			if changed += got.Changed; got.Changed > maxChange || requests > 10 {
				t.Fatalf("%+v in request %d", got, requests)
			}
			if !got.More {
				break
			}
			cursor = `,"cursor":"` + string(got.NextCursor) + `"`
		}
		if n := r.count(`select count(*) from jobs where task = 'rare' and state = 2 and rev = 1`); changed != rare || n != rare || requests < 3 {
			t.Errorf("%d changed in %d requests, %d wait", changed, requests, n)
		}
		got := r.change(r.admin, "cancel", `{"filter":{"task":"common"},"limit":7}`)
		if got.Matched != 7 || got.Changed != 7 || !got.More || got.NextCursor == "" || r.count(`select count(*) from jobs where task = 'common'`) != common-7 {
			t.Errorf("%+v", got)
		}
	})
}
