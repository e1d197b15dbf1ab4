package queue

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

// B-24, B-25, B-30: tasks with workers of their own never have more jobs
// at work than those, what does not fit stays in the table and is run in its
// turn, and nobody else waits for it.
func TestAPoolNeitherStarvesNorIsStarved(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		var running, most, slow atomic.Int64
		gate := make(chan struct{})
		tight := defaultLimits()
		tight.hand, tight.batch = 64, 32
		quick := newRecorder()
		q, _ := startQueue(t, db, Config{Workers: 2, limits: tight, Pools: map[string]int{"slow": 3}, Tasks: map[string]Task{
			"quick": quick.task(),
			"slow": {Pool: "slow", Run: func(ctx context.Context, _ *Job) error {
				if n := running.Add(1); n > most.Load() {
					most.Store(n)
				}
				defer running.Add(-1)
				select {
				case <-gate:
				case <-ctx.Done():
					return ctx.Err()
				}
				slow.Add(1)
				return nil
			}},
		}})
		var specs []store.JobSpec
		for range 200 {
			specs = append(specs, store.JobSpec{Task: "slow", RunAt: time.Now().Add(-time.Minute)})
		}
		if _, err := q.Enqueue(t.Context(), specs...); err != nil {
			t.Fatal(err)
		}
		eventually(t, "all slow workers are busy", func() bool { return running.Load() == 3 })
		if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "quick"}); err != nil {
			t.Fatal(err)
		}
		quick.wait(t)
		q.board.mu.Lock()
		inHand := len(q.board.entries)
		q.board.mu.Unlock()
		if inHand > 40 {
			t.Errorf("%d jobs are in hand, want no more than the pool may have", inHand)
		}
		close(gate)
		eventually(t, "everything ran", func() bool { return slow.Load() == 200 && countJobs(t, db) == 0 })
		if most.Load() != 3 {
			t.Errorf("at most %d ran at once, want 3", most.Load())
		}
	})
}

func TestAPoolWithoutWorkersIsRefused(t *testing.T) {
	_, err := New(Config{DB: openDB(t, "sqlite:"+t.TempDir()+"/p.db"), Node: store.Node{ID: "n"}, Tasks: map[string]Task{"a": {Pool: "gone"}}})
	if err == nil {
		t.Fatal("a task whose pool has no workers was accepted")
	}
}
