package source

import (
	"context"
	"encoding/json"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/quota"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/source/table"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
)

// Details are everything about one source.
type Details struct {
	lane.Lane
	Source     sourcestore.Source
	Definition spec.Definition
	State      sourcestore.SourceState
	Retries    int // failures of this period
	NextRetry  time.Time
	Quota      quota.Allowance
	Newest     runstore.Run // zero if it never ran
	Last       sourcestore.SourceRun
	Recent     []sourcestore.SourceRun // the newest first
	Gates      []lane.Gate
	DueAt      time.Time
}

// recentRuns is how many runs the details tell of.
const recentRuns = 20

// Kind implements lane.Kind.
func (s *Service) Kind() pawl.Kind { return pawl.KindSource }

// List implements lane.Kind.
func (s *Service) List(ctx context.Context, q lane.Query) (page []lane.Lane, next lane.Place, err error) {
	list, next, err := s.ListDetails(ctx, q)
	for i := range list {
		page = append(page, list[i].Lane)
	}
	return page, next, err
}

// Names implements lane.Kind.
func (s *Service) Names(ctx context.Context, tx *store.Tx, _ string, limit int) (names []string, err error) {
	list, err := sourcestore.In(tx).ListSources(ctx, "", limit)
	for i := range list {
		names = append(names, list[i].Name)
	}
	return names, err
}

// ListDetails is List with the details, but for the recent runs.
func (s *Service) ListDetails(ctx context.Context, q lane.Query) (page []Details, next lane.Place, err error) {
	var views []*view
	var last []sourcestore.SourceRun
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		views, last, next = nil, nil, lane.Place{}
		there, err := s.cfg.Workforce(ctx, tx)
		if err != nil {
			return err
		}
		list, err := sourcestore.In(tx).FindSources(ctx, q.Stored(there), q.After.Name, q.Limit+1)
		if err != nil {
			return err
		}
		if len(list) > q.Limit {
			list = list[:q.Limit]
			next = refOf(list[q.Limit-1].Name).Place()
		}
		views, last = make([]*view, len(list)), make([]sourcestore.SourceRun, len(list))
		return tx.Each(ctx, len(list), func(ctx context.Context, tx *store.Tx, i int) error {
			v, err := s.loadFrom(ctx, tx, list[i])
			if err != nil {
				return err
			}
			v.there = there
			runs, err := sourcestore.In(tx).LatestSourceRuns(ctx, list[i].ID, 1)
			views[i], last[i] = v, firstOf(runs)
			return err
		})
	})
	if err != nil {
		return nil, next, err
	}
	books := map[string]*view{} // by host: many sources call one
	for i, v := range views {
		if known := books[v.def.Host()]; known != nil {
			v.quotaOpen, v.quotaUntil, v.allowance = known.quotaOpen, known.quotaUntil, known.allowance
		} else if err := s.askBook(ctx, v); err != nil {
			return nil, next, err
		}
		books[v.def.Host()] = v
		if d := v.details(last[i]); q.Fits(&d.Lane) {
			page = append(page, d)
		}
	}
	return page, next, nil
}

// Due implements lane.Kind, by name, with what definitions and states say. It
// reads all of them at once and does not ask the book of calls.
func (s *Service) Due(ctx context.Context, _ string, _ time.Time, limit int) (list []lane.Due, more bool, err error) {
	var rows []sourcestore.SourceTimes
	var views []*view
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		views = nil
		if rows, err = sourcestore.In(tx).WantedSources(ctx, limit+1); err != nil {
			return err
		}
		if more = len(rows) > limit; more {
			rows = rows[:limit]
		}
		for _, row := range rows {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			v := &view{now: tx.Now, source: row.Source, state: row.SourceState}
			if err := json.Unmarshal(row.Definition, &v.def); err == nil { // one that is no longer valid does not run either
				if err := s.loadTimes(ctx, tx, v); err != nil {
					return err
				}
			}
			views = append(views, v)
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	for i, v := range views {
		at := v.dueAt()
		if v.times.Kind() == "" || !v.wanted() || at.IsZero() { // it has ended, if that is zero
			continue
		}
		if rows[i].NextRetryAt.After(at) {
			at = rows[i].NextRetryAt
		}
		list = append(list, v.due(at))
	}
	return list, more, nil
}

// Repeats implements lane.Kind.
func (s *Service) Repeats(ctx context.Context, tx *store.Tx, l *lane.Lane) ([]lane.Due, error) {
	src, err := sourcestore.In(tx).SourceByName(ctx, l.Name)
	if err != nil {
		return nil, err
	}
	v := &view{now: tx.Now, source: src}
	if v.def, err = spec.FromJSON(src.Definition); err != nil {
		return nil, nil //nolint:nilerr // one that is no longer valid does not run either
	}
	if v.state, err = sourcestore.In(tx).GetSourceState(ctx, src.ID); err != nil {
		return nil, err
	}
	if err := s.loadTimes(ctx, tx, v); err != nil || v.times.Kind() == "" {
		return nil, err
	}
	return []lane.Due{v.due(l.NextAt)}, nil
}

// LaneOf implements lane.Kind.
func (s *Service) LaneOf(r *runstore.Run) lane.Ref { return refOf(r.Lane) }

// Find implements lane.Kind. The runs of one that is gone are still there.
func (s *Service) Find(_ context.Context, _ *store.Tx, _ lane.Viewer, name string) (runstore.RunFilter, bool, error) {
	return runstore.RunFilter{Kind: pawl.KindSource, Lane: name}, true, nil
}

// OwnerOf implements lane.Kind. Sources are everybody's.
func (s *Service) OwnerOf(context.Context, *store.Tx, string) (string, error) { return "", nil }

// Actions implements lane.Kind: nobody is asked anything by a run of a source.
func (s *Service) Actions(ctx context.Context, tx *store.Tx, r *runstore.Run) ([]lane.Action, error) {
	view, err := s.ledger.View(ctx, tx, *r)
	if err != nil || !run.CanCancel(view) {
		return nil, err
	}
	newest, err := runstore.In(tx).NewestRun(ctx, r.Kind, r.Lane)
	if err != nil || newest.ID != r.ID {
		return nil, err
	}
	return []lane.Action{{Name: "cancel"}}, nil
}

func firstOf(runs []sourcestore.SourceRun) sourcestore.SourceRun {
	if len(runs) == 0 {
		return sourcestore.SourceRun{}
	}
	return runs[0]
}

func (v *view) details(last sourcestore.SourceRun) Details {
	return Details{
		Lane: v.lane(last), Source: v.source, Definition: v.def, State: v.state, Retries: v.retry.Count, NextRetry: v.retry.NextAt, Quota: v.allowance,
		Newest: v.row, Last: last, Gates: v.evaluate().gates, DueAt: v.dueAt(),
	}
}

// Describe reads everything about a source.
func (s *Service) Describe(ctx context.Context, name string) (d Details, err error) {
	var recent []sourcestore.SourceRun
	v, err := s.loadForPeople(ctx, name, func(ctx context.Context, tx *store.Tx, v *view) (err error) {
		recent, err = sourcestore.In(tx).LatestSourceRuns(ctx, v.source.ID, recentRuns)
		return err
	})
	if err != nil {
		return Details{}, err
	}
	d = v.details(firstOf(recent))
	d.Recent = recent
	return d, nil
}

// Why implements lane.Kind.
func (s *Service) Why(ctx context.Context, _ lane.Viewer, name string, at time.Time) (lane.Why, error) {
	var y lane.Why
	var last []sourcestore.SourceRun
	v, err := s.loadForPeople(ctx, name, func(ctx context.Context, tx *store.Tx, v *view) (err error) {
		if last, err = sourcestore.In(tx).LatestSourceRuns(ctx, v.source.ID, 1); err != nil {
			return err
		}
		if !at.IsZero() {
			if y.Around, err = lane.ReadAround(ctx, tx, pawl.KindSource, name, at); err != nil {
				return err
			}
			repeats, err := s.Repeats(ctx, tx, &lane.Lane{Ref: refOf(name)})
			if err == nil {
				err = y.Around.TellStanding(ctx, tx, lane.Standing{Kind: pawl.KindSource, Lane: name, Name: name, Made: v.source.CreatedAt, Repeats: repeats})
			}
			if err != nil {
				return err
			}
		}
		y.Recent, _, err = runstore.In(tx).ListRuns(ctx, runstore.RunFilter{Kind: pawl.KindSource, Lane: name}, store.Place{}, 10)
		return err
	})
	if err != nil {
		return lane.Why{}, err
	}
	d := v.evaluate()
	if v.paused() { // told to people alone: a job of its own ends it
		d.gates[0].Until = v.known.Pause.Until
	}
	y.At, y.Gates, y.Next = v.now, d.gates, v.nextWords(d)
	y.Lane = v.lane(firstOf(last))
	return y, nil
}

func (v *view) nextWords(d verdict) string {
	quota := v.gateQuota()
	switch {
	case v.there.Missing && v.wanted():
		return "It does nothing until a worker is running."
	case v.there.Halt != nil && v.wanted() && v.row.Status != pawl.StatusActive:
		return v.there.Halt.NextWords()
	case v.row.Status == pawl.StatusActive:
		return "It is fetching now, and checks again when the run has ended."
	case d.open:
		return "It runs as soon as a worker is free."
	case v.paused():
		return lane.PausedNext(v.known.Pause)
	case d.at.IsZero():
		return "It does nothing until that changes."
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
		src, err := sourcestore.In(tx).SourceByName(ctx, name)
		if err != nil {
			return err
		}
		v, err := s.loadFrom(ctx, tx, src)
		if err != nil {
			return err
		}
		if v.def.Write.Connection != "" {
			return &pawl.Error{Code: pawl.CodeInvalid, Op: "read rows", Msg: "the rows of this source are in another database", Hint: "Query the database of connection " + v.def.Write.Connection + "."}
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
