package prune

import (
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/retention"
	"github.com/pawlrun/pawl/internal/store/prunestore"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

const (
	foldAfter = time.Hour     // that idle runs are kept one by one
	foldGap   = 2 * time.Hour // a longer one ends a stretch
)

// handler is whose runs are folded into one.
type handler struct {
	lane retention.Lane
	name string
}

func handlerOf(r prunestore.Run) handler { return handler{ownLane(r), r.Handler} }

// foldWalk goes through the runs of all lanes that are an hour old. Those that are
// older than their lane keeps idle runs are left to the walk that removes them.
func (p *pass) foldWalk(kind pawl.Kind) walk {
	return walk{kind: retention.IdleRuns, part: "fold", all: true, of: kind, age: foldAfter, begin: p.clock.Cut(p.longest(retention.IdleRuns)), rewalk: idleRewalk, decide: decideFold}
}

// fold is what becomes of the runs of a step.
type fold struct {
	grown map[string]*prunestore.Growth // by the run that others are folded into
	order []string
	gone  []string
}

// decideFold folds runs that looked and found nothing to do: the first of a stretch
// stays, and stands for those after it. A stretch ends where a run of the same handler
// did something or is needed, where another script or another cause begins, after a
// gap, and after a day.
func decideFold(ctx context.Context, tx prunestore.Tx, p *pass, at span) (step, error) {
	list, s, err := p.oldRuns(ctx, tx, at, prunestore.Tx.OldRuns)
	if err != nil {
		return s, err
	}
	idle, err := p.foldable(ctx, tx, at.of, list)
	if err != nil {
		return s, err
	}
	if err := p.findOpen(ctx, tx, list, idle); err != nil {
		return s, err
	}
	f := fold{grown: map[string]*prunestore.Growth{}}
	for _, r := range list {
		h := handlerOf(r)
		switch into := p.open[h]; {
		case !idle[r.ID]:
			p.open[h] = prunestore.Run{}
		case r.Stretch.Count > 0: // a stretch of an earlier pass
			p.open[h] = r
		case continues(into, r):
			f.grow(&into, r.CreatedAt)
			p.open[h] = into
			f.gone = append(f.gone, r.ID)
			s.removed = append(s.removed, Removed{Kind: at.kind, Lane: laneOfRun(r), Rows: 1, Bytes: r.Bytes, Oldest: r.CreatedAt})
		default:
			f.grow(&r, r.CreatedAt)
			p.open[h] = r
		}
	}
	if s.gone = f.gone; len(f.order) > 0 {
		s.remove = func(ctx context.Context, tx prunestore.Tx) error { return p.writeFold(ctx, tx, f) }
	}
	return s, nil
}

// grow makes a run stand for one more, itself or another.
func (f *fold) grow(into *prunestore.Run, through time.Time) {
	g := f.grown[into.ID]
	if g == nil {
		g = &prunestore.Growth{ID: into.ID, Was: into.Stretch}
		f.grown[into.ID], f.order = g, append(f.order, into.ID)
	}
	into.Stretch = prunestore.Stretch{Through: through, Count: into.Stretch.Count + 1}
	g.Is = into.Stretch
}

// writeFold looks once more whether something refers to the runs, now that nobody else
// can change that.
func (p *pass) writeFold(ctx context.Context, tx prunestore.Tx, f fold) error {
	used, err := tx.RunsInUse(ctx, f.gone, nil)
	if err != nil || len(used) > 0 { // the next walk sees it too
		clear(p.open)
		return err
	}
	into := make([]prunestore.Growth, len(f.order))
	for i, id := range f.order {
		into[i] = *f.grown[id]
	}
	return tx.Fold(ctx, into, f.gone)
}

// continues reports whether a run is the next of a stretch.
func continues(into, r prunestore.Run) bool {
	return into.ID != "" && into.Version == r.Version && into.Trigger == r.Trigger &&
		r.CreatedAt.Sub(into.Stretch.Through) <= foldGap && r.CreatedAt.Sub(into.CreatedAt) < runstore.LongestStretch
}

// foldable finds which runs may be folded. Runs of lanes of which something is
// expected may not: that is judged by each. Neither may those that warned of
// something, nor those that are kept for ever or are about to be removed.
func (p *pass) foldable(ctx context.Context, tx prunestore.Tx, kind pawl.Kind, list []prunestore.Run) (map[string]bool, error) {
	var some []prunestore.Run
	var ids []string
	for _, r := range list {
		age := p.policy.Of(laneOfRun(r))[retention.IdleRuns]
		if age == retention.Forever || p.known[laneOfRun(r)].Expects || r.CreatedAt.Before(p.clock.Cut(age)) && r.Stretch.Count <= 1 {
			continue
		}
		some, ids = append(some, r), append(ids, r.ID)
	}
	idle, err := p.idleAmong(ctx, tx, kind, some)
	if err != nil {
		return nil, err
	}
	warned, err := tx.Warned(ctx, ids)
	for id := range warned {
		idle[id] = false
	}
	return idle, err
}

// findOpen finds the stretches that the first runs of handlers may continue, of
// handlers that this pass has not seen yet.
func (p *pass) findOpen(ctx context.Context, tx prunestore.Tx, list []prunestore.Run, idle map[string]bool) error {
	var ask []prunestore.Run
	for _, r := range list {
		h := handlerOf(r)
		if _, seen := p.open[h]; seen {
			continue
		}
		if p.open[h] = (prunestore.Run{}); idle[r.ID] && r.Stretch.Count == 0 {
			ask = append(ask, r)
		}
	}
	found, err := tx.LastStretches(ctx, ask, foldGap)
	for _, r := range ask {
		p.open[handlerOf(r)] = found[r.ID]
	}
	return err
}
