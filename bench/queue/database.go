package main

import (
	"context"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"
)

// cluster is the PostgreSQL server that all subjects share. Its connection is
// to a database that no subject uses, so it does not count in their statistics.
type cluster struct {
	admin    *pgx.Conn
	base     string
	counting bool // statements can be counted, not only transactions
	made     int
}

// openCluster connects. A borrowed server keeps its extensions and settings.
func openCluster(ctx context.Context, base string, borrowed bool) (*cluster, error) {
	admin, err := pgx.Connect(ctx, base)
	if err != nil {
		return nil, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	c := &cluster{admin: admin, base: base}
	if borrowed {
		return c, nil
	}
	if _, err = admin.Exec(ctx, `create extension pg_stat_statements`); err == nil {
		// Its view fails when the library was not loaded at the start.
		_, err = admin.Exec(ctx, `select pg_stat_statements_reset()`)
	}
	c.counting = err == nil
	return c, nil
}

func (c *cluster) close(ctx context.Context) error { return c.admin.Close(ctx) }

// setting reads a setting, such as server_version.
func (c *cluster) setting(ctx context.Context, name string) (string, error) {
	var value string
	err := c.admin.QueryRow(ctx, `select current_setting($1)`, name).Scan(&value)
	return value, err
}

// database is one subject's own, for one scenario.
type database struct {
	cluster *cluster
	name    string
	url     string
}

func (c *cluster) create(ctx context.Context) (*database, error) {
	c.made++
	name := fmt.Sprintf("pawl_bench_%d", c.made)
	for _, stmt := range []string{`drop database if exists ` + name + ` with (force)`, `create database ` + name} {
		if _, err := c.admin.Exec(ctx, stmt); err != nil {
			return nil, fmt.Errorf("create database: %w", err)
		}
	}
	u, err := url.Parse(c.base)
	if err != nil {
		return nil, fmt.Errorf("read URL: %w", err)
	}
	u.Path = "/" + name
	return &database{cluster: c, name: name, url: u.String()}, nil
}

func (d *database) drop(ctx context.Context) error {
	_, err := d.cluster.admin.Exec(ctx, `drop database if exists `+d.name+` with (force)`)
	return err
}

// settle gives every subject the same start: statistics of its tables and no
// checkpoint under way.
func (d *database) settle(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, d.url)
	if err != nil {
		return fmt.Errorf("connect to database: %w", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, `vacuum analyze`); err != nil {
		return fmt.Errorf("vacuum: %w", err)
	}
	// A borrowed server may not allow it.
	_, _ = conn.Exec(ctx, `checkpoint`)
	return nil
}

// count turns the counting of statements on or off for all sessions.
func (c *cluster) count(ctx context.Context, on bool) error {
	if !c.counting {
		return nil
	}
	what := "none"
	if on {
		what = "top"
	}
	for _, stmt := range []string{`alter system set pg_stat_statements.track = '` + what + `'`, `select pg_reload_conf()`} {
		if _, err := c.admin.Exec(ctx, stmt); err != nil {
			return fmt.Errorf("count statements: %w", err)
		}
	}
	return nil
}

// statements returns how many statements the database has run, or how many
// transactions where statements are not counted.
func (d *database) statements(ctx context.Context) (int64, error) {
	query := `select xact_commit + xact_rollback from pg_stat_database where datname = $1`
	if d.cluster.counting {
		query = `select coalesce(sum(calls), 0)::bigint from pg_stat_statements s
			join pg_database d on d.oid = s.dbid where d.datname = $1`
	}
	var n int64
	err := d.cluster.admin.QueryRow(ctx, query, d.name).Scan(&n)
	return n, err
}
