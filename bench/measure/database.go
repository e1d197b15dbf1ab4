package measure

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// Place is where the databases of a run are made.
type Place struct {
	Name     string // SQLite or PostgreSQL
	Postgres string // URL of the server; empty: SQLite
	Dir      string // of SQLite files and of other files; empty: that of temporary files
}

var databases atomic.Int64 //nolint:gochecknoglobals // names of scratch databases

// Database makes an empty database and returns its URL. clean removes it.
func (p Place) Database(ctx context.Context) (at string, clean func(), err error) {
	if p.Postgres == "" {
		folder, clean, err := p.Folder()
		return "sqlite:" + filepath.Join(folder, "pawl.db"), clean, err
	}
	name := fmt.Sprintf("pawl_bench_%d_%d", os.Getpid(), databases.Add(1))
	if err := p.exec(ctx, "create database "+name); err != nil {
		return "", nil, err
	}
	u, err := url.Parse(p.Postgres)
	if err != nil {
		return "", nil, err
	}
	u.Path = "/" + name
	return u.String(), func() { _ = p.exec(context.WithoutCancel(ctx), "drop database "+name+" with (force)") }, nil
}

// Folder makes an empty folder. clean removes it.
func (p Place) Folder() (dir string, clean func(), err error) {
	dir, err = os.MkdirTemp(p.Dir, "pawl-bench-")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

func (p Place) exec(ctx context.Context, sql string) error {
	c, err := pgx.Connect(ctx, p.Postgres)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx)) //nolint:errcheck // a scratch database
	_, err = c.Exec(ctx, sql)
	return err
}

// statisticsDelay is how late PostgreSQL may tell of what its connections did: one
// that falls idle reports after ten seconds.
const statisticsDelay = 12 * time.Second

// Rest waits until what was done so far is counted by Transactions.
func (p Place) Rest() {
	if p.Postgres != "" {
		time.Sleep(statisticsDelay)
	}
}

// Transactions is how many PostgreSQL has ended in a database; zero for SQLite.
func (p Place) Transactions(ctx context.Context, at string) (n int64, err error) {
	if p.Postgres == "" {
		return 0, nil
	}
	u, err := url.Parse(at)
	if err != nil {
		return 0, err
	}
	c, err := pgx.Connect(ctx, p.Postgres) // another database, so that it does not count itself
	if err != nil {
		return 0, err
	}
	defer c.Close(context.WithoutCancel(ctx)) //nolint:errcheck // only read from
	err = c.QueryRow(ctx, `select xact_commit + xact_rollback from pg_stat_database where datname = $1`, u.Path[1:]).Scan(&n)
	return n, err
}
