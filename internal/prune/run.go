package prune

import (
	"context"
	"maps"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/retention"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/prunestore"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// oldRuns reads runs of a kind, or of a lane of it, behind a place.
type oldRuns func(tx prunestore.Tx, ctx context.Context, kind pawl.Kind, lane string, after prunestore.Place, cut time.Time, limit int) ([]prunestore.Run, error)

// oldRuns reads the runs of a step, and where it ends.
func (p *pass) oldRuns(ctx context.Context, tx prunestore.Tx, at span, read oldRuns) (list []prunestore.Run, s step, err error) {
	list, err = read(tx, ctx, at.of, at.only.Lane, at.from, at.cut, at.limit)
	if s.end = len(list) < at.limit; !s.end {
		s.next = list[len(list)-1].Place()
	}
	return slices.DeleteFunc(list, func(r prunestore.Run) bool { return p.gone[r.ID] }), s, err
}

// isOpen reports whether something is still expected of a run itself.
func isOpen(r prunestore.Run) bool {
	return run.IsOpen(run.Run{Type: r.Type, Status: r.Status}, r.Followed)
}

// openAmong finds which of some runs are open.
func openAmong(ctx context.Context, tx prunestore.Tx, ids []string) (map[string]bool, error) {
	list, err := tx.Unended(ctx, ids)
	out := map[string]bool{}
	for _, r := range list {
		out[r.ID] = isOpen(r)
	}
	return out, err
}

// laneOfRun is the lane that a run belongs to as people know it: that of the workflow
// for one of a partition.
func laneOfRun(r prunestore.Run) retention.Lane {
	if r.Kind == pawl.KindWorkflow {
		base, _ := runstore.BaseLane(r.Lane)
		return retention.Lane{Kind: r.Kind, Lane: base}
	}
	return ownLane(r)
}

// ownLane is the lane in which a run is one after the other with those beside it.
func ownLane(r prunestore.Run) retention.Lane { return retention.Lane{Kind: r.Kind, Lane: r.Lane} }

func decideReads(ctx context.Context, tx prunestore.Tx, p *pass, at span) (step, error) {
	s, kept, err := p.decideParts(ctx, tx, at, prunestore.Tx.SizeOfReads, prunestore.Tx.DeleteReads)
	if err != nil || !p.o.Dry {
		return s, err
	}
	given, err := tx.ContentsOf(ctx, kept)
	maps.Copy(p.given, given)
	return s, err
}

func decideLogs(ctx context.Context, tx prunestore.Tx, p *pass, at span) (step, error) {
	s, _, err := p.decideParts(ctx, tx, at, prunestore.Tx.SizeOfLogs, prunestore.Tx.DeleteLogs)
	return s, err
}

// decideParts decides about something that runs have: it goes before they do,
// unless they are needed or somebody may still go on with them. It tells which of its
// runs keep theirs.
func (p *pass) decideParts(ctx context.Context, tx prunestore.Tx, at span,
	measure func(tx prunestore.Tx, ctx context.Context, ids []string) (map[string]prunestore.Size, error),
	remove func(tx prunestore.Tx, ctx context.Context, ids []string) (int64, error),
) (s step, kept []string, err error) {
	list, s, err := p.oldRuns(ctx, tx, at, prunestore.Tx.OldRuns)
	if err != nil {
		return s, nil, err
	}
	var ids []string
	for _, r := range list {
		if !at.takes(p, laneOfRun(r)) {
			continue
		}
		needed, err := p.needsParts(ctx, tx, r)
		if err != nil {
			return s, nil, err
		}
		if needed {
			kept = append(kept, r.ID)
		} else {
			ids = append(ids, r.ID)
		}
	}
	sizes, err := measure(tx, ctx, ids)
	if err != nil {
		return s, nil, err
	}
	var gone []string
	for _, r := range list {
		if size, ok := sizes[r.ID]; ok {
			gone = append(gone, r.ID)
			s.removed = append(s.removed, Removed{Kind: at.kind, Lane: laneOfRun(r), Rows: size.Rows, Bytes: size.Bytes, Oldest: r.CreatedAt})
		}
	}
	if len(gone) > 0 {
		s.remove = func(ctx context.Context, tx prunestore.Tx) error {
			_, err := remove(tx, ctx, gone)
			return err
		}
	}
	return s, kept, nil
}

// needsParts reports whether a run still needs what it read and logged.
func (p *pass) needsParts(ctx context.Context, tx prunestore.Tx, r prunestore.Run) (bool, error) {
	f, err := p.facts(ctx, tx.Tx, ownLane(r))
	// Of a chain that is not at its end the newest attempt is that of its lane.
	if err != nil || isOpen(r) || r.Followed && isOpen(f.newest) {
		return true, err
	}
	return p.needs(ctx, tx.Tx, ownLane(r), r.Handler, r.ID)
}

// mostAttempts bounds how many attempts of chains one transaction removes.
const mostAttempts = 1000

// decideRuns removes chains of attempts as a whole: when the last one is old and
// nothing more is expected of it, and nothing refers to any of them.
func decideRuns(ctx context.Context, tx prunestore.Tx, p *pass, at span) (step, error) {
	list, s, err := p.oldRuns(ctx, tx, at, prunestore.Tx.OldRuns)
	if err != nil {
		return s, err
	}
	last := slices.DeleteFunc(list, func(r prunestore.Run) bool { return r.Followed || isOpen(r) || !at.takes(p, laneOfRun(r)) })
	chains, err := chainsOf(ctx, tx, last)
	if err != nil {
		return s, err
	}
	used, err := p.usedRuns(ctx, tx, at.of, chains)
	if err != nil {
		return s, err
	}
	var gone []string
	for _, chain := range chains {
		if slices.ContainsFunc(chain, func(r prunestore.Run) bool { return used[r.ID] }) {
			continue
		}
		if len(gone) > 0 && len(gone)+len(chain) > mostAttempts {
			break // the next walk takes it
		}
		if len(chain) > mostAttempts {
			chain = chain[len(chain)-mostAttempts:] // its oldest attempts
		}
		for _, r := range chain {
			gone = append(gone, r.ID)
			s.removed = append(s.removed, Removed{Kind: at.kind, Lane: laneOfRun(r), Rows: 1, Bytes: r.Bytes, Oldest: r.CreatedAt})
		}
	}
	if len(gone) > 0 {
		s.remove = func(ctx context.Context, tx prunestore.Tx) error { return removeRuns(ctx, tx, gone) }
	}
	return s, nil
}

// removeRuns looks once more whether something refers to the runs, now that nobody
// else can change that.
func removeRuns(ctx context.Context, tx prunestore.Tx, ids []string) error {
	used, err := tx.RunsInUse(ctx, ids, nil)
	if err != nil || len(used) > 0 {
		return err // the next walk sees it too
	}
	_, err = tx.DeleteRuns(ctx, ids)
	return err
}

// chainsOf reads the attempts before each of some runs, which are the first of
// their chain.
func chainsOf(ctx context.Context, tx prunestore.Tx, last []prunestore.Run) ([][]prunestore.Run, error) {
	chains, at := make([][]prunestore.Run, len(last)), map[string]int{} // by the attempt that comes next
	for i, r := range last {
		chains[i] = []prunestore.Run{r}
		if r.RetryOf != "" {
			at[r.RetryOf] = i
		}
	}
	for list := last; len(at) > 0; {
		var err error
		if list, err = tx.Before(ctx, list); err != nil {
			return nil, err
		}
		next := map[string]int{}
		for _, r := range list {
			i := at[r.ID]
			chains[i] = append(chains[i], r)
			if r.RetryOf != "" {
				next[r.RetryOf] = i
			}
		}
		at = next
	}
	return chains, nil
}

// usedRuns finds which runs of some chains must stay.
func (p *pass) usedRuns(ctx context.Context, tx prunestore.Tx, kind pawl.Kind, chains [][]prunestore.Run) (map[string]bool, error) {
	var ids []string
	byLane, handlers := map[string][]eventstore.Span{}, map[string]string{}
	for _, chain := range chains {
		for _, r := range chain {
			ids, handlers[r.ID] = append(ids, r.ID), r.Handler
			byLane[r.Lane] = append(byLane[r.Lane], eventstore.Span{RunID: r.ID, From: r.CreatedAt, To: r.EndedAt})
		}
	}
	used, err := tx.RunsInUse(ctx, ids, p.gone)
	if err != nil {
		return nil, err
	}
	for lane, spans := range byLane {
		for _, s := range spans {
			if used[s.RunID] {
				continue
			}
			if used[s.RunID], err = p.needs(ctx, tx.Tx, retention.Lane{Kind: kind, Lane: lane}, handlers[s.RunID], s.RunID); err != nil {
				return nil, err
			}
		}
		if kind != pawl.KindWorkflow {
			continue
		}
		by, err := eventstore.In(tx.Tx).RunsOfEvents(ctx, lane, spans, p.gone)
		if err != nil {
			return nil, err
		}
		for id := range by {
			used[id] = true
		}
	}
	return used, nil
}
