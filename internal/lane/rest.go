package lane

import (
	"context"

	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// Rest is how a lane stands while no run of it is active.
type Rest struct {
	State run.State
	// Attention is what a person is needed for, one without a cause if for nothing;
	// its text is then what people are told, or empty. Nil
	// is what people know already: one who stops a lane, or lets it try again,
	// has not mended it yet.
	Attention *runstore.Attention
	Run       string // that it comes from; may be empty
}

// RestOf is the rest of a lane by its state and issue, with the cause and the
// sentence that people are told if they are needed. Only one that is idle works
// again.
func RestOf(state run.State, issue run.Issue, cause, text, runID string) Rest {
	r := Rest{State: state, Run: runID}
	switch {
	case state == run.NeedsAttention:
		r.Attention = &runstore.Attention{Cause: cause, Issue: string(issue), Text: text}
	case state == run.Idle:
		r.Attention = &runstore.Attention{}
	case state == run.Running && issue == run.IssueNone: // a run is active, which its own row tells
		r.State = run.Idle
	}
	return r
}

// SaidBy reports whether the row of the lane says so already.
func (r Rest) SaidBy(row runstore.Lane) bool {
	return row.State == string(stateOf(r.State, row)) && (r.Attention == nil || r.Attention.Cause == row.Cause)
}

// Settle writes how a lane stands, in the transaction that changes it and that
// read its row, and tells people when they begin to be needed, for another cause,
// or are no longer (lesson 33). What is told is enqueued in the same transaction,
// so a crash neither loses nor repeats it.
func (h Host) Settle(ctx context.Context, tx *store.Tx, of Ref, known runstore.Lane, r Rest) (told string, err error) {
	now := known
	now.State = string(stateOf(r.State, known))
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
		if r.Attention != nil && r.Attention.Text != "" {
			n.Text = r.Attention.Text
		}
	}
	return n.What, h.Notify(ctx, tx, n)
}
