package queue

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

// move moves the switch in the database, and tells the queue if there is one.
func move(t testing.TB, db *store.DB, q *Queue, halt bool) {
	t.Helper()
	var h store.Halt
	err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		if halt {
			h, _, err = tx.BeginHalt(ctx, "ada", "")
		} else {
			h, _, err = tx.LiftHalt(ctx, "ada")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if q != nil {
		q.SetHalt(h.HaltMark)
	}
}

// While everything is halted, jobs of users wait: those in hand, those in lanes,
// those that come, and those that come due. Internal ones run, and one that would
// start something stays as it is. Afterwards everything runs once, lanes in order.
func TestJobsWaitWhileEverythingIsHalted(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		rec, house := newRecorder(), newRecorder()
		internal := house.task()
		internal.Internal = true
		var q *Queue
		var looked atomic.Int32
		release := make(chan struct{})
		q, _ = startQueue(t, db, Config{Workers: 2, limits: limits{hand: 40, batch: 8, lane: 4, horizon: time.Second, fresh: 20 * time.Millisecond}, Tasks: map[string]Task{
			"t": rec.task(), "house": internal,
			"block": {Run: func(context.Context, *Job) error { <-release; return nil }},
			"lane": {Internal: true, Run: func(context.Context, *Job) error {
				if q.Halt().Active() {
					looked.Add(1)
					return ErrHalted
				}
				house.ch <- Job{}
				return nil
			}},
		}})
		eventually(t, "it works", func() bool { return q.Health() == nil })
		enqueue := func(specs ...store.JobSpec) {
			t.Helper()
			for _, s := range specs {
				if _, err := q.Enqueue(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
		}
		enqueue(store.JobSpec{Task: "block"}, store.JobSpec{Task: "block"}) // all workers are busy
		eventually(t, "they run", func() bool { return q.Running() == 2 })
		for i := range 20 {
			enqueue(store.JobSpec{Task: "t", Lane: "a", Payload: fmt.Appendf(nil, "%d", i)})
		}
		enqueue(store.JobSpec{Task: "t"}, store.JobSpec{Task: "t", RunAt: time.Now().Add(300 * time.Millisecond)})
		move(t, db, q, true)
		close(release)
		enqueue(store.JobSpec{Task: "t"}, store.JobSpec{Task: "lane"}, store.JobSpec{Task: "house"}, store.JobSpec{Task: "house", RunAt: time.Now().Add(500 * time.Millisecond)})
		house.wait(t)
		house.wait(t) // which was due later than all others
		eventually(t, "the lane looked", func() bool { return looked.Load() > 0 })
		if n := len(rec.ch); n > 0 {
			t.Fatalf("%d jobs ran", n)
		}
		eventually(t, "nothing is in hand", func() bool {
			q.board.mu.Lock()
			defer q.board.mu.Unlock()
			return len(q.board.entries) == 0 && len(q.board.lanes) == 0
		})
		if looked.Load() > 3 { // others may change rows, so they are read again now and then
			t.Errorf("the lane looked %d times", looked.Load())
		}
		if n := countJobs(t, db); n != 24 {
			t.Errorf("%d jobs wait", n)
		}
		move(t, db, q, false)
		house.wait(t)
		next := 0
		for range 23 {
			if j := rec.wait(t); j.Lane == "a" {
				if string(j.Payload) != fmt.Sprint(next) || j.Attempt != 0 {
					t.Errorf("%d of the lane is %s, attempt %d", next, j.Payload, j.Attempt)
				}
				next++
			}
		}
		eventually(t, "all ended", func() bool { return countJobs(t, db) == 0 })
		if len(rec.ch) > 0 {
			t.Error("something ran twice")
		}
	})
}

// A job that worked for long before it would start something is written: its row
// said that it runs, and that it was halted is no crash.
func TestALongJobThatIsHaltedIsNotCountedAsCrashed(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		var q *Queue
		var runs atomic.Int32
		done := make(chan Job, 1)
		q, _ = startQueue(t, db, Config{Tasks: map[string]Task{"lane": {Internal: true, Run: func(ctx context.Context, j *Job) error {
			if !q.Halt().Active() {
				done <- *j
				return nil
			}
			if runs.Add(1) == 1 {
				sleep(ctx, markAfter*2)
			}
			return ErrHalted
		}}}})
		move(t, db, q, true)
		if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "lane"}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it looked again", func() bool { return runs.Load() == 2 && q.Running() == 0 })
		move(t, db, q, false)
		if j := <-done; j.Recovered || j.Attempt != 0 {
			t.Errorf("%+v", j)
		}
	})
}

// A new process knows of the halt before it starts anything.
func TestANewProcessReadsTheHaltFirst(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		rec := newRecorder()
		tasks := map[string]Task{"t": rec.task()}
		node := store.Node{ID: store.NewID()}
		q, stop := startQueue(t, db, Config{Node: node, Tasks: tasks})
		eventually(t, "it works", func() bool { return q.Health() == nil })
		move(t, db, nil, true) // and it dies before it hears of it
		stop()
		for range 50 {
			if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "t"}); err != nil {
				t.Fatal(err)
			}
		}
		q, _ = startQueue(t, db, Config{Node: node, Tasks: tasks})
		eventually(t, "it works again", func() bool { return q.Health() == nil && owned(q) > 0 })
		eventually(t, "it has read everything", func() bool {
			q.board.mu.Lock()
			defer q.board.mu.Unlock()
			return q.board.fetches > 0 && !q.board.fetching && len(q.board.entries) == 0
		})
		if n := len(rec.ch); n > 0 || !q.Halt().Active() {
			t.Fatalf("%d jobs ran", n)
		}
		move(t, db, q, false)
		for range 50 {
			rec.wait(t)
		}
	})
}

// Other nodes hear of the switch at once, by a hint, and without one with their next
// heartbeat.
func TestAllNodesAreHalted(t *testing.T) {
	url := pgtest.URL(t)
	rec := newRecorder()
	tasks := map[string]Task{"t": rec.task()}
	db := openDB(t, url)
	q1, _ := startQueue(t, db, Config{Tasks: tasks, Lease: time.Minute}) // its heartbeats are far apart
	q2, _ := startQueue(t, openDB(t, url), Config{Tasks: tasks, Lease: time.Minute})
	eventually(t, "both share", func() bool { return owned(q1) == 32 && owned(q2) == 32 })
	eventually(t, "the second listens", func() bool { return q2.Health() == nil })
	for _, halt := range []bool{true, false, true} {
		move(t, db, q1, halt)
		eventually(t, "the other node knows", func() bool { return q2.Halt().Active() == halt })
	}
	for range 100 {
		if _, err := q1.Enqueue(t.Context(), store.JobSpec{Task: "t"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(rec.ch); n > 0 {
		t.Fatalf("%d jobs ran", n)
	}
	move(t, db, q2, false)
	for range 100 {
		rec.wait(t)
	}
	q3, _ := startQueue(t, openDB(t, url), Config{Tasks: tasks, Lease: 500 * time.Millisecond})
	eventually(t, "the third works", func() bool { return q3.Health() == nil })
	move(t, db, nil, true) // nobody says so
	eventually(t, "a heartbeat tells", func() bool { return q3.Halt().Active() })
}

// A view from before the switch was moved does not move it back.
func TestAnOldViewDoesNotMoveTheSwitch(t *testing.T) {
	now := time.Now()
	marks := []store.HaltMark{{}, {ID: 1}, {ID: 1, Lifted: now}, {ID: 2}, {ID: 2, Lifted: now}}
	for i, a := range marks {
		for j, b := range marks {
			if a.After(b) != (i > j) {
				t.Errorf("%+v after %+v: %v", a, b, a.After(b))
			}
		}
	}
}
