package api

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

func TestIdempotentRequestIsActedOnOnce(t *testing.T) {
	both(t, func(r *rig) {
		body := `{"task":"echo","delay":"1h","payload":{"a":1}}`
		first := r.do("POST", "/api/v1/jobs", body, "Idempotency-Key", "k1").want(http.StatusCreated)
		// Spaces and the order of fields make no other request.
		again := r.do("POST", "/api/v1/jobs", `{ "payload": {"a": 1}, "delay": "1h", "task": "echo" }`, "Idempotency-Key", "k1").want(http.StatusCreated)
		if string(first.body) != string(again.body) || first.header.Get("Location") != again.header.Get("Location") {
			t.Errorf("first\n%s\nthen\n%s", first.body, again.body)
		}
		if first.header.Get("Idempotency-Replayed") != "" || again.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("replayed: %q, then %q", first.header.Get("Idempotency-Replayed"), again.header.Get("Idempotency-Replayed"))
		}
		other := r.do("POST", "/api/v1/jobs", `{"task":"echo","delay":"1h","payload":{"a":2}}`, "Idempotency-Key", "k1").problem(422, "idempotency_mismatch")
		if other.Errors[0].Pointer != "/Idempotency-Key" {
			t.Errorf("%+v", other.Errors)
		}
		r.do("POST", "/api/v1/tokens", `{"name":"x","scopes":["read"]}`, "Idempotency-Key", "k1").problem(422, "idempotency_mismatch")
		r.do("POST", "/api/v1/jobs", body, "Idempotency-Key", "k2").want(http.StatusCreated)
		if n := r.count(`select count(*) from jobs`); n != 2 {
			t.Errorf("%d jobs, want 2", n)
		}
	})
}

func TestIdempotencyKeysBelongToTheirUser(t *testing.T) {
	both(t, func(r *rig) {
		ada, adaToo, bob := r.token("ada", userstore.RoleOperator, "write"), r.token("ada", userstore.RoleOperator, "write"), r.token("bob", userstore.RoleOperator, "write")
		ids := map[string]bool{}
		for _, token := range []string{ada, adaToo, bob} {
			ids[r.as(token, "POST", "/api/v1/jobs", `{"task":"echo","delay":"1h"}`, "Idempotency-Key", "k").want(http.StatusCreated).job().ID] = true
		}
		if len(ids) != 2 {
			t.Errorf("%d jobs, want one of ada's and one of bob's", len(ids))
		}
	})
}

func TestIdempotencyUnderConcurrency(t *testing.T) {
	both(t, func(r *rig) {
		const parallel = 20
		ids, fresh := map[string]int{}, 0
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range parallel {
			wg.Go(func() {
				p := r.do("POST", "/api/v1/jobs", `{"task":"echo","payload":1}`, "Idempotency-Key", "same")
				mu.Lock()
				defer mu.Unlock()
				if p.status != http.StatusCreated {
					t.Errorf("status %d: %s", p.status, p.body)
					return
				}
				ids[p.job().ID]++
				if p.header.Get("Idempotency-Replayed") == "" {
					fresh++
				}
			})
		}
		wg.Wait()
		if len(ids) != 1 || fresh != 1 {
			t.Errorf("ids %v, %d fresh answers", ids, fresh)
		}
		r.waitRun()
		for id := range ids {
			r.waitState(id, store.JobSucceeded)
		}
		if len(r.ran) != 0 || r.count(`select count(*) from job_history`) != 1 {
			t.Errorf("%d more runs", len(r.ran))
		}
	})
}

// A request that was refused leaves its key free.
func TestRefusedRequestKeepsNoKey(t *testing.T) {
	both(t, func(r *rig) {
		j := r.enqueue(map[string]any{"task": "echo", "delay": "1h"})
		r.do("POST", "/api/v1/jobs/"+j.ID+"/retry", nil, "Idempotency-Key", "k").problem(http.StatusConflict, "conflict")
		r.do("POST", "/api/v1/jobs", `{"task":"nothing"}`, "Idempotency-Key", "k").problem(422, "invalid")
		if n := r.count(`select count(*) from idempotency_keys`); n != 0 {
			t.Errorf("%d keys", n)
		}
		failed := r.enqueue(map[string]any{"task": "fail"})
		r.waitState(failed.ID, store.JobFailed)
		first := r.do("POST", "/api/v1/jobs/"+failed.ID+"/retry", nil, "Idempotency-Key", "k").want(http.StatusOK)
		r.waitState(failed.ID, store.JobFailed)
		again := r.do("POST", "/api/v1/jobs/"+failed.ID+"/retry", nil, "Idempotency-Key", "k").want(http.StatusOK)
		if string(first.body) != string(again.body) || again.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("first\n%s\nthen\n%s", first.body, again.body)
		}
		if n := r.count(`select count(*) from audit_log where action = 'job.retry'`); n != 1 {
			t.Errorf("retried %d times", n)
		}
	})
}

// The text of a token is not stored, not even to be repeated.
func TestRepeatedTokenAnswerHasNoSecret(t *testing.T) {
	both(t, func(r *rig) {
		body := map[string]any{"name": "x", "scopes": []string{"read"}}
		_, first := r.createToken(body, "Idempotency-Key", "k")
		p, again := r.createToken(body, "Idempotency-Key", "k")
		if again.ID != first.ID || again.Text != "" || !strings.Contains(again.Note, "shown then") || p.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("repeated as %s", p.body)
		}
		if first.Note != "" || first.Text == "" {
			t.Errorf("created as %+v", first)
		}
		if n := r.count(`select count(*) from idempotency_keys where answer like '%' || $1 || '%'`, string(first.Text)); n != 0 {
			t.Error("the text of the token was stored")
		}
	})
}

func TestIdempotencyKeyIsForgottenAfterADay(t *testing.T) {
	both(t, func(r *rig) {
		body := `{"task":"echo","delay":"1h"}`
		first := r.do("POST", "/api/v1/jobs", body, "Idempotency-Key", "k").want(http.StatusCreated).job()
		r.exec(`update idempotency_keys set created_at = $1`, time.Now().Add(-userstore.IdempotencyKept-time.Second).UnixMilli())
		p := r.do("POST", "/api/v1/jobs", body, "Idempotency-Key", "k").want(http.StatusCreated)
		if p.job().ID == first.ID || p.header.Get("Idempotency-Replayed") != "" {
			t.Error("the old answer was given")
		}
	})
}

func TestBadIdempotencyKeysAreRefused(t *testing.T) {
	both(t, func(r *rig) {
		req := r.request(r.admin, "POST", "/api/v1/jobs", `{"task":"echo"}`)
		for _, values := range [][]string{{""}, {"a b"}, {"ä"}, {strings.Repeat("x", 256)}, {"a", "b"}} {
			req := req.Clone(t.Context())
			req.Body, _ = req.GetBody()
			req.Header["Idempotency-Key"] = values
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusUnprocessableEntity {
				t.Errorf("%q: status %d", values, resp.StatusCode)
			}
		}
		r.do("POST", "/api/v1/jobs", `{"task":"echo","delay":"1h"}`, "Idempotency-Key", strings.Repeat("x", 255)).want(http.StatusCreated)
		if n := r.count(`select count(*) from jobs`); n != 1 {
			t.Errorf("%d jobs", n)
		}
	})
}

// The process that enqueued a job may die before it tells the job's owner. A
// repeated request does.
func TestReplayedAnswerRemindsTheOwnerOfTheJob(t *testing.T) {
	url := pgtest.URL(t)
	r := newRig(t, url)
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()                                                                             //nolint:errcheck // a test
	mute, err := queue.New(queue.Config{DB: db, Node: store.Node{ID: "mute"}, Tasks: r.tasks()}) // never runs, so it tells nobody
	if err != nil {
		t.Fatal(err)
	}
	body := `{"task":"echo","payload":{"n":1}}`
	other := httptest.NewServer(New(Config{DB: db, Queue: mute, Log: slog.New(slog.DiscardHandler), MaxPayload: testMaxPayload, Feed: NewFeed()}))
	defer other.Close()
	ours := r.server
	r.server = other
	r.do("POST", "/api/v1/jobs", body, "Idempotency-Key", "k1").want(http.StatusCreated)
	r.server = ours
	if p := r.do("POST", "/api/v1/jobs", body, "Idempotency-Key", "k1").want(http.StatusCreated); p.header.Get("Idempotency-Replayed") != "true" {
		t.Fatal("it was not replayed")
	}
	select {
	case <-r.ran:
	case <-time.After(60 * time.Second):
		t.Error("nobody told the owner of the job")
	}
}
