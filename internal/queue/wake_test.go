package queue

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

// A node that was stopped for longer than a lease and accepts a job before it
// knows takes it for its own. When it finds out that the bucket is another's, the
// owner looks, also for what is due later.
func TestOwnerLooksAtABucketThatAnotherNodeLost(t *testing.T) {
	url := pgtest.URL(t)
	rec := newRecorder()
	q, _ := startQueue(t, openDB(t, url), Config{Tasks: map[string]Task{"t": rec.task()}})
	eventually(t, "the worker is ready", func() bool { return owned(q) == 64 && q.Health() == nil })
	stale := startAPI(t, openDB(t, url))
	bucket := stale.db.BucketOf("x", "")
	stale.board.mu.Lock()
	stale.board.own(bucket, 0)
	stale.board.mu.Unlock()
	for _, at := range []time.Time{{}, time.Now().Add(3 * time.Second)} {
		if _, err := stale.Enqueue(t.Context(), store.JobSpec{Task: "t", Lane: "x", RunAt: at}); err != nil {
			t.Fatal(err)
		}
	}
	stale.board.mu.Lock()
	stale.board.disown(bucket, ErrLeaseLost)
	stale.board.mu.Unlock()
	rec.wait(t)
	rec.wait(t)
}

// A node that joins may be the successor of one that committed a job and died
// before it could say so: the others look.
func TestNodesLookWhenAnotherJoins(t *testing.T) {
	url := pgtest.URL(t)
	rec := newRecorder()
	q, _ := startQueue(t, openDB(t, url), Config{Tasks: map[string]Task{"t": rec.task()}})
	eventually(t, "the worker is ready", func() bool { return owned(q) == 64 && q.Health() == nil })
	db := openDB(t, url)
	if _, err := db.EnqueueOwnTx(t.Context(), []store.JobSpec{{Task: "t"}}); err != nil { // and nobody is told
		t.Fatal(err)
	}
	api, err := New(Config{DB: db, Node: store.Node{ID: "n2"}})
	if err != nil {
		t.Fatal(err)
	}
	l := &lessee{q: api, seen: map[string]sighting{}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go api.hints.run(ctx)
	if err := l.runOnce(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	rec.wait(t)
}

// Nothing is taken from a node that raises its heartbeat at the last moment: it
// would start jobs of others until its next heartbeat.
func TestNodeThatBeatsAtTheLastMomentKeepsItsBuckets(t *testing.T) {
	l := newLessee(t, pgtest.URL(t))
	other := store.Node{ID: "other", Incarnation: "i", Share: true}
	if err := l.q.db.Join(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if _, err := l.q.db.Take(t.Context(), other.ID, store.Bucket{ID: 7}); err != nil {
		t.Fatal(err)
	}
	seen, err := l.q.db.Cluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for now := time.Hour; now < time.Hour+2*l.q.cfg.Lease; now += l.q.cfg.Lease / 3 {
		l.watch(seen, now, now)
	}
	if _, err := l.q.db.Beat(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if err := l.arrange(t.Context(), seen, time.Hour+2*l.q.cfg.Lease); err != nil {
		t.Fatal(err)
	}
	if l.q.board.owned[7] != nil || l.q.hints.news {
		t.Error("a bucket of a node that lives was taken, or others were told to look")
	}
	// Without a heartbeat it is buried, and what it had is taken.
	if seen, err = l.q.db.Cluster(t.Context()); err != nil {
		t.Fatal(err)
	}
	for now := 2 * time.Hour; now < 2*time.Hour+2*l.q.cfg.Lease; now += l.q.cfg.Lease / 3 {
		l.watch(seen, now, now)
	}
	if err := l.arrange(t.Context(), seen, 2*time.Hour+2*l.q.cfg.Lease); err != nil {
		t.Fatal(err)
	}
	if l.q.board.owned[7] == nil || !l.q.hints.news {
		t.Error("the bucket of a dead node was not taken, or others were not told to look")
	}
}

// A process that is started while its file can be read and not written takes
// its bucket when it can be written again.
func TestFileThatIsFullAtTheStartIsWorkedOnLater(t *testing.T) {
	db := openDB(t, "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"))
	change := func(sql string) {
		t.Helper()
		if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error { _, err := tx.Exec(ctx, sql); return err }); err != nil {
			t.Fatal(err)
		}
	}
	change(`create trigger full before update on buckets begin select raise(abort, 'full'); end`)
	rec := newRecorder()
	q, _ := startQueue(t, db, Config{Tasks: map[string]Task{"t": rec.task()}, Lease: 200 * time.Millisecond})
	if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "t"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the share fails", func() bool {
		q.health.mu.Lock()
		defer q.health.mu.Unlock()
		return q.health.failed[dutyShare] != nil
	})
	change(`drop trigger full`)
	rec.wait(t)
	eventually(t, "the queue is well", func() bool { return q.Health() == nil })
}

// What could not be done and need not be done any more, because another node
// has it, keeps nobody from being well.
func TestFailureOfWhatIsNotLeftIsForgotten(t *testing.T) {
	q, err := New(Config{DB: openDB(t, "sqlite:"+filepath.Join(t.TempDir(), "pawl.db")), Node: store.Node{ID: "n"}})
	if err != nil {
		t.Fatal(err)
	}
	q.health.started()
	failed := errors.New("away")
	q.board.own(0, 1)
	asked := &entry{job: store.Job{ID: 1, Task: "t"}, pool: q.board.poolFor("t")}
	q.board.place(asked, true, time.Now())
	asked.place = inCheck
	q.board.unchecked([]*entry{asked}) // it is asked for again
	q.board.finished = []store.Finished{{Job: &store.Job{ID: 2}}}
	for _, duty := range []string{dutyCheck, dutyWrite} {
		q.health.ended(duty, failed)
		if err := q.Health(); !errors.Is(err, failed) {
			t.Errorf("%s failed and is to be done, and the health is %v", duty, err)
		}
		q.health.ended(duty, nil)
	}
	q.health.ended(dutyCheck, failed)
	q.health.ended(dutyWrite, failed)
	q.board.disown(0, ErrLeaseLost)
	q.health.begin(dutyWrite)
	if err := q.Health(); !errors.Is(err, failed) {
		t.Errorf("a write is under way, and the health is %v", err)
	}
	q.health.ended(dutyWrite, failed)
	if err := q.Health(); err != nil {
		t.Errorf("nothing is left to do, and the health is %v", err)
	}
	// Other jobs, which nobody has to ask for, do not keep the failure alive.
	q.health.ended(dutyCheck, failed)
	q.board.own(0, 2)
	q.board.place(&entry{job: store.Job{ID: 3, Task: "t"}, pool: q.board.poolFor("t")}, true, time.Now())
	if err := q.Health(); err != nil {
		t.Errorf("what failed is gone, something else is ready, and the health is %v", err)
	}
}
