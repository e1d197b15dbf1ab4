package lane

import (
	"context"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// Around is what was at an instant: the runs on both sides of it.
type Around struct {
	At     time.Time
	Text   string        // in a sentence
	Before *runstore.Run // the newest that began then or before; nil if there is none
	After  *runstore.Run // the first that began after; nil if there is none
	Stood  *runstore.Run // the one that stood for it, in its last attempt; nil if none did, or slots tell it
}

// ReadAround reads the runs around an instant. The lane is that of the runs.
func ReadAround(ctx context.Context, tx *store.Tx, kind pawl.Kind, lane string, at time.Time) (*Around, error) {
	a := &Around{At: at}
	before, err := runstore.In(tx).RunAtOrBefore(ctx, kind, lane, at)
	if err == nil {
		a.Before = &before
	} else if !errors.Is(err, pawl.ErrNotFound) {
		return nil, err
	}
	if a.Before != nil && !a.active() && !a.Before.Covers(at) { // another handler's may
		folded, err := runstore.In(tx).FoldedAt(ctx, kind, lane, at)
		if err == nil {
			a.Before = &folded
		} else if !errors.Is(err, pawl.ErrNotFound) {
			return nil, err
		}
	}
	after, err := runstore.In(tx).RunAfter(ctx, kind, lane, at)
	if err == nil {
		a.After = &after
	} else if !errors.Is(err, pawl.ErrNotFound) {
		return nil, err
	}
	a.Text = a.sentence(tx.Now)
	return a, nil
}

// active reports whether the run before was active at the instant.
func (a *Around) active() bool { return a.Before.EndedAt.IsZero() || a.Before.EndedAt.After(a.At) }

// foldedWords says what a run stands for that others are folded into.
func foldedWords(r *runstore.Run) string {
	return fmt.Sprintf("the %d runs of %s from %s to %s, which found nothing to do and are kept as one", r.Count, r.Handler, pawl.FormatTime(r.CreatedAt), pawl.FormatTime(r.Through))
}

// endedWords says when the last run that a run stands for was over.
func endedWords(r *runstore.Run) string {
	if r.Count > 1 {
		return "began at " + pawl.FormatTime(r.Through)
	}
	return "ended at " + pawl.FormatTime(r.EndedAt)
}

func (a *Around) sentence(now time.Time) string {
	before, after := a.Before, a.After
	switch {
	case a.At.After(now):
		return "That time is in the future."
	case before != nil && before.Covers(a.At):
		return fmt.Sprintf("It was looking for something to do: run %s stands for %s.", before.ID, foldedWords(before))
	case before != nil && a.active():
		return fmt.Sprintf("A run of %s had started at %s and was still active.", before.Handler, pawl.FormatTime(before.CreatedAt))
	case before == nil && after == nil:
		return "It has never run."
	case before == nil:
		return fmt.Sprintf("It had not run yet; its first run started at %s.", pawl.FormatTime(after.CreatedAt))
	case after == nil:
		return fmt.Sprintf("Nothing ran; the previous run %s, and there was none after it.", endedWords(before))
	}
	return fmt.Sprintf("Nothing ran; the previous run %s, and the next started at %s.", endedWords(before), pawl.FormatTime(after.CreatedAt))
}
