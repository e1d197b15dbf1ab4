package queue

import (
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

func newTestBoard() *board {
	b := newBoard(defaultLimits(), false)
	b.timer = time.NewTimer(time.Hour)
	b.own(0, 1)
	return b
}

func job(id int64, at time.Time) store.Job { return store.Job{ID: id, RunAt: at, Task: "t"} }

// The wall clock may be set back by an hour: what is no longer due waits, what
// runs is not started again, and nothing is lost.
func TestClockSetBack(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	b := newTestBoard()
	b.offer(job(1, now.Add(-time.Second)), false, now, now)
	b.offer(job(2, now.Add(500*time.Millisecond)), false, now, now)
	if e, _ := b.take(b.pools[0], now); e == nil || e.job.ID != 1 {
		t.Fatalf("took %+v", e)
	}
	back := now.Add(-time.Hour)
	b.fire(back)
	b.offer(job(1, now.Add(-time.Second)), true, back, back) // a fetch sees the running one
	if e, _ := b.take(b.pools[0], back); e != nil {
		t.Errorf("job %d started an hour early, or twice", e.job.ID)
	}
	again := now.Add(time.Second)
	b.fire(again)
	if e, _ := b.take(b.pools[0], again); e == nil || e.job.ID != 2 {
		t.Errorf("after the clock caught up: %+v", e)
	}
}

// A hint that arrives while a fetch is under way must not be forgotten: the
// fetch may not have seen the row.
func TestHintDuringAFetchIsNotForgotten(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	b := newTestBoard()
	p := b.plan(now)
	b.fetching = true
	b.announce(0, 0, now.Add(-time.Minute), now)
	b.fetched(p, []store.Job{job(9, now)}, now, now)
	c := b.owned[0].cursors[levelOf(0)]
	if !c.dirty || !c.runAt.Before(now.Add(-time.Minute)) {
		t.Errorf("cursor at %v, dirty %v", c.runAt, c.dirty)
	}
}

// A fetch that began before a job was finished may still see its row.
func TestFinishedJobIsNotTakenUpFromAnOlderFetch(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	b := newTestBoard()
	b.offer(job(1, now), false, now, now)
	e, _ := b.take(b.pools[0], now)
	p := b.plan(now)
	b.fetching = true
	f := store.Finished{Job: &e.job}
	b.finish(e, f)
	b.written([]store.Finished{f})
	b.fetched(p, []store.Job{job(1, now)}, now, now)
	if e, _ := b.take(b.pools[0], now); e != nil {
		t.Error("a finished job was started again")
	}
}

func TestHandIsBounded(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	b := newTestBoard()
	for i := range 20_000 {
		b.offer(job(int64(i), now), false, now, now)
	}
	if n := len(b.entries); n > b.limits.hand {
		t.Errorf("%d jobs in hand, limit %d", n, b.limits.hand)
	}
	if !b.owned[0].cursors[levelOf(0)].dirty {
		t.Error("what did not fit will not be fetched")
	}
}

// A job that is changed while its end is being written may have been read by
// the finisher before the change: it must be looked for again.
func TestChangeDuringTheFinishIsNotForgotten(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	b := newTestBoard()
	b.offer(job(1, now), false, now, now)
	e, _ := b.take(b.pools[0], now)
	f := store.Finished{Job: &e.job}
	b.finish(e, f)
	changed := job(1, now)
	changed.Rev = 1
	b.owned[0].cursors[levelOf(0)] = cursor{runAt: now.Add(time.Minute)}
	b.offer(changed, false, now, now) // armed again, while the finisher is at the database
	b.written([]store.Finished{f})
	if c := b.owned[0].cursors[levelOf(0)]; !c.dirty || c.runAt.After(now) {
		t.Errorf("cursor at %v, dirty %v: the new time of the job is not read", c.runAt, c.dirty)
	}
}

// A lane runs one job at a time: the next one is taken only when the one before
// is out of hand.
func TestBoardGivesOneJobOfALaneAtATime(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	b := newTestBoard()
	for id := range int64(3) {
		j := job(id+1, now)
		j.Lane = "l"
		b.offer(j, false, now, now)
	}
	for id := range int64(3) {
		e, _ := b.take(b.pools[0], now)
		if e == nil || e.job.ID != id+1 {
			t.Fatalf("took %+v, want job %d", e, id+1)
		}
		if beside, _ := b.take(b.pools[0], now); beside != nil {
			t.Fatalf("job %d runs beside job %d", beside.job.ID, e.job.ID)
		}
		f := store.Finished{Job: &e.job}
		b.finish(e, f)
		b.written([]store.Finished{f})
	}
}
