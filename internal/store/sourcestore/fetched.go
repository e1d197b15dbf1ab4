package sourcestore

import (
	"context"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// ShareNamed is ShareSource by the name.
func (tx Tx) ShareNamed(ctx context.Context, name string) (Source, error) {
	s, err := scanSource(tx.QueryRow(ctx, `select `+sourceColumns+` from source_definitions where name = $1`+tx.ForShare(), name))
	return s, noSource(err, name)
}

// LastFetched reads when the last whole fetch of a source was committed, zero if none
// was, and whether a person has paused it. It fails with pawl.ErrNotFound if there is no such source.
func (tx Tx) LastFetched(ctx context.Context, name string) (last time.Time, paused bool, err error) {
	var at, pausedAt *int64
	err = tx.QueryRow(ctx, `select s.last_success_at, d.paused_at from source_definitions d join source_state s on s.source_id = d.id where d.name = $1`, name).Scan(&at, &pausedAt)
	return store.FromNullMillis(at), pausedAt != nil, noSource(err, name)
}

// HoldFetched is LastFetched of a source by its id, and keeps every fetch of it from
// being committed until the transaction ends.
func (tx Tx) HoldFetched(ctx context.Context, id string) (time.Time, error) {
	var at *int64
	err := tx.QueryRow(ctx, `select last_success_at from source_state where source_id = $1`+tx.ForUpdate(), id).Scan(&at)
	return store.FromNullMillis(at), noSource(err, id)
}
