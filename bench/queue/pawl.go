package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/pawlrun/pawl/bench/subject"
	"github.com/pawlrun/pawl/internal/queue"
	pawlstore "github.com/pawlrun/pawl/internal/store"
)

// pawlContenders is Pawl as it comes, on both databases.
func pawlContenders() []contender {
	return []contender{
		{
			name: "pawl", title: "Pawl", store: onPostgres, pawl: true, about: "as it comes: 8 workers",
			inGo: func() subject.Subject { return &pawlQueue{scheme: ""} },
		},
		{
			name: "pawl-sqlite", title: "Pawl on SQLite", store: onSQLite, pawl: true, about: "as it comes: 8 workers; WAL, synchronous=FULL",
			inGo: func() subject.Subject { return &pawlQueue{scheme: "sqlite:"} },
		},
	}
}

// pawlQueue is Pawl's queue with one task that does nothing.
type pawlQueue struct {
	scheme string
	db     *pawlstore.DB
	queue  *queue.Queue
	handle atomic.Pointer[func(seq int)]
	stop   context.CancelFunc
	done   chan error
}

func (q *pawlQueue) Setup(ctx context.Context, cfg subject.Config) (err error) {
	debug.SetGCPercent(200) // as pawl serve does
	q.db, err = pawlstore.Open(ctx, q.scheme+cfg.DSN, pawlstore.Options{MaxConns: 20})
	return err
}

// task reads the payload, as a real one would.
func (q *pawlQueue) task(_ context.Context, j *queue.Job) error {
	var p subject.Payload
	if err := json.Unmarshal(j.Payload, &p); err != nil {
		return err
	}
	(*q.handle.Load())(p.Seq)
	return nil
}

func pawlSpec(j subject.Job) (pawlstore.JobSpec, error) {
	payload, err := json.Marshal(subject.NewPayload(j.Seq))
	return pawlstore.JobSpec{Task: "bench", Payload: payload, RunAt: j.RunAt, Lane: j.Lane}, err
}

func (q *pawlQueue) EnqueueOne(ctx context.Context, j subject.Job) error {
	spec, err := pawlSpec(j)
	if err != nil {
		return err
	}
	if q.queue == nil {
		return q.write(ctx, []pawlstore.JobSpec{spec})
	}
	_, err = q.queue.Enqueue(ctx, spec)
	return err
}

func (q *pawlQueue) EnqueueBulk(ctx context.Context, jobs []subject.Job) error {
	specs := make([]pawlstore.JobSpec, len(jobs))
	for i, j := range jobs {
		var err error
		if specs[i], err = pawlSpec(j); err != nil {
			return err
		}
	}
	if q.queue == nil {
		return q.write(ctx, specs)
	}
	_, err := q.queue.Enqueue(ctx, specs...)
	return err
}

func (q *pawlQueue) write(ctx context.Context, specs []pawlstore.JobSpec) error {
	_, err := q.db.EnqueueOwnTx(ctx, specs)
	return err
}

func (q *pawlQueue) Start(ctx context.Context, handle func(seq int)) (err error) {
	q.handle.Store(&handle)
	q.queue, err = queue.New(queue.Config{
		DB: q.db, Workers: 8, Node: pawlstore.Node{ID: pawlstore.NewID(), Share: true},
		Tasks: map[string]queue.Task{"bench": {Run: q.task}},
	})
	if err != nil {
		return err
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	q.stop, q.done = stop, make(chan error, 1)
	go func() { q.done <- q.queue.Run(run) }()
	return nil
}

func (q *pawlQueue) Finished(ctx context.Context) (done bool, err error) {
	next, err := q.db.NextDue(ctx, q.cursors(), time.UnixMilli(0))
	if err != nil {
		return false, fmt.Errorf("look for due jobs: %w", err)
	}
	return next.IsZero() || next.After(time.Now()), nil
}

func (q *pawlQueue) Stop(context.Context) error {
	q.stop()
	q.queue = nil
	return <-q.done
}

func (q *pawlQueue) Cleanup(context.Context) error { return q.db.Close() }

// cursors names every bucket.
func (q *pawlQueue) cursors() []pawlstore.Cursor {
	out := make([]pawlstore.Cursor, q.db.Buckets())
	for i := range out {
		out[i].Bucket = i
	}
	return out
}
