package queue

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

// newLessee is a node that nobody runs: tests take its steps one by one. It
// holds the given buckets, in their first epoch.
func newLessee(t *testing.T, url string, buckets ...int) *lessee {
	t.Helper()
	q, err := New(Config{DB: openDB(t, url), Node: store.Node{ID: "me", Share: true}, Lease: time.Second, Metrics: NewMetrics(prometheus.NewRegistry()), Tasks: map[string]Task{"t": newRecorder().task()}})
	if err != nil {
		t.Fatal(err)
	}
	q.board.timer = time.NewTimer(time.Hour)
	t.Cleanup(func() { q.board.timer.Stop() })
	for _, id := range buckets {
		q.board.own(id, 1)
	}
	return &lessee{q: q, seen: map[string]sighting{}}
}

// lost is how many buckets were counted as lost.
func (l *lessee) lost(t *testing.T) float64 {
	t.Helper()
	r := prometheus.NewRegistry()
	if err := r.Register(l.q.cfg.Metrics.leases); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families[0].GetMetric()[0].GetCounter().GetValue()
}

// What the database says of the buckets decides: ours are gone on with, those
// that another node has are dropped. Only what was not given back is lost.
func TestWhatTheDatabaseSaysOfBucketsDecides(t *testing.T) {
	l := newLessee(t, pgtest.URL(t), 0, 1, 2, 3)
	b := l.q.board
	b.suspend()
	b.owned[3].leaving = true
	l.compare(store.View{Buckets: []store.Bucket{
		{ID: 0, Node: "me", Epoch: 1}, {ID: 1, Node: "me", Epoch: 2}, {ID: 2, Node: "other", Epoch: 1}, {ID: 3, Node: "other", Epoch: 2}, {ID: 4, Node: "me", Epoch: 9},
	}})
	if k := b.owned[0]; len(b.owned) != 1 || k == nil || k.draining || k.suspended {
		t.Errorf("held are %d buckets; the first is %+v", len(b.owned), k)
	}
	if lost := l.lost(t); lost != 2 {
		t.Errorf("%v buckets were lost, want 2: that of another epoch and that of another node", lost)
	}
}

// A bucket that is lost takes with it what runs, what waits, and what is not yet
// written; of other buckets nothing is touched.
func TestALostBucketTakesItsWorkWithIt(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	b := newTestBoard()
	b.own(1, 1)
	var causes []error
	for bucket := range 2 {
		for i := range 3 {
			j := job(int64(10*bucket+i), now)
			j.Bucket = bucket
			b.offer(j, false, now, now)
			e, _ := b.take(b.pools[0], now)
			switch {
			case e == nil:
				t.Fatal("nothing runs")
			case i == 0:
				b.finish(e, store.Finished{Job: &e.job})
			case i == 1:
				e.cancel = func(cause error) { causes = append(causes, cause) }
			}
		}
	}
	b.disown(0, ErrLeaseLost)
	if len(b.running) != 2 || len(b.finished) != 1 || b.finished[0].Job.Bucket != 1 || len(b.entries) != 3 {
		t.Errorf("%d run, %d are to be written, %d are in hand; want 2, 1 and 3 of the other bucket", len(b.running), len(b.finished), len(b.entries))
	}
	if len(causes) != 1 || !errors.Is(causes[0], ErrLeaseLost) {
		t.Errorf("what runs was told %v", causes)
	}
}

// A node without an answer says so, starts nothing once its lease may be over,
// and goes on with the first heartbeat that works.
func TestSilenceSuspendsAndAnAnswerGoesOn(t *testing.T) {
	l := newLessee(t, pgtest.URL(t), 0)
	l.joined, l.beatAt = true, time.Hour
	l.q.health.started()
	suspended := func() bool { return l.q.board.owned[0].suspended }
	l.failed(context.DeadlineExceeded, time.Hour+l.q.stopAfter()-1)
	if err := l.q.Health(); !errors.Is(err, store.ErrNoAnswer) || suspended() || l.silent {
		t.Errorf("health is %v; suspended: %v", err, suspended())
	}
	l.failed(context.DeadlineExceeded, time.Hour+l.q.stopAfter())
	if !suspended() || !l.silent {
		t.Error("it goes on although its lease may be over")
	}
	now := time.Hour + 3*l.q.cfg.Lease
	l.answered(store.View{Buckets: []store.Bucket{{ID: 0, Node: "me", Epoch: 1}}}, now)
	if err := l.q.Health(); err != nil || suspended() || l.silent || l.beatAt != now || l.q.board.until != now+l.q.stopAfter() {
		t.Errorf("after an answer: health is %v, suspended: %v, silent: %v, until %v", err, suspended(), l.silent, l.q.board.until)
	}
}

// The wall clock may jump while nothing is heard: an answer also looks for what
// has become due.
func TestAnAnswerLooksForWhatIsDue(t *testing.T) {
	l := newLessee(t, pgtest.URL(t), 0)
	b, before := l.q.board, time.Now().Add(-500*time.Millisecond)
	b.offer(job(1, before.Add(100*time.Millisecond)), false, before, before)
	if b.entries[1].place != inTimers {
		t.Fatalf("it is in place %v", b.entries[1].place)
	}
	l.answered(store.View{Buckets: []store.Bucket{{ID: 0, Node: "me", Epoch: 1}}}, time.Hour)
	if b.entries[1].place != inReady {
		t.Error("it still waits")
	}
}

// One try is given up before the lease is over; where nothing can be lost any
// more, half a lease.
func TestPatienceEndsBeforeTheLease(t *testing.T) {
	l := newLessee(t, pgtest.URL(t))
	lease := l.q.cfg.Lease
	stop := l.q.stopAfter()
	for _, c := range []struct {
		silent       bool
		since, wants time.Duration
	}{
		{false, 0, lease / 2}, {false, stop - lease/4, lease / 4}, {false, stop, lease / 2}, {false, stop + 1, lease / 2}, {true, stop - lease/4, lease / 2},
	} {
		l.silent, l.beatAt = c.silent, time.Hour
		if got := l.patience(time.Hour + c.since); got != c.wants {
			t.Errorf("%v after a heartbeat (silent: %v): %v, want %v", c.since, c.silent, got, c.wants)
		}
	}
}

// A node that cannot join yet tries again soon; one whose share fails says so,
// although its heartbeat works, and until it succeeds.
func TestAShareThatFailsIsToldUntilItSucceeds(t *testing.T) {
	l := newLessee(t, pgtest.URL(t))
	if l.failed(errors.New("not yet"), time.Hour); !l.hurry {
		t.Error("it does not hurry to join")
	}
	refuse(t, l.q.db, "buckets", "update", "node", "me")
	l.hurry, l.beatAt = false, time.Hour
	if err := l.runOnce(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if l.q.health.failed[dutyShare] == nil || l.q.health.failed[dutyBeat] != nil || !l.hurry {
		t.Errorf("what failed is %v; it hurries: %v", l.q.health.failed, l.hurry)
	}
	err := l.q.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `drop trigger refuse_bucketsupdatenode on buckets`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.runOnce(t.Context(), time.Hour+time.Millisecond); err != nil || l.q.Health() != nil || owned(l.q) != 64 || l.hurry {
		t.Errorf("%v, health %v, %d buckets, it hurries: %v", err, l.q.Health(), owned(l.q), l.hurry)
	}
}

// Nothing is taken from a node that lives; what is in one's own name is taken
// beyond the fair share, what is free or of the dead up to it.
func TestBucketsOfTheLivingAreLeftAlone(t *testing.T) {
	l := newLessee(t, pgtest.URL(t))
	db := l.q.db
	names := []string{"me", "me", "me", "living", "living", "dead", "dead", "dead", ""}
	for id, name := range names {
		if _, err := db.Take(t.Context(), name, store.Bucket{ID: id}); err != nil && name != "" {
			t.Fatal(err)
		}
	}
	look := func() (v store.View) {
		for id, name := range names {
			v.Buckets = append(v.Buckets, store.Bucket{ID: id, Node: name, Epoch: 1})
		}
		v.Buckets[8].Epoch = 0
		return v
	}
	for _, c := range []struct{ fair, want int }{{2, 3}, {5, 5}} {
		if err := l.take(t.Context(), look(), map[string]bool{"dead": true}, c.fair); err != nil {
			t.Fatal(err)
		}
		if n := owned(l.q); n != c.want || l.q.board.owned[3] != nil || l.q.board.owned[4] != nil || l.q.health.unheldShares() != 0 {
			t.Errorf("with a fair share of %d it holds %d, want %d", c.fair, n, c.want)
		}
	}
}

// Nodes that went away are forgotten, and what they left is looked for.
func TestANodeThatLeftIsForgotten(t *testing.T) {
	l := newLessee(t, pgtest.URL(t), 0)
	l.watch(store.View{Nodes: []store.Node{{ID: "me"}, {ID: "other", Beat: 7}}}, time.Hour, time.Hour)
	for i := range l.q.board.owned[0].cursors {
		l.q.board.owned[0].cursors[i] = cursor{runAt: time.Now()}
	}
	l.watch(store.View{Nodes: []store.Node{{ID: "me"}}}, time.Hour+time.Millisecond, time.Hour+time.Millisecond)
	if _, known := l.seen["other"]; known || !l.q.board.owned[0].cursors[0].dirty {
		t.Errorf("it is known: %v, and what it left is not read", known)
	}
	l.startAnew()
	if len(l.seen) != 0 || l.joined || len(l.q.board.owned) != 0 || l.lost(t) != 1 {
		t.Errorf("a node that starts anew knows %v and holds %d", l.seen, len(l.q.board.owned))
	}
}

// A silent node is looked at again at the instant when it is dead. One that is
// dead already, and this node itself, are no reason to hurry.
func TestTheNextLookIsWhenASilentNodeIsDead(t *testing.T) {
	l := newLessee(t, pgtest.URL(t))
	for _, c := range []struct {
		stood map[string]time.Duration
		took  time.Duration
		hurry bool
		want  time.Duration
	}{
		{nil, 0, false, 200 * time.Millisecond},
		{nil, 50 * time.Millisecond, false, 150 * time.Millisecond},
		{map[string]time.Duration{"other": 300 * time.Millisecond}, 0, false, 200 * time.Millisecond},
		{map[string]time.Duration{"other": 920 * time.Millisecond, "third": 0}, 20 * time.Millisecond, false, 60 * time.Millisecond},
		{map[string]time.Duration{"me": 920 * time.Millisecond, "dead": 1200 * time.Millisecond}, 0, false, 200 * time.Millisecond},
		{nil, 0, true, 20 * time.Millisecond},
		{nil, time.Second, false, 10 * time.Millisecond},
	} {
		clear(l.seen)
		l.lookedAt = time.Hour
		for id, stood := range c.stood {
			l.seen[id] = sighting{since: time.Hour - stood}
		}
		if l.hurry = c.hurry; l.nextLook(c.took) != c.want {
			t.Errorf("%+v: the next look is in %s", c, l.nextLook(c.took))
		}
	}
}
