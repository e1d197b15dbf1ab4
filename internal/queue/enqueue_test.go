package queue

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/pawlrun/pawl/internal/pgtest"
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

// Those whose jobs are written at once each have their own back, in their order; one
// that is refused fails alone.
func TestEnqueuersOfAGroupHaveTheirOwnJobs(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db, err := store.Open(t.Context(), url, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close() //nolint:errcheck // the test ends
		q, err := New(Config{DB: db, Node: store.Node{ID: "n"}, Tasks: map[string]Task{"t": {Run: func(context.Context, *Job) error { return nil }}}})
		if err != nil {
			t.Fatal(err)
		}
		want := [][]string{{"a0"}, {"b0", "b1", "b2"}, {"c0", "c1"}}
		var group []*enqueueRequest
		for _, keys := range want {
			r := &enqueueRequest{ctx: t.Context(), done: make(chan struct{})}
			for _, key := range keys {
				r.specs = append(r.specs, store.JobSpec{Task: "t", Key: key})
			}
			group = append(group, r)
		}
		q.enq.write(group)
		for i, r := range group {
			<-r.done
			var keys []string
			for _, j := range r.jobs {
				keys = append(keys, j.Key)
			}
			if r.err != nil || !slices.Equal(keys, want[i]) {
				t.Errorf("number %d has %v, want %v (%v)", i, keys, want[i], r.err)
			}
		}
	})
}
