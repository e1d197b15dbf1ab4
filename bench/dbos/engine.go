package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlrun/pawl/bench/subject/peer"
)

// A first guess, tried on a busy machine only.
const (
	atOnce      = 40 // workflows
	connections = 40
)

// engine is DBOS with one workflow. Workflows are started directly, without one
// of its queues, which would only add to the work.
type engine struct {
	pool     *pgxpool.Pool
	dbos     dbos.Context
	executed atomic.Int64
}

func open(ctx context.Context, database string) (peer.Engine, error) {
	cfg, err := pgxpool.ParseConfig(database)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = connections
	e := &engine{}
	if e.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, err
	}
	e.dbos, err = dbos.NewContext(ctx, dbos.Config{
		AppName: "pawl-bench", ApplicationVersion: "bench", SystemDBPool: e.pool, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		e.pool.Close()
		return nil, err
	}
	dbos.RegisterWorkflow(e.dbos, e.threeSteps)
	if err := e.dbos.Launch(); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

func (e *engine) threeSteps(ctx dbos.Context, input int) (int, error) {
	for range peer.Steps {
		var err error
		if input, err = dbos.RunAsStep(ctx, func(context.Context) (int, error) {
			e.executed.Add(1)
			return input, nil
		}); err != nil {
			return 0, err
		}
	}
	return input, nil
}

func (e *engine) Run(context.Context) error {
	handle, err := dbos.RunWorkflow(e.dbos, e.threeSteps, 1)
	if err != nil {
		return err
	}
	_, err = handle.GetResult()
	return err
}

func (e *engine) Done(ctx context.Context) (n int, err error) {
	err = e.pool.QueryRow(ctx, `select count(*) from dbos.workflow_status where status = 'SUCCESS'`).Scan(&n)
	return n, err
}

func (e *engine) Executed() int { return int(e.executed.Load()) }

func (e *engine) Close() {
	if err := e.dbos.Shutdown(e.dbos, 10*time.Second); err != nil {
		slog.Error("shut down", "error", err)
	}
	e.pool.Close()
}
