package execution

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/pgtest/migrated"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

func TestMain(m *testing.M) { migrated.Main(m) }

const graph = "x:poet"

// fake runs graphs by a function of the test and remembers what it was asked.
type fake struct {
	run    func(ctx context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error)
	cancel func(r runner.Run) error

	mu      sync.Mutex
	runs    []runner.Run // guarded by mu
	cancels []runner.Run // guarded by mu
}

func (f *fake) Run(ctx context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
	f.mu.Lock()
	f.runs = append(f.runs, r)
	f.mu.Unlock()
	return f.run(ctx, r, emit)
}

func (f *fake) Cancel(_ context.Context, r runner.Run) error {
	f.mu.Lock()
	f.cancels = append(f.cancels, r)
	f.mu.Unlock()
	if f.cancel != nil {
		return f.cancel(r)
	}
	return nil
}

func (f *fake) asked() []runner.Run {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs
}

// Lookup knows the graphs of the provider x.
func (f *fake) Lookup(graphID string) (runner.Executor, string, error) {
	name, ok := strings.CutPrefix(graphID, "x:")
	if !ok {
		return nil, "", &pawl.Error{Code: pawl.CodeNotFound, Reason: string(contract.NotFound), Msg: "there is no such provider"}
	}
	return f, name, nil
}

// succeed is a graph that answers at once.
func succeed(context.Context, runner.Run, func(runner.Event) error) (runner.Result, error) {
	return runner.Result{OK: true, Output: json.RawMessage(`{"poem":"leaf"}`), TraceID: "trace"}, nil
}

// kit is a service on a database, with a user and a grant for the graph.
type kit struct {
	t       testing.TB
	db      *store.DB
	s       *Service
	fake    *fake
	user    string
	grantID string
	keys    *ring
}

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
	k := &kit{t: t, db: db, fake: &fake{run: succeed}, keys: &ring{}}
	k.s = k.service("node-1")
	k.write(func(ctx context.Context, tx *store.Tx) error {
		u, err := userstore.In(tx).EnsureUser(ctx, "ada", userstore.RoleOperator)
		k.user = u.ID
		return err
	})
	many := int64(1000) // a bound, so that something is set aside
	k.grantID = k.grant(grant.Caps{RunsPerDay: &many}, graph).ID
	return k
}

// service is one more node on the same database.
func (k *kit) service(node string) *Service {
	k.t.Helper()
	s, err := New(Config{DB: k.db, Graphs: k.fake, Node: node, Keys: k.keys.resolve, Log: slog.New(slog.NewTextHandler(k.keys, nil))})
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(k.t.Context()), 20*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			k.t.Error(err)
		}
	})
	return s
}

func (k *kit) write(fn store.Func) {
	k.t.Helper()
	if err := k.db.Write(k.t.Context(), fn); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kit) grant(caps grant.Caps, graphs ...string) (g grant.Grant) {
	k.t.Helper()
	spec := grant.Spec{Caps: caps}
	for _, id := range graphs {
		spec.Scopes = append(spec.Scopes, grant.ScopeFor(id))
	}
	k.write(func(ctx context.Context, tx *store.Tx) (err error) {
		g, err = grant.Service{}.Create(ctx, tx, k.user, spec)
		return err
	})
	return g
}

func (k *kit) request(input string) contract.RunRequestV1 {
	return contract.RunRequestV1{ExecutionGrantID: k.grantID, Input: json.RawMessage(input)}
}

func (k *kit) run(key string) (contract.RunAnswerV1, error) {
	return k.s.Run(k.t.Context(), key, graph, k.request(`{"topic":"autumn"}`))
}

func (k *kit) mustRun(key string) contract.RunAnswerV1 {
	k.t.Helper()
	answer, err := k.run(key)
	if err != nil {
		k.t.Fatalf("run %s: %v", key, err)
	}
	return answer
}

func (k *kit) count(sql string, args ...any) (n int) {
	k.t.Helper()
	err := k.db.Read(k.t.Context(), func(ctx context.Context, tx *store.Tx) error { return tx.QueryRow(ctx, sql, args...).Scan(&n) })
	if err != nil {
		k.t.Fatal(err)
	}
	return n
}

// expire makes the owner of a key look dead.
func (k *kit) expire(key string) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `update execution_requests set lease_until = 1 where idempotency_key = $1`, key)
		return err
	})
}

// eventually waits for what happens in the background. The limit is for a test
// that fails.
func (k *kit) eventually(what string, holds func() bool) {
	k.t.Helper()
	ticks := time.NewTicker(5 * time.Millisecond)
	defer ticks.Stop()
	limit := time.After(90 * time.Second)
	for !holds() {
		select {
		case <-ticks.C:
		case <-limit:
			k.t.Fatalf("it does not come to be that %s", what)
		}
	}
}

func usage(unit string, cost pawl.USD) runner.Event {
	return runner.Event{Kind: runner.KindUsage, Usage: &runner.Usage{Unit: unit, Model: "m", InputTokens: 1, OutputTokens: 2, Cost: cost, CostTold: true}}
}

func remote(text string) runner.Event {
	return runner.Event{Kind: runner.KindRemote, Remote: json.RawMessage(text)}
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
