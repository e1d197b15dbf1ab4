package prune

import (
	"context"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/retention"
	"github.com/pawlrun/pawl/internal/store/prunestore"
)

// idleRewalk is after which time idle runs are looked for among all: what a run
// did does not change, and those that were needed then go with the others.
const idleRewalk = 30 * 24 * time.Hour

// decideIdle removes runs that looked and found nothing to do. Those that others are
// folded into go by another walk.
func decideIdle(ctx context.Context, tx prunestore.Tx, p *pass, at span) (step, error) {
	return p.removeIdle(ctx, tx, at, prunestore.Tx.OldRuns, func(r prunestore.Run) bool { return r.Stretch.Count <= 1 })
}

// decideFolded removes runs that others are folded into when the last of them is as
// old as idle runs become.
func decideFolded(ctx context.Context, tx prunestore.Tx, p *pass, at span) (step, error) {
	return p.removeIdle(ctx, tx, at, prunestore.Tx.OldStretches, func(r prunestore.Run) bool {
		return r.Stretch.Count > 1 && r.Stretch.Through.Before(p.clock.Cut(p.policy.Of(laneOfRun(r))[retention.IdleRuns]))
	})
}

func (p *pass) removeIdle(ctx context.Context, tx prunestore.Tx, at span, read oldRuns, which func(prunestore.Run) bool) (step, error) {
	list, s, err := p.oldRuns(ctx, tx, at, read)
	if err != nil {
		return s, err
	}
	list = slices.DeleteFunc(list, func(r prunestore.Run) bool { return !which(r) || !at.takes(p, laneOfRun(r)) })
	idle, err := p.idleAmong(ctx, tx, at.of, list)
	if err != nil {
		return s, err
	}
	var gone []string
	for _, r := range list {
		if idle[r.ID] {
			gone = append(gone, r.ID)
			s.removed = append(s.removed, Removed{Kind: at.kind, Lane: laneOfRun(r), Rows: 1, Bytes: r.Bytes, Oldest: r.CreatedAt})
		}
	}
	if s.gone = gone; len(gone) > 0 {
		s.remove = func(ctx context.Context, tx prunestore.Tx) error { return removeRuns(ctx, tx, gone) }
	}
	return s, nil
}

// idleAmong finds which runs looked and found nothing to do, and are not needed:
// attempts that succeeded at once, took no event, published none and called nothing;
// fetches that brought nothing.
func (p *pass) idleAmong(ctx context.Context, tx prunestore.Tx, kind pawl.Kind, list []prunestore.Run) (map[string]bool, error) {
	var chains [][]prunestore.Run
	var ids []string
	for _, r := range list {
		if r.Status == pawl.StatusCommitted && r.RetryOf == "" && !r.Followed && p.remembers(r) {
			chains, ids = append(chains, []prunestore.Run{r}), append(ids, r.ID)
		}
	}
	did, err := p.usedRuns(ctx, tx, kind, chains)
	if err != nil {
		return nil, err
	}
	idle := map[string]bool{}
	if kind == pawl.KindSource {
		nothing, err := tx.FetchedNothing(ctx, ids)
		for _, id := range ids {
			idle[id] = nothing[id] && !did[id]
		}
		return idle, err
	}
	took, err := tx.Reserving(ctx, ids)
	for _, id := range ids {
		idle[id] = !took[id] && !did[id]
	}
	return idle, err
}

// remembers reports whether all events that a run published are still there: events
// are removed some time after they were consumed, and that was after it ended.
func (p *pass) remembers(r prunestore.Run) bool {
	age := p.policy.Of(laneOfRun(r))[retention.Events]
	return r.Kind != pawl.KindWorkflow || age == retention.Forever || r.EndedAt.After(p.clock.Cut(age))
}
