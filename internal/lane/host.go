package lane

import (
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// Change is something that happened to a lane beside the steps of its runs.
type Change struct {
	Ref
	What   string // a verb in the past, such as paused, deployed or requested
	At     time.Time
	Run    string // that it is about; may be empty
	Detail any    // more for whoever follows, as an object in JSON; may be nil
}

// What notices tell.
const (
	NoticeAttention = "needs_attention"
	NoticeRecovered = "recovered"
	NoticeReminder  = "reminder" // it still needs attention
)

// Notice is something that people should know about a lane.
type Notice struct {
	Ref
	What  string
	Issue run.Issue // the cause
	Text  string    // a sentence for people
	RunID string    // may be empty
	At    time.Time // zero is the instant of the transaction
	// URL is where a person sees more. A path is taken below the server's
	// address; empty is that address itself.
	URL string
}

// Host is what a kind is given by the process that it is part of. Any field may
// be nil.
type Host struct {
	// Observe is told of changes after their commit; it must not block.
	Observe func(Change)
	// Workforce tells who there is to run things. Nil says that somebody is.
	Workforce func(ctx context.Context, tx *store.Tx) (run.Workforce, error)
	// Notify tells people something, in the transaction in which it becomes
	// true.
	Notify func(ctx context.Context, tx *store.Tx, n Notice) error
}

// WithDefaults is the host with something in every field.
func (h Host) WithDefaults() Host {
	if h.Observe == nil {
		h.Observe = func(Change) {}
	}
	if h.Workforce == nil {
		h.Workforce = func(context.Context, *store.Tx) (run.Workforce, error) { return run.Workforce{}, nil }
	}
	if h.Notify == nil {
		h.Notify = func(context.Context, *store.Tx, Notice) error { return nil }
	}
	return h
}

// Emit tells of a change after the commit.
func (h Host) Emit(tx *store.Tx, c Change) {
	c.At = tx.Now
	tx.AfterCommit(func() { h.Observe(c) })
}

// Rest is how a lane stands while no run of it is active.
type Rest struct {
	Lane  string // that of its runs
	State run.State
	// Attention is what a person is needed for, the zero one if for nothing. Nil
	// is what people know already: one who stops a lane, or lets it try again,
	// has not mended it yet.
	Attention *runstore.Attention
	Run       string // that it comes from; may be empty
}

// Settle writes how a lane stands, in the transaction that changes it, and tells
// people when they begin to be needed, for another cause, or are no longer
// (lesson 33). What is told is enqueued in the same transaction, so a crash
// neither loses nor repeats it.
func (h Host) Settle(ctx context.Context, tx *store.Tx, of Ref, r Rest) (told string, err error) {
	known, err := runstore.In(tx).GetLane(ctx, of.Kind, r.Lane)
	if err != nil {
		return "", pawl.IgnoreNotFound(err) // it is deleted, and what it began comes to its end
	}
	now := known
	now.State = string(r.State)
	if r.Attention != nil {
		now.Attention = *r.Attention
		now.Since = known.Since
	}
	same := known.Cause == now.Cause
	switch {
	case now.Cause == "":
		now.Attention = runstore.Attention{}
	case !same:
		now.Since = tx.Now
	}
	if now == known {
		return "", nil
	}
	if err := runstore.In(tx).SetLane(ctx, now); err != nil || same {
		return "", err
	}
	n := Notice{Ref: of, What: NoticeAttention, Issue: run.Issue(now.Issue), Text: now.Text, RunID: r.Run, At: tx.Now}
	if now.Cause == "" {
		n.What, n.Text = NoticeRecovered, "It works again."
	}
	return n.What, h.Notify(ctx, tx, n)
}
