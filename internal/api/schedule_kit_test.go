package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/execution"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/executor"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// studio is where graphs run: those of the provider http on a server of its
// own, those of x in this process. poet costs something, asks asks a person,
// waits ends when it is cancelled or let go, fails fails.
type studio struct {
	*executor.Set
	entered chan string   // x:waits was called, with its key
	release chan struct{} // closed: x:waits ends

	mu     sync.Mutex
	keys   []string                 // guarded by mu: what http:poet was called with, as key and body
	env    map[string]string        // guarded by mu: the environment that keys of accounts are in
	badges []string                 // guarded by mu: the keys that keyed:poet was called with
	stops  map[string]chan struct{} // guarded by mu: by key, what tells x:waits that it is cancelled
}

// getenv and setenv are the environment of the server, as far as keys of
// accounts go.
func (s *studio) getenv(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.env[name]
}

func (s *studio) setenv(name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.env[name] = value
}

// shown are the keys that keyed:poet was called with.
func (s *studio) shown() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.badges...)
}

// keyed is a graph that knows its callers by a header, and says the key again.
func (s *studio) keyed(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("X-Api-Key")
	s.mu.Lock()
	s.badges = append(s.badges, key)
	s.mu.Unlock()
	_, _ = fmt.Fprintf(w, `{"ok":true,"output":{"you":%q},"traceId":%q,"usage":[{"unit":%q,"model":%q,"costUsd":0.25}]}`, key, key, key, key)
}

func (s *studio) Lookup(graphID string) (executor.Executor, string, error) {
	if name, ok := strings.CutPrefix(graphID, "x:"); ok {
		return s, name, nil
	}
	return s.Set.Lookup(graphID)
}

func (s *studio) Run(ctx context.Context, r executor.Run, _ func(executor.Event) error) (executor.Result, error) {
	switch {
	case r.Name == "asks" && r.Resume == nil:
		return executor.Result{Interrupt: json.RawMessage(`{"may":"I?"}`)}, nil
	case r.Name == "asks":
		return executor.Result{OK: true, Output: r.Resume}, nil
	case r.Name == "fails":
		return executor.Result{Code: string(contract.InvalidRequest), Message: "no such poem"}, nil
	case r.Name == "busy":
		return executor.Result{Code: string(contract.RateLimit), Message: "too many poems", Retry: true, RetryAfter: time.Hour}, nil
	case r.Name == "waits":
		s.entered <- r.Key
		select {
		case <-s.release:
		case <-s.stop(r.Key):
			return executor.Result{Code: string(contract.Aborted), Message: "it was stopped"}, nil
		case <-ctx.Done():
			return executor.Result{Code: string(contract.Aborted), Message: "it was stopped"}, nil
		}
	}
	return executor.Result{OK: true, Output: json.RawMessage(`{}`)}, nil
}

func (s *studio) Cancel(_ context.Context, r executor.Run) error {
	select {
	case s.stop(r.Key) <- struct{}{}:
	default: // it was told already
	}
	return nil
}

// stop is what tells the run of a key to end.
func (s *studio) stop(key string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stops[key] == nil {
		s.stops[key] = make(chan struct{}, 1)
	}
	return s.stops[key]
}

func (s *studio) calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.keys...)
}

func (s *studio) poet(w http.ResponseWriter, r *http.Request) {
	var body struct {
		ScheduledFor string
		Input        json.RawMessage
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	s.mu.Lock()
	s.keys = append(s.keys, r.Header.Get("Idempotency-Key")+" "+string(body.Input))
	s.mu.Unlock()
	_, _ = fmt.Fprintf(w, `{"ok":true,"output":{"poem":"leaf"},"traceId":"trace-1","usage":[{"unit":"a","model":"m","inputTokens":3,"outputTokens":4,"costUsd":0.25},{"unit":"b","costUsd":0.05}]}`)
}

// makeGraphs makes the service that the API speaks to.
func (r *rig) makeGraphs(feed *Feed) {
	r.t.Helper()
	r.studio = &studio{entered: make(chan string, 100), release: make(chan struct{}), stops: map[string]chan struct{}{}, env: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/", r.studio.poet)
	mux.HandleFunc("/keyed", r.studio.keyed)
	server := httptest.NewServer(mux)
	r.t.Cleanup(server.Close)
	client, err := outbound.New(outbound.Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(client.Close)
	dir := r.t.TempDir()
	text := fmt.Sprintf("kind: executor\nname: http\ntype: http\ngraphs: {poet: {url: %q}}\n"+
		"---\nkind: executor\nname: keyed\ntype: http\ncallerKey: {header: X-Api-Key}\ngraphs: {poet: {url: %q}}\n", server.URL, server.URL+"/keyed")
	if err := os.WriteFile(filepath.Join(dir, "executor.yaml"), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if r.studio.Set, err = executor.Load(dir, executor.Env{Getenv: os.Getenv, HTTP: client}); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(r.studio.Set.Close)
	service, err := execution.New(execution.Config{
		DB: r.db, Graphs: r.studio, Node: "node-1", Log: newLogger(r.log),
		Keys: func(ref string) (string, error) { return definition.FromEnvironment(ref, r.studio.getenv) },
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := service.Close(ctx); err != nil {
			r.t.Error(err)
		}
	})
	r.graphs, err = schedule.New(schedule.Options{DB: r.db, Ledger: r.ledger, Executions: service, Grants: grant.Service{}, Host: r.host(feed)})
	if err != nil {
		r.t.Fatal(err)
	}
}

// yearly is a schedule that does not come due in a test.
func yearly(name, graphID string, more ...string) map[string]any {
	out := map[string]any{"name": name, "graphId": graphID, "input": map[string]any{"topic": "autumn"}, "cron": "0 9 1 1 *", "timezone": "Europe/Berlin"}
	for i := 0; i+1 < len(more); i += 2 {
		out[more[i]] = more[i+1]
	}
	return out
}

// schedule creates one as the admin.
func (r *rig) schedule(body map[string]any) (s client.Schedule) {
	r.t.Helper()
	r.do("POST", "/api/v1/schedules", body).want(http.StatusCreated).into(&s)
	return s
}

// runSchedule asks for a run now and returns its slot.
func (r *rig) runSchedule(id string) (s client.Slot) {
	r.t.Helper()
	r.do("POST", "/api/v1/schedules/"+id+"/run", nil).want(http.StatusAccepted).into(&s)
	return s
}

// slots lists the slots of a schedule.
func (r *rig) slots(id, what string) []client.Slot {
	r.t.Helper()
	return pages[client.Slot](r, "/api/v1/schedules/"+id+"/"+what+"?limit=50")
}

// waitSlot waits until the slot of an instant has a status.
func (r *rig) waitSlot(id string, at client.Instant, status contract.SlotStatus) (found client.Slot) {
	r.t.Helper()
	r.eventually(fmt.Sprintf("the slot is %s", status), func() bool {
		for _, s := range r.slots(id, "slots") {
			if s.ScheduledFor.Equal(at.Time) {
				found = s
			}
		}
		return found.Status == string(status)
	})
	return found
}

// addSlots writes slots of the past as if they had been passed over.
func (r *rig) addSlots(list ...schedulestore.NewSlot) {
	r.t.Helper()
	r.write(func(ctx context.Context, tx *store.Tx) error {
		_, err := schedulestore.In(tx).InsertSlots(ctx, list...)
		return err
	})
}

// slotTo is the path of a change of a slot that can be made.
func (r *rig) slotTo(verb string) string {
	r.t.Helper()
	s := r.schedule(yearly(store.NewID(), "http:poet"))
	path := "/api/v1/schedules/" + s.ID + "/slots/" + pawl.FormatTime(s.NextRunAt.Time) + "/"
	if verb == "retry" {
		r.do("POST", path+"skip", nil).want(http.StatusOK)
	}
	return path + verb
}
