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

// decideIdle removes runs that looked and found nothing to do: attempts that
// succeeded at once, took no event, published none and called nothing; fetches that
// brought nothing.
func decideIdle(ctx context.Context, tx prunestore.Tx, p *pass, at span) (step, error) {
	list, s, err := at.oldRuns(ctx, tx)
	if err != nil {
		return s, err
	}
	list = slices.DeleteFunc(list, func(r prunestore.Run) bool {
		return r.Status != pawl.StatusCommitted || r.RetryOf != "" || r.Followed || !at.takes(p, laneOfRun(r)) || !p.remembers(r)
	})
	chains, ids := make([][]prunestore.Run, len(list)), make([]string, len(list))
	for i, r := range list {
		chains[i], ids[i] = []prunestore.Run{r}, r.ID
	}
	used, err := p.usedRuns(ctx, tx, at.of, chains)
	if err != nil {
		return s, err
	}
	did := used
	if at.of == pawl.KindSource {
		nothing, err := tx.FetchedNothing(ctx, ids)
		if err != nil {
			return s, err
		}
		for _, id := range ids {
			did[id] = did[id] || !nothing[id]
		}
	} else {
		took, err := tx.Reserving(ctx, ids)
		if err != nil {
			return s, err
		}
		for id := range took {
			did[id] = true
		}
	}
	var gone []string
	for _, r := range list {
		if !did[r.ID] {
			gone = append(gone, r.ID)
			s.removed = append(s.removed, Removed{Kind: at.kind, Lane: laneOfRun(r), Rows: 1, Bytes: r.Bytes, Oldest: r.CreatedAt})
		}
	}
	if len(gone) > 0 {
		s.remove = func(ctx context.Context, tx prunestore.Tx) error { return removeRuns(ctx, tx, gone) }
	}
	return s, nil
}

// remembers reports whether all events that a run published are still there: events
// are removed some time after they were consumed, and that was after it ended.
func (p *pass) remembers(r prunestore.Run) bool {
	age := p.policy.Of(laneOfRun(r))[retention.Events]
	return r.Kind != pawl.KindWorkflow || age == retention.Forever || r.EndedAt.After(p.clock.Cut(age))
}
