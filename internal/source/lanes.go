package source

import (
	"context"
	"encoding/json"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/quota"
	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/source/table"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/when"
)

// Details are everything about one source.
type Details struct {
	Lane
	Source     store.Source
	Definition spec.Definition
	State      store.SourceState
	Retries    int // failures of this period
	NextRetry  time.Time
	Quota      quota.Allowance
	Newest     store.Run // zero if it never ran
	Last       store.SourceRun
	Recent     []store.SourceRun // the newest first
	Gates      []Gate
	DueAt      time.Time
}

// recentRuns is how many runs the details tell of.
const recentRuns = 20

// Lanes reads up to limit sources by name, those after the given one, and the
// name with which to go on, empty at the end.
func (s *Service) Lanes(ctx context.Context, after string, limit int) (page []Lane, next string, err error) {
	list, next, err := s.List(ctx, after, limit)
	for _, d := range list {
		page = append(page, d.Lane)
	}
	return page, next, err
}

// List is Lanes with the details, but for the recent runs.
func (s *Service) List(ctx context.Context, after string, limit int) (page []Details, next string, err error) {
	var views []*view
	var last []store.SourceRun
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		views, last, next = nil, nil, ""
		list, err := tx.ListSources(ctx, after, limit+1)
		if err != nil {
			return err
		}
		if len(list) > limit {
			list = list[:limit]
			next = list[limit-1].Name
		}
		there, err := s.cfg.Workforce(ctx, tx)
		if err != nil {
			return err
		}
		for _, src := range list {
			v, err := s.viewOf(ctx, tx, src)
			if err != nil {
				return err
			}
			v.there = there
			runs, err := tx.LatestSourceRuns(ctx, src.ID, 1)
			if err != nil {
				return err
			}
			views, last = append(views, v), append(last, firstOf(runs))
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	for i, v := range views {
		if err := s.askBook(ctx, v); err != nil {
			return nil, "", err
		}
		page = append(page, v.details(last[i]))
	}
	return page, next, nil
}

// DueSource is a source that comes due by itself.
type DueSource struct {
	Name     string
	Schedule when.Schedule
	NextAt   time.Time // zero: it runs now
}

// Due reads up to limit sources by name that run without a person, with what
// their definitions and states say, and whether there are more. It reads all of
// them at once and does not ask the book of calls.
func (s *Service) Due(ctx context.Context, limit int) (list []DueSource, more bool, err error) {
	var rows []store.SourceTimes
	var now time.Time
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		now = tx.Now
		rows, err = tx.WantedSources(ctx, limit+1)
		return err
	})
	if more = len(rows) > limit; more {
		rows = rows[:limit]
	}
	for _, row := range rows {
		if ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}
		v := &view{now: now, source: row.Source, state: row.SourceState}
		if err := json.Unmarshal(row.Definition, &v.def); err != nil {
			continue // one that is no longer valid does not run either
		}
		schedule, err := v.def.Schedule.When()
		if err != nil || !v.wanted() {
			continue
		}
		at := v.dueAt()
		if row.NextRetryAt.After(at) {
			at = row.NextRetryAt
		}
		list = append(list, DueSource{row.Name, schedule, at})
	}
	return list, more, err
}

func firstOf(runs []store.SourceRun) store.SourceRun {
	if len(runs) == 0 {
		return store.SourceRun{}
	}
	return runs[0]
}

func (v *view) details(last store.SourceRun) Details {
	return Details{
		Lane: v.lane(last), Source: v.source, Definition: v.def, State: v.state, Retries: v.retry.Count, NextRetry: v.retry.NextAt, Quota: v.allowance,
		Newest: v.row, Last: last, Gates: v.evaluate().gates, DueAt: v.dueAt(),
	}
}

// Describe reads everything about a source.
func (s *Service) Describe(ctx context.Context, name string) (d Details, err error) {
	var recent []store.SourceRun
	v, err := s.lookForPeople(ctx, name, func(ctx context.Context, tx *store.Tx, v *view) (err error) {
		recent, err = tx.LatestSourceRuns(ctx, v.source.ID, recentRuns)
		return err
	})
	if err != nil {
		return Details{}, err
	}
	d = v.details(firstOf(recent))
	d.Recent = recent
	return d, nil
}

// Why tells what a source does next and why, and why it does not do more.
type Why struct {
	Lane
	At     time.Time
	Next   string
	Gates  []Gate
	Recent []store.Run // the newest first
}

// Why reads why a source runs, does not run, or waits.
func (s *Service) Why(ctx context.Context, name string) (Why, error) {
	var y Why
	var last []store.SourceRun
	v, err := s.lookForPeople(ctx, name, func(ctx context.Context, tx *store.Tx, v *view) (err error) {
		if last, err = tx.LatestSourceRuns(ctx, v.source.ID, 1); err != nil {
			return err
		}
		y.Recent, _, err = tx.ListRuns(ctx, store.RunFilter{Kind: pawl.KindSource, Lane: name}, store.Place{}, 10)
		return err
	})
	if err != nil {
		return Why{}, err
	}
	d := v.evaluate()
	y.At, y.Gates, y.Next = v.now, d.gates, v.nextWords(d)
	y.Lane = v.lane(firstOf(last))
	return y, nil
}

func (v *view) nextWords(d verdict) string {
	quota := v.gateQuota()
	switch {
	case v.there.Missing && v.wanted():
		return "It does nothing until a worker is there."
	case v.row.Status == pawl.StatusActive:
		return "It fetches now, and looks again when the run has ended."
	case d.open:
		return "It runs as soon as a worker is free."
	case d.at.IsZero():
		return "It does nothing by itself until that changes."
	}
	if !quota.Open && d.at.Equal(quota.Until) {
		return "It runs at " + pawl.FormatTime(d.at) + ", when " + v.def.Host() + " may be called again."
	}
	return "It runs at " + pawl.FormatTime(d.at) + "."
}

// Rows reads up to limit rows of a source, the newest first, and the cursor
// with which to go on.
func (s *Service) Rows(ctx context.Context, name, cursor string, limit int) (rows []map[string]any, next string, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		src, err := tx.SourceByName(ctx, name)
		if err != nil {
			return err
		}
		v, err := s.viewOf(ctx, tx, src)
		if err != nil {
			return err
		}
		if v.def.Write.Connection != "" {
			return &pawl.Error{Code: pawl.CodeInvalid, Op: "read rows", Msg: "the rows of this source are in another database", Hint: "Ask the database of connection " + v.def.Write.Connection + "."}
		}
		plan, err := table.New(s.db.Name(), v.def)
		if err != nil {
			return err
		}
		rows, next, err = plan.Sample(ctx, tx, name, cursor, limit)
		return err
	})
	return rows, next, err
}
