package queue_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
)

// A queue on a SQLite file runs a job that somebody enqueues.
func Example() {
	dir, err := os.MkdirTemp("", "queue-example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // an example
	ctx, stop := context.WithCancel(context.Background())
	db, err := store.Open(ctx, "sqlite:"+filepath.Join(dir, "pawl.db"), store.Options{})
	if err != nil {
		panic(err)
	}
	defer db.Close() //nolint:errcheck // an example

	q, err := queue.New(queue.Config{
		DB: db, Node: store.Node{ID: "example"}, Workers: 2,
		Tasks: map[string]queue.Task{"greet": {Run: func(_ context.Context, j *queue.Job) error {
			fmt.Println("hello", string(j.Payload))
			stop() // ends the queue, once this job has ended
			return nil
		}}},
	})
	if err != nil {
		panic(err)
	}
	if _, err := q.Enqueue(ctx, store.JobSpec{Task: "greet", Payload: json.RawMessage(`"world"`)}); err != nil {
		panic(err)
	}
	fmt.Println(q.Run(ctx))
	// Output:
	// hello "world"
	// <nil>
}
