package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// declare makes a task that workers serve.
func (r *rig) declare(name string, body map[string]any) (t client.Task) {
	r.t.Helper()
	if body == nil {
		body = map[string]any{}
	}
	r.do("PUT", "/api/v1/tasks/"+name, body).want(http.StatusCreated).into(&t)
	return t
}

// claim takes jobs of a task.
func (r *rig) claim(token, task string, limit int) []client.ClaimedJob {
	r.t.Helper()
	var c client.Claim
	r.as(token, "POST", "/api/v1/tasks/"+task+"/claim", map[string]any{"workerId": "w-1", "limit": limit}).want(200).into(&c)
	return c.Items
}

// tell says something about jobs in hand.
func (r *rig) tell(token, task, verb string, items ...map[string]any) []client.Lease {
	r.t.Helper()
	var l client.Leases
	r.as(token, "POST", "/api/v1/tasks/"+task+"/"+verb, map[string]any{"items": items}).want(200).into(&l)
	return l.Items
}

func inHand(j client.ClaimedJob, more ...any) map[string]any {
	out := map[string]any{"id": j.ID, "leaseToken": j.LeaseToken}
	for i := 0; i < len(more); i += 2 {
		out[more[i].(string)] = more[i+1]
	}
	return out
}

// served is where workers of a new task say something.
func (r *rig) served(task, verb string) string {
	r.t.Helper()
	r.declare(task, nil)
	return "/api/v1/tasks/" + task + "/" + verb
}

// leased is what a worker says about a job of a new task.
func (r *rig) leased(task, verb string) request {
	r.t.Helper()
	path := r.served(task, verb)
	r.enqueue(map[string]any{"task": task})
	return request{path, map[string]any{"items": []any{inHand(r.claim(r.admin, task, 1)[0])}}}
}

// expire lets every lease end.
func (r *rig) expire() { r.exec(`update job_leases set lease_until = 1`) }

// A task that a user declares is served by programs of the user: claim, more time,
// complete, and the result is there.
func TestWorkersServeTasksOfUsers(t *testing.T) {
	both(t, func(r *rig) {
		task := r.declare("mail", map[string]any{"lease": "30s", "maxAttempts": 3, "keepResults": "2h"})
		if task.Lease != "30s" || task.MaxAttempts != 3 || task.ConcurrencyPerLane != 1 || task.KeepResults != "2h" {
			t.Errorf("declared %+v", task)
		}
		r.do("PUT", "/api/v1/tasks/mail", map[string]any{"lease": "30s", "maxAttempts": 3, "keepResults": "2h"}).want(200)
		j := r.enqueue(map[string]any{"task": "mail", "payload": map[string]any{"to": "ada"}, "lane": "ada", "key": "k"})
		if j.MaxAttempts == nil || *j.MaxAttempts != 3 || j.State != "pending" {
			t.Errorf("enqueued %+v", j)
		}
		r.enqueue(map[string]any{"task": "mail", "delay": "1h"})
		got := r.claim(r.admin, "mail", 10)
		if len(got) != 1 || got[0].ID != j.ID || string(got[0].Payload) != `{"to":"ada"}` || got[0].Lane != "ada" || got[0].Key != "k" || got[0].Attempt != 1 || got[0].LeaseToken == "" {
			t.Fatalf("claimed %+v", got)
		}
		if late := time.Until(got[0].LeaseUntil.Time); late < 25*time.Second || late > 31*time.Second {
			t.Errorf("leased for %v", late)
		}
		if j := r.do("GET", "/api/v1/jobs/"+j.ID, nil).want(200).job(); j.State != "running" || j.Node != "w-1" {
			t.Errorf("in hand it is %+v", j)
		}
		for state, n := range map[string]int{"running": 1, "scheduled": 1, "pending": 0} {
			if list := r.list("task=mail&state=" + state); len(list.Items) != n {
				t.Errorf("%d jobs are %s: %+v", len(list.Items), state, list.Items)
			}
		}
		if again := r.claim(r.admin, "mail", 10); len(again) != 0 {
			t.Errorf("claimed twice: %+v", again)
		}
		if l := r.tell(r.admin, "mail", "extend", inHand(got[0])); !l[0].OK || l[0].LeaseUntil.Before(got[0].LeaseUntil.Time) {
			t.Errorf("extended %+v", l)
		}
		for range 2 { // the answer to the first may have been lost
			if l := r.tell(r.admin, "mail", "complete", inHand(got[0], "result", map[string]any{"sent": true})); !l[0].OK || l[0].Code != "" {
				t.Errorf("completed %+v", l)
			}
		}
		done := r.do("GET", "/api/v1/jobs/"+j.ID, nil).want(200).job()
		if done.State != "succeeded" || string(done.Result) != `{"sent":true}` || done.Attempt != 1 || done.Node != "w-1" {
			t.Errorf("done %+v", done)
		}
		if n := r.count(`select (select count(*) from job_leases) + (select count(*) from job_history where id = ` + j.ID + `)`); n != 1 {
			t.Errorf("%d rows of leases and outcomes", n)
		}
		if list := r.list("task=mail"); len(list.Items) != 2 {
			t.Errorf("listed %+v", list.Items)
		}
	})
}

// A worker whose lease was taken back changes nothing, whatever it says, and the
// one who has the job by then is not disturbed.
func TestWhoLostTheLeaseChangesNothing(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("mail", map[string]any{"maxAttempts": 3})
		j := r.enqueue(map[string]any{"task": "mail"})
		old := r.claim(r.admin, "mail", 1)[0]
		r.expire()
		now := r.claim(r.admin, "mail", 1)
		if len(now) != 1 || now[0].ID != j.ID || now[0].Attempt != 2 || now[0].LeaseToken == old.LeaseToken {
			t.Fatalf("the next claim got %+v", now)
		}
		forged := inHand(now[0])
		forged["leaseToken"] = "x" + now[0].LeaseToken[1:]
		for _, verb := range []string{"complete", "fail", "extend"} {
			for _, item := range []map[string]any{inHand(old), forged} {
				if l := r.tell(r.admin, "mail", verb, item); l[0].OK || l[0].Code != client.LeaseLost || l[0].Message == "" {
					t.Errorf("%s by a zombie: %+v", verb, l)
				}
			}
		}
		r.declare("other", nil)
		if l := r.tell(r.admin, "other", "complete", inHand(now[0])); l[0].Code != client.LeaseLost {
			t.Errorf("complete at another task: %+v", l)
		}
		if l := r.tell(r.admin, "mail", "complete", inHand(now[0], "result", 7)); !l[0].OK {
			t.Errorf("the holder: %+v", l)
		}
		if l := r.tell(r.admin, "mail", "complete", inHand(old, "result", 8)); l[0].Code != client.LeaseLost {
			t.Errorf("the zombie, late: %+v", l)
		}
		if j := r.do("GET", "/api/v1/jobs/"+j.ID, nil).want(200).job(); string(j.Result) != "7" || j.Attempt != 2 {
			t.Errorf("%+v", j)
		}
	})
}

// Failures are tried again, at the time that the worker says, until no attempt is
// left; one that is permanent is not, and a snooze counts for nothing.
func TestFailuresOfWorkers(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("mail", map[string]any{"maxAttempts": 2})
		j := r.enqueue(map[string]any{"task": "mail"})
		fail := func(c client.ClaimedJob, class, after string) {
			t.Helper()
			item := inHand(c, "error", map[string]any{"message": "it broke", "class": class})
			if after != "" {
				item["retryAfter"] = after
			}
			if l := r.tell(r.admin, "mail", "fail", item); !l[0].OK {
				t.Errorf("fail: %+v", l)
			}
		}
		show := func() client.Job { return r.do("GET", "/api/v1/jobs/"+j.ID, nil).want(200).job() }
		for range 3 {
			fail(r.claim(r.admin, "mail", 1)[0], "snooze", "0s")
		}
		if now := show(); now.Attempt != 0 || now.State != "pending" || now.LastError != "it broke" {
			t.Errorf("snoozed %+v", now)
		}
		fail(r.claim(r.admin, "mail", 1)[0], "TimeoutError", "1h")
		if now := show(); now.Attempt != 1 || now.State != "scheduled" || now.LastError != "TimeoutError: it broke" || time.Until(now.RunAt.Time) < 59*time.Minute {
			t.Errorf("failed once %+v", now)
		}
		r.exec(`update jobs set run_at = 1 where task = 'mail'`)
		fail(r.claim(r.admin, "mail", 1)[0], "", "0s")
		if now := show(); now.Attempt != 2 || now.State != "failed" || now.LastError != "it broke" {
			t.Errorf("failed for good %+v", now)
		}
		if again := r.do("POST", "/api/v1/jobs/"+j.ID+"/retry", nil).want(200).job(); again.Attempt != 0 {
			t.Errorf("retried %+v", again)
		}
		fail(r.claim(r.admin, "mail", 1)[0], "permanent", "")
		if now := show(); now.State != "failed" || now.Attempt != 1 {
			t.Errorf("permanent %+v", now)
		}
		if n := r.count(`select count(*) from job_leases`); n != 0 {
			t.Errorf("%d leases are left", n)
		}
	})
}

// A worker that says goodbye gives its jobs back where they were: its lane goes on in
// order.
func TestJobsGivenBackKeepTheirPlace(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("mail", map[string]any{"concurrencyPerLane": 2})
		var wanted []string
		for range 4 {
			wanted = append(wanted, r.enqueue(map[string]any{"task": "mail", "lane": "l"}).ID)
		}
		var items []map[string]any
		for _, c := range r.claim(r.admin, "mail", 5) {
			items = append(items, inHand(c, "error", map[string]any{"message": "the worker stops", "class": "snooze"}, "retryAfter", "0s"))
		}
		r.tell(r.admin, "mail", "fail", items...)
		var got []string
		for range 2 {
			claimed := r.claim(r.admin, "mail", 5)
			for _, c := range claimed {
				got = append(got, c.ID)
				r.tell(r.admin, "mail", "complete", inHand(c))
			}
		}
		if !slices.Equal(got, wanted) {
			t.Errorf("claimed %v, want %v", got, wanted)
		}
	})
}

// A dead worker's job comes back before what came later in its lane, and fails when
// its attempts are used up.
func TestLeasesThatEndCountAnAttempt(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("mail", map[string]any{"maxAttempts": 2})
		first := r.enqueue(map[string]any{"task": "mail", "lane": "l"})
		second := r.enqueue(map[string]any{"task": "mail", "lane": "l"})
		for attempt := 1; attempt <= 2; attempt++ {
			if got := r.claim(r.admin, "mail", 5); len(got) != 1 || got[0].ID != first.ID || got[0].Attempt != attempt {
				t.Fatalf("attempt %d: %+v", attempt, got)
			}
			r.expire()
		}
		if got := r.claim(r.admin, "mail", 5); len(got) != 1 || got[0].ID != second.ID {
			t.Errorf("then %+v", got)
		}
		if j := r.do("GET", "/api/v1/jobs/"+first.ID, nil).want(200).job(); j.State != "failed" || j.LastError != "the worker's lease ended" || j.Attempt != 2 {
			t.Errorf("%+v", j)
		}
	})
}

// Lanes of workers are serial, or as wide as the task says; priorities and order
// hold; a key names one job, and what is put in the place of one that runs runs
// after it.
func TestLanesKeysAndPrioritiesOfWorkers(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("mail", nil)
		r.declare("wide", map[string]any{"concurrencyPerLane": 3})
		var want []string
		for i := range 5 {
			r.enqueue(map[string]any{"task": "wide", "lane": "l"})
			want = append(want, r.enqueue(map[string]any{"task": "mail", "lane": "l", "payload": i}).ID)
		}
		urgent := r.enqueue(map[string]any{"task": "mail", "lane": "l", "priority": 1}).ID
		if got := r.claim(r.admin, "wide", 10); len(got) != 3 {
			t.Errorf("%d at once in a lane for 3", len(got))
		}
		var order []string
		for range 6 {
			got := r.claim(r.admin, "mail", 10)
			if len(got) != 1 {
				t.Fatalf("%d at once in a serial lane", len(got))
			}
			order = append(order, got[0].ID)
			r.tell(r.admin, "mail", "complete", inHand(got[0]))
		}
		if want = append([]string{urgent}, want...); !slices.Equal(order, want) {
			t.Errorf("ran %v, want %v", order, want)
		}
		// Keys.
		one := r.enqueue(map[string]any{"task": "mail", "key": "k", "payload": 1})
		two := r.enqueue(map[string]any{"task": "mail", "key": "k", "payload": 2})
		if one.ID != two.ID {
			t.Errorf("two jobs have one key")
		}
		got := r.claim(r.admin, "mail", 5)
		if len(got) != 1 || string(got[0].Payload) != "2" {
			t.Fatalf("%+v", got)
		}
		r.enqueue(map[string]any{"task": "mail", "key": "k", "payload": 3})
		if early := r.claim(r.admin, "mail", 5); len(early) != 0 {
			t.Errorf("it runs beside the one that it replaces: %+v", early)
		}
		if l := r.tell(r.admin, "mail", "complete", inHand(got[0])); !l[0].OK {
			t.Errorf("%+v", l)
		}
		if got = r.claim(r.admin, "mail", 5); len(got) != 1 || string(got[0].Payload) != "3" {
			t.Fatalf("then %+v", got)
		}
		r.enqueue(map[string]any{"task": "mail", "key": "k", "keyMode": "keep", "payload": 4})
		r.tell(r.admin, "mail", "complete", inHand(got[0]))
		if got = r.claim(r.admin, "mail", 5); len(got) != 1 || string(got[0].Payload) != "4" {
			t.Errorf("kept while it ran: %+v", got)
		}
	})
}

// A key may go from a task of Pawl's to one of a user's, and back.
func TestAKeyMayChangeWhoServesIt(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("mail", nil)
		r.enqueue(map[string]any{"task": "echo", "key": "k", "delay": "1h"})
		r.enqueue(map[string]any{"task": "mail", "key": "k"})
		got := r.claim(r.admin, "mail", 1)
		if len(got) != 1 {
			t.Fatalf("%+v", got)
		}
		r.enqueue(map[string]any{"task": "echo", "key": "k", "payload": 1})
		if ran := r.waitRun(); ran != "echo 1" {
			t.Errorf("ran %s", ran)
		}
		if l := r.tell(r.admin, "mail", "complete", inHand(got[0])); l[0].Code == client.LeaseLost {
			t.Errorf("%+v", l)
		}
	})
}

// A job that is cancelled in the hands of a worker: the worker hears of it, and the
// lane waits until it has stopped.
func TestWorkersHearOfCancelledJobs(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("mail", nil)
		j := r.enqueue(map[string]any{"task": "mail", "lane": "l"})
		next := r.enqueue(map[string]any{"task": "mail", "lane": "l"})
		got := r.claim(r.admin, "mail", 1)[0]
		r.do("DELETE", "/api/v1/jobs/"+j.ID, nil).want(http.StatusNoContent)
		if l := r.tell(r.admin, "mail", "extend", inHand(got)); l[0].OK || l[0].Code != client.LeaseCancelled {
			t.Errorf("extend: %+v", l)
		}
		if early := r.claim(r.admin, "mail", 1); len(early) != 0 {
			t.Errorf("the lane goes on before the worker stopped: %+v", early)
		}
		if l := r.tell(r.admin, "mail", "complete", inHand(got, "result", 1)); l[0].OK || l[0].Code != client.LeaseCancelled {
			t.Errorf("complete: %+v", l)
		}
		if got := r.claim(r.admin, "mail", 1); len(got) != 1 || got[0].ID != next.ID {
			t.Errorf("then %+v", got)
		}
		if j := r.do("GET", "/api/v1/jobs/"+j.ID, nil).want(200).job(); j.State != "cancelled" || len(j.Result) > 0 {
			t.Errorf("%+v", j)
		}
	})
}

// One lane with many jobs does not hold up the others: lanes take turns.
func TestLanesOfWorkersTakeTurns(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("mail", map[string]any{"concurrencyPerLane": 100})
		r.write(func(ctx context.Context, tx *store.Tx) error {
			var specs []store.JobSpec
			for range 1000 {
				specs = append(specs, store.JobSpec{Task: "mail", Lane: "whale", Owner: r.user.ID, Served: true, MaxAttempts: 3})
			}
			for i := range 100 {
				specs = append(specs, store.JobSpec{Task: "mail", Lane: fmt.Sprint("fish", i), Owner: r.user.ID, Served: true, MaxAttempts: 3})
			}
			_, err := tx.Enqueue(ctx, specs)
			return err
		})
		lanes := map[string]int{}
		for range 110 {
			for _, j := range r.claim(r.admin, "mail", 1) {
				lanes[string(j.Lane)]++
			}
		}
		if lanes["whale"] > 15 || len(lanes) < 95 {
			t.Errorf("of 110 claims the whale got %d, and %d lanes got something", lanes["whale"], len(lanes))
		}
	})
}

// A claim that waits is answered when a job comes, when one comes due, and when a
// lane becomes free; and with nothing when its time is over.
func TestClaimsWait(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("mail", nil)
		waiting := func(wait string) <-chan []client.ClaimedJob {
			out := make(chan []client.ClaimedJob, 1)
			go func() {
				var c client.Claim
				r.do("POST", "/api/v1/tasks/mail/claim", map[string]any{"limit": 5, "wait": wait}).want(200).into(&c)
				out <- c.Items
			}()
			return out
		}
		begin := time.Now()
		if got := <-waiting("1s"); len(got) != 0 || time.Since(begin) < time.Second {
			t.Errorf("nothing came after %v: %+v", time.Since(begin), got)
		}
		claim := waiting("30s")
		r.enqueue(map[string]any{"task": "mail", "lane": "l"})
		first := <-claim
		if len(first) != 1 || time.Since(begin) > 20*time.Second {
			t.Fatalf("%+v", first)
		}
		r.enqueue(map[string]any{"task": "mail", "lane": "l"})
		claim = waiting("30s")
		r.tell(r.admin, "mail", "complete", inHand(first[0]))
		if got := <-claim; len(got) != 1 {
			t.Errorf("the lane is free: %+v", got)
		}
		claim = waiting("30s")
		due := r.enqueue(map[string]any{"task": "mail", "delay": "1s"})
		if got := <-claim; len(got) != 1 || time.Now().Before(due.RunAt.Time) || time.Since(due.RunAt.Time) > 1500*time.Millisecond {
			t.Errorf("came due: %+v", got)
		}
	})
}

// Jobs and tasks of another user: a token of its own gets nothing of them.
func TestWorkersReachTheirOwnJobsOnly(t *testing.T) {
	both(t, func(r *rig) {
		alice, bob := r.token("alice", userstore.RoleOperator, "jobs:write"), r.token("bob", userstore.RoleOperator, "jobs:write")
		viewer := r.token("eve", userstore.RoleViewer, "jobs:read")
		r.as(alice, "PUT", "/api/v1/tasks/mail", map[string]any{}).want(http.StatusCreated)
		j := r.as(alice, "POST", "/api/v1/jobs", map[string]any{"task": "mail", "payload": "secret"}).want(http.StatusCreated).job()
		if got := r.claim(bob, "mail", 10); len(got) != 0 {
			t.Errorf("bob got %+v", got)
		}
		r.as(bob, "PUT", "/api/v1/tasks/mail", map[string]any{"lease": "1s"}).problem(403, "foreign_task")
		r.as(bob, "DELETE", "/api/v1/tasks/mail", nil).problem(403, "foreign_task")
		r.as(viewer, "POST", "/api/v1/tasks/mail/claim", map[string]any{}).problem(403, "forbidden")
		r.as(viewer, "PUT", "/api/v1/tasks/mine", map[string]any{}).problem(403, "forbidden")
		got := r.claim(alice, "mail", 10)
		if len(got) != 1 || got[0].ID != j.ID {
			t.Fatalf("alice got %+v", got)
		}
		for _, verb := range []string{"complete", "fail", "extend"} {
			r.as(viewer, "POST", "/api/v1/tasks/mail/"+verb, map[string]any{"items": []any{inHand(got[0])}}).problem(403, "forbidden")
			if l := r.tell(bob, "mail", verb, inHand(got[0])); l[0].Code != client.LeaseLost {
				t.Errorf("bob's %s: %+v", verb, l)
			}
		}
		if l := r.tell(alice, "mail", "complete", inHand(got[0], "result", "s")); !l[0].OK {
			t.Errorf("%+v", l)
		}
		if l := r.tell(bob, "mail", "complete", inHand(got[0])); l[0].Code != client.LeaseLost {
			t.Errorf("bob asks whether it was done: %+v", l)
		}
		r.as(bob, "GET", "/api/v1/jobs/"+j.ID, nil).problem(404, "not_found")
		// An administrator's worker serves everybody.
		r.as(bob, "POST", "/api/v1/jobs", map[string]any{"task": "mail"}).want(http.StatusCreated)
		r.as(alice, "POST", "/api/v1/jobs", map[string]any{"task": "mail"}).want(http.StatusCreated)
		if got := r.claim(r.admin, "mail", 10); len(got) != 2 {
			t.Errorf("the administrator's worker got %+v", got)
		}
	})
}

// Bad declarations and bad words of workers are refused with their place, and
// nothing is changed.
func TestBadTasksAndWordsAreRefused(t *testing.T) {
	both(t, func(r *rig) {
		for _, c := range []struct{ name, body, code, pointers string }{
			{"echo", `{}`, "own_task", ""},
			{"pawl.mine", `{}`, "invalid", "/name"},
			{"-x", `{}`, "invalid", "/name"},
			{"a%20b", `{}`, "invalid", "/name"},
			{"x", `{"lease":"0s"}`, "invalid", "/lease"},
			{"x", `{"lease":"30"}`, "invalid", "/lease"},
			{"x", `{"lease":"25h"}`, "invalid", "/lease"},
			{"x", `{"keepResults":"999ms"}`, "invalid", "/keepResults"},
			{"x", `{"maxAttempts":0}`, "invalid", "/maxAttempts"},
			{"x", `{"maxAttempts":1001}`, "invalid", "/maxAttempts"},
			{"x", `{"concurrencyPerLane":-1}`, "invalid", "/concurrencyPerLane"},
			{"x", `{"leese":"30s"}`, "invalid", "/leese"},
		} {
			p := r.do("PUT", "/api/v1/tasks/"+c.name, c.body)
			if p.status != 422 && p.status != 409 || !strings.Contains(string(p.body), c.code) || !strings.Contains(string(p.body), c.pointers) {
				t.Errorf("%s %s: %d %s", c.name, c.body, p.status, p.body)
			}
		}
		if n := r.count(`select count(*) from worker_tasks`); n != 0 {
			t.Errorf("%d tasks", n)
		}
		r.do("POST", "/api/v1/tasks/none/claim", `{}`).problem(404, "not_found")
		r.do("POST", "/api/v1/tasks/none/complete", `{"items":[{"id":"1","leaseToken":"x"}]}`).problem(404, "not_found")
		r.declare("mail", nil)
		for path, body := range map[string]string{
			"claim":    `{"wait":"2m"}`,
			"claim ":   `{"limit":1001}`,
			"claim  ":  `{"workerId":"a\nb"}`,
			"complete": `{"items":[]}`,
			"fail":     `{"items":[{"id":"x","leaseToken":"x"}]}`,
			"fail ":    `{"items":[{"id":"1","leaseToken":"x","retryAfter":"4000d"}]}`,
			"extend":   `{"items":[{"id":"1","leaseToken":"x"},{"id":"1","leaseToken":"y"}]}`,
			"extend ":  `{"items":[{"id":"1"}]}`,
		} {
			r.do("POST", "/api/v1/tasks/mail/"+strings.TrimSpace(path), body).problem(422, "invalid")
		}
		// A result that is too large: the job is still in hand.
		r.enqueue(map[string]any{"task": "mail"})
		got := r.claim(r.admin, "mail", 1)
		if l := r.tell(r.admin, "mail", "complete", inHand(got[0], "result", strings.Repeat("x", testMaxPayload))); l[0].OK || l[0].Code != client.LeaseTooLarge {
			t.Errorf("%+v", l)
		}
		r.do("POST", "/api/v1/tasks/mail/complete", map[string]any{"items": []any{inHand(got[0], "result", strings.Repeat("x", 10<<20))}}).problem(413, "too_large")
		if l := r.tell(r.admin, "mail", "complete", inHand(got[0], "result", "short")); !l[0].OK {
			t.Errorf("%+v", l)
		}
		// A task with jobs is not deleted.
		j := r.enqueue(map[string]any{"task": "mail"})
		r.do("DELETE", "/api/v1/tasks/mail", nil).problem(409, "jobs_wait")
		r.do("DELETE", "/api/v1/jobs/"+j.ID, nil).want(http.StatusNoContent)
		r.do("DELETE", "/api/v1/tasks/mail", nil).want(http.StatusNoContent)
		r.do("POST", "/api/v1/jobs", `{"task":"mail"}`).problem(422, "invalid")
	})
}

// While all starts are stopped, workers get nothing either.
func TestWorkersGetNothingDuringAHalt(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("mail", nil)
		r.enqueue(map[string]any{"task": "mail"})
		r.do("PUT", client.HaltPath, nil).want(200)
		if got := r.claim(r.admin, "mail", 5); len(got) != 0 {
			t.Errorf("claimed %+v", got)
		}
		r.do("DELETE", client.HaltPath, nil).want(204)
		if got := r.claim(r.admin, "mail", 5); len(got) != 1 {
			t.Errorf("then %+v", got)
		}
	})
}
