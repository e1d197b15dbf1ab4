package runstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// Attention is what a lane needs a person for.
type Attention struct {
	Kind  pawl.Kind
	Lane  string
	Cause string // run and issue
	Issue string
	Text  string
	Since time.Time
}

// GetAttention reads what a lane needs a person for; the zero Attention if
// nothing.
func (tx Tx) GetAttention(ctx context.Context, kind pawl.Kind, lane string) (Attention, error) {
	a := Attention{Kind: kind, Lane: lane}
	var since int64
	err := tx.QueryRow(ctx, `select cause, issue, text, since from attention where kind = $1 and lane = $2`, kind, lane).Scan(&a.Cause, &a.Issue, &a.Text, &since)
	if errors.Is(err, store.ErrNoRow) {
		return Attention{}, nil
	}
	if err != nil {
		return Attention{}, fmt.Errorf("read attention: %w", err)
	}
	a.Since = store.FromMillis(since)
	return a, nil
}

// SetAttention notes what a lane needs a person for; an empty cause forgets it.
// Without an instant it is since now.
func (tx Tx) SetAttention(ctx context.Context, a Attention) error {
	var err error
	if a.Since.IsZero() {
		a.Since = tx.Now
	}
	if a.Cause == "" {
		_, err = tx.Exec(ctx, `delete from attention where kind = $1 and lane = $2`, a.Kind, a.Lane)
	} else {
		_, err = tx.Exec(ctx, `insert into attention (kind, lane, cause, issue, text, since) values ($1, $2, $3, $4, $5, $6)
			on conflict (kind, lane) do update set cause = excluded.cause, issue = excluded.issue, text = excluded.text, since = excluded.since`,
			a.Kind, a.Lane, a.Cause, a.Issue, a.Text, store.Millis(a.Since))
	}
	if err != nil {
		return fmt.Errorf("note attention: %w", err)
	}
	return nil
}
