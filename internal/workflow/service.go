package workflow

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
	"github.com/pawlrun/pawl/internal/repair"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/tool"
)

// Scripts runs scripts; *script.Pool does.
type Scripts interface {
	Compile(ctx context.Context, file, source string) (*script.Program, error)
	Describe(ctx context.Context, program *script.Program) (script.Description, error)
	Run(ctx context.Context, req script.Request, host script.Host, limits script.Limits) (script.Result, error)
}

// Jobs arms lanes; *queue.Queue does.
type Jobs interface {
	EnqueueTx(ctx context.Context, tx *store.Tx, specs ...store.JobSpec) ([]store.Job, error)
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

	// Observe is told of changes that are no run's, after their commit; it
	// must not block. It may be nil.
	Observe func(Change)

	// Repair proposes corrected scripts; nil leaves that to people.
	Repair repair.Repairer

	// Workforce tells who there is to run things. Nil says that somebody is.
	Workforce func(ctx context.Context, tx *store.Tx) (run.Workforce, error)
	// Notify tells people something, in the transaction in which it becomes
	// true; nil tells nobody.
	Notify func(ctx context.Context, tx *store.Tx, n Notice) error

	// fault is called at the places where a crash is tried, by tests; an
	// error there ends the session on the spot.
	fault func(place string) error
}

// Change is something that happened to a workflow beside its runs.
type Change struct {
	// deployed, paused, resumed, deleted, requested, published, skipped; of a run:
	// asked, asked again, expired, approved, rejected, resumed, resolved, the What of
	// a Notice; fix activated, or fix and the state of a repair.
	What     string
	Workflow string
	At       time.Time
	Topic    string // published
	Event    string // published: its message id
	Input    string // skipped
	Run      string // of what happened to a run
}

// Service deploys workflows and runs their lanes.
type Service struct {
	cfg      Options
	db       *store.DB
	ledger   *ledger.Ledger
	log      *slog.Logger
	jobs     Jobs
	configs  configCache
	programs *programCache
	replays  chan struct{} // full while there are as many as there may be

	mu      sync.Mutex
	lanes   map[string]*lane          // by workflow id; guarded by mu
	running map[string]runningSession // by workflow id; guarded by mu
	// rightsSeen are the rights that are known to be stored, by workflow id;
	// guarded by mu.
	rightsSeen map[string]rights
}

// runningSession is how a run in this process is stopped.
type runningSession struct {
	run    string
	cancel context.CancelCauseFunc
}

// TaskName is the task of the job that a lane has.
const TaskName = "pawl.workflow"

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
	if cfg.Observe == nil {
		cfg.Observe = func(Change) {}
	}
	if cfg.Workforce == nil {
		cfg.Workforce = func(context.Context, *store.Tx) (run.Workforce, error) { return run.Workforce{}, nil }
	}
	if cfg.fault == nil {
		cfg.fault = func(string) error { return nil }
	}
	return &Service{
		cfg: cfg, db: cfg.DB, ledger: cfg.Ledger, log: cfg.Log,
		programs: newProgramCache(programsKept), replays: make(chan struct{}, MaxReplays),
		lanes: map[string]*lane{}, running: map[string]runningSession{}, rightsSeen: map[string]rights{},
	}, nil
}

// Attach gives the service the queue that carries its jobs. The queue needs the
// service's task first, so it comes later.
func (s *Service) Attach(jobs Jobs) { s.jobs = jobs }

// Task is the code behind TaskName.
func (s *Service) Task() queue.Task {
	return queue.Task{Run: s.run, Internal: true, Backoff: func(_ int64, attempt int) time.Duration {
		// A session fails only when the store does, so it is tried again soon.
		return min(time.Second<<min(attempt-1, 5), 30*time.Second)
	}}
}

type jobPayload struct {
	Workflow string `json:"workflow"` // id
}

// jobKey names the job and the queue's lane of a workflow.
func jobKey(lane string) string { return string(pawl.KindWorkflow) + ":" + lane }

// arm makes the lane run at the instant, or earlier if it is armed for that;
// if it runs now, it will look once more.
func (s *Service) arm(ctx context.Context, tx *store.Tx, w store.Workflow, at time.Time) error {
	payload, err := json.Marshal(jobPayload{w.ID})
	if err != nil {
		return err
	}
	key := jobKey(w.Lane)
	_, err = s.jobs.EnqueueTx(ctx, tx, store.JobSpec{Task: TaskName, Payload: payload, RunAt: at, Key: key, KeyMode: store.Earliest, Lane: key})
	return err
}

// tell notes a change for after the commit.
func (s *Service) tell(tx *store.Tx, c Change) {
	c.At = tx.Now
	tx.AfterCommit(func() { s.cfg.Observe(c) })
}
