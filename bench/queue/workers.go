package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlrun/pawl/bench/subject"
	"github.com/pawlrun/pawl/client"
	pawlserver "github.com/pawlrun/pawl/internal/server"
)

// pawlWorkers is the name of the contender whose workers are over HTTP.
const pawlWorkers = "pawl-workers"

func workersContenders() []contender {
	return []contender{
		{
			name: pawlWorkers, title: "Pawl's workers", store: onPostgres, pawl: true,
			about: "a server as it comes, and two `client.Worker` of 500 jobs each that reach it over HTTP on loopback; jobs are enqueued over HTTP, too",
			inGo:  func() subject.Subject { return &workersQueue{} },
		},
		{
			name: pawlWorkers + "-sqlite", title: "Pawl's workers", store: onSQLite, pawl: true, about: "the same",
			inGo: func() subject.Subject { return &workersQueue{sqlite: true} },
		},
	}
}

// workersQueue is a whole server, with clients that only know its address.
type workersQueue struct {
	sqlite bool
	folder string
	client *client.Client
	pool   *pgxpool.Pool
	ended  chan error
	end    context.CancelFunc
	stop   context.CancelFunc
	done   sync.WaitGroup
	failed chan error
}

const (
	workersTask  = "bench"
	workersCount = 2
	workersEach  = 500
)

func (q *workersQueue) Setup(ctx context.Context, cfg subject.Config) (err error) {
	debug.SetGCPercent(200) // as pawl serve does
	if q.folder, err = os.MkdirTemp("", "pawl-bench-workers-"); err != nil {
		return err
	}
	c := pawlserver.Default()
	c.Addr, c.Logs, c.LogLevel, c.NoCanary = "127.0.0.1:0", io.Discard, "error", true
	c.Database, c.Data = cfg.DSN, q.folder
	if q.sqlite {
		c.Database = "sqlite:" + cfg.DSN
	}
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	ready := make(chan pawlserver.Started, 1)
	q.ended, q.end = make(chan error, 1), end
	go func() { q.ended <- pawlserver.Run(running, c, func(s pawlserver.Started) { ready <- s }) }()
	var at pawlserver.Started
	select {
	case at = <-ready:
	case err := <-q.ended:
		q.ended <- err
		return fmt.Errorf("the server ended: %w", err)
	}
	token, err := os.ReadFile(at.AdminTokenPath)
	if err != nil {
		return err
	}
	if q.client, err = client.New(client.Config{URL: at.URL, Token: strings.TrimSpace(string(token))}); err != nil {
		return err
	}
	if _, err := q.client.Put(ctx, client.TaskPath(workersTask), client.TaskRequest{ConcurrencyPerLane: cfg.PerLane}); err != nil {
		return err
	}
	if !q.sqlite {
		q.pool, err = pgxpool.New(ctx, cfg.DSN) // only to ask what is left
	}
	return err
}

func workersRequest(j subject.Job) (client.JobRequest, error) {
	payload, err := json.Marshal(subject.NewPayload(j.Seq))
	return client.JobRequest{Task: workersTask, Payload: payload, Lane: j.Lane}, err
}

func (q *workersQueue) EnqueueOne(ctx context.Context, j subject.Job) error {
	r, err := workersRequest(j)
	if err != nil {
		return err
	}
	_, err = q.client.Enqueue(ctx, r)
	return err
}

func (q *workersQueue) EnqueueBulk(ctx context.Context, jobs []subject.Job) error {
	list := make([]client.JobRequest, len(jobs))
	for i, j := range jobs {
		var err error
		if list[i], err = workersRequest(j); err != nil {
			return err
		}
	}
	_, err := q.client.EnqueueAll(ctx, list...)
	return err
}

func (q *workersQueue) Start(ctx context.Context, handle func(seq int)) error {
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	q.stop, q.failed = stop, make(chan error, workersCount)
	for n := range workersCount {
		q.done.Go(func() {
			q.failed <- client.Worker{
				Client: q.client, Task: workersTask, ID: fmt.Sprintf("worker %d", n+1), Concurrency: workersEach,
				Do: func(_ context.Context, job client.ClaimedJob) (any, error) {
					var p subject.Payload
					if err := json.Unmarshal(job.Payload, &p); err != nil {
						return nil, err
					}
					handle(p.Seq)
					return nil, nil
				},
			}.Run(working)
		})
	}
	return nil
}

func (q *workersQueue) Finished(ctx context.Context) (bool, error) {
	if q.sqlite { // the file is the server's
		for _, state := range []string{"pending", "running"} {
			if left, _, err := q.client.List(ctx, client.JobsPath, url.Values{"task": {workersTask}, "state": {state}}, 1); err != nil || len(left) > 0 {
				return false, err
			}
		}
		return true, nil
	}
	var open bool
	err := q.pool.QueryRow(ctx, `select exists (select 1 from jobs where task = $1 and state in (2, 3))`, workersTask).Scan(&open)
	return !open, err
}

func (q *workersQueue) Stop(context.Context) error {
	q.stop()
	q.done.Wait()
	var errs []error
	for range workersCount {
		errs = append(errs, <-q.failed)
	}
	return errors.Join(errs...)
}

func (q *workersQueue) Cleanup(context.Context) error {
	if q.pool != nil {
		q.pool.Close()
	}
	q.end()
	return errors.Join(<-q.ended, os.RemoveAll(q.folder))
}
