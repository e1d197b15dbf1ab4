package main

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	_ "modernc.org/sqlite"

	"github.com/pawlrun/pawl/bench/subject"
)

// queue is River on SQLite, tuned like River on PostgreSQL.
type queue struct {
	db     *sql.DB
	client *river.Client[*sql.Tx]
	// bulk only inserts: InsertManyFast of this release follows a nil pointer
	// on SQLite in a client that also works.
	bulk   *river.Client[*sql.Tx]
	handle atomic.Pointer[func(seq int)]
}

// args is the payload of every job; River wants its kind as a method.
type args subject.Payload

func (args) Kind() string { return "bench" }

// pragmas ask for full durability: every commit waits for the disk.
const pragmas = "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)&_txlock=immediate"

func (q *queue) Setup(ctx context.Context, cfg subject.Config) error {
	var err error
	if q.db, err = sql.Open("sqlite", "file:"+cfg.DSN+pragmas); err != nil {
		return fmt.Errorf("open file: %w", err)
	}
	// SQLite has one writer; more connections only wait for its lock.
	q.db.SetMaxOpenConns(1)
	driver := riversqlite.New(q.db)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return fmt.Errorf("prepare migrations: %w", err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[args]) error {
		(*q.handle.Load())(job.Args.Seq)
		return nil
	}))
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	if q.bulk, err = river.NewClient(driver, &river.Config{Logger: logger}); err != nil {
		return fmt.Errorf("create inserting client: %w", err)
	}
	q.client, err = river.NewClient(driver, &river.Config{
		FetchCooldown:     river.FetchCooldownMin,
		FetchPollInterval: 10 * time.Millisecond,
		JobTimeout:        -1,
		Logger:            logger,
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 500}},
		Workers:           workers,
	})
	return err
}

func (q *queue) EnqueueOne(ctx context.Context, j subject.Job) error {
	_, err := q.client.Insert(ctx, args(subject.NewPayload(j.Seq)), &river.InsertOpts{ScheduledAt: j.RunAt})
	return err
}

func (q *queue) EnqueueBulk(ctx context.Context, jobs []subject.Job) error {
	params := make([]river.InsertManyParams, len(jobs))
	for i, j := range jobs {
		params[i] = river.InsertManyParams{
			Args:       args(subject.NewPayload(j.Seq)),
			InsertOpts: &river.InsertOpts{ScheduledAt: j.RunAt},
		}
	}
	_, err := q.bulk.InsertManyFast(ctx, params)
	return err
}

func (q *queue) Start(ctx context.Context, handle func(seq int)) error {
	q.handle.Store(&handle)
	return q.client.Start(context.WithoutCancel(ctx))
}

func (q *queue) Finished(ctx context.Context) (bool, error) {
	var open bool
	err := q.db.QueryRowContext(ctx,
		`select exists (select 1 from river_job where state in ('available', 'running', 'retryable'))`).Scan(&open)
	return !open, err
}

func (q *queue) Stop(ctx context.Context) error { return q.client.Stop(ctx) }

func (q *queue) Cleanup(context.Context) error {
	if q.db == nil {
		return nil
	}
	return q.db.Close()
}
