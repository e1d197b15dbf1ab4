package prune

import (
	"context"

	"github.com/pawlrun/pawl/internal/retention"
	"github.com/pawlrun/pawl/internal/store/prunestore"
)

// pick makes a step of rows that nothing refers to: those that are this walk's and
// that nobody needs.
func (p *pass) pick(at span, list []prunestore.Old, needed func(prunestore.Old) bool) (s step, gone []prunestore.Old) {
	if s.end = len(list) < at.limit; !s.end {
		s.next = list[len(list)-1].Place
	}
	for _, o := range list {
		lane := retention.Lane{}
		if o.Lane != "" {
			lane = p.laneOf(at.of, o.Lane)
		}
		if o.Keep || !at.takes(p, lane) || needed != nil && needed(o) {
			continue
		}
		gone = append(gone, o)
		s.removed = append(s.removed, Removed{Kind: at.kind, Lane: lane, Rows: 1, Bytes: o.Bytes, Oldest: o.At})
	}
	return s, gone
}

type remover func(tx prunestore.Tx, ctx context.Context, list []prunestore.Old) (int64, error)

// tells notes which rows go, for walks that ask whether they are there.
func (s step) tells(gone []prunestore.Old) step {
	for _, o := range gone {
		s.gone = append(s.gone, o.ID)
	}
	return s
}

// by makes the step remove rows, if there are any.
func (s step) by(remove remover, gone []prunestore.Old) step {
	if len(gone) > 0 {
		s.remove = func(ctx context.Context, tx prunestore.Tx) error {
			_, err := remove(tx, ctx, gone)
			return err
		}
	}
	return s
}

func decideJobs(ctx context.Context, tx prunestore.Tx, p *pass, at span) (step, error) {
	list, err := tx.OldJobs(ctx, at.from, at.cut, at.limit)
	s, gone := p.pick(at, list, nil)
	return s.by(prunestore.Tx.DeleteJobs, gone), err
}

func decideAudit(ctx context.Context, tx prunestore.Tx, p *pass, at span) (step, error) {
	list, err := tx.OldAudit(ctx, at.from, at.cut, at.limit)
	s, gone := p.pick(at, list, nil)
	return s.by(prunestore.Tx.DeleteAudit, gone), err
}

func decideRejects(ctx context.Context, tx prunestore.Tx, p *pass, at span) (step, error) {
	list, err := tx.OldRejects(ctx, at.only.Lane, at.from, at.cut, at.limit)
	s, gone := p.pick(at, list, nil)
	return s.by(prunestore.Tx.DeleteRejects, gone), err
}

func decideSlots(ctx context.Context, tx prunestore.Tx, p *pass, at span) (step, error) {
	list, err := tx.OldSlots(ctx, at.only.Lane, at.from, at.cut, at.limit)
	s, gone := p.pick(at, list, nil)
	return s.by(prunestore.Tx.DeleteSlots, gone), err
}

// decideReceipts and decideMutations go from part to part, which says where the
// end is.
func decideReceipts(ctx context.Context, tx prunestore.Tx, p *pass, at span) (step, error) {
	list, next, err := tx.OldReceipts(ctx, at.from, at.cut, at.limit)
	s, gone := p.pick(at, list, nil)
	s.next, s.end = next, next.Part == ""
	return s.tells(gone).by(prunestore.Tx.DeleteReceipts, gone), err
}

// decideMutations leaves calls of runs that are open, and of those that a proposal
// is tried with.
func decideMutations(ctx context.Context, tx prunestore.Tx, p *pass, at span) (step, error) {
	list, next, err := tx.OldMutations(ctx, at.id(p), at.from, at.cut, at.limit)
	if err != nil {
		return step{}, err
	}
	runs := make([]string, len(list))
	for i, o := range list {
		runs[i] = o.Run
	}
	open, err := openAmong(ctx, tx, runs)
	if err != nil {
		return step{}, err
	}
	handlers, err := tx.HandlersOf(ctx, runs)
	if err != nil {
		return step{}, err
	}
	needed := func(o prunestore.Old) bool {
		needs, failed := p.needs(ctx, tx.Tx, p.laneOf(at.of, o.Lane), handlers[o.Run], o.Run)
		if failed != nil {
			err = failed
		}
		return needs || failed != nil || open[o.Run]
	}
	s, gone := p.pick(at, list, needed)
	s.next, s.end = next, next.Part == ""
	return s.tells(gone).by(func(tx prunestore.Tx, ctx context.Context, list []prunestore.Old) (int64, error) {
		ids := make([]string, len(list))
		for i, o := range list {
			ids[i] = o.ID
		}
		return tx.DeleteMutations(ctx, ids)
	}, gone), err
}

// decideContents removes answers that nothing refers to, and that their lane has
// not been given for as long as it keeps them.
func decideContents(ctx context.Context, tx prunestore.Tx, p *pass, at span) (step, error) {
	list, err := tx.OldContents(ctx, at.from, at.cut, at.limit)
	for i := range list {
		if p.o.Dry { // the reads that refer to it are there still
			list[i].Keep = p.given[list[i].ID]
		}
	}
	s, gone := p.pick(at, list, func(o prunestore.Old) bool {
		return !o.At.Before(p.clock.Cut(p.policy.Of(p.laneOf(at.of, o.Lane))[retention.Reads]))
	})
	return s.by(func(tx prunestore.Tx, ctx context.Context, list []prunestore.Old) (int64, error) {
		return int64(len(list)), tx.DeleteContents(ctx, list, at.cut)
	}, gone), err
}
