// Package needtest has a source that lanes can need, for tests of the kinds whose
// lanes do. What it remembers are rows, so that a crash takes back what was not
// committed.
package needtest

import (
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/need"
	"github.com/pawlrun/pawl/internal/store"
)

// Source is the sources prices and rates.
type Source struct{}

// Make makes the sources, fetched at an instant.
func Make(ctx context.Context, tx *store.Tx, fetched time.Time) error {
	if _, err := tx.Exec(ctx, `create table fakes (name text primary key, fetched bigint, asks bigint not null default 0, asked bigint not null default 0, asked_by text, paused bigint)`); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `insert into fakes (name, fetched) values ('prices', $1), ('rates', $1)`, store.Millis(fetched))
	return err
}

// Fetch ends a fetch well.
func Fetch(ctx context.Context, tx *store.Tx, b *need.Book, name string) error {
	if _, err := tx.Exec(ctx, `update fakes set fetched = $2, asked = 0 where name = $1`, name, store.Millis(tx.Now)); err != nil {
		return err
	}
	return b.Fetched(ctx, tx, name)
}

// ShareNeeded implements need.Source.
func (Source) ShareNeeded(_ context.Context, _ *store.Tx, name string) error {
	if name != "prices" && name != "rates" {
		return pawl.ErrNotFound
	}
	return nil
}

// LastFetched implements need.Source.
func (Source) LastFetched(ctx context.Context, tx *store.Tx, name string) (last time.Time, paused bool, err error) {
	var at, pausedAt *int64
	err = tx.QueryRow(ctx, `select fetched, paused from fakes where name = $1`, name).Scan(&at, &pausedAt)
	return store.FromNullMillis(at), pausedAt != nil, err
}

// HoldFetched implements need.Source.
func (Source) HoldFetched(ctx context.Context, tx *store.Tx, name string) (time.Time, error) {
	var at *int64
	err := tx.QueryRow(ctx, `select fetched from fakes where name = $1`+tx.ForUpdate(), name).Scan(&at)
	return store.FromNullMillis(at), err
}

// AskToFetch implements need.Source. It counts those that ask for something new.
func (Source) AskToFetch(ctx context.Context, tx *store.Tx, name, by string) (string, error) {
	_, err := tx.Exec(ctx, `update fakes set asks = asks + 1, asked_by = $2, asked = 1 where name = $1 and asked = 0`, name, by)
	return "", err
}

// Names implements need.Source.
func (Source) Names(context.Context, *store.Tx, string, int) ([]string, error) {
	return []string{"prices", "rates"}, nil
}
