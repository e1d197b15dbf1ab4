package prune

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/retention"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/hookstore"
	"github.com/pawlrun/pawl/internal/store/prunestore"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// Name is the task that removes what is too old to be kept.
const Name = "pawl.prune"

const (
	every    = time.Hour
	again    = time.Minute     // when a pass had more to do than it had time for
	passTime = 5 * time.Minute // of one pass, most of which is rest
	rewalk   = 24 * time.Hour  // after which a walk begins at its beginning
)

// Config is what a pruner is made of. DB must be there.
type Config struct {
	DB   *store.DB
	Log  *slog.Logger
	Keep retention.Ages // what the administrator says; what is absent is as usual

	// Metrics is where removed rows are counted; nil counts nothing.
	Metrics prometheus.Registerer

	fault func(at string) error // for tests: a process that dies there
}

// Service removes what is too old.
type Service struct {
	cfg  Config
	db   *store.DB
	log  *slog.Logger
	keep retention.Ages

	removed *prometheus.CounterVec
	freed   *prometheus.CounterVec

	mu   sync.Mutex
	size map[string]int // rows of a step, by what is walked through; guarded by mu

	small      int64 // bytes; a larger database is not measured at each question
	measuring  sync.Mutex
	measured   Storage   // guarded by measuring
	measuredAt time.Time // zero: it has to be measured; guarded by measuring
}

// New makes a pruner.
func New(cfg Config) *Service {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.fault == nil {
		cfg.fault = func(string) error { return nil }
	}
	s := &Service{cfg: cfg, db: cfg.DB, log: cfg.Log, keep: retention.Default().With(cfg.Keep), size: map[string]int{}, small: smallDatabase}
	s.removed = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pawl_retention_removed_rows_total", Help: "Rows that were removed because they were older than their kind is kept.",
	}, []string{"kind"})
	s.freed = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "pawl_retention_removed_bytes_total", Help: "About how many bytes of content those rows had.",
	}, []string{"kind"})
	for _, k := range retention.Kinds() {
		s.removed.WithLabelValues(string(k))
		s.freed.WithLabelValues(string(k))
	}
	if cfg.Metrics != nil {
		cfg.Metrics.MustRegister(s.removed, s.freed)
	}
	return s
}

// Keep is for how long things are kept, definitions apart.
func (s *Service) Keep() retention.Ages { return maps.Clone(s.keep) }

// Task is what runs every hour, on one node.
func (s *Service) Task() queue.Task {
	return queue.Task{Internal: true, Run: func(ctx context.Context, _ *queue.Job) error {
		done, err := s.Prune(ctx, Options{Budget: passTime, Rest: true})
		if err != nil {
			return err
		}
		more, err := s.forgetRest(ctx)
		if err != nil {
			return err
		}
		done.More = done.More || more
		if rows := done.Rows(); rows > 0 {
			s.log.InfoContext(ctx, "removed what is older than it is kept", "rows", rows, "bytes", done.Bytes(), "more", done.More)
		}
		if done.Given > 0 {
			s.log.InfoContext(ctx, "gave space back to the disk", "bytes", done.Given)
		}
		if err := s.measureDay(ctx); err != nil {
			return err
		}
		next := every
		if done.More {
			next = again
		}
		return queue.Snooze(time.Now().Add(next))
	}}
}

// Job is the one job of that task.
func Job() store.JobSpec {
	return store.JobSpec{Task: Name, Key: Name, KeyMode: store.Keep, Priority: -1}
}

// deliveriesKept is for how long deliveries of hooks are kept.
const deliveriesKept = 30 * 24 * time.Hour

// forgetRest removes idempotency keys, which are kept for a day, results of jobs, and
// deliveries of hooks: a batch at a time, with a rest after each. more says that it ran
// out of time.
func (s *Service) forgetRest(ctx context.Context) (more bool, err error) {
	var clock retention.Clock
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		clock, err = readClock(ctx, prunestore.In(tx))
		return err
	})
	if err != nil {
		return false, err
	}
	begun := time.Now()
	for _, remove := range []func() (int64, error){
		func() (int64, error) {
			return userstore.On(s.db).DeleteOldIdempotencyKeys(ctx, clock.Cut(userstore.IdempotencyKept), mostRows)
		},
		func() (int64, error) { return s.db.PruneResults(ctx, clock.Cut(time.Second), mostRows) },
		func() (int64, error) {
			return hookstore.PruneDeliveries(ctx, s.db, clock.Cut(deliveriesKept), mostRows)
		},
	} {
		for n := int64(mostRows); n >= mostRows; {
			if time.Since(begun) > passTime {
				return true, nil
			}
			at := time.Now()
			if n, err = remove(); err != nil {
				return false, err
			}
			if err := rest(ctx, time.Since(at)*restTimes); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}
