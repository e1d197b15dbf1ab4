package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// held is one of Pawl's own jobs, as its row says.
type held struct{ id, task, key, lane, row string }

// ownJobs reads Pawl's own jobs that wait.
func (r *rig) ownJobs() (out []held) {
	r.t.Helper()
	r.write(func(ctx context.Context, tx *store.Tx) error {
		out = nil
		rows, err := tx.Query(ctx, `select id, task, key, coalesce(lane, ''), rev, run_at, payload, coalesce(kept, '') from jobs where owner = '' and state = 0 order by id`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id, rev, at int64
			var h held
			var payload, kept string
			if err := rows.Scan(&id, &h.task, &h.key, &h.lane, &rev, &at, &payload, &kept); err != nil {
				return err
			}
			h.id, h.row = strconv.FormatInt(id, 10), fmt.Sprint(rev, at, payload, kept)
			out = append(out, h)
		}
		return rows.Err()
	})
	return out
}

// furnish makes one of everything that has a job of Pawl's own, and waits until
// nothing moves.
func (r *rig) furnish() (scheduleID string) {
	r.t.Helper()
	r.deploy("mail", producing("mail", "return {}"))
	r.waitRuns("?kind=workflow&status=committed", 2) // its consumer looks once, because it is new
	r.applyPrices("prices")
	s := r.schedule(yearly("poet", "http:poet"))
	if _, err := r.queue.Enqueue(r.t.Context(), r.graphs.Standing()[0]); err != nil {
		r.t.Fatal(err)
	}
	r.eventually("everything waits for its time", func() bool {
		return len(r.ownJobs()) == 4 && r.count(`select count(*) from jobs where owner = '' and (run_at <= $1 or started_at is not null)`, time.Now().UnixMilli()) == 0
	})
	return s.ID
}

// whoever may enqueue jobs can neither take the place of one of Pawl's
// own, nor hold up its lane, nor end it; and what it is for runs as before.
func TestNoJobFromOutsideTouchesPawlsOwn(t *testing.T) {
	both(t, func(r *rig) {
		schedule := r.furnish()
		before, lanes := r.ownJobs(), r.do("GET", "/api/v1/lanes", nil).want(200).body
		mallory := r.token("mallory", userstore.RoleOperator, "jobs:write")
		for _, h := range before {
			for _, who := range []string{mallory, r.admin} {
				for _, mode := range []string{"replace", "preserve_run_at", "keep"} {
					j := r.as(who, "POST", "/api/v1/jobs", map[string]any{"task": "echo", "key": h.key, "keyMode": mode, "lane": h.key, "delay": "1h"}).want(http.StatusCreated).job()
					if j.ID == h.id || j.Internal {
						t.Errorf("%s of %s became %+v", mode, h.key, j)
					}
				}
			}
			for _, c := range []struct{ method, path string }{{"DELETE", ""}, {"POST", "/retry"}} {
				r.as(mallory, c.method, "/api/v1/jobs/"+h.id+c.path, nil).problem(404, "not_found")
				r.do(c.method, "/api/v1/jobs/"+h.id+c.path, nil).problem(403, "internal_job")
			}
			r.as(mallory, "GET", "/api/v1/jobs/"+h.id, nil).problem(404, "not_found")
			if j := r.do("GET", "/api/v1/jobs/"+h.id, nil).want(200).job(); !j.Internal || string(j.Key) != h.key {
				t.Errorf("an admin sees %+v", j)
			}
		}
		if after := r.ownJobs(); !slices.Equal(before, after) {
			t.Errorf("Pawl's own jobs were %+v\nand are %+v", before, after)
		}
		if got := r.do("GET", "/api/v1/lanes", nil).want(200).body; string(got) != string(lanes) {
			t.Errorf("the lanes were %s\nand are %s", lanes, got)
		}
		if n := r.count(`select count(*) from audit_log where action in ('job.create', 'job.replace', 'job.keep')`); n != len(before)*2*3 {
			t.Errorf("%d lines in the audit log for %d jobs", n, len(before)*2*3)
		}
		for _, j := range pages[client.Job](r, "/api/v1/jobs?limit=50") {
			if j.CreatedBy != "" && string(j.CreatedBy) == "mallory" {
				r.as(mallory, "DELETE", "/api/v1/jobs/"+j.ID, nil).want(http.StatusNoContent)
			}
		}
		// A foreign job that never ends, in the lane of each; there are four workers.
		for _, h := range before[:3] {
			r.as(mallory, "POST", "/api/v1/jobs", map[string]any{"task": "block", "lane": h.lane}).want(http.StatusCreated)
			r.waitRun()
		}
		for _, path := range []string{"workflows/mail/run", "sources/prices/run", "schedules/" + schedule + "/run"} {
			r.do("POST", "/api/v1/"+path, nil).want(http.StatusAccepted)
		}
		for kind, n := range map[string]int{"workflow": 3, "source": 2, "schedule": 1} {
			r.waitRuns("?kind="+kind+"&status=committed", n)
		}
		for _, lane := range []string{"workflow/mail", "source/prices", "schedule/" + schedule} {
			if why := string(r.do("GET", "/api/v1/lanes/"+lane+"/why", nil).want(200).body); !strings.Contains(why, `"Idle"`) {
				t.Errorf("%s: %s", lane, why)
			}
		}
	})
}

// a foreign job is not there, for lists, filters and the stream as well.
func TestJobsOfOthersAreNotThere(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("mail", producing("mail", "return {}"))
		r.waitRuns("?kind=workflow&status=committed", 2)
		alice, bob := r.token("alice", userstore.RoleOperator, "jobs:write", "stream:read"), r.token("bob", userstore.RoleOperator, "jobs:write", "stream:read")
		told := r.listen(bob, "?kind=job")
		make := func(who string) client.Job {
			return r.as(who, "POST", "/api/v1/jobs", map[string]any{"task": "echo", "key": "k", "lane": "l", "delay": "1h"}).want(http.StatusCreated).job()
		}
		hers := make(alice)
		r.do("POST", "/api/v1/workflows/mail/run", nil).want(http.StatusAccepted)
		r.waitRuns("?kind=workflow&status=committed", 3)
		his := make(bob)
		if hers.ID == his.ID {
			t.Error("one key names the jobs of two")
		}
		if _, data := r.next(told); data.Job.ID != his.ID {
			t.Errorf("bob was told of %+v", data.Job)
		}
		for _, query := range []string{"", "?key=k", "?lane=l", "?task=echo", "?state=scheduled", "?task=pawl.workflow"} {
			for who, want := range map[string]string{alice: hers.ID, bob: his.ID} {
				var page client.Page[client.Job]
				r.as(who, "GET", "/api/v1/jobs"+query, nil).want(200).into(&page)
				var got []string
				for _, j := range page.Items {
					got = append(got, j.ID)
				}
				if query == "?task=pawl.workflow" {
					want = ""
				}
				if strings.Join(got, " ") != want {
					t.Errorf("%s lists %v, want %s", query, got, want)
				}
			}
		}
		r.as(bob, "GET", "/api/v1/jobs/"+hers.ID, nil).problem(404, "not_found")
		r.as(bob, "DELETE", "/api/v1/jobs/"+hers.ID, nil).problem(404, "not_found")
		r.as(bob, "POST", "/api/v1/jobs/"+hers.ID+"/retry", nil).problem(404, "not_found")
		for _, id := range []string{hers.ID, his.ID} {
			r.do("GET", "/api/v1/jobs/"+id, nil).want(200)
			r.do("DELETE", "/api/v1/jobs/"+id, nil).want(http.StatusNoContent)
		}
		r.as(bob, "GET", "/api/v1/jobs/"+hers.ID, nil).problem(404, "not_found")
	})
}
