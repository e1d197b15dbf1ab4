package queue

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/pgtest/proxy"
	"github.com/pawlrun/pawl/internal/store"
)

// kill ends a queue's process as far as the database can see: its connections
// are gone, and it said nothing.
func kill(db *store.DB, stop func()) {
	_ = db.Close()
	go stop()
}

// everyShareIsWorked checks that each bucket is held by one of the queues, and
// that a job in each runs.
func everyShareIsWorked(t *testing.T, rec *recorder, queues ...*Queue) {
	t.Helper()
	eventually(t, "all shares are held", func() bool {
		n := 0
		for _, q := range queues {
			n += owned(q)
		}
		return n == 64
	})
	var specs []store.JobSpec
	for i, covered := 0, map[int]bool{}; len(covered) < 64; i++ {
		lane := fmt.Sprint("lane-", i)
		if b := queues[0].db.BucketOf(lane, ""); !covered[b] {
			covered[b] = true
			specs = append(specs, store.JobSpec{Task: "t", Lane: lane})
		}
	}
	if _, err := queues[0].Enqueue(t.Context(), specs...); err != nil {
		t.Fatal(err)
	}
	for range specs {
		rec.wait(t)
	}
	for _, q := range queues { // one whose last look was not answered looks again within a second
		eventually(t, "the node is well", func() bool { return q.Health() == nil })
	}
}

// A node that had everything is killed, a second one starts, and the first comes
// back under its id: what is in its name is worked by it or given away.
func TestNodeThatComesBackServesWhatIsInItsName(t *testing.T) {
	url := pgtest.URL(t)
	rec := newRecorder()
	cfg := Config{Tasks: map[string]Task{"t": rec.task()}, Lease: time.Second, Node: store.Node{ID: "first"}}
	db1 := openDB(t, url)
	q1, stop1 := startQueue(t, db1, cfg)
	eventually(t, "the first node owns all", func() bool { return owned(q1) == 64 })
	kill(db1, stop1)
	second := cfg
	second.Node.ID = "second"
	q2, _ := startQueue(t, openDB(t, url), second)
	eventually(t, "the second node has joined", func() bool { return q2.Health() == nil })
	back, _ := startQueue(t, openDB(t, url), cfg)
	eventually(t, "both have their half", func() bool { return owned(back) == 32 && owned(q2) == 32 })
	if id := back.Node().ID; id != "first" {
		t.Errorf("it came back as %s", id)
	}
	everyShareIsWorked(t, rec, back, q2)
}

// An ordinary join while answers of PostgreSQL to the older node get lost.
func TestJoinWhileAnswersAreLostOrphansNothing(t *testing.T) {
	url := pgtest.URL(t)
	p := proxy.New(t, url)
	rec := newRecorder()
	tasks := map[string]Task{"t": rec.task()}
	q1, _ := startQueue(t, openDB(t, p.URL()), Config{Tasks: tasks, Lease: time.Second})
	eventually(t, "the first node owns all", func() bool { return owned(q1) == 64 })
	p.LoseAnswers("COMMIT", 1) // to the release of its half
	q2, _ := startQueue(t, openDB(t, url), Config{Tasks: tasks, Lease: time.Second})
	eventually(t, "the answer was lost", func() bool { return p.Lost() == 1 })
	p.LoseAnswers("SELECT", 3) // heartbeats
	eventually(t, "some more", func() bool { return p.Lost() == 4 })
	everyShareIsWorked(t, rec, q1, q2)
}

// Shares in a node's name that it cannot get are told: the node is not ready,
// and a number says how many.
func TestSharesThatCannotBeHeldAreTold(t *testing.T) {
	url := pgtest.URL(t)
	db := openDB(t, url)
	if _, err := db.Take(t.Context(), "n", store.Bucket{ID: 3}, store.Bucket{ID: 4}); err != nil {
		t.Fatal(err)
	}
	held, letGo := holdBuckets(t, openDB(t, url), 3, 4) // as a transaction would that hangs
	<-held
	q, _ := startQueue(t, db, Config{Node: store.Node{ID: "n"}, Tasks: map[string]Task{"t": newRecorder().task()}, Lease: 400 * time.Millisecond})
	eventually(t, "the rest is held", func() bool { return owned(q) == 62 })
	eventually(t, "the node says that it is not ready", func() bool { return q.Health() != nil && q.health.unheldShares() == 2 })
	letGo()
	eventually(t, "all is held and well", func() bool { return owned(q) == 64 && q.Health() == nil && q.health.unheldShares() == 0 })
}

// A bucket that is to be given away and has a job that does not end goes on with
// its other lanes.
func TestBucketWithALongJobIsWorkedOn(t *testing.T) {
	db := openDB(t, pgtest.URL(t))
	_ = db
	b := newBoard(defaultLimits(), true)
	b.timer = time.NewTimer(time.Hour)
	now := time.Duration(0)
	b.clock = func() time.Duration { return now }
	b.until = time.Hour
	b.own(0, 1)
	q, err := New(Config{DB: db, Node: store.Node{ID: "n"}})
	if err != nil {
		t.Fatal(err)
	}
	q.board = b
	l := &lessee{q: q, seen: map[string]sighting{}}
	at := time.Now()
	b.offer(store.Job{ID: 1, Task: "t", Lane: "long", RunAt: at}, false, at, at)
	if e, _ := b.take(b.pools[0], at); e == nil {
		t.Fatal("nothing runs")
	}
	if err := l.giveBack(t.Context(), 0, now); err != nil || !b.owned[0].draining {
		t.Fatalf("it is not to be given away: %v", err)
	}
	now = q.cfg.Lease + 1
	if err := l.giveBack(t.Context(), 0, now); err != nil || b.owned[0].draining {
		t.Fatalf("its other lanes stand still: %v", err)
	}
	b.offer(store.Job{ID: 2, Task: "t", Lane: "other", RunAt: at}, false, at, at)
	if e, _ := b.take(b.pools[0], at); e == nil || e.job.ID != 2 {
		t.Error("the other lane does not run")
	}
	now += 3*q.cfg.Lease + 1
	if err := l.giveBack(t.Context(), 0, now); err != nil || !b.owned[0].draining {
		t.Errorf("it is never tried again: %v", err)
	}
}

// A lane with more in the table than in hand is not read over and over while its
// bucket is on its way to somebody else.
func TestDrainingBucketReadsNothing(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	b := newTestBoard()
	b.limits.lane = 2
	for id := range int64(9) {
		j := job(id+1, now)
		j.Lane = "l"
		b.offer(j, false, now, now)
	}
	if e, _ := b.take(b.pools[0], now); e == nil {
		t.Fatal("nothing runs")
	}
	b.drain(0)
	for round := range 3 {
		if p := b.plan(now); round > 0 && (len(p.lanes) > 0 || len(p.cursors) > 0) {
			t.Errorf("round %d reads %+v", round, p)
		} else {
			b.filled(p, nil, now, now)
		}
	}
	b.undrain(b.owned[0])
	if p := b.plan(now); len(p.cursors) == 0 {
		t.Error("nothing is read after it goes on")
	}
}

// Silence counts only while it was listened to: from an answer on, up to the begin
// of a look, less what is not seen in between.
func TestSilenceIsWhatWasSeen(t *testing.T) {
	q, err := New(Config{DB: openDB(t, pgtest.URL(t)), Node: store.Node{ID: "me"}, Lease: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	view := store.View{Nodes: []store.Node{{ID: "me"}, {ID: "other", Beat: 7}}}
	type look struct{ after, took time.Duration } // since the look before began, and until this one is answered
	s := time.Second
	for name, looks := range map[string][]look{ // the other one is dead at the last, and not before
		"one look after the other":                 {{0, 0}, {2 * s, 0}, {2 * s, 0}, {2 * s, 0}, {2 * s, 0}, {2*s - 1, 0}, {1, 0}},
		"the first answer is late":                 {{0, 3 * s / 2}, {2 * s, 0}, {2 * s, 0}, {2 * s, 0}, {2 * s, 0}, {2 * s, 0}, {3*s/2 - 1, 0}, {1, 0}},
		"another answer is late":                   {{0, 0}, {2 * s, 0}, {2 * s, 0}, {2 * s, 2 * s}, {2 * s, 0}, {2*s - 1, s}, {1, 0}},
		"not all of a longer pause was seen":       {{0, 0}, {2 * s, 0}, {2 * s, 0}, {2 * s, 0}, {5 * s, 0}, {s - 1, 0}, {1, 0}},
		"after half a lease of nothing it is anew": {{0, 0}, {2 * s, 0}, {2 * s, 0}, {2 * s, 0}, {2 * s, 0}, {5*s + 1, s}, {2 * s, 0}, {2 * s, 0}, {2 * s, 0}, {2 * s, 0}, {3*s - 1, 0}, {1, 0}},
	} {
		l, now := &lessee{q: q, seen: map[string]sighting{}}, time.Hour
		for i, look := range looks {
			now += look.after
			if dead := l.watch(view, now, now+look.took)["other"]; dead != (i == len(looks)-1) {
				t.Errorf("%s: at look %d of %d it is dead: %v", name, i+1, len(looks), dead)
			}
		}
	}
}
