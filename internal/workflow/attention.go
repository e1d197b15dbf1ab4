package workflow

import (
	"context"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// updateAttention notes, whenever a lane comes to rest, whether it needs a person.
func (e *session) updateAttention(ctx context.Context, v *view) error {
	word, issue := v.status()
	if word == run.Stopped { // a person stopped it, which mends nothing and is no news to anybody
		return nil
	}
	now := runstore.Attention{Kind: pawl.KindWorkflow, Lane: v.workflow.Lane}
	now.Text = "It works again."
	if word == run.NeedsAttention {
		now.Cause, now.Issue, now.Text = v.row.ID+" "+string(issue), string(issue), v.sentence(issue)
	}
	if e.memory.attended && e.memory.cause == now.Cause {
		return nil
	}
	if !e.memory.attended { // a new owner looks what people know
		was, err := e.attention(ctx, v.workflow.Lane)
		if err != nil {
			return err
		}
		e.memory.attended, e.memory.cause = true, was.Cause
		if was.Cause == now.Cause {
			return nil
		}
	}
	return e.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Fence(ctx, e.claim.Fence()); err != nil {
			return err
		}
		ref := refOf(v.workflow.Name)
		told, err := e.cfg.UpdateAttention(ctx, tx, ref, now, v.row.ID)
		tx.AfterCommit(func() { e.memory.cause = now.Cause })
		if told != "" {
			e.cfg.Emit(tx, lane.Change{Ref: ref, What: told, Run: v.row.ID})
		}
		return err
	})
}

func (e *session) attention(ctx context.Context, lane string) (a runstore.Attention, err error) {
	err = e.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		a, err = runstore.In(tx).GetAttention(ctx, pawl.KindWorkflow, lane)
		return err
	})
	return a, err
}
