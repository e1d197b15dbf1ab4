package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// bulk asks for many jobs.
func (r *rig) bulk(token string, jobs ...map[string]any) *reply {
	r.t.Helper()
	return r.as(token, "POST", "/api/v1/jobs:bulk", map[string]any{"jobs": jobs})
}

func (p *reply) enqueued() []client.Job {
	p.t.Helper()
	var out client.EnqueuedJobs
	p.want(http.StatusCreated).into(&out)
	return out.Items
}

func TestManyJobsAreEnqueuedTogetherInOrder(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("mail", map[string]any{"maxAttempts": 3})
		p := r.bulk(r.admin, map[string]any{"task": "echo", "payload": 1, "delay": "1h", "lane": "l"}, map[string]any{"task": "mail", "payload": 3, "priority": 1},
			map[string]any{"task": "echo", "payload": 2, "key": "k", "delay": "2h"}, map[string]any{"task": "echo", "payload": 4, "key": "k", "delay": "3h"}, map[string]any{"task": "echo", "payload": 5})
		jobs := p.enqueued()
		if len(jobs) != 5 || jobs[2].ID != jobs[3].ID || jobs[0].State != "scheduled" || string(jobs[0].Lane) != "l" || *jobs[1].MaxAttempts != 3 || *jobs[1].Priority != 1 {
			t.Fatalf("enqueued %s", p.body)
		}
		if k := r.do("GET", "/api/v1/jobs/"+jobs[3].ID, nil).want(200).job(); string(k.Payload) != "4" {
			t.Errorf("the later one with the key has payload %s", k.Payload)
		}
		if what := r.waitRun(); what != "echo 5" {
			t.Errorf("ran %q", what)
		}
		for i, j := range jobs {
			r.audited([]string{"job.create", "job.create", "job.create", "job.replace", "job.create"}[i], "job:"+j.ID)
		}
	})
}

// What several jobs, or several results, may have together is more than any other
// request may have.
func TestManyJobsAndResultsMayBeLargeTogether(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("mail", nil)
		jobs, large := make([]map[string]any, 800), strings.Repeat("x", 4000)
		for i := range jobs {
			jobs[i] = map[string]any{"task": "mail", "payload": large}
		}
		if n := len(r.bulk(r.admin, jobs...).enqueued()); n != len(jobs) {
			t.Errorf("enqueued %d", n)
		}
		ends := make([]map[string]any, 0, len(jobs))
		for _, j := range r.claim(r.admin, "mail", len(jobs)) {
			ends = append(ends, inHand(j, "result", large))
		}
		for i, l := range r.tell(r.admin, "mail", "complete", ends...) {
			if !l.OK {
				t.Fatalf("%d: %+v", i, l)
			}
		}
		if n := r.count(`select count(*) from job_results`); n != len(jobs) {
			t.Errorf("%d results", n)
		}
	})
}

// Each bad job is named by its place, and none of the others is there.
func TestOneBadJobOfManyKeepsAllOut(t *testing.T) {
	both(t, func(r *rig) {
		good := `{"task":"echo","key":"k%d"}`
		with := func(bad string) string {
			list := make([]string, 19)
			for i := range list {
				list[i] = fmt.Sprintf(good, i)
			}
			list[17] = bad
			return `{"jobs":[` + strings.Join(list, ",") + `]}`
		}
		for name, c := range map[string]struct {
			body     string
			status   int
			code     string
			pointers string
		}{
			"unknown task":         {with(`{"task":"ecko"}`), 422, "invalid", "/jobs/17/task"},
			"task of Pawl's own":   {with(`{"task":"pawl.prune"}`), 422, "invalid", "/jobs/17/task"},
			"no task":              {with(`{}`), 422, "invalid", "/jobs/17/task"},
			"not an object":        {with(`7`), 422, "invalid", "/jobs/17"},
			"null":                 {with(`null`), 422, "invalid", "/jobs/17"},
			"unknown field":        {with(`{"task":"echo","owner":"somebody"}`), 422, "invalid", "/jobs/17/owner"},
			"two times":            {with(`{"task":"echo","runAt":"2030-01-01T00:00:00Z","delay":"1h"}`), 422, "invalid", "/jobs/17/delay"},
			"several faults":       {with(`{"task":"ecko","lane":"a\tb","keyMode":"keep"}`), 422, "invalid", "/jobs/17/lane /jobs/17/keyMode /jobs/17/task"},
			"payload of the task":  {with(`{"task":"check","payload":{}}`), 422, "invalid", "/jobs/17/payload/name"},
			"large payload":        {with(`{"task":"echo","payload":"` + strings.Repeat("x", testMaxPayload) + `"}`), 413, "too_large", "/jobs/17/payload"},
			"a key twice in one":   {with(`{"task":"echo","task":"echo"}`), 400, "malformed", ""},
			"none":                 {`{"jobs":[]}`, 422, "invalid", "/jobs"},
			"no jobs":              {`{}`, 422, "invalid", "/jobs"},
			"jobs null":            {`{"jobs":null}`, 422, "invalid", "/jobs"},
			"jobs an object":       {`{"jobs":{"task":"echo"}}`, 422, "invalid", "/jobs"},
			"a list":               {`[{"task":"echo"}]`, 422, "invalid", ""},
			"too many":             {`{"jobs":[` + strings.TrimSuffix(strings.Repeat(`{"task":"echo"},`, client.MaxBulkJobs+1), ",") + `]}`, 422, "invalid", "/jobs"},
			"ten megabytes":        {`{"jobs":[{"task":"echo","payload":"` + strings.Repeat("x", 10<<20) + `"}]}`, 413, "too_large", ""},
			"ten megabytes of few": {`{"jobs":[` + strings.Repeat(`{"task":"echo","payload":"`+strings.Repeat("x", 4000)+`"},`, 2600) + `{"task":"echo"}]}`, 413, "too_large", ""},
		} {
			t.Run(name, func(t *testing.T) {
				p := r.do("POST", "/api/v1/jobs:bulk", c.body).problem(c.status, c.code)
				var pointers []string
				for _, f := range p.Errors {
					if f.Pointer != "" {
						pointers = append(pointers, f.Pointer)
					}
				}
				if got := strings.Join(pointers, " "); got != c.pointers {
					t.Errorf("faults at %q, want %q: %+v", got, c.pointers, p.Errors)
				}
				if n := r.count(`select (select count(*) from jobs where owner <> '') + (select count(*) from job_history where owner <> '')`); n != 0 {
					t.Errorf("%d jobs are there", n)
				}
			})
		}
		p := r.do("POST", "/api/v1/jobs:bulk", `{"jobs":[`+strings.TrimSuffix(strings.Repeat(`{"task":"nope"},`, 5000), ",")+`]}`).problem(422, "invalid")
		if len(p.Errors) != maxBulkFaults || p.Errors[99].Pointer != "/jobs/99/task" {
			t.Errorf("%d faults", len(p.Errors))
		}
	})
}

// A refusal by the database itself keeps all out, too.
func TestManyJobsAreOneTransaction(t *testing.T) {
	both(t, func(r *rig) {
		for _, headers := range [][]string{nil, {"Idempotency-Key", "both"}} {
			if r.db.Shared() {
				r.exec(`create or replace function no_tenth() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$`)
				r.exec(`create trigger no_tenth before insert on jobs for each row when (new.lane = 'tenth') execute function no_tenth()`)
			} else {
				r.exec(`create trigger no_tenth before insert on jobs when new.lane = 'tenth' begin select raise(abort, 'no'); end`)
			}
			var jobs []map[string]any
			for i := range 20 {
				jobs = append(jobs, map[string]any{"task": "echo", "lane": map[bool]string{true: "tenth", false: "other"}[i == 9], "delay": "1h"})
			}
			if p := r.do("POST", "/api/v1/jobs:bulk", map[string]any{"jobs": jobs}, headers...); p.status < 500 {
				t.Errorf("answered %d %s", p.status, p.body)
			}
			if n := r.count(`select count(*) from jobs where owner <> ''`) + r.count(`select count(*) from audit_log where action = 'job.create'`); n != 0 {
				t.Errorf("%d rows are there", n)
			}
			if r.db.Shared() {
				r.exec(`drop trigger no_tenth on jobs`)
			} else {
				r.exec(`drop trigger no_tenth`)
			}
		}
		// Nothing of the refused one was kept under its key.
		r.do("POST", "/api/v1/jobs:bulk", `{"jobs":[{"task":"echo"}]}`, "Idempotency-Key", "both").want(http.StatusCreated)
	})
}

func TestManyJobsWithAnIdempotencyKeyAreEnqueuedOnce(t *testing.T) {
	both(t, func(r *rig) {
		body := `{"jobs":[{"task":"echo","delay":"1h"},{"task":"echo","delay":"1h"}]}`
		first := r.do("POST", "/api/v1/jobs:bulk", body, "Idempotency-Key", "once")
		again := r.do("POST", "/api/v1/jobs:bulk", body, "Idempotency-Key", "once")
		if string(first.want(201).body) != string(again.want(201).body) || again.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("first %s, then %s", first.body, again.body)
		}
		if n := r.count(`select count(*) from jobs where owner <> ''`); n != 2 {
			t.Errorf("%d jobs", n)
		}
		r.do("POST", "/api/v1/jobs:bulk", `{"jobs":[{"task":"echo"}]}`, "Idempotency-Key", "once").problem(422, "idempotency_mismatch")
	})
}

// Keys and lanes are the caller's own, whoever has the same ones.
func TestManyJobsReachNobodyElsesKeys(t *testing.T) {
	both(t, func(r *rig) {
		mallory := r.token("mallory", userstore.RoleOperator, "jobs:write")
		mine := r.enqueue(map[string]any{"task": "echo", "key": "k", "delay": "1h", "payload": "mine"})
		r.exec(`insert into jobs (id, bucket, run_at, max_attempts, task, owner, key, payload, created_at) values (1, 0, 99999999999999, 1, 'pawl.prune', '', 'prune', '{}', 0)`)
		theirs := r.bulk(mallory, map[string]any{"task": "echo", "key": "k", "delay": "1h"}, map[string]any{"task": "echo", "key": "prune", "delay": "1h"}).enqueued()
		if theirs[0].ID == mine.ID || theirs[1].ID == "1" {
			t.Errorf("took %s and %s", theirs[0].ID, theirs[1].ID)
		}
		if got := r.do("GET", "/api/v1/jobs/"+mine.ID, nil).want(200).job(); string(got.Payload) != `"mine"` || r.count(`select count(*) from jobs where id = 1 and task = 'pawl.prune' and rev = 0`) != 1 {
			t.Errorf("changed to %s", got.Payload)
		}
		r.bulk(r.token("eve", userstore.RoleViewer, "jobs:read"), map[string]any{"task": "echo"}).problem(http.StatusForbidden, "forbidden")
		r.bulk("", map[string]any{"task": "echo"}).problem(http.StatusUnauthorized, "unauthorized")
	})
}

func TestAsManyJobsAsAllowedAreEnqueued(t *testing.T) {
	both(t, func(r *rig) {
		jobs := make([]map[string]any, client.MaxBulkJobs)
		for i := range jobs {
			jobs[i] = map[string]any{"task": "echo", "payload": i, "delay": "1h"}
		}
		got := r.bulk(r.admin, jobs...).enqueued()
		last := r.do("GET", "/api/v1/jobs/"+got[len(got)-1].ID, nil).want(200).job()
		if n := r.count(`select count(*) from jobs where owner <> ''`); n != client.MaxBulkJobs || string(last.Payload) != "9999" {
			t.Errorf("%d jobs, the last has payload %s", n, last.Payload)
		}
	})
}
