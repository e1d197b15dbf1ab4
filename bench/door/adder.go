package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/pawlrun/pawl/client/pawltx"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
)

// prepare makes Pawl's tables in a database, and lets jobs of a task in.
func prepare(ctx context.Context, at string, more ...string) error {
	db, err := store.Open(ctx, at, store.Options{})
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // a scratch database
	return db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.ServeTasks(ctx, []string{"log"}, 1<<20); err != nil {
			return err
		}
		for _, sql := range more {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return fmt.Errorf("%s: %w", sql, err)
			}
		}
		return nil
	})
}

// plain inserts the row of a job, and nothing else.
type plain struct{}

func (*plain) open(ctx context.Context, at string) (string, error) {
	return at, prepare(ctx, at, `create table plain_jobs (like jobs including all)`)
}

func (*plain) close() {}

const plainInsert = `insert into plain_jobs (id, bucket, priority, run_at, max_attempts, task, owner, payload, created_at, created_by, state)
	select $1::bigint + n - 1, -1, 0, $2::bigint, 10, 'bench', 'u', p, $2::bigint, 'admin', 2 from unnest($3::text[]) with ordinality t (p, n)`

func (*plain) add(ctx context.Context, tx pgx.Tx, first int64, n int) error {
	texts := make([]string, n)
	for i := range texts {
		raw, err := json.Marshal(newPayload(first + int64(i)))
		if err != nil {
			return err
		}
		texts[i] = string(raw)
	}
	_, err := tx.Exec(ctx, plainInsert, first, 1_700_000_000_000+first, texts)
	return err
}

// functions are those of Pawl, with a node that listens.
type functions struct{ drop, stop func() }

func (f *functions) open(ctx context.Context, at string) (string, error) {
	role := fmt.Sprintf("pawl_bench_%d", os.Getpid())
	err := prepare(ctx, at, `insert into users (id, name, role, created_at) values ('u', 'admin', 'admin', 0)`,
		`insert into worker_tasks (name, definition, owner, created_at, updated_at, updated_by) values ('bench', '{}', 'u', 0, 0, '')`,
		`create role `+role+` login in role pawl_app`, `create schema shop authorization `+role, `alter role `+role+` set search_path = shop`)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(at)
	if err != nil {
		return "", err
	}
	f.drop = func() {
		ctx := context.WithoutCancel(ctx)
		c, err := pgx.Connect(ctx, at)
		if err != nil {
			return
		}
		defer c.Close(ctx) //nolint:errcheck // a scratch database
		_, _ = c.Exec(ctx, `drop owned by `+role+` cascade`)
		_, _ = c.Exec(ctx, `drop role `+role)
	}
	u.User = url.User(role)
	f.stop, err = startNode(ctx, at)
	return u.String(), err
}

// startNode runs a queue as a server does. The jobs are for workers, of which there
// are none, so it has nothing to do but to hear of them.
func startNode(ctx context.Context, at string) (stop func(), err error) {
	db, err := store.Open(ctx, at, store.Options{})
	if err != nil {
		return nil, err
	}
	q, err := queue.New(queue.Config{DB: db, Node: store.Node{ID: store.NewID(), Share: true}, Workers: 1})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx) }()
	return func() { cancel(); <-ended; _ = db.Close() }, nil
}

func (f *functions) close() {
	if f.stop != nil {
		f.stop()
	}
	f.drop()
}

func (*functions) add(ctx context.Context, tx pgx.Tx, first int64, n int) error {
	if n == 1 {
		_, err := pawltx.Pgx(tx).AddJob(ctx, pawltx.Job{Task: "bench", Payload: newPayload(first)})
		return err
	}
	jobs := make([]pawltx.Job, n)
	for i := range jobs {
		jobs[i] = pawltx.Job{Task: "bench", Payload: newPayload(first + int64(i))}
	}
	_, err := pawltx.Pgx(tx).AddJobs(ctx, jobs...)
	return err
}

// peer is River.
type peer struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
}

// args is the payload; River wants its kind as a method.
type args payload

func (args) Kind() string { return "bench" }

func (p *peer) open(ctx context.Context, at string) (_ string, err error) {
	if p.pool, err = pgxpool.New(ctx, at); err != nil {
		return "", err
	}
	driver := riverpgxv5.New(p.pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return "", err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return "", err
	}
	p.client, err = river.NewClient(driver, &river.Config{})
	return at, err
}

func (p *peer) close() { p.pool.Close() }

func (p *peer) add(ctx context.Context, tx pgx.Tx, first int64, n int) error {
	if n == 1 {
		_, err := p.client.InsertTx(ctx, tx, args(newPayload(first)), nil)
		return err
	}
	params := make([]river.InsertManyParams, n)
	for i := range params {
		params[i] = river.InsertManyParams{Args: args(newPayload(first + int64(i)))}
	}
	_, err := p.client.InsertManyTx(ctx, tx, params)
	return err
}
