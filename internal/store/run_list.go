package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
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

// strand is a part of a list of runs that goes down one index: base is what the
// index answers, rest is looked for in it.
type strand struct{ base, rest conditions }

// strands are the parts of a list: one for each kind, because every index of
// runs begins with it.
func (f RunFilter) strands() (list []strand) {
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
	return list
}

func (f RunFilter) strand(kind pawl.Kind) (s strand) {
	status := &s.base
	if f.Schedule != "" { // the kind as in the index, which has no other
		s.base.add("kind = 'schedule' and "+scheduleOfLane+" = ?", f.Schedule)
		status = &s.rest
	} else {
		s.base.add("kind = ?", kind)
	}
	if f.Lane != "" && f.Schedule == "" {
		s.base.add("lane = ?", f.Lane)
		status = &s.rest
	}
	if f.Lane != "" && f.Schedule != "" {
		s.rest.add("lane = ?", f.Lane)
	}
	if f.Status != "" {
		status.add("status = ?", string(f.Status))
	}
	if f.Viewer != "" && kind == pawl.KindSchedule {
		s.rest.add("exists (select 1 from schedules s where s.id = substr(runs.lane, 1, 36) and s.owner_user_id = ?)", f.Viewer)
	}
	if !f.From.IsZero() {
		s.base.add("created_at >= ?", ms(f.From))
	}
	if !f.To.IsZero() {
		s.base.add("created_at < ?", ms(f.To))
	}
	return s
}

// RunCursor is how far a list of runs was read: the last one of a page.
type RunCursor struct {
	CreatedAt time.Time
	ID        string
}

func runPlace(r Run) RunCursor { return RunCursor{r.CreatedAt, r.ID} }

func scanRunPlace(row interface{ Scan(dest ...any) error }) (c RunCursor, err error) {
	var at int64
	err = row.Scan(&at, &c.ID)
	c.CreatedAt = fromMS(at)
	return c, err
}

func (c RunCursor) compare(d RunCursor) int {
	return cmp.Or(c.CreatedAt.Compare(d.CreatedAt), cmp.Compare(c.ID, d.ID))
}

// runOrder is a direction in which runs are listed.
type runOrder struct {
	order        string
	beyond, upTo string // comparisons of places
	sign         int
}

func newestFirst() runOrder { return runOrder{"created_at desc, id desc", "<", ">=", -1} }
func oldestFirst() runOrder { return runOrder{"created_at, id", ">", "<=", 1} }

// ListRuns reads up to limit runs, the newest first, and the cursor with which
// to go on, zero at the end. A page may end early; see pageThrough.
func (tx *Tx) ListRuns(ctx context.Context, f RunFilter, before RunCursor, limit int) (page []Run, next RunCursor, err error) {
	return tx.runs(ctx, f, newestFirst(), before, limit)
}

// RunsInOrder is ListRuns with the oldest first.
func (tx *Tx) RunsInOrder(ctx context.Context, f RunFilter, after RunCursor, limit int) (page []Run, next RunCursor, err error) {
	return tx.runs(ctx, f, oldestFirst(), after, limit)
}

func (tx *Tx) runs(ctx context.Context, f RunFilter, o runOrder, from RunCursor, limit int) (page []Run, next RunCursor, err error) {
	strands := f.strands()
	page, next, more, err := pageThrough(from, limit, runPlace, func(from RunCursor, want int) (look[Run, RunCursor], error) {
		return lookAtStrands(strands, o, want, runPlace, func(s strand) (look[Run, RunCursor], error) {
			return tx.lookAtStrand(ctx, s, o, from, want)
		})
	})
	if err != nil {
		return nil, RunCursor{}, fmt.Errorf("list runs: %w", err)
	}
	if !more {
		next = RunCursor{}
	}
	return page, next, nil
}

// lookAtStrands reads a window of every strand and puts them together, up to
// where the first of the windows ends.
func lookAtStrands[T any](strands []strand, o runOrder, want int, placeOf func(T) RunCursor, lookAt func(strand) (look[T, RunCursor], error)) (all look[T, RunCursor], err error) {
	for _, s := range strands {
		l, err := lookAt(s)
		if err != nil {
			return all, err
		}
		all.rows = append(all.rows, l.rows...)
		if l.cut && (!all.cut || o.sign*l.floor.compare(all.floor) < 0) {
			all.cut, all.floor = true, l.floor
		}
	}
	slices.SortFunc(all.rows, func(a, b T) int { return o.sign * placeOf(a).compare(placeOf(b)) })
	if all.cut {
		all.rows = slices.DeleteFunc(all.rows, func(r T) bool { return o.sign*placeOf(r).compare(all.floor) > 0 })
	}
	if len(all.rows) > want {
		all.rows = all.rows[:want]
	}
	return all, nil
}

func (tx *Tx) lookAtStrand(ctx context.Context, s strand, o runOrder, from RunCursor, want int) (l look[Run, RunCursor], err error) {
	c, l, err := narrowed[Run](ctx, tx, "runs", s, o, from)
	if err != nil {
		return l, err
	}
	text := c.String()
	l.rows, err = scanRuns(tx.Query(ctx, `select `+runColumns+` from runs where `+text+` order by `+o.order+c.limit(want), c.args...))
	return l, err
}

// narrowed are the conditions of a window of a strand.
func narrowed[T any](ctx context.Context, tx *Tx, table string, s strand, o runOrder, from RunCursor) (c *conditions, l look[T, RunCursor], err error) {
	c = s.base.clone()
	if from.ID != "" {
		c.add("(created_at, id) "+o.beyond+" (?, ?)", ms(from.CreatedAt), from.ID)
	}
	if len(s.rest.texts) > 0 {
		if l.floor, l.cut, err = windowEnd(ctx, tx, "created_at, id", table, o.order, c, scanRunPlace); err != nil {
			return nil, l, err
		}
		c.join(&s.rest)
		if l.cut {
			c.add("(created_at, id) "+o.upTo+" (?, ?)", ms(l.floor.CreatedAt), l.floor.ID)
		}
	}
	return c, l, nil
}

// ListRuns reads up to limit runs, the newest first, and the cursor with which
// to go on, zero at the end.
func (db *DB) ListRuns(ctx context.Context, f RunFilter, before RunCursor, limit int) (page []Run, next RunCursor, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		page, next, err = tx.ListRuns(ctx, f, before, limit)
		return err
	})
	return page, next, err
}
