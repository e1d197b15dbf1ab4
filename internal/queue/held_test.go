package queue

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

// Rows that were being checked when their bucket began to drain are not started;
// those of other buckets go on, in their order.
func TestRowsThatWereCheckedWhileTheirBucketDrainsDoNotStart(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	b := newTestBoard()
	b.shared = true
	b.extend(b.clock() + time.Hour)
	b.own(1, 1)
	for id := range int64(4) {
		j := job(id+1, now)
		j.Bucket = int(id) % 2
		b.offer(j, true, now, now)
	}
	later := now.Add(b.limits.fresh + checkedFor)
	_, check := b.take(b.pools[0], later)
	if len(check) != 4 {
		t.Fatalf("%d rows are to be checked", len(check))
	}
	b.drain(0)
	b.checked(check, map[int64]int64{1: 0, 2: 0, 3: 0, 4: 0}, later, later)
	for _, want := range []int64{2, 4} {
		if e, _ := b.take(b.pools[0], later); e == nil || e.job.ID != want {
			t.Fatalf("took %+v, want job %d", e, want)
		}
	}
	if e, again := b.take(b.pools[0], later); e != nil || again != nil {
		t.Errorf("of the bucket that drains: %+v, %d to check", e, len(again))
	}
}

// What is taken out of hand while it waits for a worker does not start from
// there: another node may have it by then.
func TestWhatIsTakenOutOfHandDoesNotStart(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	for name, out := range map[string]func(*board){
		"its bucket drains":  func(b *board) { b.drain(0) },
		"its bucket is lost": func(b *board) { b.disown(0, ErrLeaseLost) },
	} {
		b := newTestBoard()
		b.own(1, 1)
		b.offer(job(1, now), false, now, now)
		out(b)
		if e, _ := b.take(b.pools[0], now); e != nil {
			t.Errorf("%s: job %d starts", name, e.job.ID)
		}
	}
}

// A job that did not begin after all is read again, so that it begins later.
func TestAJobThatDidNotBeginIsReadAgain(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	b := newTestBoard()
	b.offer(job(1, now), false, now, now)
	e, _ := b.take(b.pools[0], now)
	b.owned[0].cursors[levelOf(0)] = cursor{runAt: now.Add(time.Minute)}
	b.giveUp(e)
	if c := b.owned[0].cursors[levelOf(0)]; !c.dirty || c.runAt.After(now) || len(b.entries) != 0 || b.owned[0].busy != 0 {
		t.Errorf("cursor at %v, dirty %v; %d in hand, %d busy", c.runAt, c.dirty, len(b.entries), b.owned[0].busy)
	}
}

// A job that was left because of a halt is read again if the halt is lifted by then:
// nobody else would find it.
func TestAJobThatWasLeftForAHaltThatIsLiftedIsReadAgain(t *testing.T) {
	now := time.Now()
	for _, halted := range []bool{true, false} {
		b := newTestBoard()
		b.halt = store.HaltMark{ID: 1}
		if !halted {
			b.halt.Lifted = now
		}
		b.offer(job(1, now), false, now, now)
		e, _ := b.take(b.pools[0], now)
		e.started = now
		b.owned[0].cursors[levelOf(0)] = cursor{runAt: now.Add(time.Minute)}
		if q := (&Queue{board: b}); !q.leaveHalted(e) {
			t.Fatal("it is not left")
		}
		if c := b.owned[0].cursors[levelOf(0)]; c.dirty == halted || len(b.entries) != 0 {
			t.Errorf("halted %v: it is to be read again: %v; %d in hand", halted, c.dirty, len(b.entries))
		}
	}
}

// A lane that runs low wakes the fetcher by itself: nothing of it may end for
// hours.
func TestALaneThatRunsLowWakesTheFetcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		b := newTestBoard()
		b.limits.lane = 2
		for id := range int64(9) {
			j := job(id+1, now)
			j.Lane = "l"
			b.offer(j, false, now, now)
		}
		woken := false
		waits := make(chan struct{})
		go func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			close(waits)
			b.fetchCond.Wait()
			woken = true
		}()
		<-waits
		b.mu.Lock()
		for _, e := range []int64{1, 2, 3} { // their rows are gone
			if e := b.entries[e]; e != nil {
				b.drop(e)
			}
		}
		wanted := len(b.refills)
		b.mu.Unlock()
		synctest.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		if wanted == 0 || !woken {
			t.Errorf("%d lanes are to be filled, and the fetcher is awake: %v", wanted, woken)
		}
		b.fetchCond.Signal() // so that nobody is left in the bubble
	})
}

// Buckets of a node without a row are for those who are left; those of nodes with
// one are not.
func TestBucketsOfANodeWithoutARowAreFree(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		l := newLessee(t, url)
		dead := l.watch(store.View{
			Nodes:   []store.Node{{ID: "me"}, {ID: "other", Beat: 7}},
			Buckets: []store.Bucket{{ID: 0, Node: "me"}, {ID: 1, Node: "other"}, {ID: 2, Node: "buried"}, {ID: 3}},
		}, time.Hour, time.Hour)
		if len(dead) != 1 || !dead["buried"] {
			t.Errorf("dead are %v", dead)
		}
	})
}

// Hints are said once; those that could not be sent are kept with what came
// since, and the earlier time of both is said.
func TestHintsAreSaidOnceAndTheEarliestIsKept(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	h := newHints(nil)
	h.when[[2]int{1, 0}], h.when[[2]int{2, 0}], h.stop, h.news = now, now, []int64{7}, true
	first := h.drain()
	if left := h.drain(); len(left.messages("me")) != 0 {
		t.Errorf("it is said twice: %q", left.messages("me"))
	}
	h.when[[2]int{1, 0}], h.when[[2]int{2, 0}], h.when[[2]int{3, 0}] = now.Add(time.Second), now.Add(-time.Second), now
	h.keep(first)
	kept := h.drain()
	for bucket, want := range map[int]time.Time{1: now, 2: now.Add(-time.Second), 3: now} {
		if got := kept.when[[2]int{bucket, 0}]; !got.Equal(want) {
			t.Errorf("bucket %d is due at %v, want %v", bucket, got, want)
		}
	}
	if len(kept.stop) != 1 || !kept.news {
		t.Errorf("kept are %+v", kept)
	}
	if len(h.wake) != 1 {
		t.Error("nobody is woken to send what is kept")
	}
}

// What a queue is not told has its usual value, each of them for itself.
func TestAQueueFillsWhatItIsNotTold(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db, few := openDB(t, url), limits{hand: 9}
		for _, given := range []limits{{}, few} {
			q, err := New(Config{DB: db, Node: store.Node{ID: "me"}, limits: given})
			if err != nil {
				t.Fatal(err)
			}
			c := q.cfg
			if c.limits.door != defaultDoorLimits() || c.limits.answer != defaultLimits().answer || c.Lease != defaultLease || c.Drain == 0 || c.Tasks == nil {
				t.Errorf("of %+v it makes %+v", given, c)
			}
			if c.limits.hand == 0 || given.hand != 0 && c.limits.hand != given.hand {
				t.Errorf("told to hold %d it holds %d", given.hand, c.limits.hand)
			}
		}
	})
}

// Callers with one job share a transaction; one with several has its own, and
// waits for nobody.
func TestOneJobSharesATransactionAndSeveralDoNot(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		q, err := New(Config{DB: openDB(t, url), Node: store.Node{ID: "me"}, Tasks: map[string]Task{"t": newRecorder().task()}})
		if err != nil {
			t.Fatal(err)
		}
		q.enq.running.Store(true) // and nobody writes for the callers
		if jobs, err := q.Enqueue(t.Context(), store.JobSpec{Task: "t"}, store.JobSpec{Task: "t"}); err != nil || len(jobs) != 2 {
			t.Errorf("several: %d, %v", len(jobs), err)
		}
		given := make(chan error, 1)
		go func() {
			_, err := q.Enqueue(t.Context(), store.JobSpec{Task: "t"})
			given <- err
		}()
		select {
		case r := <-q.enq.requests:
			q.enq.write([]*enqueueRequest{r})
		case err := <-given:
			t.Fatalf("one did not wait to share: %v", err)
		}
		if err := <-given; err != nil || countJobs(t, q.db) != 3 {
			t.Errorf("%d jobs, %v", countJobs(t, q.db), err)
		}
	})
}

// The row of a job that runs for long says so, so that whoever finds it after a
// crash counts the attempt; and the process knows what it runs.
func TestTheRowOfALongJobSaysThatItRuns(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db, leave := openDB(t, url), make(chan struct{})
		q, _ := startQueue(t, db, Config{Tasks: map[string]Task{"t": {Run: func(ctx context.Context, _ *Job) error {
			select {
			case <-leave:
			case <-ctx.Done():
			}
			return nil
		}}}})
		jobs, err := q.Enqueue(t.Context(), store.JobSpec{Task: "t"})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "its row is marked", func() bool {
			rows, err := db.FetchJobs(t.Context(), []int64{jobs[0].ID})
			return err == nil && len(rows) == 1 && !rows[0].StartedAt.IsZero()
		})
		if !q.IsRunning(jobs[0].ID) || q.IsRunning(jobs[0].ID+1) {
			t.Error("the process does not know what it runs")
		}
		close(leave)
		eventually(t, "it ends", func() bool { return countJobs(t, db) == 0 })
		if q.IsRunning(jobs[0].ID) {
			t.Error("what ended is said to run")
		}
	})
}

// A bucket that is found to be lost when an end is written is counted, where
// whoever watches the process sees it.
func TestABucketThatIsLostAtAnEndIsCounted(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db, reg := openDB(t, url), prometheus.NewRegistry()
		q, _ := startQueue(t, db, Config{Lease: time.Hour, Metrics: NewMetrics(reg), Tasks: map[string]Task{"t": {Run: func(ctx context.Context, j *Job) error {
			got, err := db.Take(ctx, "thief", store.Bucket{ID: j.fence.Bucket, Epoch: j.fence.Epoch})
			if err == nil && len(got) == 0 {
				err = errors.New("not taken")
			}
			return err
		}}}})
		eventually(t, "it is ready", func() bool { return owned(q) == db.Buckets() })
		if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "t"}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the bucket is let go", func() bool { return owned(q) == db.Buckets()-1 })
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		counted := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				counted[f.GetName()] += m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
		if counted["pawl_queue_lease_lost_total"] != 1 || counted["pawl_queue_lag_seconds"] != 1 {
			t.Errorf("counted are %v", counted)
		}
	})
}
