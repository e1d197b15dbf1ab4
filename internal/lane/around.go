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
	after, err := runstore.In(tx).RunAfter(ctx, kind, lane, at)
	if err == nil {
		a.After = &after
	} else if !errors.Is(err, pawl.ErrNotFound) {
		return nil, err
	}
	a.Text = a.sentence(tx.Now)
	return a, nil
}

func (a *Around) sentence(now time.Time) string {
	before, after := a.Before, a.After
	switch {
	case a.At.After(now):
		return "That time is in the future."
	case before != nil && (before.EndedAt.IsZero() || before.EndedAt.After(a.At)):
		return fmt.Sprintf("A run of %s had started at %s and was still active.", before.Handler, pawl.FormatTime(before.CreatedAt))
	case before == nil && after == nil:
		return "It has never run."
	case before == nil:
		return fmt.Sprintf("It had not run yet; its first run started at %s.", pawl.FormatTime(after.CreatedAt))
	case after == nil:
		return fmt.Sprintf("Nothing ran; the previous run ended at %s, and there was none after it.", pawl.FormatTime(before.EndedAt))
	}
	return fmt.Sprintf("Nothing ran; the previous run ended at %s, and the next started at %s.", pawl.FormatTime(before.EndedAt), pawl.FormatTime(after.CreatedAt))
}
