package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Notify sends a message to every process that listens on the channel. It is
// a hint and may be lost. On SQLite there is nobody else to tell.
func (db *DB) Notify(ctx context.Context, channel, message string) error {
	if db.lite != nil {
		return nil
	}
	_, err := db.hot.Exec(ctx, `select pg_notify($1, $2)`, channel, message)
	return db.wrap(err)
}

// Listen calls fn for every message on the channel until the context ends or
// the connection breaks, which is its error. ready is called once it listens.
// On SQLite it waits for the context.
func (db *DB) Listen(ctx context.Context, channel string, ready func(), fn func(message string)) error {
	if db.lite != nil {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	c, err := pgx.ConnectConfig(ctx, db.pool.Config().ConnConfig)
	if err != nil {
		return db.wrap(fmt.Errorf("listen: %w", err))
	}
	defer c.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it only listened
	if _, err := c.Exec(ctx, `listen `+pgx.Identifier{channel}.Sanitize()); err != nil {
		return db.wrap(fmt.Errorf("listen: %w", err))
	}
	ready()
	for {
		n, err := c.WaitForNotification(ctx)
		if err != nil {
			return db.wrap(fmt.Errorf("listen: %w", err))
		}
		fn(n.Payload)
	}
}
