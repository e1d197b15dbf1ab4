package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/pgtest/proxy"
	"github.com/pawlrun/pawl/internal/store"
)

func owned(q *Queue) int {
	q.board.mu.Lock()
	defer q.board.mu.Unlock()
	return len(q.board.owned)
}

// Nodes share the buckets, a new one gets its part, and one that leaves gives
// its part back at once.
func TestNodesShareBuckets(t *testing.T) {
	url := pgtest.URL(t)
	tasks := map[string]Task{"t": newRecorder().task()}
	lease := 500 * time.Millisecond
	q1, _ := startQueue(t, openDB(t, url), Config{Tasks: tasks, Lease: lease})
	eventually(t, "the first node owns all", func() bool { return owned(q1) == 64 })
	q2, stop2 := startQueue(t, openDB(t, url), Config{Tasks: tasks, Lease: lease})
	eventually(t, "two nodes own half each", func() bool { return owned(q1) == 32 && owned(q2) == 32 })
	q3, stop3 := startQueue(t, openDB(t, url), Config{Tasks: tasks, Lease: lease})
	eventually(t, "three nodes share", func() bool {
		a, b, c := owned(q1), owned(q2), owned(q3)
		return a+b+c == 64 && max(a, b, c) <= 22
	})
	stop2()
	stop3()
	eventually(t, "the first node owns all again", func() bool { return owned(q1) == 64 })
}

// A job enqueued at one node for a bucket of another starts at once, by a
// hint.
func TestHintWakesTheOwner(t *testing.T) {
	url := pgtest.URL(t)
	rec := newRecorder()
	q1, _ := startQueue(t, openDB(t, url), Config{Tasks: map[string]Task{"t": rec.task()}})
	eventually(t, "the worker is ready", func() bool { return owned(q1) == 64 && q1.Health() == nil })
	api, err := New(Config{DB: openDB(t, url), Node: store.Node{ID: "api"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = api.Run(ctx) }()
	defer func() { cancel(); <-done }()
	for range 20 {
		before := time.Now()
		if _, err := api.Enqueue(t.Context(), store.JobSpec{Task: "t"}); err != nil {
			t.Fatal(err)
		}
		if j := rec.wait(t); j.StartedAt.Sub(before) > 2*time.Second {
			t.Errorf("started after %v", j.StartedAt.Sub(before))
		}
	}
}

// A node whose database connections are gone starts nothing more before another
// one takes over. What runs goes on, because a call that has left is not undone;
// it is told to stop once it is known that another node has its lane.
func TestSilentNodeStartsNothingAndLetsCallsEnd(t *testing.T) {
	url := pgtest.URL(t)
	p := proxy.New(t, url)
	entered, causes := make(chan string, 100), make(chan error, 100)
	task := func(name string) Task {
		return Task{Run: func(ctx context.Context, j *Job) error {
			entered <- name + j.Lane
			if name == "silent" {
				<-ctx.Done()
				causes <- context.Cause(ctx)
			}
			return context.Cause(ctx)
		}}
	}
	lease := time.Second
	q1, _ := startQueue(t, openDB(t, p.URL()), Config{Tasks: map[string]Task{"t": task("silent")}, Lease: lease, Workers: 8, Drain: time.Millisecond})
	eventually(t, "the first node is ready", func() bool { return owned(q1) == 64 })
	var specs []store.JobSpec
	for i := range 4 {
		specs = append(specs, store.JobSpec{Task: "t", Lane: fmt.Sprint(i)}, store.JobSpec{Task: "t", Lane: fmt.Sprint(i)})
	}
	if _, err := q1.Enqueue(t.Context(), specs...); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		<-entered
	}
	q2, _ := startQueue(t, openDB(t, url), Config{Tasks: map[string]Task{"t": task("heir")}, Lease: lease})
	eventually(t, "the heir is there", func() bool { return q2.Health() == nil })
	p.Stall() // the first node can say nothing more
	eventually(t, "the heir ran all", func() bool { return owned(q2) == 64 && countJobs(t, q2.db) == 0 })
	if len(causes) != 0 {
		t.Errorf("%d calls were cut off while nobody could know whose lanes they were", len(causes))
	}
	for len(entered) > 0 {
		if name := <-entered; strings.HasPrefix(name, "silent") {
			t.Errorf("%s began on the silent node", name)
		}
	}
	p.Resume()
	for range 4 {
		if err := <-causes; !errors.Is(err, ErrLeaseLost) {
			t.Errorf("a call ended with cause %v", err)
		}
	}
}

// A job whose lane was taken over cannot write any more.
func TestTakenOverJobWritesNothing(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		result := make(chan error, 1)
		q, _ := startQueue(t, db, Config{Tasks: map[string]Task{"t": {Run: func(ctx context.Context, j *Job) error {
			if err := j.Write(ctx, func(context.Context, *store.Tx) error { return nil }); err != nil {
				return err
			}
			if _, err := db.Take(ctx, "thief", store.Bucket{ID: j.fence.Bucket, Epoch: j.fence.Epoch}); err != nil {
				return err
			}
			result <- j.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Enqueue(ctx, []store.JobSpec{{Task: "t", Key: "stray"}})
				return err
			})
			return nil
		}}}})
		if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "t"}); err != nil {
			t.Fatal(err)
		}
		if err := <-result; !errors.Is(err, pawl.ErrLeaseLost) {
			t.Errorf("write after the takeover gave %v", err)
		}
		eventually(t, "the bucket is let go", func() bool { return owned(q) < db.Buckets() })
		if n := countJobs(t, db); n != 1 {
			t.Errorf("%d rows: the job must stay for its new owner, and the stray must not be there", n)
		}
	})
}

// PostgreSQL goes away and comes back: what ended meanwhile is not run again,
// what waits runs, and the queue says what is wrong and that it is over.
func TestPostgresGoesAwayAndComesBack(t *testing.T) {
	server := pgtest.NewServer(t)
	db := openDB(t, server.URL())
	rec := newRecorder()
	entered, leave := make(chan struct{}), make(chan struct{})
	q, _ := startQueue(t, db, Config{Lease: 2 * time.Second, Tasks: map[string]Task{
		"t":    rec.task(),
		"long": {Run: func(ctx context.Context, j *Job) error { close(entered); <-leave; return rec.task().Run(ctx, j) }},
	}})
	if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "long"}, store.JobSpec{Task: "t", RunAt: time.Now().Add(3 * time.Second)}); err != nil {
		t.Fatal(err)
	}
	<-entered
	server.Kill()
	close(leave) // ends while nobody can be told
	if j := rec.wait(t); j.Task != "long" {
		t.Errorf("ran %s", j.Task)
	}
	eventually(t, "the queue says that it cannot work", func() bool { return errors.Is(q.Health(), pawl.ErrUnavailable) })
	server.Start()
	if j := rec.wait(t); j.Task != "t" {
		t.Errorf("ran %s", j.Task)
	}
	eventually(t, "the queue is well", func() bool { return q.Health() == nil })
	eventually(t, "all rows are gone", func() bool { return countJobs(t, db) == 0 })
	if len(rec.ch) != 0 {
		t.Error("a job ran twice")
	}
}

// A process that stops lets running jobs finish and leaves the rest.
func TestDrainFinishesWhatRunsAndLeavesTheRest(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		entered, leave := make(chan struct{}, 9), make(chan struct{})
		q, stop := startQueue(t, db, Config{Workers: 1, Tasks: map[string]Task{"t": {Run: func(context.Context, *Job) error {
			entered <- struct{}{}
			<-leave
			return nil
		}}}})
		if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "t"}, store.JobSpec{Task: "t"}); err != nil {
			t.Fatal(err)
		}
		<-entered
		stopped := make(chan struct{})
		go func() { stop(); close(stopped) }()
		eventually(t, "it is stopping", func() bool { q.board.mu.Lock(); defer q.board.mu.Unlock(); return q.board.stopping })
		close(leave)
		<-stopped
		if n := countJobs(t, db); n != 1 || len(entered) != 0 {
			t.Errorf("%d rows left, %d more started; want the one that did not start", n, len(entered))
		}
		v, err := db.Cluster(t.Context())
		if err != nil || len(v.Nodes) != 0 || v.Buckets[0].Node != "" {
			t.Errorf("the node did not leave: %+v, %v", v.Nodes, err)
		}
	})
}

// A job whose process died is found with its mark, counted, and in the end
// given up, so that it cannot kill process after process.
func TestJobThatKillsItsProcessIsGivenUp(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		j := enqueueAll(t, db, []store.JobSpec{{Task: "t", MaxAttempts: 3}})[0]
		rec := newRecorder()
		taken, err := db.Take(t.Context(), "dead", store.Bucket{ID: j.Bucket})
		if err != nil || len(taken) != 1 {
			t.Fatal(err)
		}
		for try := range 3 {
			// What a process leaves behind that dies after the job ran a while.
			m := store.Marking{Node: "dead", Epochs: map[int]int64{j.Bucket: taken[0].Epoch}, Jobs: []*store.Job{&j}, At: time.Now().Add(time.Duration(try) * time.Second)}
			if n, err := db.MarkStarted(t.Context(), m); err != nil || n != 1 {
				t.Fatalf("marked %d, %v", n, err)
			}
		}
		startQueue(t, db, Config{Tasks: map[string]Task{"t": rec.task()}})
		eventually(t, "it is given up", func() bool {
			var state int
			err := db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				return tx.QueryRow(ctx, `select state from jobs`).Scan(&state)
			})
			return err == nil && state == 1
		})
		if len(rec.ch) != 0 {
			t.Error("it ran once more")
		}
	})
}
