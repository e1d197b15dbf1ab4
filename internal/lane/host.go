package lane

import (
	"context"
	"time"

	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
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
	// Halt is what this process knows of the switch that stops all starts. Nil
	// says that there is none.
	Halt func() store.HaltMark
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
	if h.Halt == nil {
		h.Halt = func() store.HaltMark { return store.HaltMark{} }
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
