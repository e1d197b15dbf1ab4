package queue

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

// exclusion is a task that notices when two jobs of a lane overlap, when a job
// runs twice, and when a lane's jobs run out of order.
type exclusion struct {
	mu    sync.Mutex
	busy  map[string]bool
	last  map[string]int64
	runs  map[int64]int
	fault string
	done  atomic.Int64
}

func newExclusion() *exclusion {
	return &exclusion{busy: map[string]bool{}, last: map[string]int64{}, runs: map[int64]int{}}
}

func (x *exclusion) run(_ context.Context, j *Job) error {
	lane := j.Lane
	if lane != "" {
		lane = j.Owner + "/" + lane
	}
	x.mu.Lock()
	if lane != "" && x.busy[lane] {
		x.fault = fmt.Sprintf("lane %s runs two jobs at once", lane)
	}
	if lane != "" && x.last[lane] > j.ID {
		x.fault = fmt.Sprintf("lane %s ran job %d after %d", lane, j.ID, x.last[lane])
	}
	x.busy[lane], x.last[lane] = true, j.ID
	x.runs[j.ID]++
	if x.runs[j.ID] > 1 {
		x.fault = fmt.Sprintf("job %d ran twice", j.ID)
	}
	x.mu.Unlock()
	x.mu.Lock()
	x.busy[lane] = false
	x.mu.Unlock()
	x.done.Add(1)
	return nil
}

// C-09, C-10, C-58, C-77: a lane runs one job at a time and in order, whatever fits
// in hand; different lanes run side by side; every job runs once.
func TestLanesRunOneAtATimeInOrder(t *testing.T) {
	for _, c := range []struct {
		name  string
		lim   limits
		lanes int
		hot   int // of ten jobs, how many go to one lane
	}{
		{"roomy", defaultLimits(), 200, 0},
		{"one lane", defaultLimits(), 1, 0},
		{"hot lane", defaultLimits(), 200, 5},
		{"small hand", limits{hand: 64, batch: 16, lane: 4, horizon: time.Second, fresh: time.Millisecond}, 37, 5},
		{"tiny lane window", limits{hand: 200, batch: 40, lane: 1, horizon: time.Second, fresh: 0}, 5, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			pgtest.Both(t, func(t *testing.T, url string) {
				db := openDB(t, url)
				x := newExclusion()
				const n = 3000
				var specs []store.JobSpec
				now := time.Now().Add(-time.Minute)
				for i := range n {
					lane := fmt.Sprintf("lane-%d", i%c.lanes)
					if i%10 < c.hot {
						lane = "hot"
					}
					specs = append(specs, store.JobSpec{Task: "t", Lane: lane, RunAt: now})
				}
				enqueueAll(t, db, specs)
				startQueue(t, db, Config{Tasks: map[string]Task{"t": {Run: x.run}}, limits: c.lim})
				eventually(t, "all jobs ran", func() bool { return x.done.Load() >= n })
				eventually(t, "all rows are gone", func() bool { return countJobs(t, db) == 0 })
				x.mu.Lock()
				defer x.mu.Unlock()
				if x.fault != "" || len(x.runs) != n {
					t.Errorf("%d jobs ran; %s", len(x.runs), x.fault)
				}
			})
		})
	}
}

// lanes of different owners that are called the same are different lanes:
// one that is held up holds up none of the others, however many jobs it has.
func TestLanesOfOwnersAreApart(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		x := newExclusion()
		release := make(chan struct{})
		var held atomic.Int64
		lim := limits{hand: 400, batch: 40, lane: 4, horizon: time.Second, fresh: time.Millisecond}
		var specs []store.JobSpec
		past := time.Now().Add(-time.Minute)
		const each = 50
		for range each {
			for _, owner := range []string{"", "u1", "u2"} {
				specs = append(specs, store.JobSpec{Owner: owner, Task: "t", Lane: "x", RunAt: past})
			}
		}
		enqueueAll(t, db, specs)
		startQueue(t, db, Config{limits: lim, Tasks: map[string]Task{"t": {Run: func(ctx context.Context, j *Job) error {
			if j.Owner == "u1" {
				held.Add(1)
				<-release
			}
			return x.run(ctx, j)
		}}}})
		eventually(t, "the lanes of others are through", func() bool { return x.done.Load() == 2*each })
		if held.Load() != 1 {
			t.Errorf("%d jobs of the lane that is held up have begun", held.Load())
		}
		close(release)
		eventually(t, "all rows are gone", func() bool { return countJobs(t, db) == 0 })
		if x.fault != "" || x.done.Load() != 3*each {
			t.Errorf("%d jobs ran; %s", x.done.Load(), x.fault)
		}
	})
}

// enqueueAll adds rows without telling any queue.
func enqueueAll(t testing.TB, db *store.DB, specs []store.JobSpec) []store.Job {
	t.Helper()
	var out []store.Job
	for i := 0; i < len(specs); i += 1000 {
		err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			jobs, err := tx.Enqueue(ctx, specs[i:min(i+1000, len(specs))])
			out = append(out, jobs...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// Jobs that arrive while their lane is busy, from many goroutines at once, are
// neither lost nor run twice.
func TestLaneTakesArrivalsWhileBusy(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		x := newExclusion()
		lim := limits{hand: 128, batch: 16, lane: 3, horizon: time.Second, fresh: time.Millisecond}
		q, _ := startQueue(t, db, Config{Tasks: map[string]Task{"t": {Run: func(ctx context.Context, j *Job) error {
			x.mu.Lock()
			delete(x.last, j.Owner+"/"+j.Lane) // arrivals commit in any order
			x.mu.Unlock()
			return x.run(ctx, j)
		}}}, limits: lim})
		var wg sync.WaitGroup
		const writers, each = 8, 150
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "t", Lane: fmt.Sprintf("lane-%d", (w+i)%3)}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		eventually(t, "all jobs ran", func() bool { return x.done.Load() == writers*each })
		eventually(t, "all rows are gone", func() bool { return countJobs(t, db) == 0 })
		if x.fault != "" {
			t.Error(x.fault)
		}
		eventually(t, "nothing is left in memory at idle", func() bool {
			q.board.mu.Lock()
			defer q.board.mu.Unlock()
			return len(q.board.entries) == 0 && len(q.board.lanes) == 0
		})
	})
}

func TestUrgentJobsRunFirst(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		var mu sync.Mutex
		var order []int
		past := time.Now().Add(-time.Minute)
		var specs []store.JobSpec
		for i := range 300 {
			specs = append(specs, store.JobSpec{Task: "t", Priority: i%3 - 1, RunAt: past})
		}
		enqueueAll(t, db, specs)
		gate := make(chan struct{})
		var once sync.Once
		q, _ := startQueue(t, db, Config{Workers: 1, Tasks: map[string]Task{"t": {Run: func(_ context.Context, j *Job) error {
			once.Do(func() { <-gate }) // lets everything be fetched before the second job
			mu.Lock()
			order = append(order, j.Priority)
			mu.Unlock()
			return nil
		}}}})
		eventually(t, "all are in hand", func() bool {
			q.board.mu.Lock()
			defer q.board.mu.Unlock()
			return len(q.board.entries) == 300
		})
		close(gate)
		eventually(t, "all ran", func() bool { mu.Lock(); defer mu.Unlock(); return len(order) == 300 })
		for i := 2; i < len(order); i++ {
			if order[i] > order[i-1] {
				t.Fatalf("a job of priority %d ran after one of %d", order[i], order[i-1])
			}
		}
	})
}

// With a hand full of slow ordinary jobs an urgent one still gets in.
func TestUrgentJobPassesAFullHand(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		var specs []store.JobSpec
		for range 500 {
			specs = append(specs, store.JobSpec{Task: "slow", RunAt: time.Now().Add(-time.Minute)})
		}
		enqueueAll(t, db, specs)
		release := make(chan struct{})
		rec := newRecorder()
		q, _ := startQueue(t, db, Config{Workers: 2, limits: limits{hand: 64, batch: 16, lane: 4, horizon: time.Second, fresh: time.Millisecond},
			Tasks: map[string]Task{
				"slow":   {Run: func(ctx context.Context, _ *Job) error { <-release; return nil }},
				"urgent": rec.task(),
			}})
		eventually(t, "the hand is full", func() bool {
			q.board.mu.Lock()
			defer q.board.mu.Unlock()
			return len(q.board.entries) >= 49 && len(q.board.running) == 2
		})
		urgent := enqueueAll(t, db, []store.JobSpec{{Task: "urgent", Priority: 1}})[0]
		q.sweep()
		eventually(t, "the urgent job is in hand", func() bool {
			q.board.mu.Lock()
			defer q.board.mu.Unlock()
			return q.board.entries[urgent.ID] != nil
		})
		go func() { release <- struct{}{} }() // one worker comes free
		rec.wait(t)
		close(release)
	})
}
