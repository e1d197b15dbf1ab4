package worker

import (
	"context"
	"log/slog"
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
)

const alice = "alice"

// rig is a service on a database of its own, with a queue that runs nothing.
type rig struct {
	t  *testing.T
	db *store.DB
	*Service
}

func both(t *testing.T, test func(r *rig)) {
	t.Helper()
	pgtest.Both(t, func(t *testing.T, url string) {
		db, err := store.Open(t.Context(), url, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		test(newRig(t, db, "node-1"))
	})
}

// newRig is another node on a database.
func newRig(t *testing.T, db *store.DB, node string) *rig {
	t.Helper()
	r := &rig{t: t, db: db, Service: New(Config{DB: db})}
	q, err := queue.New(queue.Config{DB: db, Node: store.Node{ID: node}, Log: slog.New(slog.DiscardHandler), Served: r.Wake})
	if err != nil {
		t.Fatal(err)
	}
	r.Attach(q)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { _ = q.Run(ctx); close(done) }()
	t.Cleanup(func() { r.Close(); cancel(); <-done })
	return r
}

func (r *rig) write(fn store.Func) {
	r.t.Helper()
	if err := r.db.Write(r.t.Context(), fn); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) declare(name string, change func(*Definition)) {
	r.t.Helper()
	d := Usual()
	if change != nil {
		change(&d)
	}
	r.write(func(ctx context.Context, tx *store.Tx) error {
		_, _, err := r.Declare(ctx, tx, name, d, alice, nil, alice)
		return err
	})
}

func (r *rig) enqueue(specs ...store.JobSpec) (jobs []store.Job) {
	r.t.Helper()
	for i := range specs {
		if specs[i].Owner == "" {
			specs[i].Owner = alice
		}
		if served, err := r.Fill(r.t.Context(), &specs[i]); err != nil || !served {
			r.t.Fatal(served, err)
		}
	}
	jobs, err := r.queue.Enqueue(r.t.Context(), specs...)
	if err != nil {
		r.t.Fatal(err)
	}
	return jobs
}

func (r *rig) count(sql string, args ...any) (n int) {
	r.t.Helper()
	err := r.db.Read(r.t.Context(), func(ctx context.Context, tx *store.Tx) error { return tx.QueryRow(ctx, sql, args...).Scan(&n) })
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}
