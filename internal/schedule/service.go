package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/calendar"
	"github.com/pawlrun/pawl/internal/execution"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/need"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/telemetry"
)

// Options are what a service is made of.
type Options struct {
	DB         *store.DB
	Ledger     *ledger.Ledger
	Executions execution.API
	Grants     grant.Service
	Calendars  *calendar.Book // nil: those of schedules alone
	Needs      *need.Book     // nil: there are no sources
	Log        *slog.Logger

	lane.Host

	// fault is called at the places where a crash is tried, by tests.
	fault func(place string) error
	// record is maxRecorded, or what tests take for it.
	record int
}

// SlotDetail is what whoever follows a schedule is told of a slot or a backfill.
type SlotDetail struct {
	Slot   client.Instant `json:"slot,omitzero"`
	Status string         `json:"status,omitempty"`

	Disposition string `json:"disposition,omitempty"` // once it is closed
}

// refOf names a schedule.
func refOf(id, name string) lane.Ref { return lane.OwnedBy(pawl.KindSchedule, id, name) }

// Service keeps schedules and runs their slots.
type Service struct {
	cfg    Options
	db     *store.DB
	ledger *ledger.Ledger
	log    *slog.Logger
	jobs   lane.Jobs

	local  executor // nil: the execution service is another process
	starts store.Sets[*start]
	ends   store.Sets[*ending]
}

// New makes a service. Attach must follow before it is used.
func New(cfg Options) (*Service, error) {
	if cfg.DB == nil || cfg.Ledger == nil || cfg.Executions == nil {
		return nil, errors.New("schedule: a database, a ledger and an execution service are needed")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Calendars == nil {
		cfg.Calendars = &calendar.Book{}
	}
	if cfg.Needs == nil {
		cfg.Needs = &need.Book{}
	}
	cfg.Host = cfg.WithDefaults()
	if cfg.fault == nil {
		cfg.fault = func(string) error { return nil }
	}
	if cfg.record == 0 {
		cfg.record = maxRecorded
	}
	local, _ := cfg.Executions.(executor)
	s := &Service{cfg: cfg, db: cfg.DB, ledger: cfg.Ledger, log: cfg.Log, local: local}
	cfg.Calendars.Use(s)
	cfg.Needs.Use(s)
	return s, nil
}

// Calendars are those whose days schedules leave out.
func (s *Service) Calendars() *calendar.Book { return s.cfg.Calendars }

// Attach implements lane.Kind.
func (s *Service) Attach(jobs lane.Jobs) { s.jobs = jobs }

// slotPayload is what the job of a slot carries (C-31).
type slotPayload struct {
	ScheduleID   string         `json:"scheduleId"`
	ScheduledFor client.Instant `json:"scheduledFor"`
}

// arm gives a slot its job, due at the instant or earlier if it is armed for
// that.
func (s *Service) arm(ctx context.Context, tx *store.Tx, sch schedulestore.Schedule, slot, at time.Time) error {
	job, err := jobOf(sch, slot, at)
	if err != nil {
		return err
	}
	job.Trace = telemetry.Requested(ctx)
	_, err = s.jobs.EnqueueTx(ctx, tx, job)
	return err
}

// jobOf is the job of a slot.
func jobOf(sch schedulestore.Schedule, slot, at time.Time) (store.JobSpec, error) {
	payload, err := json.Marshal(slotPayload{sch.ID, client.At(slot)})
	key := pawl.SlotKey(sch.ID, slot)
	lane := sch.ID
	if mayOverlap(sch) {
		lane = key
	}
	return store.JobSpec{Task: TaskName, Payload: payload, RunAt: at, Key: key, KeyMode: store.Earliest, Lane: lane}, err
}

// beside reports whether slots of the schedule may come due while one runs, and
// are not to wait in the queue for its end.
func mayOverlap(sch schedulestore.Schedule) bool {
	p := pawl.ConcurrencyPolicy(sch.Policy)
	return p == pawl.PolicyAllow || p == pawl.PolicyReplace
}

// laneOf is the lane of the runs of a slot: the schedule, of which one run is
// active at a time, unless its policy allows more.
func laneOf(sch schedulestore.Schedule, slot time.Time) string {
	if pawl.ConcurrencyPolicy(sch.Policy) == pawl.PolicyAllow {
		return pawl.SlotKey(sch.ID, slot)
	}
	return sch.ID
}
