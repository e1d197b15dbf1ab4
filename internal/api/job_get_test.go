package api

import (
	"context"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/relay"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// waiting starts a request that waits for a job, and returns when it does.
func (r *rig) waiting(id string) <-chan *reply {
	r.t.Helper()
	before := r.api.feed.waits.count.Load()
	answer := make(chan *reply, 1)
	go func() { answer <- r.do("GET", "/api/v1/jobs/"+id+"?wait=60s", nil) }()
	r.eventually("the request waits", func() bool { return r.api.feed.waits.count.Load() > before })
	return answer
}

// ends is the job that a request waited for.
func (r *rig) ends(answer <-chan *reply) client.Job {
	r.t.Helper()
	select {
	case p := <-answer:
		return p.want(http.StatusOK).job()
	case <-time.After(30 * time.Second):
		r.t.Fatal("nobody told that the job ended")
		return client.Job{}
	}
}

// However a job ends, who waits for it is told at once, without looking.
func TestGetJobWaitsForItsEnd(t *testing.T) {
	both(t, func(r *rig) {
		r.api.feed.waits.every = time.Hour
		r.declare("mail", map[string]any{"maxAttempts": 1})
		enqueue := func(task string) string { return r.enqueue(map[string]any{"task": task}).ID }
		held := func() client.ClaimedJob { return r.claim(r.admin, "mail", 1)[0] }

		done := r.waiting(enqueue("mail"))
		again := r.waiting(r.list("task=mail").Items[0].ID)
		r.do("POST", "/api/v1/tasks/mail/complete", map[string]any{"items": []any{map[string]any{"id": r.list("task=mail").Items[0].ID, "leaseToken": held().LeaseToken, "result": map[string]int{"n": 7}}}}).want(200)
		for _, answer := range []<-chan *reply{done, again} {
			if j := r.ends(answer); j.State != client.JobSucceeded || string(j.Result) != `{"n":7}` {
				t.Errorf("ended as %+v", j)
			}
		}

		failed := r.waiting(enqueue("mail"))
		r.do("POST", "/api/v1/tasks/mail/fail", map[string]any{"items": []any{inHand(held())}}).want(200)
		if j := r.ends(failed); j.State != client.JobFailed || j.LastError == "" {
			t.Errorf("failed as %+v", j)
		}

		id := enqueue("mail")
		cancelled := r.waiting(id)
		r.do("DELETE", "/api/v1/jobs/"+id, nil).want(204)
		if j := r.ends(cancelled); j.State != client.JobCancelled {
			t.Errorf("cancelled as %+v", j)
		}
		many := r.waiting(enqueue("mail"))
		r.change(r.admin, "cancel", `{"filter":{"task":"mail"}}`)
		if j := r.ends(many); j.State != client.JobCancelled {
			t.Errorf("cancelled by filter as %+v", j)
		}

		own := r.enqueue(map[string]any{"task": "block"})
		r.waitRun()
		blocked := r.waiting(own.ID)
		r.do("DELETE", "/api/v1/jobs/"+own.ID, nil).want(204)
		if j := r.ends(blocked); j.State != client.JobCancelled {
			t.Errorf("stopped as %+v", j)
		}
		r.eventually("nobody waits", func() bool { return !r.api.feed.Awaited() })
	})
}

// What nobody told of is found by looking, and what other nodes tell of wakes.
func TestEndsOfOtherNodesAreFound(t *testing.T) {
	both(t, func(r *rig) {
		gone := func(id string) { // as another node would end it
			r.exec(`insert into job_history (id, task, owner, state, run_at, finished_at, attempt) select id, task, owner, 'succeeded', run_at, run_at, 1 from jobs where id = $1`, number(t, id))
			r.exec(`delete from jobs where id = $1`, number(t, id))
		}
		r.api.feed.waits.every = 5 * time.Millisecond
		j := r.enqueue(map[string]any{"task": "echo", "delay": "1h"})
		found := r.waiting(j.ID)
		gone(j.ID)
		if j := r.ends(found); j.State != client.JobSucceeded {
			t.Errorf("found as %+v", j)
		}
		r.eventually("nobody looks", func() bool {
			r.api.feed.waits.mu.Lock()
			defer r.api.feed.waits.mu.Unlock()
			return !r.api.feed.waits.looks
		})

		r.api.feed.waits.every = time.Hour
		j = r.enqueue(map[string]any{"task": "echo", "delay": "1h"})
		told := r.waiting(j.ID)
		gone(j.ID)
		r.api.feed.Heard(relay.News{Ended: []int64{7, number(t, j.ID)}})
		if j := r.ends(told); j.State != client.JobSucceeded {
			t.Errorf("told as %+v", j)
		}
	})
}

func number(t *testing.T, id string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Who waits in vain gets the job as it is; an ended one is told at once; and a bad
// wait is refused.
func TestGetJobDoesNotWaitForEver(t *testing.T) {
	both(t, func(r *rig) {
		j := r.enqueue(map[string]any{"task": "echo", "delay": "1h"})
		if got := r.do("GET", "/api/v1/jobs/"+j.ID+"?wait=20ms", nil).want(200).job(); got.State != client.JobScheduled {
			t.Errorf("is %+v", got)
		}
		r.do("DELETE", "/api/v1/jobs/"+j.ID, nil).want(204)
		if got := r.do("GET", "/api/v1/jobs/"+j.ID+"?wait=60s", nil).want(200).job(); got.State != client.JobCancelled {
			t.Errorf("is %+v", got)
		}
		for wait, pointer := range map[string]string{"61s": "/wait", "soon": "/wait", "-1s": "/wait", "1h": "/wait"} {
			if p := r.do("GET", "/api/v1/jobs/"+j.ID+"?wait="+wait, nil).problem(422, "invalid"); p.Errors[0].Pointer != pointer {
				t.Errorf("%s: %+v", wait, p.Errors)
			}
		}
		r.do("GET", "/api/v1/jobs/7?wait=60s", nil).problem(404, "not_found")
		hers := r.enqueue(map[string]any{"task": "echo", "delay": "1h"})
		r.as(r.token("mallory", userstore.RoleOperator, "jobs:read"), "GET", "/api/v1/jobs/"+hers.ID+"?wait=60s", nil).problem(404, "not_found")
	})
}

// A request that waits ends with its client and with the server, and there are not
// more of them than there is room for.
func TestRequestsThatWaitAreBounded(t *testing.T) {
	both(t, func(r *rig) {
		j := r.enqueue(map[string]any{"task": "echo", "delay": "1h"})
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			resp, err := http.DefaultClient.Do(r.request(r.admin, "GET", "/api/v1/jobs/"+j.ID+"?wait=60s", nil).WithContext(ctx))
			if err == nil {
				_ = resp.Body.Close()
			}
			gone <- err
		}()
		r.eventually("it waits", r.api.feed.Awaited)
		leave()
		if err := <-gone; err == nil {
			t.Error("it was answered")
		}
		r.eventually("it is forgotten", func() bool { return !r.api.feed.Awaited() })

		var held []*jobWait
		for i := range maxUserWaits {
			w, err := r.api.feed.await(r.db, r.user.ID, int64(i))
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, w)
		}
		r.do("GET", "/api/v1/jobs/"+j.ID+"?wait=60s", nil).problem(http.StatusServiceUnavailable, "too_many_waits")
		if _, err := r.api.feed.await(r.db, "another", 1); err != nil {
			t.Errorf("one user takes all the room: %v", err)
		}
		for _, w := range held {
			r.api.feed.waits.left(w)
		}
		last := r.waiting(j.ID)
		r.api.feed.Close()
		if got := r.ends(last); got.State != string(store.JobScheduled) {
			t.Errorf("when the server stops it is %+v", got)
		}
	})
}
