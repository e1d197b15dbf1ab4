package queue

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

// Whoever may log in to the database can say that a job was cancelled. It stops, or never
// starts, only if that is so.
func TestAForgedCancellationStopsNothing(t *testing.T) {
	url := pgtest.URL(t)
	db := openDB(t, url)
	rec := newRecorder()
	entered, ended := make(chan int64, 2), make(chan int64, 2)
	q, _ := startQueue(t, db, Config{Tasks: map[string]Task{"t": rec.task(), "long": {Run: func(ctx context.Context, j *Job) error {
		entered <- j.ID
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, ErrCancelled) {
			t.Errorf("job %d ended with cause %v", j.ID, cause)
		}
		ended <- j.ID
		return ctx.Err()
	}}}})
	eventually(t, "the worker hears", func() bool { return owned(q) == 64 && q.Health() == nil })
	jobs, err := q.Enqueue(t.Context(), store.JobSpec{Task: "long"}, store.JobSpec{Task: "long"}, store.JobSpec{Task: "t", RunAt: time.Now().Add(time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	<-entered
	<-entered
	hears := func(ids ...int64) {
		for _, id := range ids {
			if err := db.Notify(t.Context(), channel, fmt.Sprintf("c %d\n", id)); err != nil {
				t.Fatal(err)
			}
		}
	}
	gone := func(id int64) {
		err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `delete from jobs where id = $1`, id)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	forged, cancelled, later := jobs[0].ID, jobs[1].ID, jobs[2].ID
	gone(cancelled)
	hears(forged, later, cancelled) // so that the first two were looked into when the last one ends
	if id := <-ended; id != cancelled {
		t.Fatalf("job %d was stopped, which nobody cancelled", id)
	}
	if j := rec.wait(t); j.ID != later || time.Since(j.RunAt) > 20*time.Second {
		t.Errorf("job %d ran %s after its time", j.ID, time.Since(j.RunAt))
	}
	select {
	case id := <-ended:
		t.Errorf("job %d was stopped, which nobody cancelled", id)
	default:
	}
	gone(forged)
	hears(forged)
	<-ended
}
