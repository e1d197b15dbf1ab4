package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Notify sends a message to every process that listens on the channel. It is
// a hint and may be lost. On SQLite there is nobody else to tell.
func (db *DB) Notify(ctx context.Context, channel, message string) error {
	if db.sqliteFile != nil {
		if db.Shared() {
			return db.sqliteFile.sim.notify(ctx, message)
		}
		return nil
	}
	return db.wrap(db.hotExec(ctx, `select pg_notify($1, $2)`, channel, message))
}

// Link is a connection of its own that lasts. On SQLite there is none, and
// it does nothing.
type Link struct {
	db      *DB
	c       *pgx.Conn
	name    string // that it wants
	claimed bool
	sim     *simulatedLink // in tests; else nil
}

// OpenLink opens a link. It must be closed.
func (db *DB) OpenLink(ctx context.Context) (*Link, error) {
	if db.sqliteFile != nil {
		if db.Shared() {
			return db.sqliteFile.sim.link(db), nil
		}
		return &Link{db: db}, nil
	}
	c, err := pgx.ConnectConfig(ctx, db.pool.Config().ConnConfig)
	if err != nil {
		return nil, db.wrap(fmt.Errorf("open a link: %w", err))
	}
	s := &Link{db: db, c: c}
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		_ = c.PgConn().Conn().Close()
		return nil, errClosed()
	}
	db.links[s] = struct{}{}
	return s, nil
}

// Close ends the link. It may be called more than once.
func (s *Link) Close() {
	if s != nil && s.sim != nil {
		s.sim.cut()
		return
	}
	if s == nil || s.c == nil {
		return
	}
	s.db.mu.Lock()
	delete(s.db.links, s)
	s.db.mu.Unlock()
	// What is not read any more needs no goodbye, which could hang.
	_ = s.c.PgConn().Conn().Close()
}

// Claim makes the name this link's for as long as it lasts, and reports
// whether it could: no other living link has it.
func (s *Link) Claim(ctx context.Context, name string) (claimed bool, err error) {
	if s.sim != nil {
		return s.sim.claim(ctx, name)
	}
	if s.c == nil {
		return true, nil
	}
	s.name = name
	if err := s.c.QueryRow(ctx, lockName, name).Scan(&s.claimed); err != nil {
		return false, s.db.wrap(fmt.Errorf("claim a name: %w", err))
	}
	return s.claimed, nil
}

// Listen calls fn for every message on the channel until the context ends or
// the connection breaks, which is its error. ready is called once it listens.
// After every silence of this length it asks for a sign of life, and waits as
// long for it: a connection that is dead says nothing either. A name that could
// not be claimed is then tried again. On SQLite it waits for the context.
func (s *Link) Listen(ctx context.Context, channel string, silence time.Duration, ready func(), fn func(message string)) error {
	if s.sim != nil {
		return s.sim.listen(ctx, ready, fn)
	}
	if s.c == nil {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	if err := s.exec(ctx, silence, `listen `+pgx.Identifier{channel}.Sanitize()); err != nil {
		return err
	}
	ready()
	for {
		wait, cancel := context.WithTimeout(ctx, silence)
		n, err := s.c.WaitForNotification(wait)
		quiet := err != nil && errors.Is(wait.Err(), context.DeadlineExceeded)
		cancel()
		switch {
		case err == nil:
			fn(n.Payload)
		case ctx.Err() != nil || !quiet || s.c.IsClosed():
			return s.db.wrap(fmt.Errorf("listen: %w", err))
		case s.name != "" && !s.claimed:
			bound, cancel := context.WithTimeout(ctx, silence)
			_, err := s.Claim(bound, s.name)
			cancel()
			if err != nil {
				return err
			}
		default:
			if err := s.exec(ctx, silence, `select 1`); err != nil {
				return err
			}
		}
	}
}

func (s *Link) exec(ctx context.Context, patience time.Duration, sql string) error {
	bound, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := s.c.Exec(bound, sql)
	if err == nil {
		return nil
	}
	if ctx.Err() == nil && bound.Err() != nil {
		return ErrNoAnswer
	}
	return s.db.wrap(fmt.Errorf("listen: %w", err))
}
