package queue

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

// Whoever watches is told of a job that runs again as it is from then on: when it does so,
// and that it does not run.
func TestWhoWatchesSeesWhenAJobRunsAgain(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		at := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
		heard := make(chan Event, 10)
		q, _ := startQueue(t, openDB(t, url), Config{
			Tasks: map[string]Task{
				"fails":   {Run: func(context.Context, *Job) error { return RetryAt(at, errors.New("not yet")) }},
				"snoozes": {Run: func(context.Context, *Job) error { return Snooze(at) }},
			},
			Observe: func(e Event) {
				if e.What == "retried" || e.What == "snoozed" {
					heard <- e
				}
			},
		})
		if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "fails"}, store.JobSpec{Task: "snoozes"}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if e := <-heard; !e.Job.RunAt.Equal(at) || !e.Job.StartedAt.IsZero() {
				t.Errorf("%s: it runs at %s and began at %s", e.What, e.Job.RunAt, e.Job.StartedAt)
			}
		}
	})
}

// Ends that could not be written stay, before those that came meanwhile, but for those
// of buckets that were lost.
func TestEndsThatCannotBeWrittenStay(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		q, err := New(Config{DB: openDB(t, url), Node: store.Node{ID: store.NewID()}, Tasks: map[string]Task{"t": {}}})
		if err != nil {
			t.Fatal(err)
		}
		q.board.mu.Lock()
		q.board.own(1, 1)
		for id := range int64(3) {
			q.board.finished = append(q.board.finished, store.Finished{Job: &store.Job{ID: id, Bucket: 1 + int(id)%2}})
		}
		q.board.mu.Unlock()
		away, cancel := context.WithCancel(t.Context())
		cancel()
		if err := q.flush(away); err == nil {
			t.Fatal("nothing kept it from being written")
		}
		if left := q.board.finished; len(left) != 2 || left[0].Job.ID != 0 || left[1].Job.ID != 2 {
			t.Errorf("left are %v", left)
		}
	})
}
