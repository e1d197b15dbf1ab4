package workflow

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
	"github.com/pawlrun/pawl/internal/repair"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/telemetry"
	"github.com/pawlrun/pawl/internal/tool"
)

// Scripts runs scripts; *script.Pool does.
type Scripts interface {
	Compile(ctx context.Context, file, source string) (*script.Program, error)
	Describe(ctx context.Context, program *script.Program) (script.Description, error)
	Run(ctx context.Context, req script.Request, host script.Host, limits script.Limits) (script.Result, error)
}

// Options are what a service is made of.
type Options struct {
	DB      *store.DB
	Ledger  *ledger.Ledger // with Holdings for pawl.KindWorkflow
	Scripts Scripts
	// Trials runs scripts for replays and checks of repaired scripts, apart
	// from those of real runs; nil is Scripts.
	Trials Scripts
	Tools  *tool.Set
	Limits script.Limits // of a phase; zero fields take their defaults
	Log    *slog.Logger

	lane.Host

	// Calendars are those that producers leave out; nil: those of workflows alone.
	Calendars *calendar.Book
	// Needs is which sources workflows wait for; nil: there are no sources.
	Needs *need.Book

	// Repair proposes corrected scripts; nil leaves that to people.
	Repair repair.Repairer

	// fault is called at the places where a crash is tried, by tests; an
	// error there ends the session on the spot.
	fault func(place string) error
	// writeThrough writes every step of a run at once, for tests that look at
	// the rows of each.
	writeThrough bool
}

// ChangeDetail is what whoever follows a workflow is told beside what happened.
type ChangeDetail struct {
	Topic string `json:"topic,omitempty"` // published
	Event string `json:"event,omitempty"` // published: its message id
	Input string `json:"input,omitempty"` // skipped
}

// refOf names a workflow.
func refOf(name string) lane.Ref { return lane.Named(pawl.KindWorkflow, name) }

// Service deploys workflows and runs their lanes.
type Service struct {
	cfg      Options
	db       *store.DB
	ledger   *ledger.Ledger
	log      *slog.Logger
	jobs     lane.Jobs
	configs  configCache
	programs *programCache
	replays  chan struct{} // full while there are as many as there may be

	mu       sync.Mutex
	memories map[string]*memory                 // by memoryKey; guarded by mu
	running  map[string]context.CancelCauseFunc // how a run in this process is stopped, by its id; guarded by mu
	// rightsSeen are the rights that are known to be stored, by workflow id;
	// guarded by mu.
	rightsSeen map[string]rights
}

// TaskName is the task of the job that a lane has.
const TaskName = "pawl.workflow"

// PartName is the task of the job that a partition has. It is another one, so that a
// process of a release without partitions does not take it for the workflow's own.
const PartName = "pawl.workflow.partition"

// New makes a service. Attach must follow before it is used.
func New(cfg Options) (*Service, error) {
	if cfg.DB == nil || cfg.Ledger == nil || cfg.Scripts == nil {
		return nil, errors.New("workflow: a database, a ledger and scripts are needed")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Trials == nil {
		cfg.Trials = cfg.Scripts
	}
	if cfg.Tools == nil {
		cfg.Tools = &tool.Set{}
	}
	cfg.Host = cfg.WithDefaults()
	if cfg.fault == nil {
		cfg.fault = func(string) error { return nil }
	}
	if cfg.Needs == nil {
		cfg.Needs = &need.Book{}
	}
	if cfg.Calendars == nil {
		cfg.Calendars = &calendar.Book{}
	}
	s := &Service{
		cfg: cfg, db: cfg.DB, ledger: cfg.Ledger, log: cfg.Log,
		programs: newProgramCache(programsKept), replays: make(chan struct{}, MaxReplays),
		memories: map[string]*memory{}, running: map[string]context.CancelCauseFunc{}, rightsSeen: map[string]rights{},
	}
	cfg.Calendars.Use(s)
	cfg.Needs.Use(s)
	return s, nil
}

// Attach implements lane.Kind.
func (s *Service) Attach(jobs lane.Jobs) { s.jobs = jobs }

// Tasks implements lane.Kind.
func (s *Service) Tasks() map[string]queue.Task {
	return map[string]queue.Task{
		TaskName:     {Run: s.run, Internal: true, Backoff: lane.Backoff},
		PartName:     {Run: s.run, Internal: true, Backoff: lane.Backoff},
		SweepName:    s.sweepTask(),
		ContinueName: lane.ContinueTask(s.proceed),
		WakeName:     s.wakeTask(), // once at every start: consumers that left events, and runs that wait for a connection
	}
}

type jobPayload struct {
	Workflow  string `json:"workflow"`            // id
	Partition string `json:"partition,omitempty"` // id of one; empty: the workflow's own lane
}

// jobKey names the job and the queue's lane of a workflow.
func jobKey(lane string) string { return string(pawl.KindWorkflow) + ":" + lane }

// arm makes the lane run at the instant, or earlier if it is armed for that;
// if it runs now, it will look once more.
func (s *Service) arm(ctx context.Context, tx *store.Tx, w workflowstore.Workflow, at time.Time) error {
	payload, err := json.Marshal(jobPayload{Workflow: w.ID})
	if err != nil {
		return err
	}
	key := jobKey(w.Lane)
	_, err = s.jobs.EnqueueTx(ctx, tx, store.JobSpec{Task: TaskName, Payload: payload, RunAt: at, Key: key, KeyMode: store.Earliest, Lane: key, Trace: telemetry.Requested(ctx)})
	return err
}
