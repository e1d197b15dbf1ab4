package runstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// RunFilter picks runs; empty fields pick all.
type RunFilter struct {
	Kind   pawl.Kind
	Lane   string
	Status pawl.Status

	// Schedule is the id of a schedule whose runs are meant, in all its lanes.
	Schedule string
	// Viewer is a user who does not see the runs of schedules of others.
	Viewer string
	// From and To bound when runs began, To excluded.
	From, To time.Time
}

// scheduleOfLane is the id of the schedule that a lane belongs to. It is spelled
// like the index runs_schedule.
const scheduleOfLane = "substr(lane, 1, 36)"

// strands are the parts of a list: one for each kind, because every index of
// runs begins with it.
func (f RunFilter) strands() (list []store.Strand) {
	kinds := []pawl.Kind{f.Kind}
	switch {
	case f.Schedule != "" && f.Kind != "" && f.Kind != pawl.KindSchedule:
		return nil
	case f.Schedule != "":
		kinds = []pawl.Kind{pawl.KindSchedule}
	case f.Kind == "":
		kinds = []pawl.Kind{pawl.KindWorkflow, pawl.KindSource, pawl.KindSchedule}
	}
	for _, kind := range kinds {
		list = append(list, f.strand(kind))
	}
	if f.Lane != "" && slices.Contains(kinds, pawl.KindWorkflow) { // and those of its partitions
		list = append(list, f.partStrand())
	}
	return list
}

// partStrand is the strand of the runs of the partitions of a workflow.
func (f RunFilter) partStrand() (s store.Strand) {
	s.Base.Add(isPart+" and "+baseOfPart+" = ?", f.Lane)
	if f.Status != "" {
		s.Look("status", string(f.Status))
	}
	f.addTimes(&s)
	return s
}

func (f RunFilter) addTimes(s *store.Strand) {
	if !f.From.IsZero() {
		s.Base.Add("created_at >= ?", store.Millis(f.From))
	}
	if !f.To.IsZero() {
		s.Base.Add("created_at < ?", store.Millis(f.To))
	}
}

func (f RunFilter) strand(kind pawl.Kind) (s store.Strand) {
	ofLane := f.Schedule != "" || f.Lane != "" // those are few; of all that ended somehow there are many
	if f.Schedule != "" {                      // the kind as in the index, which has no other
		s.Base.Add("kind = 'schedule' and "+scheduleOfLane+" = ?", f.Schedule)
	} else {
		s.Base.Add("kind = ?", kind)
	}
	if f.Lane != "" && f.Schedule == "" {
		s.Base.Add("lane = ?", f.Lane)
	}
	if f.Lane != "" && f.Schedule != "" {
		s.Look("lane", f.Lane)
	}
	switch {
	case f.Status == "":
	case ofLane:
		s.Look("status", string(f.Status))
	default:
		s.Base.Add("status = ?", string(f.Status))
	}
	if f.Viewer != "" && kind == pawl.KindSchedule {
		s.Rest.Add("exists (select 1 from schedules s where s.id = substr(runs.lane, 1, 36) and s.owner_user_id = ?)", f.Viewer)
	}
	f.addTimes(&s)
	return s
}

func runPlace(r Run) store.Place { return store.Place{CreatedAt: r.CreatedAt, ID: r.ID} }

// ListRuns reads up to limit runs, the newest first, and the cursor with which
// to go on, zero at the end. A page may end early; see PageThrough.
func (tx Tx) ListRuns(ctx context.Context, f RunFilter, before store.Place, limit int) (page []Run, next store.Place, err error) {
	return tx.runs(ctx, f, store.NewestFirst(), before, limit)
}

// RunsInOrder is ListRuns with the oldest first.
func (tx Tx) RunsInOrder(ctx context.Context, f RunFilter, after store.Place, limit int) (page []Run, next store.Place, err error) {
	return tx.runs(ctx, f, store.OldestFirst(), after, limit)
}

func (tx Tx) runs(ctx context.Context, f RunFilter, o store.Order, from store.Place, limit int) (page []Run, next store.Place, err error) {
	strands := f.strands()
	page, next, more, err := store.PageThrough(from, limit, runPlace, func(from store.Place, want int) (store.Window[Run, store.Place], error) {
		return store.MergeStrands(strands, o, want, runPlace, func(s store.Strand) (store.Window[Run, store.Place], error) {
			return tx.scanStrand(ctx, s, o, from, want)
		})
	})
	if err != nil {
		return nil, store.Place{}, fmt.Errorf("list runs: %w", err)
	}
	if !more {
		next = store.Place{}
	}
	return page, next, nil
}

func (tx Tx) scanStrand(ctx context.Context, s store.Strand, o store.Order, from store.Place, want int) (l store.Window[Run, store.Place], err error) {
	c, l, err := store.Narrow[Run](ctx, tx.Tx, "runs", s, o, from)
	if err != nil {
		return l, err
	}
	text := c.String()
	l.Rows, err = scanRuns(tx.Query(ctx, `select `+runColumns+` from runs where `+text+` order by `+o.SQL+c.Limit(want), c.Args...))
	return l, err
}

// ListRuns reads up to limit runs, the newest first, and the cursor with which
// to go on, zero at the end.
func (db DB) ListRuns(ctx context.Context, f RunFilter, before store.Place, limit int) (page []Run, next store.Place, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		page, next, err = In(tx).ListRuns(ctx, f, before, limit)
		return err
	})
	return page, next, err
}
