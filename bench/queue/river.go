package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/pawlrun/pawl/bench/subject"
)

// riverQueue is River on PostgreSQL. River's open-source edition has no
// sequences, so a lane is a queue of its own with one worker.
type riverQueue struct {
	tuned  bool
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
	handle atomic.Pointer[func(seq int)]
}

// riverArgs is the payload of every job; River wants its kind as a method.
type riverArgs subject.Payload

func (riverArgs) Kind() string { return "bench" }

func (q *riverQueue) Setup(ctx context.Context, cfg subject.Config) error {
	poolConfig, err := pgxpool.ParseConfig(cfg.DSN)
	if err != nil {
		return fmt.Errorf("parse URL: %w", err)
	}
	poolConfig.MaxConns = 20
	if q.pool, err = pgxpool.NewWithConfig(ctx, poolConfig); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	driver := riverpgxv5.New(q.pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return fmt.Errorf("prepare migrations: %w", err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[riverArgs]) error {
		(*q.handle.Load())(job.Args.Seq)
		return nil
	}))
	q.client, err = river.NewClient(driver, q.config(cfg.Lanes, cfg.PerLane, workers))
	return err
}

// config keeps River's defaults, or takes what was fastest on two cores.
func (q *riverQueue) config(lanes, perLane int, workers *river.Workers) *river.Config {
	c := &river.Config{
		Logger:  slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}},
		Workers: workers,
	}
	if q.tuned {
		c.FetchCooldown = river.FetchCooldownMin
		c.FetchPollInterval = 5 * time.Millisecond
		c.JobTimeout = -1
		c.Queues[river.QueueDefault] = river.QueueConfig{MaxWorkers: 2000}
	}
	if lanes > 0 {
		c.Queues = riverLanes(lanes, max(1, perLane))
		// 2,000 queues that poll every 5 ms would be 400,000 polls a second.
		c.FetchPollInterval = time.Second
	}
	return c
}

func riverLanes(lanes, each int) map[string]river.QueueConfig {
	queues := map[string]river.QueueConfig{subject.HotLane: {MaxWorkers: each}}
	for i := range lanes {
		queues[subject.LaneName(i)] = river.QueueConfig{MaxWorkers: each}
	}
	return queues
}

func riverOpts(j subject.Job) *river.InsertOpts {
	return &river.InsertOpts{Queue: j.Lane, ScheduledAt: j.RunAt}
}

func (q *riverQueue) EnqueueOne(ctx context.Context, j subject.Job) error {
	_, err := q.client.Insert(ctx, riverArgs(subject.NewPayload(j.Seq)), riverOpts(j))
	return err
}

func (q *riverQueue) EnqueueBulk(ctx context.Context, jobs []subject.Job) error {
	params := make([]river.InsertManyParams, len(jobs))
	for i, j := range jobs {
		params[i] = river.InsertManyParams{Args: riverArgs(subject.NewPayload(j.Seq)), InsertOpts: riverOpts(j)}
	}
	_, err := q.client.InsertManyFast(ctx, params)
	return err
}

func (q *riverQueue) Start(ctx context.Context, handle func(seq int)) error {
	q.handle.Store(&handle)
	return q.client.Start(context.WithoutCancel(ctx))
}

func (q *riverQueue) Finished(ctx context.Context) (bool, error) {
	var open bool
	err := q.pool.QueryRow(ctx,
		`select exists (select 1 from river_job where state in ('available', 'running', 'retryable'))`).Scan(&open)
	return !open, err
}

func (q *riverQueue) Stop(ctx context.Context) error { return q.client.Stop(ctx) }

func (q *riverQueue) Cleanup(context.Context) error {
	if q.pool != nil {
		q.pool.Close()
	}
	return nil
}

func riverContenders() []contender {
	return []contender{
		{
			name: "river-tuned", title: "River, tuned", store: onPostgres,
			about: "2,000 workers, fetch cooldown 1 ms, poll every 5 ms, no job timeout; a lane is a queue with one worker",
			inGo:  func() subject.Subject { return &riverQueue{tuned: true} },
		},
		{
			name: "river-default", title: "River, default", store: onPostgres,
			about:   "100 workers, all else as it comes",
			noLanes: "as the tuned one: a lane is a queue with one worker",
			inGo:    func() subject.Subject { return &riverQueue{} },
		},
	}
}
