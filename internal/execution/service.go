package execution

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/price"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/telemetry"
)

// The timing of claims.
const (
	leaseFor  = 30 * time.Second
	beatEvery = 5 * time.Second
	lookEvery = time.Second // for a note to stop, on a database that others share
)

// longestRun bounds every run, whatever its executor allows.
const longestRun = 25 * time.Hour

// Graphs finds what runs a graph, and the name of the graph there.
type Graphs interface {
	Lookup(graphID string) (runner.Executor, string, error)
}

// API is what the service offers, in this process or over HTTP (Remote).
type API interface {
	// Run runs a graph once for the key and waits for the outcome. A failed
	// run is an answer, not an error. Errors: InProgressError, a mismatch of
	// the key (Reason idempotency_mismatch), a refusal of the grant,
	// *billing.CapError, pawl.ErrNotFound for an unknown graph, and those of
	// the infrastructure, after which asking again with the key goes on.
	Run(ctx context.Context, key, graphID string, req contract.RunRequestV1) (contract.RunAnswerV1, error)
	// Cancel asks for the end of a run and does not wait for it. What is over
	// is no error.
	Cancel(ctx context.Context, key string) error
	// Resume answers a question of a run to a person, and waits like Run. If the
	// run asks another one by now, that is told: the answer is not for it. An
	// empty question is whatever the run asks.
	Resume(ctx context.Context, key, question string, answer []byte) (contract.RunAnswerV1, error)
	// Outcome tells the outcome, or the question to a person, without starting
	// anything. It is InProgressError while there is none.
	Outcome(ctx context.Context, key string) (contract.RunAnswerV1, error)
}

// Config is what a service needs.
type Config struct {
	DB       *store.DB
	Graphs   Graphs
	Node     string // names this process in claims
	Log      *slog.Logger
	Redact   func(string) string      // leaves secrets out of what executors say; may be nil
	Progress func(runID, text string) // told what graphs say on their way; must not block; may be nil

	// Shown is told that there is more to see of a run of a schedule; it must not
	// block; may be nil.
	Shown func(scheduleID, schedule string)

	// Keys is what a key reference of a billing account, such as ${TEAM_KEY},
	// stands for now. Its errors never quote a key. Nil: there are none.
	Keys func(ref string) (string, error)

	// Prices are for executors that tell tokens and no cost. Nil: there are none.
	Prices *price.Book

	// Alive is nil as long as this process may act. Others end its claims when
	// they take it for dead, before the leases do. It is asked before every call
	// of an executor leaves. Nil: always.
	Alive func() error

	// Admit is asked by Handler whether somebody with another token than that of
	// the service may run graphs. Its errors have the code unauthorized or
	// forbidden. Nil: nobody may.
	Admit func(ctx context.Context, token string) (Guest, error)
}

// Service runs graphs. It is safe for concurrent use.
type Service struct {
	db       *store.DB
	graphs   Graphs
	node     string
	log      *slog.Logger
	redact   func(string) string
	keys     func(ref string) (string, error)
	alive    func() error
	admitted func(ctx context.Context, token string) (Guest, error)
	prices   *price.Book
	unpriced once // models that were told of
	progress func(runID, text string)
	shown    func(scheduleID, schedule string)

	doubts doubts

	base context.Context // of all runs; ends with Close
	stop context.CancelCauseFunc
	runs sync.WaitGroup

	mu      sync.Mutex
	closed  bool               // guarded by mu
	flights map[string]*flight // by key, those of this process; guarded by mu
}

var _ API = (*Service)(nil)

// New makes a service. Close ends it.
func New(cfg Config) (*Service, error) {
	if cfg.DB == nil || cfg.Graphs == nil || cfg.Node == "" {
		return nil, &pawl.Error{Code: pawl.CodeInternal, Op: "make execution service", Msg: "database, graphs and node are needed"}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string, string) {}
	}
	if cfg.Shown == nil {
		cfg.Shown = func(string, string) {}
	}
	if cfg.Redact == nil {
		cfg.Redact = func(text string) string { return text }
	}
	if cfg.Keys == nil {
		cfg.Keys = func(string) (string, error) { return "", errNoKeys }
	}
	if cfg.Alive == nil {
		cfg.Alive = func() error { return nil }
	}
	base, stop := context.WithCancelCause(context.Background())
	return &Service{
		db: cfg.DB, graphs: cfg.Graphs, node: cfg.Node, log: cfg.Log, redact: cfg.Redact, keys: cfg.Keys, alive: cfg.Alive, prices: cfg.Prices, admitted: cfg.Admit, progress: cfg.Progress, shown: cfg.Shown,
		base: base, stop: stop, flights: map[string]*flight{},
	}, nil
}

// errClosing ends the runs of a service that closes.
var errClosing = errors.New("the execution service stops")

// Close gives up the runs of this process, whose claims end without an outcome
// so that others may go on with them, and waits for that.
func (s *Service) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop(errClosing)
	ended := make(chan struct{})
	go func() {
		s.runs.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for runs of graphs: %w", context.Cause(ctx))
	}
}

// launch begins a flight in the background, as a part of the trace of its caller. A service that closes begins none:
// the claim is left to its lease.
func (s *Service) launch(caller context.Context, f *flight) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return &pawl.Error{Code: pawl.CodeUnavailable, Op: "run graph", Msg: "the server stops", Err: errClosing}
	}
	f.ctx, f.cancel = context.WithCancelCause(telemetry.Same(s.base, caller))
	s.flights[f.key] = f
	s.runs.Go(func() { //nolint:contextcheck // the run outlives its caller
		defer s.landed(f)
		f.fly()
	})
	return nil
}

func (s *Service) landed(f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flights[f.key] == f { // it may have been lost, and taken over by this same process
		delete(s.flights, f.key)
	}
	close(f.done)
}

func (s *Service) flightOf(key string) *flight {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flights[key]
}

// wait gives the answer of a flight, unless the caller goes away first; the
// flight goes on.
func wait(ctx context.Context, f *flight) (contract.RunAnswerV1, error) {
	select {
	case <-f.done:
		return f.answer, f.err
	case <-ctx.Done():
		return contract.RunAnswerV1{}, context.Cause(ctx)
	}
}
