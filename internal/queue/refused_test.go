package queue

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

// refuse makes the database refuse rows of a table that contain a word, as a
// damaged page or a rule of somebody else's would.
func refuse(t testing.TB, db *store.DB, table, event, column, word string) {
	t.Helper()
	err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		name := "refuse_" + table + event + column
		if db.Shared() {
			if _, err := tx.Exec(ctx, `create function `+name+`() returns trigger language plpgsql as $f$ begin
				if new.`+column+` like '%`+word+`%' then raise exception 'refused'; end if; return new; end $f$`); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `create trigger `+name+` before `+event+` on `+table+` for each row execute function `+name+`()`)
			return err
		}
		_, err := tx.Exec(ctx, `create trigger `+name+` before `+event+` on `+table+` when new.`+column+` like '%`+word+`%' begin select raise(abort, 'refused'); end`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A job whose end the database refuses is ended alone, with an error that says
// so; all others are written, whatever their number, and the queue is well.
func TestRefusedEndHoldsBackNothing(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		refuse(t, db, "job_history", "insert", "error", "poison")
		refuse(t, db, "job_history", "insert", "task", "bad")
		gate := make(chan struct{})
		fail := func(context.Context, *Job) error { <-gate; return Permanent(errors.New("poison")) }
		q, _ := startQueue(t, db, Config{Workers: 64, Tasks: map[string]Task{
			"good":   {Record: true, Run: func(context.Context, *Job) error { <-gate; return nil }},
			"poison": {Record: true, Run: fail},
			"bad":    {Record: true, Run: fail},
			"bad ok": {Record: true, Run: func(context.Context, *Job) error { <-gate; return nil }},
		}})
		var specs []store.JobSpec
		for i := range 40 {
			specs = append(specs, store.JobSpec{Task: "good"})
			switch i {
			case 7:
				specs = append(specs, store.JobSpec{Task: "poison"})
			case 20:
				specs = append(specs, store.JobSpec{Task: "bad"})
			case 30:
				specs = append(specs, store.JobSpec{Task: "bad ok"})
			}
		}
		if _, err := q.Enqueue(t.Context(), specs...); err != nil {
			t.Fatal(err)
		}
		eventually(t, "all run", func() bool { return q.Running() == 43 })
		close(gate)
		var left []store.JobRecord
		eventually(t, "two rows are left, as failed", func() bool {
			var err error
			left, _, err = db.ListJobs(t.Context(), store.JobFilter{State: store.JobFailed}, 0, 10)
			return err == nil && len(left) == 2 && countJobs(t, db) == 2
		})
		for _, j := range left {
			if !strings.Contains(j.LastError, "could not be stored") || j.Attempt != 1 {
				t.Errorf("%s: attempt %d, %q", j.Task, j.Attempt, j.LastError)
			}
		}
		eventually(t, "the queue is well", func() bool { return q.Health() == nil })
		if done, _, err := db.ListJobs(t.Context(), store.JobFilter{State: store.JobSucceeded}, 0, 100); err != nil || len(done) != 40 {
			t.Errorf("%d jobs are on record as succeeded, %v", len(done), err)
		}
	})
}

// Even one whose end is refused in every form does not stop the others.
func TestEndThatCannotBeWrittenAtAllIsPutAside(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		refuse(t, db, "jobs", "update", "task", "bad")
		rec := newRecorder()
		q, _ := startQueue(t, db, Config{Tasks: map[string]Task{
			"t":   rec.task(),
			"bad": {Run: func(context.Context, *Job) error { return Permanent(errors.New("no")) }},
		}})
		if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "bad"}, store.JobSpec{Task: "t"}); err != nil {
			t.Fatal(err)
		}
		rec.wait(t)
		eventually(t, "the other one is written", func() bool { return countJobs(t, db) == 1 })
		eventually(t, "the queue is well", func() bool { return q.Health() == nil })
		for range 20 {
			if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "t", RunAt: time.Now()}); err != nil {
				t.Fatal(err)
			}
			rec.wait(t)
		}
		eventually(t, "all others are written", func() bool { return countJobs(t, db) == 1 })
	})
}
