package source

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/quota"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/source/fetch"
	"github.com/pawlrun/pawl/internal/source/table"
	"github.com/pawlrun/pawl/internal/store"
)

// Jobs arms lanes; *queue.Queue does.
type Jobs interface {
	EnqueueTx(ctx context.Context, tx *store.Tx, specs ...store.JobSpec) ([]store.Job, error)
}

// Book is the book of calls; *quota.Book is one.
type Book interface {
	fetch.Book
	Peek(ctx context.Context, domain string) (open bool, until time.Time, a quota.Allowance, err error)
}

// ReasonDenied is the reason of an error that the policy of a connection denies
// writing with it.
const ReasonDenied = "connection_denied"

// Database is where rows of a definition with write.connection go.
type Database interface {
	Dialect() string
	Write(ctx context.Context, fn func(ctx context.Context, db table.DB) error) error
}

// Row is a new or changed row that becomes an event.
type Row struct {
	MessageID string // names the row and its content
	Key       string // names the row
	Payload   json.RawMessage
}

// Options are what a service is made of.
type Options struct {
	DB      *store.DB
	Ledger  *ledger.Ledger
	Fetcher *fetch.Fetcher
	Book    Book
	Log     *slog.Logger

	// Workers is how many fetches run at once (default 8).
	Workers int
	// Spool is the folder for answers that are too large for memory.
	Spool string

	// Publish adds events to a topic of a workflow, in the transaction of a
	// page; nil where there are no workflows.
	Publish func(ctx context.Context, tx *store.Tx, source, workflow, topic string, rows []Row) error
	// Database finds the database of a connection; nil where there are none. It
	// fails with ReasonDenied if the connection's policy is against writing.
	Database func(connection string) (Database, error)

	// Observe is told of changes after their commit; it must not block. It may
	// be nil.
	Observe func(Change)
	// Workforce tells who there is to run things. Nil says that somebody is.
	Workforce func(ctx context.Context, tx *store.Tx) (run.Workforce, error)
	// Notify tells people something, in the transaction in which it becomes
	// true; nil tells nobody.
	Notify func(ctx context.Context, tx *store.Tx, n Notice) error

	// fault is called at the places where a crash is tried, by tests.
	fault func(place string) error
}

// Change is something that happened to a source beside the steps of its runs.
type Change struct {
	What     string // applied, paused, resumed, deleted, requested, reset, progress
	Source   string
	At       time.Time
	Run      string               // progress
	Progress store.SourceProgress // progress: of the run so far
}

// Notice is something that people should be told.
type Notice struct {
	Source string
	What   string // needs_attention or recovered
	Issue  run.Issue
	Text   string
	RunID  string
	At     time.Time
}

// Service keeps sources and runs their lanes.
type Service struct {
	cfg    Options
	db     *store.DB
	ledger *ledger.Ledger
	log    *slog.Logger
	jobs   Jobs
	places chan struct{} // one for each fetch that may run

	mu      sync.Mutex
	running map[string]runningFetch // by source id; guarded by mu
}

// runningFetch is how a run in this process is stopped.
type runningFetch struct {
	run    string
	cancel context.CancelCauseFunc
}

// The task of the job that a source has, and the workers that run it.
const (
	TaskName = "pawl.source"
	PoolName = "source"
)

// New makes a service. Attach must follow before it is used.
func New(cfg Options) (*Service, error) {
	if cfg.DB == nil || cfg.Ledger == nil || cfg.Fetcher == nil || cfg.Book == nil {
		return nil, errors.New("source: a database, a ledger, a fetcher and a book are needed")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Workers == 0 {
		cfg.Workers = 8
	}
	if cfg.Observe == nil {
		cfg.Observe = func(Change) {}
	}
	if cfg.Workforce == nil {
		cfg.Workforce = func(context.Context, *store.Tx) (run.Workforce, error) { return run.Workforce{}, nil }
	}
	if cfg.Notify == nil {
		cfg.Notify = func(context.Context, *store.Tx, Notice) error { return nil }
	}
	if cfg.fault == nil {
		cfg.fault = func(string) error { return nil }
	}
	return &Service{
		cfg: cfg, db: cfg.DB, ledger: cfg.Ledger, log: cfg.Log,
		places: make(chan struct{}, cfg.Workers), running: map[string]runningFetch{},
	}, nil
}

// Attach gives the service the queue that carries its jobs. The queue needs the
// service's task first, so it comes later.
func (s *Service) Attach(jobs Jobs) { s.jobs = jobs }

// Task is the code behind TaskName.
func (s *Service) Task() queue.Task {
	return queue.Task{Run: s.run, Pool: PoolName, Internal: true, Order: orderOf, Backoff: func(_ int64, attempt int) time.Duration {
		// It fails only when the store does, so it is tried again soon.
		return min(time.Second<<min(attempt-1, 5), 30*time.Second)
	}}
}

type jobPayload struct {
	Source string `json:"source"` // id
	Name   string `json:"name"`   // by which those that come due together are ordered
}

func orderOf(payload json.RawMessage) string {
	var p jobPayload
	_ = json.Unmarshal(payload, &p) // what cannot be read fails when it runs
	return p.Name
}

// jobKey names the job and the queue's lane of a source.
func jobKey(id string) string { return string(pawl.KindSource) + ":" + id }

// arm makes the source look at the instant, or earlier if it is armed for that;
// if it runs now, it will look once more.
func (s *Service) arm(ctx context.Context, tx *store.Tx, src *store.Source, at time.Time) error {
	payload, err := json.Marshal(jobPayload{src.ID, src.Name})
	if err != nil {
		return err
	}
	key := jobKey(src.ID)
	_, err = s.jobs.EnqueueTx(ctx, tx, store.JobSpec{Task: TaskName, Payload: payload, RunAt: at, Key: key, KeyMode: store.Earliest, Lane: key})
	return err
}

// tell notes a change for after the commit.
func (s *Service) emit(tx *store.Tx, c Change) {
	c.At = tx.Now
	tx.AfterCommit(func() { s.cfg.Observe(c) })
}

// withdraw stops a fetch of this process, if it is the one.
func (s *Service) withdraw(sourceID, runID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.running[sourceID]; ok && (runID == "" || r.run == runID) {
		r.cancel(errWithdrawn)
	}
}
