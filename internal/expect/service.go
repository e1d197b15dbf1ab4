package expect

import (
	"context"
	"errors"
	"log/slog"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/terms"
)

// Name is the task that judges lanes.
const Name = "pawl.expect"

const (
	every   = 5 * time.Second
	batch   = 200
	resting = 9 // times as long as a look took, it rests, if that is longer
	timed   = time.Minute
)

// Kind is a kind whose lanes are judged.
type Kind interface {
	Kind() pawl.Kind
	// Subject reads a lane. It fails with pawl.ErrNotFound if it is gone.
	Subject(ctx context.Context, tx *store.Tx, l runstore.Lane) (lane.Subject, error)
	// StoodWell reports whether something that stands for a time in [from, to)
	// succeeded.
	StoodWell(ctx context.Context, tx *store.Tx, s lane.Subject, l runstore.Lane, from, to time.Time) (bool, error)
	// CountStarts counts the last starts since an instant, and the late ones.
	CountStarts(ctx context.Context, tx *store.Tx, s lane.Subject, l runstore.Lane, since time.Time, limit int) (starts, late int, err error)
	// Fetches reads the last fetches of a handler that ended well and began before an
	// instant, the newest first.
	Fetches(ctx context.Context, tx *store.Tx, l runstore.Lane, handler string, before time.Time, limit int) ([]lane.Fetch, error)
}

// Config is what a service is made of.
type Config struct {
	DB    *store.DB
	Kinds []Kind
	Log   *slog.Logger
	lane.Host

	fault func(at string) error // for tests: a process that dies there
}

// Service judges lanes.
type Service struct {
	cfg   Config
	db    *store.DB
	log   *slog.Logger
	kinds map[pawl.Kind]Kind

	starts time.Time // when starts were last counted; only the job reads and writes it
}

// New makes a service.
func New(cfg Config) *Service {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Host = cfg.WithDefaults()
	if cfg.fault == nil {
		cfg.fault = func(string) error { return nil }
	}
	s := &Service{cfg: cfg, db: cfg.DB, log: cfg.Log, kinds: map[pawl.Kind]Kind{}}
	for _, k := range cfg.Kinds {
		s.kinds[k.Kind()] = k
	}
	return s
}

// Task is what runs every few seconds, on one node.
func (s *Service) Task() queue.Task {
	return queue.Task{Internal: true, Run: func(ctx context.Context, _ *queue.Job) error {
		began := time.Now()
		if err := s.look(ctx); err != nil {
			return err
		}
		return queue.Snooze(time.Now().Add(max(every, resting*time.Since(began))))
	}}
}

// look judges every lane of which something is expected.
func (s *Service) look(ctx context.Context) error {
	count := time.Since(s.starts) >= timed
	if count {
		s.starts = time.Now()
	}
	var after runstore.Lane
	for {
		var page, changed []runstore.Lane
		err := s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			changed = nil
			if page, err = runstore.In(tx).ExpectingLanes(ctx, after.Kind, after.Lane, batch); err != nil {
				return err
			}
			for _, l := range page {
				now, _, err := s.judge(ctx, tx, l, count)
				switch {
				case isStore(err):
					return err
				case err != nil: // that of one lane keeps no other from being judged
					s.log.WarnContext(ctx, "a lane cannot be judged", "kind", l.Kind, "lane", l.Name, "err", err)
				case now != l:
					changed = append(changed, l)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, l := range changed {
			if err := s.change(ctx, l, count); err != nil {
				return err
			}
		}
		if len(page) < batch {
			return nil
		}
		after = page[len(page)-1]
	}
}

// isStore reports whether an error is that of the database, or of a process that ends.
func isStore(err error) bool {
	return errors.Is(err, pawl.ErrUnavailable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// change judges a lane once more and keeps what was found, and tells people in the
// same transaction.
func (s *Service) change(ctx context.Context, l runstore.Lane, count bool) error {
	if err := s.cfg.fault("before"); err != nil {
		return err
	}
	err := s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		known, err := runstore.In(tx).GetLane(ctx, l.Kind, l.Lane)
		if err != nil {
			return pawl.IgnoreNotFound(err)
		}
		now, subject, err := s.judge(ctx, tx, known, count)
		if err != nil || now == known {
			return err
		}
		if err := runstore.In(tx).SetExpected(ctx, now); err != nil {
			return err
		}
		return s.tell(ctx, tx, subject.Ref, terms.ParseStanding(known.Expected), terms.ParseStanding(now.Expected))
	})
	if err != nil {
		return err
	}
	return s.cfg.fault("after")
}

// tell tells people what is newly not met, or that everything is met again. That
// nothing is expected any more is no news to whoever wanted it so.
func (s *Service) tell(ctx context.Context, tx *store.Tx, of lane.Ref, was, now terms.Standing) error {
	n := lane.Notice{Ref: of, Issue: run.IssueExpectation, At: tx.Now}
	unmet := now.Unmet()
	for _, v := range unmet {
		if old := was.Find(v.Name); old.Name == "" || old.Met {
			n.What, n.Text = lane.NoticeAttention, terms.SentenceOf(unmet)
		}
	}
	if len(was.Unmet()) > 0 && len(unmet) == 0 && len(now.Verdicts) > 0 {
		n.What, n.Text = lane.NoticeRecovered, "It does again what is expected of it."
	}
	if n.What == "" {
		return nil
	}
	s.cfg.Emit(tx, lane.Change{Ref: of, What: n.What})
	return s.cfg.Notify(ctx, tx, n)
}
