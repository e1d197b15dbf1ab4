package prune

import (
	"context"
	"strconv"

	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/prunestore"
)

// decideEvents leaves events that nobody has taken yet, those of runs that are
// open, and those that good runs published.
func decideEvents(ctx context.Context, tx prunestore.Tx, p *pass, at span) (s step, err error) {
	list, err := eventstore.In(tx.Tx).OldEvents(ctx, at.id(p), at.from.At, at.cut, at.limit)
	if err != nil {
		return s, err
	}
	if s.end = len(list) < at.limit; !s.end {
		last := list[len(list)-1].ID
		s.next = prunestore.Place{At: last, ID: strconv.FormatInt(last, 10)}
	}
	var holders, makers []string
	for _, e := range list {
		makers = append(makers, e.CreatedBy)
		if e.HeldBy != "" {
			holders = append(holders, e.HeldBy)
		}
	}
	open, err := openAmong(ctx, tx, holders)
	if err != nil {
		return s, err
	}
	handlers, err := tx.HandlersOf(ctx, makers)
	if err != nil {
		return s, err
	}
	type topic struct{ workflow, name string }
	var order []topic
	gone := map[topic][]int64{}
	for _, e := range list {
		lane := p.laneOf(at.of, e.WorkflowID)
		if !e.Ended() || !e.UpdatedAt.Before(at.cut) || open[e.HeldBy] || !at.takes(p, lane) {
			continue
		}
		needed, err := p.needs(ctx, tx.Tx, lane, handlers[e.CreatedBy], e.CreatedBy)
		if err != nil {
			return s, err
		}
		if needed {
			continue
		}
		t := topic{e.WorkflowID, e.Topic}
		if gone[t] == nil {
			order = append(order, t)
		}
		gone[t] = append(gone[t], e.ID)
		s.gone = append(s.gone, strconv.FormatInt(e.ID, 10))
		s.removed = append(s.removed, Removed{Kind: at.kind, Lane: lane, Rows: 1, Bytes: e.Bytes, Oldest: e.CreatedAt})
	}
	if len(order) == 0 {
		return s, nil
	}
	s.remove = func(ctx context.Context, tx prunestore.Tx) error {
		for _, t := range order {
			if _, err := eventstore.In(tx.Tx).DeleteEvents(ctx, t.workflow, t.name, gone[t]); err != nil {
				return err
			}
		}
		return nil
	}
	return s, nil
}
