package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/quota"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/source/table"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
	"github.com/pawlrun/pawl/internal/timing"
	"github.com/pawlrun/pawl/internal/when"
)

// view is everything that decides what a source does next, as it was at one
// instant.
type view struct {
	now    time.Time
	source sourcestore.Source
	def    spec.Definition
	state  sourcestore.SourceState
	times  when.Schedule // when it is due; zero if its zone was lost
	plan   timing.Plan
	retry  run.Retry    // of the present period
	row    runstore.Run // the newest run; zero if it never ran
	newest run.Run
	dataAt time.Time     // newest row of the table; only asked for while no run is known
	known  runstore.Lane // its row, as it was written last

	there      run.Workforce // looked up for people only
	quotaOpen  bool
	quotaUntil time.Time
	allowance  quota.Allowance
}

// loadForPeople is load with who there is to run it.
func (s *Service) loadForPeople(ctx context.Context, name string, also func(context.Context, *store.Tx, *view) error) (*view, error) {
	return s.load(ctx, name, also, func(ctx context.Context, tx *store.Tx, v *view) (err error) {
		v.there, err = s.cfg.Workforce(ctx, tx)
		return err
	})
}

// load reads a source as it is now, and with it what also reads, so that both
// tell of one moment.
func (s *Service) load(ctx context.Context, name string, also ...func(context.Context, *store.Tx, *view) error) (v *view, err error) {
	find := func(ctx context.Context, tx *store.Tx) (sourcestore.Source, error) {
		return sourcestore.In(tx).SourceByName(ctx, name)
	}
	return s.loadWith(ctx, find, also...)
}

func (s *Service) loadWith(ctx context.Context, find func(context.Context, *store.Tx) (sourcestore.Source, error), also ...func(context.Context, *store.Tx, *view) error) (v *view, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		src, err := find(ctx, tx)
		if err != nil {
			return err
		}
		if v, err = s.loadFrom(ctx, tx, src); err != nil {
			return err
		}
		for _, read := range also {
			if err := read(ctx, tx, v); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return v, s.askBook(ctx, v)
}

// askBook adds what the book of calls says, without consuming anything.
func (s *Service) askBook(ctx context.Context, v *view) (err error) {
	v.quotaOpen, v.quotaUntil, v.allowance, err = s.cfg.Book.Peek(ctx, v.def.Host())
	return err
}

// loadFrom reads what the store knows. The book has not been asked.
func (s *Service) loadFrom(ctx context.Context, tx *store.Tx, src sourcestore.Source) (*view, error) {
	v := &view{now: tx.Now, source: src, quotaOpen: true}
	if err := json.Unmarshal(src.Definition, &v.def); err != nil {
		return nil, fmt.Errorf("read the definition of source %s: %w", src.Name, err)
	}
	var err error
	if v.state, err = sourcestore.In(tx).GetSourceState(ctx, src.ID); err != nil {
		return nil, err
	}
	if err := s.loadTimes(ctx, tx, v); err != nil {
		return nil, err
	}
	row, err := runstore.In(tx).GetRetry(ctx, pawl.KindSource, src.Name)
	switch {
	case err == nil:
		v.retry = ledger.RetryOf(row)
	case errors.Is(err, pawl.ErrNotFound):
		v.retry = run.NewRetry(src.CreatedAt)
	default:
		return nil, err
	}
	v.retry, _ = v.retry.ResetIfDue(v.def.Budget(), v.now)
	if v.known, err = runstore.In(tx).GetLane(ctx, pawl.KindSource, src.Name); err != nil {
		return nil, err
	}
	newest, err := runstore.In(tx).NewestRun(ctx, pawl.KindSource, src.Name)
	if err != nil && !errors.Is(err, pawl.ErrNotFound) {
		return nil, err
	}
	if err == nil && !newest.CreatedAt.Before(src.CreatedAt) { // else it is of one that was deleted
		v.row = newest
		if v.newest, err = s.ledger.View(ctx, tx, newest); err != nil {
			return nil, err
		}
	}
	if v.row.ID == "" && v.def.Write.Connection == "" {
		if v.dataAt, err = s.lastRow(ctx, tx, v); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// lastRow is when the newest row came, for a source of which no run is known
// (X-33, B-20).
func (s *Service) lastRow(ctx context.Context, tx *store.Tx, v *view) (time.Time, error) {
	plan, err := table.New(s.db.Name(), v.def)
	if err != nil {
		return time.Time{}, err
	}
	return plan.LastRow(ctx, tx, v.source.Name)
}

// wanted reports whether the source is meant to run.
func (v *view) wanted() bool {
	return v.source.Status == spec.Active && v.source.PausedAt.IsZero() && v.source.DeletingAt.IsZero()
}

// unfinished: the last fetch did not end well and is to be tried again.
func (v *view) unfinished() bool {
	return v.state.LastFailed && v.row.Status != pawl.StatusCancelled && v.row.Status != pawl.StatusCommitted
}

// lastRun is the instant that the schedule counts from. One that a person
// cancelled counts too: it is not begun again at once.
func (v *view) lastRun() time.Time {
	last := v.state.LastSuccessAt
	if last.IsZero() && v.row.ID == "" {
		last = v.dataAt
	}
	if v.row.Status == pawl.StatusCancelled && v.row.EndedAt.After(last) {
		last = v.row.EndedAt
	}
	return last
}

// exhausted reports whether the budget that belongs to the newest run is used
// up.
func (v *view) exhausted() bool {
	if v.row.Status == pawl.StatusCrashed {
		return run.CrashLoop(v.retry.Crashes)
	}
	return v.retry.Exhausted(v.def.Budget())
}

// desired is what a person wants of the source.
func (v *view) desired() run.Desired {
	if v.wanted() {
		return run.DesiredActive
	}
	return run.DesiredPaused
}
