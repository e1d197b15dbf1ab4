package queue

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/pawlrun/pawl/internal/store"
)

// Whoever writes jobs while the process ends comes to an end, whichever of the two is
// noticed first: the bubble ends only when everybody has.
func TestEnqueuersEndWithTheProcess(t *testing.T) {
	sim, err := store.NewSimulation(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()
	for range 40 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			if err := sim.Begin(ctx, store.SimulatedBuckets); err != nil {
				t.Fatal(err)
			}
			q, err := New(Config{DB: sim.Open(store.SimulatedProcess{}), Node: store.Node{ID: "n"}, Tasks: map[string]Task{"t": {Run: func(context.Context, *Job) error { return nil }}}})
			if err != nil {
				t.Fatal(err)
			}
			go q.enq.run(ctx)
			cancel()
			jobs, err := q.enq.enqueue(context.Background(), []store.JobSpec{{Task: "t", Payload: []byte("{}")}})
			if err != nil || len(jobs) != 1 {
				t.Errorf("%d jobs, %v", len(jobs), err)
			}
			synctest.Wait()
			if err := sim.End(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}
