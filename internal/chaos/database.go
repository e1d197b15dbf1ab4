//go:build linux

package main

import (
	"context"
	"fmt"
	"net/url"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// pair is a PostgreSQL and its synchronous standby.
type pair struct {
	mu      sync.Mutex // held by whoever does something to them
	servers [2]*pgtest.Cluster
	primary int // guarded by mu
	name    string
}

func newPair(ctx context.Context) (*pair, error) {
	first, err := pgtest.NewCluster(ctx)
	if err != nil {
		return nil, err
	}
	second, err := first.NewStandby(ctx)
	if err != nil {
		_ = first.Close()
		return nil, err
	}
	return &pair{servers: [2]*pgtest.Cluster{first, second}, name: "postgres"}, nil
}

func (p *pair) close() {
	for _, s := range p.servers {
		_ = s.Close()
	}
}

// url of a database at the given hosts.
func (p *pair) url(name, hosts string) string {
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable", hosts, url.PathEscape(name))
}

// connect reaches the primary without a proxy.
func (p *pair) connect(ctx context.Context) (*pgx.Conn, error) {
	return pgx.Connect(ctx, p.url(p.name, p.servers[0].Host()+","+p.servers[1].Host())+"&target_session_attrs=read-write&connect_timeout=3")
}

// query reads rows into a slice.
func query[T any](ctx context.Context, p *pair, sql string, args ...any) ([]T, error) {
	conn, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it was read
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[T])
}

func (p *pair) exec(ctx context.Context, sql string, args ...any) error {
	conn, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it was done
	_, err = conn.Exec(ctx, sql, args...)
	return err
}
