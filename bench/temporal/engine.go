package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.temporal.io/server/temporal"

	"github.com/pawlrun/pawl/bench/subject/peer"
)

// A first guess, tried on a busy machine only.
const (
	atOnce                = 20 // workflows
	connections           = 40
	visibilityConnections = 10
	shards                = 16 // of history
	partitions            = 1  // of a task queue
	workflowPollers       = 16
	activityPollers       = 16
)

const taskQueue = "bench"

// engine is a Temporal server, and a worker with one workflow and one activity.
type engine struct {
	database *pgx.Conn
	server   temporal.Server
	client   client.Client
	worker   worker.Worker
	begun    atomic.Int64
	executed atomic.Int64
}

func open(ctx context.Context, database string) (_ peer.Engine, err error) {
	e := &engine{}
	defer func() {
		if err != nil {
			e.Close()
		}
	}()
	if e.database, err = pgx.Connect(ctx, database); err != nil {
		return nil, err
	}
	s, err := newStores(database)
	if err != nil {
		return nil, err
	}
	var frontend string
	if e.server, frontend, err = startServer(s); err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	e.client, err = client.DialContext(ctx, client.Options{
		HostPort: frontend, Namespace: namespace, Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	e.worker = worker.New(e.client, taskQueue, worker.Options{
		MaxConcurrentWorkflowTaskPollers: workflowPollers, MaxConcurrentActivityTaskPollers: activityPollers,
	})
	e.worker.RegisterWorkflow(e.ThreeActivities)
	e.worker.RegisterActivity(e.Activity)
	return e, e.worker.Start()
}

// ThreeActivities is the workflow.
func (e *engine) ThreeActivities(ctx workflow.Context, input int) (int, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	for range peer.Steps {
		if err := workflow.ExecuteActivity(ctx, e.Activity, input).Get(ctx, &input); err != nil {
			return 0, err
		}
	}
	return input, nil
}

// Activity does nothing.
func (e *engine) Activity(_ context.Context, input int) (int, error) {
	e.executed.Add(1)
	return input, nil
}

func (e *engine) Run(ctx context.Context) error {
	run, err := e.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: fmt.Sprint("bench-", e.begun.Add(1)), TaskQueue: taskQueue, EnableEagerStart: true,
	}, e.ThreeActivities, 1)
	if err != nil {
		return err
	}
	return run.Get(ctx, nil)
}

func (e *engine) Done(ctx context.Context) (n int, err error) {
	// State 3 is completed, status 2 that it was not in vain.
	err = e.database.QueryRow(ctx, `select count(*) from current_executions where workflow_id like 'bench-%' and state = 3 and status = 2`).Scan(&n)
	return n, err
}

func (e *engine) Executed() int { return int(e.executed.Load()) }

func (e *engine) Close() {
	if e.worker != nil {
		e.worker.Stop()
	}
	if e.client != nil {
		e.client.Close()
	}
	if e.server != nil {
		if err := e.server.Stop(); err != nil {
			slog.Error("stop server", "error", err)
		}
	}
	if e.database != nil {
		_ = e.database.Close(context.Background())
	}
}
