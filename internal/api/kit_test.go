package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/hook"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/source"
	"github.com/pawlrun/pawl/internal/source/fetch"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
	"github.com/pawlrun/pawl/internal/tool"
	"github.com/pawlrun/pawl/internal/worker"
)

// rig is a whole server on a database of its own: a queue that runs, the API
// on a port, and an admin.
type rig struct {
	t      testing.TB
	db     *store.DB
	queue  *queue.Queue
	api    *API
	server *httptest.Server
	admin  string         // the text of a token that may do everything
	user   userstore.User // its user
	ran    chan string    // task and payload of what ran
	log    *logBook
	ready  error // what Config.Ready says
	desk   *desk // what scripts touch
	tools  *tool.Set

	nobody atomic.Bool // no worker is there, as far as people are told

	kinds   lane.Kinds
	ledger  *ledger.Ledger
	outside *outside // what sources fetch from
	sources *source.Service
	fetcher *fetch.Fetcher
	studio  *studio // where graphs run
	graphs  *schedule.Service
	hooks   *hook.Service
	workers *worker.Service
}

const testMaxPayload = 4096

// host is what the rig gives to the kinds.
func (r *rig) host(feed *Feed) lane.Host {
	return lane.Host{Observe: feed.ObserveLane, Workforce: r.workforce, Halt: func() store.HaltMark { return r.queue.Halt() }}
}

// both runs a test on each database.
func both(t *testing.T, test func(r *rig)) {
	t.Helper()
	pgtest.Both(t, func(t *testing.T, url string) { test(newRig(t, url)) })
}

func newRig(t testing.TB, url string) *rig {
	t.Helper()
	r := &rig{t: t, ran: make(chan string, 1000), log: &logBook{}, desk: newDesk()}
	logger := newLogger(r.log)
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = db.Close() })
	r.db = db
	feed := NewFeed()
	flows := r.workflows(feed)
	r.makeSources(feed)
	r.makeGraphs(feed)
	r.makeHooks(flows)
	tasks := r.tasks()
	r.kinds = lane.Kinds{flows, r.sources, r.graphs}
	for _, k := range r.kinds {
		maps.Copy(tasks, k.Tasks())
	}
	maps.Copy(tasks, r.hooks.Tasks())
	r.workers = worker.New(worker.Config{DB: db})
	t.Cleanup(r.workers.Close)
	registry := prometheus.NewRegistry()
	r.queue, err = queue.New(queue.Config{
		DB: db, Node: store.Node{ID: "node-1", Share: true}, Workers: 4, Log: slog.New(slog.DiscardHandler),
		Tasks: tasks, Pools: map[string]int{source.PoolName: 4, schedule.PoolName: 4}, Observe: feed.Observe, Served: r.workers.Wake, Metrics: queue.NewMetrics(registry), Drain: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range r.kinds {
		k.Attach(r.queue)
	}
	r.hooks.Attach(r.queue)
	r.workers.Attach(r.queue)
	r.runQueue()
	r.api = New(Config{
		DB: db, Queue: r.queue, Kinds: r.kinds, Workflows: flows, Sources: r.sources, Fetcher: r.fetcher, Schedules: r.graphs, Tools: r.tools, Hooks: r.hooks, Workers: r.workers, Log: logger, Gatherer: registry, Version: "1.2.3", MaxPayload: testMaxPayload, Feed: feed,
		Ready: func(context.Context) error { return r.ready },
	})
	t.Cleanup(r.api.Close)
	r.serve(30 * time.Second)
	t.Cleanup(feed.Close)
	r.admin = r.token("admin", userstore.RoleAdmin, "*")
	r.user = r.find(r.admin).User
	return r
}

// serve answers at another address from now on, with so much time for a request.
func (r *rig) serve(patience time.Duration) {
	r.server = httptest.NewUnstartedServer(r.api)
	r.server.Config.ReadTimeout = patience
	r.server.Start()
	r.t.Cleanup(r.server.Close)
}

// workforce is who works, for people.
func (r *rig) workforce(ctx context.Context, tx *store.Tx) (run.Workforce, error) {
	halt, err := lane.HaltOf(ctx, tx)
	return run.Workforce{Missing: r.nobody.Load(), Halt: halt}, err
}

func (r *rig) tasks() map[string]queue.Task {
	note := func(_ context.Context, j *queue.Job) error {
		r.ran <- j.Task + " " + string(j.Payload)
		return nil
	}
	return map[string]queue.Task{
		"echo":  {Run: note, Record: true, MaxAttempts: 5},
		"plain": {Run: note},
		"fail":  {Run: func(context.Context, *queue.Job) error { return queue.Permanent(errors.New("it broke")) }, Record: true},
		"block": {Run: func(ctx context.Context, j *queue.Job) error {
			r.ran <- j.Task
			<-ctx.Done()
			return ctx.Err()
		}, Record: true},
		"check": {Run: note, Check: func(p json.RawMessage) error {
			var v struct{ Name string }
			if json.Unmarshal(p, &v) != nil || v.Name == "" {
				return &pawl.Error{Code: pawl.CodeInvalid, Msg: "bad", Hint: "Send a name.", Fields: []pawl.Field{{Pointer: "/name", Message: "is required"}}}
			}
			return nil
		}},
		"blunt":      {Run: note, Check: func(json.RawMessage) error { return errors.New("does not like it") }},
		"pawl.prune": {Run: note, Internal: true},
	}
}

func (r *rig) runQueue() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := r.queue.Run(ctx); err != nil {
			r.t.Errorf("run queue: %v", err)
		}
	}()
	r.t.Cleanup(func() { cancel(); <-done })
	r.eventually("the queue is healthy", func() bool { return r.queue.Health() == nil })
}

// token makes a token of a user with that name and role.
func (r *rig) token(user string, role userstore.Role, scopes ...string) string {
	r.t.Helper()
	return r.tokenUntil(user, role, time.Time{}, scopes...)
}

func (r *rig) tokenUntil(user string, role userstore.Role, expires time.Time, scopes ...string) (text string) {
	r.t.Helper()
	r.write(func(ctx context.Context, tx *store.Tx) error {
		u, err := userstore.In(tx).EnsureUser(ctx, user, role)
		if err != nil {
			return err
		}
		_, text, err = userstore.In(tx).CreateToken(ctx, userstore.TokenSpec{User: u, Name: "of " + user, Scopes: scopes, ExpiresAt: expires})
		return err
	})
	return text
}

// find reads a token by its text.
func (r *rig) find(text string) userstore.Token {
	r.t.Helper()
	t, err := userstore.On(r.db).TokenByText(r.t.Context(), text)
	if err != nil {
		r.t.Fatal(err)
	}
	return t
}

func (r *rig) write(fn store.Func) {
	r.t.Helper()
	if err := r.db.Write(r.t.Context(), fn); err != nil {
		r.t.Fatal(err)
	}
}

// count asks the database for a number.
func (r *rig) count(sql string, args ...any) (n int) {
	r.t.Helper()
	err := r.db.Read(r.t.Context(), func(ctx context.Context, tx *store.Tx) error { return tx.QueryRow(ctx, sql, args...).Scan(&n) })
	if err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// reply is the answer to a request.
type reply struct {
	t      testing.TB
	status int
	header http.Header
	body   []byte
}

// do asks as the admin. body is text as it is, anything else as JSON; headers
// come in pairs, and an empty value removes one.
func (r *rig) do(method, path string, body any, headers ...string) *reply {
	r.t.Helper()
	return r.as(r.admin, method, path, body, headers...)
}

// as asks with another token, or without one if it is empty.
func (r *rig) as(token, method, path string, body any, headers ...string) *reply {
	r.t.Helper()
	resp, err := http.DefaultClient.Do(r.request(token, method, path, body, headers...))
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	return &reply{r.t, resp.StatusCode, resp.Header, raw}
}

func (r *rig) request(token, method, path string, body any, headers ...string) *http.Request {
	r.t.Helper()
	var content io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			r.t.Fatal(err)
		}
		content = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.server.URL+path, content)
	if err != nil {
		r.t.Fatal(err)
	}
	if content != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
		}
	}
	return req
}

// want fails the test unless the status is this one.
func (p *reply) want(status int) *reply {
	p.t.Helper()
	if p.status != status {
		p.t.Fatalf("status %d, want %d: %s", p.status, status, p.body)
	}
	return p
}

func (p *reply) into(v any) {
	p.t.Helper()
	if err := json.Unmarshal(p.body, v); err != nil {
		p.t.Fatalf("read answer %q: %v", p.body, err)
	}
}

// problem reads a problem and looks whether it is whole.
func (p *reply) problem(status int, code string) client.Problem {
	p.t.Helper()
	p.want(status)
	if ct := p.header.Get("Content-Type"); ct != "application/problem+json" {
		p.t.Errorf("content type %q: %s", ct, p.body)
	}
	var told client.Problem
	p.into(&told)
	if told.Code != code || told.Status != status || told.Type != "urn:pawl:problem:"+code {
		p.t.Errorf("code %q, status %d, type %q; want %q, %d: %s", told.Code, told.Status, told.Type, code, status, p.body)
	}
	if told.Title == "" || told.Detail == "" || told.Hint == "" || told.RequestID == "" || told.RequestID != p.header.Get("X-Request-Id") {
		p.t.Errorf("not a whole problem: %s", p.body)
	}
	return told
}

func (p *reply) job() (j client.Job) { p.t.Helper(); p.into(&j); return j }

// enqueue adds a job over HTTP.
func (r *rig) enqueue(body map[string]any) client.Job {
	r.t.Helper()
	return r.do("POST", "/api/v1/jobs", body).want(http.StatusCreated).job()
}

// waitState waits until the job is in the state.
func (r *rig) waitState(id string, state store.JobState) (j client.Job) {
	r.t.Helper()
	r.eventually("job "+id+" is "+string(state), func() bool {
		p := r.do("GET", "/api/v1/jobs/"+id, nil)
		return p.status == http.StatusOK && func() bool { j = p.job(); return j.State == string(state) }()
	})
	return j
}

// waitRun waits until a job ran or started.
func (r *rig) waitRun() string {
	r.t.Helper()
	select {
	case what := <-r.ran:
		return what
	case <-time.After(90 * time.Second):
		r.t.Fatal("no job ran")
		return ""
	}
}

// eventually waits for what another goroutine brings about.
func (r *rig) eventually(what string, cond func() bool) {
	r.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(90 * time.Second)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			r.t.Fatalf("did not happen: %s", what)
		}
	}
}

// logBook keeps what was logged.
type logBook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newLogger(log *logBook) *slog.Logger { return slog.New(slog.NewTextHandler(log, nil)) }
