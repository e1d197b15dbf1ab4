package queue

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

// onBoth runs a test on a file and on PostgreSQL.
func onBoth(t *testing.T, test func(t *testing.T, db *store.DB)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, openDB(t, "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"))) })
	t.Run("postgres", func(t *testing.T) { test(t, openDB(t, pgtest.URL(t))) })
}

// Between a commit and the moment in which whoever committed hears of it, a fetch
// may find the job, and it may run and end. It is not run once more when its
// commit is told.
func TestJobThatEndedBeforeItsCommitWasToldRunsOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, db *store.DB) {
		rec := newRecorder()
		q, _ := startQueue(t, db, Config{Tasks: map[string]Task{"t": rec.task()}})
		eventually(t, "the worker is ready", func() bool { return owned(q) == db.Buckets() && q.Health() == nil })
		var first store.Job
		err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			tx.AfterCommit(func() { // before the queue hears of it
				q.sweep()
				rec.wait(t)
				eventually(t, "its end is written", func() bool {
					q.board.mu.Lock()
					defer q.board.mu.Unlock()
					return q.board.entries[first.ID] == nil
				})
			})
			jobs, err := q.EnqueueTx(ctx, tx, store.JobSpec{Task: "t"})
			first = jobs[0]
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		q.board.mu.Lock()
		again := q.board.entries[first.ID]
		q.board.mu.Unlock()
		if again != nil || len(rec.ch) > 0 {
			t.Error("a job that has ended is in hand once more")
		}
		if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "t"}); err != nil {
			t.Fatal(err)
		}
		if j := rec.wait(t); j.ID == first.ID {
			t.Error("a job ran twice")
		}
	})
}

// What ended is known by id and revision; what is too long ago is not known.
func TestPastKnowsWhatEndedSince(t *testing.T) {
	var p past
	p.note(7, 3)
	moment := p.now()
	p.note(5, 2)
	p.note(9, 1)
	jobs := []store.Job{{ID: 7, Rev: 3}, {ID: 5, Rev: 2}, {ID: 6, Rev: 1}}
	gone, known := p.since(moment, jobs)
	if !known || len(gone) != 1 || gone[5] != 2 {
		t.Errorf("%v ended since, known %v", gone, known)
	}
	if gone, known = p.since(p.now(), jobs); !known || gone != nil {
		t.Errorf("%v ended since now, known %v", gone, known)
	}
	for i := range len(p.ends) - 2 {
		p.note(int64(100+i), 1)
	}
	if gone, known = p.since(moment, jobs); !known || gone[5] != 2 {
		t.Errorf("at the brim: %v, known %v", gone, known)
	}
	p.note(99, 1)
	if _, known = p.since(moment, jobs); known {
		t.Error("what is overwritten is said to be known")
	}
}

// Rows of which nobody can say whether they ended are read again: those that are
// left run, the others do not.
func TestJobOfALongPastMomentIsReadAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, db *store.DB) {
		rec := newRecorder()
		q, _ := startQueue(t, db, Config{Tasks: map[string]Task{"t": rec.task()}})
		eventually(t, "the worker is ready", func() bool { return owned(q) == db.Buckets() && q.Health() == nil })
		left := store.Job{ID: 1, Task: "t"}
		for _, ends := range []bool{true, false} {
			err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				tx.AfterCommit(func() {
					if ends {
						q.sweep()
						rec.wait(t)
						eventually(t, "its end is written", func() bool { return countJobs(t, db) == 0 })
					}
					q.board.mu.Lock()
					defer q.board.mu.Unlock()
					for range len(q.board.past.ends) + 1 {
						q.board.past.note(1, 1)
					}
				})
				jobs, err := q.EnqueueTx(ctx, tx, store.JobSpec{Task: "t"})
				left = jobs[0]
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if j := rec.wait(t); j.ID != left.ID {
			t.Errorf("job %d ran once more", j.ID)
		}
	})
}
