package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/when"
)

// Jobs arms slots; *queue.Queue does.
type Jobs interface {
	EnqueueTx(ctx context.Context, tx *store.Tx, specs ...store.JobSpec) ([]store.Job, error)
}

// Options are what a service is made of.
type Options struct {
	DB         *store.DB
	Ledger     *ledger.Ledger
	Executions execution.API
	Grants     grant.Service
	Log        *slog.Logger

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

// Change is something that happened to a schedule.
type Change struct {
	What     string // created, updated, deleted, requested, slot, backfill
	Schedule string // id
	Name     string
	Slot     time.Time // slot
	Status   string    // slot
	At       time.Time
}

// Notice is something that people should be told.
type Notice struct {
	Schedule string // name
	What     string // needs_attention or recovered
	Issue    run.Issue
	Text     string
	RunID    string
	At       time.Time
}

// Service keeps schedules and runs their slots.
type Service struct {
	cfg    Options
	db     *store.DB
	ledger *ledger.Ledger
	log    *slog.Logger
	jobs   Jobs
}

// New makes a service. Attach must follow before it is used.
func New(cfg Options) (*Service, error) {
	if cfg.DB == nil || cfg.Ledger == nil || cfg.Executions == nil {
		return nil, errors.New("graph: a database, a ledger and an execution service are needed")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
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
	return &Service{cfg: cfg, db: cfg.DB, ledger: cfg.Ledger, log: cfg.Log}, nil
}

// Attach gives the service the queue that carries its jobs.
func (s *Service) Attach(jobs Jobs) { s.jobs = jobs }

func (s *Service) tell(tx *store.Tx, c Change) {
	c.At = tx.Now
	tx.AfterCommit(func() { s.cfg.Observe(c) })
}

// slotPayload is what the job of a slot carries (C-31).
type slotPayload struct {
	ScheduleID   string         `json:"scheduleId"`
	ScheduledFor client.Instant `json:"scheduledFor"`
}

// arm gives a slot its job, due at the instant or earlier if it is armed for
// that.
func (s *Service) arm(ctx context.Context, tx *store.Tx, sch store.Schedule, slot, at time.Time) error {
	payload, err := json.Marshal(slotPayload{sch.ID, client.At(slot)})
	if err != nil {
		return err
	}
	key := pawl.SlotKey(sch.ID, slot)
	lane := sch.ID
	if mayOverlap(sch) {
		lane = key
	}
	_, err = s.jobs.EnqueueTx(ctx, tx, store.JobSpec{Task: TaskName, Payload: payload, RunAt: at, Key: key, KeyMode: store.Earliest, Lane: lane})
	return err
}

// beside reports whether slots of the schedule may come due while one runs, and
// are not to wait in the queue for its end.
func mayOverlap(sch store.Schedule) bool {
	p := pawl.ConcurrencyPolicy(sch.Policy)
	return p == pawl.PolicyAllow || p == pawl.PolicyReplace
}

// laneOf is the lane of the runs of a slot: the schedule, of which one run is
// active at a time, unless its policy allows more.
func laneOf(sch store.Schedule, slot time.Time) string {
	if pawl.ConcurrencyPolicy(sch.Policy) == pawl.PolicyAllow {
		return pawl.SlotKey(sch.ID, slot)
	}
	return sch.ID
}

// scheduleOf is when a schedule is due.
func scheduleOf(cron, timezone string) (when.Schedule, error) {
	return when.Parse(when.KindCron, cron, timezone)
}
