package workflow

import (
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
)

// Notice is something that people should be told.
type Notice struct {
	Workflow string
	What     string // needs_attention, recovered or reminder
	Issue    run.Issue
	Cause    string // the same cause is told once
	Text     string
	RunID    string
	At       time.Time
}

// What notices tell.
const (
	NoticeAttention = "needs_attention"
	NoticeRecovered = "recovered"
	NoticeReminder  = "reminder"
)

// attend notes, whenever a lane comes to rest, whether it needs a person, and
// tells people when that begins, has another cause, or ends (lesson 33). What is
// told is enqueued in the transaction that notes it, so a crash neither loses
// nor repeats it.
func (e *session) attend(ctx context.Context, v *view) error {
	word, issue := v.words()
	if word == run.Stopped { // a person stopped it, which mends nothing and is no news to anybody
		return nil
	}
	now := store.Attention{Kind: pawl.KindWorkflow, Lane: v.workflow.Lane}
	if word == run.NeedsAttention {
		now.Cause, now.Issue, now.Text = v.row.ID+" "+string(issue), string(issue), v.sentence(issue)
	}
	if e.lane.attended && e.lane.cause == now.Cause {
		return nil
	}
	if !e.lane.attended { // a new owner looks what people know
		was, err := e.attention(ctx, v.workflow.Lane)
		if err != nil {
			return err
		}
		e.lane.attended, e.lane.cause = true, was.Cause
		if was.Cause == now.Cause {
			return nil
		}
	}
	return e.tellAttention(ctx, v, now)
}

func (e *session) attention(ctx context.Context, lane string) (a store.Attention, err error) {
	err = e.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		a, err = tx.GetAttention(ctx, pawl.KindWorkflow, lane)
		return err
	})
	return a, err
}

func (e *session) tellAttention(ctx context.Context, v *view, now store.Attention) error {
	return e.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Fence(ctx, e.claim.Fence()); err != nil {
			return err
		}
		if err := tx.SetAttention(ctx, now); err != nil {
			return err
		}
		n := Notice{
			Workflow: v.workflow.Name, What: NoticeAttention, Issue: run.Issue(now.Issue), Cause: now.Cause, Text: now.Text, RunID: v.row.ID, At: tx.Now,
		}
		if now.Cause == "" {
			n.What, n.Cause, n.Text = NoticeRecovered, e.lane.cause, "It goes on."
		}
		tx.AfterCommit(func() { e.lane.cause = now.Cause })
		e.tell(tx, Change{What: n.What, Workflow: v.workflow.Name, Run: v.row.ID})
		return e.notify(ctx, tx, n)
	})
}

func (s *Service) notify(ctx context.Context, tx *store.Tx, n Notice) error {
	if s.cfg.Notify == nil {
		return nil
	}
	return s.cfg.Notify(ctx, tx, n)
}
