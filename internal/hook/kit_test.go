package hook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/hook/spec"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/hookstore"
	"github.com/pawlrun/pawl/internal/telemetry"
)

// kit is a service on a database. What deliveries become are jobs, which are rows of
// the same transaction and which nobody runs.
type kit struct {
	t   testing.TB
	db  *store.DB
	q   *queue.Queue
	s   *Service
	env map[string]string

	refusal atomic.Pointer[pawl.Error] // of every effect; nil: none
	fault   func(key string) error     // when an effect was written, by the key of its job; nil: none
}

const (
	secret = "s3cret"

	// github is a hook as the documentation has it.
	github = `
kind: hook
name: github
verify: {scheme: github, secret: "${GITHUB_SECRET}"}
when: {header:X-GitHub-Event: issues, body:action: [opened, reopened]}
publish: {workflow: triage, topic: issue.opened}
`
	opened = `{"action":"opened","issue":{"id":7}}`
)

func both(t *testing.T, test func(t *testing.T, k *kit)) {
	t.Helper()
	pgtest.Both(t, func(t *testing.T, url string) { test(t, newKit(t, url)) })
}

func newKit(t testing.TB, url string) *kit {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	k := &kit{t: t, db: db, env: map[string]string{"GITHUB_SECRET": secret}}
	k.start()
	return k
}

// start makes a new process of the kit.
func (k *kit) start() {
	k.t.Helper()
	k.s = New(Config{
		DB: k.db, Log: slog.New(slog.DiscardHandler), Getenv: func(name string) string { return k.env[name] }, MaxPayload: 1 << 20,
		Together: func(ctx context.Context, e Event, fn store.Func) error {
			return k.db.WriteTogether(ctx, e.Topic, fn, e.MessageID)
		},
		Publish: func(ctx context.Context, tx *store.Tx, e Event, by string) error {
			_, err := k.effect(ctx, tx, store.JobSpec{Task: "event", Lane: e.Topic, Key: e.MessageID, Payload: e.Payload, CreatedBy: by, Trace: telemetry.Requested(ctx)})
			return err
		},
		Enqueue: k.effect,
		Run: func(ctx context.Context, tx *store.Tx, owner, schedule, by string) (time.Time, error) {
			_, err := k.effect(ctx, tx, store.JobSpec{Task: "run", Owner: owner, Lane: schedule, CreatedBy: by})
			return tx.Now, err
		},
	})
	var err error
	if k.q, err = queue.New(queue.Config{DB: k.db, Log: slog.New(slog.DiscardHandler), Tasks: k.s.Tasks(), Node: store.Node{ID: store.NewID()}}); err != nil {
		k.t.Fatal(err)
	}
	k.s.Attach(k.q)
	if err := k.s.Load(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
}

var errKilled = errors.New("the process was killed")

func (k *kit) effect(ctx context.Context, tx *store.Tx, job store.JobSpec) (string, error) {
	if refusal := k.refusal.Load(); refusal != nil {
		return "", refusal
	}
	jobs, err := tx.Enqueue(ctx, []store.JobSpec{job})
	if err != nil {
		return "", err
	}
	if k.fault != nil {
		if err := k.fault(job.Key); err != nil {
			return "", err
		}
	}
	return fmt.Sprint(jobs[0].ID), nil
}

// apply applies a definition as the API does.
func (k *kit) apply(text string) {
	k.t.Helper()
	list, err := spec.Parse("hook.yaml", []byte(text))
	if err != nil {
		k.t.Fatal(err)
	}
	secrets, faults := list[0].Resolve(func(name string) string { return k.env[name] })
	if len(faults) > 0 {
		k.t.Fatal(faults)
	}
	k.put(list[0], secrets)
}

func (k *kit) put(d spec.Definition, secrets []string) (out Applied) {
	k.t.Helper()
	err := k.db.Write(k.t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		out, err = k.s.Apply(ctx, tx, d, secrets, "u1", "ada")
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return out
}

// request is a delivery that GitHub would make.
func request(id, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/hooks/github", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-GitHub-Delivery", id)
	r.Header.Set("X-GitHub-Event", "issues")
	return signed(r, secret, body)
}

func signed(r *http.Request, key, body string) *http.Request {
	mac := hmac.New(sha256.New, []byte(key))
	_, _ = io.WriteString(mac, body)
	r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	return r
}

func (k *kit) send(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	k.s.ServeHTTP(w, r)
	return w
}

// expect sends a delivery and wants a status.
func (k *kit) expect(what string, status int, r *http.Request) *httptest.ResponseRecorder {
	k.t.Helper()
	w := k.send(r)
	if w.Code != status {
		k.t.Errorf("%s: the answer is %d %s, want %d", what, w.Code, w.Body, status)
	}
	return w
}

// effects are the jobs that deliveries became, the oldest first.
func (k *kit) effects() (list []store.Job) {
	k.t.Helper()
	err := k.db.Read(k.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		list = nil
		rows, err := tx.Query(ctx, `select id, task, coalesce(lane, ''), coalesce(key, ''), payload, coalesce(trace, '') from jobs where task <> $1 order by id`, TaskName)
		list, err = store.ScanAll(rows, err, "read jobs", func(row store.Scanner) (store.Job, error) {
			var j store.Job
			var payload string
			err := row.Scan(&j.ID, &j.Task, &j.Lane, &j.Key, &payload, &j.Trace)
			j.Payload = json.RawMessage(payload)
			return j, err
		})
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return list
}

// deliveries are those of a hook, the newest first.
func (k *kit) deliveries(hook, outcome string) (list []hookstore.Delivery) {
	k.t.Helper()
	err := k.db.Read(k.t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		list, err = hookstore.In(tx).ListDeliveries(ctx, hook, outcome, 0, 1000)
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return list
}

// one is the only delivery of the hook github.
func (k *kit) one(outcome string) hookstore.Delivery {
	k.t.Helper()
	list := k.deliveries("github", "")
	if len(list) != 1 || list[0].Outcome != outcome {
		k.t.Fatalf("the deliveries are %+v, want one that is %s", list, outcome)
	}
	return list[0]
}

func (k *kit) redeliver(id string) (d hookstore.Delivery, err error) {
	err = k.db.Write(k.t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		d, err = k.s.Redeliver(ctx, tx, "github", id, "ada")
		return err
	})
	return d, err
}

func sqlite(t testing.TB) string   { t.Helper(); return pgtest.SQLite(t) }
func postgres(t testing.TB) string { t.Helper(); return pgtest.URL(t) }
