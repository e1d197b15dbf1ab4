package source

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/calendar"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/need"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/quota"
	"github.com/pawlrun/pawl/internal/source/fetch"
	"github.com/pawlrun/pawl/internal/source/table"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
)

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

	// Calendars are those that sources leave out; nil: those of sources alone.
	Calendars *calendar.Book
	// Needs is who needs sources; nil: nobody.
	Needs *need.Book

	lane.Host

	// fault is called at the places where a crash is tried, by tests.
	fault func(place string) error
}

// ProgressDetail is what whoever follows a source is told of a fetch under way.
type ProgressDetail struct {
	Run      string                     `json:"run"`
	Progress sourcestore.SourceProgress `json:"progress"`
}

// refOf names a source.
func refOf(name string) lane.Ref { return lane.Named(pawl.KindSource, name) }

// Service keeps sources and runs their lanes.
type Service struct {
	cfg    Options
	db     *store.DB
	ledger *ledger.Ledger
	log    *slog.Logger
	jobs   lane.Jobs
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
	cfg.Host = cfg.WithDefaults()
	if cfg.fault == nil {
		cfg.fault = func(string) error { return nil }
	}
	if cfg.Calendars == nil {
		cfg.Calendars = &calendar.Book{}
	}
	if cfg.Needs == nil {
		cfg.Needs = &need.Book{}
	}
	s := &Service{
		cfg: cfg, db: cfg.DB, ledger: cfg.Ledger, log: cfg.Log,
		places: make(chan struct{}, cfg.Workers), running: map[string]runningFetch{},
	}
	cfg.Calendars.Use(s)
	cfg.Needs.Provide(s)
	return s, nil
}

// Attach implements lane.Kind.
func (s *Service) Attach(jobs lane.Jobs) { s.jobs = jobs }

// Tasks implements lane.Kind.
func (s *Service) Tasks() map[string]queue.Task {
	return map[string]queue.Task{
		TaskName:     {Run: s.run, Pool: PoolName, Internal: true, Order: orderOf, Backoff: lane.Backoff},
		SweepName:    s.sweepTask(),
		ContinueName: lane.ContinueTask(s.proceed),
	}
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
func (s *Service) arm(ctx context.Context, tx *store.Tx, src *sourcestore.Source, at time.Time) error {
	payload, err := json.Marshal(jobPayload{src.ID, src.Name})
	if err != nil {
		return err
	}
	key := jobKey(src.ID)
	_, err = s.jobs.EnqueueTx(ctx, tx, store.JobSpec{Task: TaskName, Payload: payload, RunAt: at, Key: key, KeyMode: store.Earliest, Lane: key})
	return err
}

// withdraw stops a fetch of this process, if it is the one.
func (s *Service) withdraw(sourceID, runID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.running[sourceID]; ok && (runID == "" || r.run == runID) {
		r.cancel(errWithdrawn)
	}
}
