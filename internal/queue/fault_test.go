package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/pgtest/proxy"
	"github.com/pawlrun/pawl/internal/store"
)

// Connections that die without a word stop nothing for long: what runs is
// written, what waits is run, hints are heard, and nothing runs twice.
func TestSilentlyDeadConnectionsAreReplaced(t *testing.T) {
	url := pgtest.URL(t)
	p := proxy.New(t, url)
	rec := newRecorder()
	db := openDB(t, p.URL())
	t.Cleanup(p.Cut)
	q, _ := startQueue(t, db, Config{Tasks: map[string]Task{"t": rec.task()}, Lease: 10 * time.Second, limits: shortAnswers()})
	eventually(t, "the worker is ready", func() bool { return owned(q) == 64 && q.Health() == nil })
	other := startAPI(t, openDB(t, url))
	for round := range 2 {
		p.HalfOpen()
		began := time.Now()
		var specs []store.JobSpec
		for range 50 {
			specs = append(specs, store.JobSpec{Task: "t"})
		}
		if _, err := other.Enqueue(t.Context(), specs...); err != nil {
			t.Fatal(err)
		}
		for range specs {
			rec.wait(t)
		}
		eventually(t, "their ends are written", func() bool { return countJobs(t, other.db) == 0 })
		if d := time.Since(began); d > 20*time.Second {
			t.Errorf("round %d: it took %v", round, d)
		}
		eventually(t, "the queue is well", func() bool { return q.Health() == nil })
	}
	if len(rec.ch) != 0 {
		t.Errorf("%d jobs ran twice", len(rec.ch))
	}
}

// While the database accepts and does not answer, the queue says so; it is well
// again when the answers come.
func TestStandingDatabaseIsTold(t *testing.T) {
	p := proxy.New(t, pgtest.URL(t))
	db := openDB(t, p.URL())
	q, _ := startQueue(t, db, Config{Tasks: map[string]Task{"t": newRecorder().task()}, Lease: time.Second, limits: shortAnswers()})
	eventually(t, "it is well", func() bool { return q.Health() == nil })
	p.Stall()
	eventually(t, "it says that it cannot work", func() bool { return q.Health() != nil })
	p.Resume()
	eventually(t, "it is well again", func() bool { return q.Health() == nil })
}

// PostgreSQL stands still for longer than a lease. Nobody was heard, and nobody
// heard, so nobody is dead: no bucket moves, and nothing runs twice.
func TestNodesThatWereBlindDoNotBuryEachOther(t *testing.T) {
	p := proxy.New(t, pgtest.URL(t))
	rec := newRecorder()
	lease := time.Second
	var queues []*Queue
	for range 3 {
		q, _ := startQueue(t, openDB(t, p.URL()), Config{Tasks: map[string]Task{"t": rec.task()}, Lease: lease, limits: shortAnswers()})
		queues = append(queues, q)
	}
	epochs := func() string {
		var all []string
		for _, q := range queues {
			q.board.mu.Lock()
			for id := range 64 {
				if k := q.board.owned[id]; k != nil {
					all = append(all, fmt.Sprint(q.Node().ID, id, k.epoch))
				}
			}
			q.board.mu.Unlock()
		}
		return strings.Join(all, " ")
	}
	eventually(t, "all shares are held", func() bool {
		return owned(queues[0])+owned(queues[1])+owned(queues[2]) == 64 && max(owned(queues[0]), owned(queues[1]), owned(queues[2])) <= 22
	})
	before := epochs()
	p.Stall()
	stood := time.NewTimer(lease * 3 / 2)
	<-stood.C
	p.Resume()
	for _, q := range queues {
		eventually(t, "it is well again", func() bool { return q.Health() == nil })
	}
	for range 4 { // four beats later
		beat := time.NewTimer(lease / 5)
		<-beat.C
	}
	if after := epochs(); after != before {
		t.Errorf("shares moved:\n%s\n%s", before, after)
	}
}

// A process that was stopped beyond its lease, and cannot know yet, starts
// nothing: neither a job of its hand, nor the call of one that was about to.
func TestWokenNodeStartsNothing(t *testing.T) {
	url := pgtest.URL(t)
	p := proxy.New(t, url)
	var asleep atomic.Int64
	clock := func() time.Duration { return sinceBoot() + time.Duration(asleep.Load()) }
	entered, leave, owns := make(chan int64, 9), make(chan struct{}), make(chan error, 9)
	q, _ := startQueue(t, openDB(t, p.URL()), Config{Workers: 1, Lease: 10 * time.Second, Clock: clock, Drain: time.Millisecond, Tasks: map[string]Task{"t": {
		Run: func(_ context.Context, j *Job) error {
			entered <- j.ID
			<-leave
			owns <- j.StillOwned()
			return nil
		},
	}}})
	eventually(t, "it is ready", func() bool { return owned(q) == 64 && q.Health() == nil })
	if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "t"}, store.JobSpec{Task: "t"}); err != nil {
		t.Fatal(err)
	}
	<-entered
	p.Stall()
	asleep.Store(int64(8 * time.Second)) // it slept, and nobody told it
	close(leave)
	if err := <-owns; !errors.Is(err, ErrLeaseLost) {
		t.Errorf("the call under way may go on: %v", err)
	}
	quiet := time.NewTimer(300 * time.Millisecond)
	<-quiet.C
	if len(entered) != 0 {
		t.Error("a job began on a node whose lease may be over")
	}
	p.Resume()
	<-entered // it still owns its buckets, and knows it now
	if err := <-owns; err != nil {
		t.Errorf("after the next heartbeat: %v", err)
	}
}

// The gate is looked at immediately before the handler too: between the choice
// of a job and its start there may be any time.
func TestGateIsLookedAtBeforeTheHandler(t *testing.T) {
	var asleep atomic.Int64
	ran := atomic.Bool{}
	q, err := New(Config{
		DB: openDB(t, pgtest.URL(t)), Node: store.Node{ID: "n"}, Clock: func() time.Duration { return time.Duration(asleep.Load()) },
		Tasks: map[string]Task{"t": {Run: func(context.Context, *Job) error { ran.Store(true); return nil }}},
	})
	if err != nil {
		t.Fatal(err)
	}
	b, now := q.board, time.Now()
	b.timer = time.NewTimer(time.Hour)
	b.own(0, 1)
	b.extend(7 * time.Second)
	b.offer(job(1, now), false, now, now)
	e, _ := b.take(b.pools[0], now)
	if e == nil {
		t.Fatal("nothing to run")
	}
	asleep.Store(int64(7 * time.Second))
	q.runOne(t.Context(), e)
	if ran.Load() || b.owned[0].busy != 0 || len(b.running) != 0 || b.entries[1] != nil {
		t.Errorf("ran %v, busy %d, %d running", ran.Load(), b.owned[0].busy, len(b.running))
	}
	if !b.owned[0].cursors[levelOf(0)].dirty {
		t.Error("the job is not looked for again")
	}
}

// A call that was under way when the database went away ends as it does, and how
// it ended is written when the database is back: nothing is repeated.
func TestOutcomeIsWrittenWhenTheDatabaseIsBack(t *testing.T) {
	p := proxy.New(t, pgtest.URL(t))
	rec := newRecorder()
	leave := make(chan struct{})
	var cut atomic.Bool
	q, _ := startQueue(t, openDB(t, p.URL()), Config{Lease: time.Second, limits: shortAnswers(), Tasks: map[string]Task{"t": {Run: func(ctx context.Context, j *Job) error {
		_ = rec.task().Run(ctx, j)
		<-leave
		cut.Store(ctx.Err() != nil)
		return nil
	}}}})
	eventually(t, "it is ready", func() bool { return owned(q) == 64 && q.Health() == nil })
	if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "t"}); err != nil {
		t.Fatal(err)
	}
	rec.wait(t)
	p.Stall()
	eventually(t, "work is suspended", func() bool {
		q.board.mu.Lock()
		defer q.board.mu.Unlock()
		return q.board.owned[0] != nil && q.board.owned[0].suspended
	})
	close(leave)
	p.Resume()
	eventually(t, "the row is gone", func() bool { return countJobs(t, q.db) == 0 })
	if cut.Load() || len(rec.ch) != 0 {
		t.Errorf("the call was cut off: %v; repeated: %d", cut.Load(), len(rec.ch))
	}
}

// One frozen transaction keeps one bucket, and no more.
func TestFrozenTransactionKeepsOneBucketOnly(t *testing.T) {
	url := pgtest.URL(t)
	db1 := openDB(t, url)
	tasks := map[string]Task{"t": newRecorder().task()}
	lease := 600 * time.Millisecond
	q1, stop1 := startQueue(t, db1, Config{Tasks: tasks, Lease: lease})
	eventually(t, "the first node owns all", func() bool { return owned(q1) == 64 })
	held, letGo := holdBuckets(t, openDB(t, url), 5)
	<-held
	kill(db1, stop1)
	q2, _ := startQueue(t, openDB(t, url), Config{Tasks: tasks, Lease: lease})
	eventually(t, "the heir owns the rest", func() bool { return owned(q2) == 63 })
	if err := q2.Health(); err != nil {
		t.Errorf("the heir is not well: %v", err)
	}
	letGo()
	eventually(t, "the heir owns all", func() bool { return owned(q2) == 64 })
}

// A node that leaves, and one that joins, tells the others, who do not wait for
// their next heartbeat.
func TestLeavingIsTold(t *testing.T) {
	url := pgtest.URL(t)
	tasks := map[string]Task{"t": newRecorder().task()}
	lease := 150 * time.Second // a heartbeat every 30 s
	q1, _ := startQueue(t, openDB(t, url), Config{Tasks: tasks, Lease: lease})
	eventually(t, "the first node owns all", func() bool { return owned(q1) == 64 })
	began := time.Now()
	q2, stop2 := startQueue(t, openDB(t, url), Config{Tasks: tasks, Lease: lease})
	eventually(t, "two nodes own half each", func() bool { return owned(q1) == 32 && owned(q2) == 32 })
	stop2()
	eventually(t, "the first node owns all again", func() bool { return owned(q1) == 64 })
	if d := time.Since(began); d > 25*time.Second {
		t.Errorf("it took %v", d)
	}
}

// Who joins while a node cannot hear is noticed as soon as it can, and not at its
// next heartbeat.
func TestJoiningUnheardIsNoticed(t *testing.T) {
	url := pgtest.URL(t)
	tasks := map[string]Task{"t": newRecorder().task()}
	lease := 150 * time.Second // a heartbeat every 30 s
	witness := openDB(t, url)
	q1, _ := startQueue(t, openDB(t, url), Config{Tasks: tasks, Lease: lease})
	eventually(t, "the first node owns all", func() bool { return owned(q1) == 64 })
	eventually(t, "it is made deaf, for a second", func() bool {
		ended := 0
		err := witness.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			return tx.QueryRow(ctx, `select count(*) from (select pg_terminate_backend(pid) as ended from pg_stat_activity
				where datname = current_database() and query like 'listen %') x where ended`).Scan(&ended)
		})
		return err == nil && ended == 1
	})
	began := time.Now()
	q2, _ := startQueue(t, openDB(t, url), Config{Tasks: tasks, Lease: lease})
	eventually(t, "two nodes own half each", func() bool { return owned(q1) == 32 && owned(q2) == 32 })
	if d := time.Since(began); d > 25*time.Second {
		t.Errorf("it took %v", d)
	}
}

// Two living processes under one id, as of a copied data folder: the second one
// gets an id of its own, says so, and they share the work.
func TestCopiedIdentityGetsAnIdOfItsOwn(t *testing.T) {
	url := pgtest.URL(t)
	rec := newRecorder()
	var mu sync.Mutex
	var renamed []string
	cfg := Config{Tasks: map[string]Task{"t": rec.task()}, Lease: time.Second, Node: store.Node{ID: "twin"}}
	q1, _ := startQueue(t, openDB(t, url), cfg)
	eventually(t, "the first node owns all", func() bool { return owned(q1) == 64 })
	cfg.Renamed = func(id string) { mu.Lock(); renamed = append(renamed, id); mu.Unlock() }
	q2, _ := startQueue(t, openDB(t, url), cfg)
	eventually(t, "they share", func() bool { return owned(q1) == 32 && owned(q2) == 32 })
	everyShareIsWorked(t, rec, q1, q2)
	mu.Lock()
	defer mu.Unlock()
	if q1.Node().ID != "twin" || q2.Node().ID == "twin" || len(renamed) != 1 || renamed[0] != q2.Node().ID {
		t.Errorf("they are %s and %s, renamed %v", q1.Node().ID, q2.Node().ID, renamed)
	}
}

// A node that stops has left for good: it neither joins again because its row is
// gone, nor takes the place it gave up for somebody else's and another id for
// itself, which the next start would go on with.
func TestWhoLeavesIsGoneAndKeepsItsId(t *testing.T) {
	url := pgtest.URL(t)
	witness := openDB(t, url)
	nudging, end := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer end()
	wg.Go(func() { // so that it looks at the cluster all the time, to the last moment
		for nudging.Err() == nil {
			_ = witness.Notify(nudging, channel, msgChanged)
		}
	})
	for range 12 {
		cfg := Config{Tasks: map[string]Task{"t": newRecorder().task()}, Lease: 500 * time.Millisecond, Node: store.Node{ID: "leaver"}}
		cfg.Renamed = func(id string) { t.Errorf("it took the id %s", id) }
		q, stop := startQueue(t, openDB(t, url), cfg)
		eventually(t, "it owns something", func() bool { return owned(q) > 0 })
		stop()
		var rows int
		err := witness.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			return tx.QueryRow(ctx, `select count(*) from nodes where id = $1`, "leaver").Scan(&rows)
		})
		if err != nil || rows != 0 {
			t.Fatalf("%d rows of it are left, %v", rows, err)
		}
	}
}

// If the claim of an id was lost for a moment and somebody else joined under it,
// the heartbeat tells: the node drops everything and goes on under another id.
func TestDisplacedNodeGoesOnUnderAnotherId(t *testing.T) {
	url := pgtest.URL(t)
	rec := newRecorder()
	q, _ := startQueue(t, openDB(t, url), Config{Tasks: map[string]Task{"t": rec.task()}, Lease: time.Second, Node: store.Node{ID: "n"}})
	eventually(t, "it owns all", func() bool { return owned(q) == 64 })
	other := openDB(t, url)
	if err := other.Join(t.Context(), store.Node{ID: "n", Incarnation: "other", Share: true}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has another id", func() bool { return q.Node().ID != "n" })
	if err := other.Leave(t.Context(), store.Node{ID: "n", Incarnation: "other"}); err != nil {
		t.Fatal(err)
	}
	everyShareIsWorked(t, rec, q)
}
