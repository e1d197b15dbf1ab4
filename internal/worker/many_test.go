package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// Many workers, two nodes, many lanes, failures, zombies and answers that are lost:
// each job ends once, and lanes keep their order.
func TestManyWorkersEndEachJobOnce(t *testing.T) {
	both(t, func(r *rig) {
		const workers, jobs, lanes = 8, 2000, 40
		r.declare("work", func(d *Definition) { d.MaxAttempts, d.Lease = 1000, time.Minute })
		other := r
		if r.db.Shared() {
			other = newRig(t, r.db, "node-2", limits{})
		}
		var specs []store.JobSpec
		for i := range jobs {
			s := store.JobSpec{Task: "work"}
			if i%4 != 0 { // the others have no lane
				s.Lane = fmt.Sprint("lane", i%lanes)
			}
			specs = append(specs, s)
		}
		r.enqueue(specs...)
		book := &ledger{ends: map[int64]int{}, last: map[string]int64{}, busy: map[string]bool{}}
		var wg sync.WaitGroup
		for w := range workers {
			at := r
			if w%2 == 1 {
				at = other
			}
			wg.Go(func() { at.toil(t, book, jobs) })
		}
		wg.Wait()
		if len(book.ends) != jobs {
			t.Errorf("%d of %d jobs ended", len(book.ends), jobs)
		}
		for id, n := range book.ends {
			if n != 1 {
				t.Errorf("job %d ended %d times", id, n)
			}
		}
		for _, fault := range book.faults {
			t.Error(fault)
		}
		if n := r.count(`select (select count(*) from jobs) + (select count(*) from job_leases)`); n != 0 {
			t.Errorf("%d rows are left", n)
		}
		if n := r.count(`select count(*) from job_history where state = 'succeeded'`); n != jobs {
			t.Errorf("%d outcomes", n)
		}
	})
}

// ledger is what workers did.
type ledger struct {
	mu     sync.Mutex
	ends   map[int64]int
	last   map[string]int64 // the job that ended last, by lane
	busy   map[string]bool
	faults []string
}

func (l *ledger) begin(j store.Claimed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if j.Lane == "" {
		return
	}
	if l.busy[j.Lane] {
		l.faults = append(l.faults, "two jobs of "+j.Lane+" are in hand")
	}
	if j.ID < l.last[j.Lane] {
		l.faults = append(l.faults, "the order of "+j.Lane+" is lost")
	}
	l.busy[j.Lane] = true
}

// end is before the lane is free.
func (l *ledger) end(j store.Claimed, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy[j.Lane] = false
	if done {
		l.last[j.Lane] = j.ID
	}
}

func (l *ledger) ended(j store.Claimed) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends[j.ID]++
	return len(l.ends)
}

func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ends)
}

// toil works until all jobs ended. Some jobs are given back, and some are completed
// twice.
func (r *rig) toil(t *testing.T, book *ledger, jobs int) {
	for book.count() < jobs {
		got, err := r.Claim(t.Context(), Request{Task: "work", Worker: "w", Limit: 1 + rand.IntN(20), Wait: 200 * time.Millisecond})
		if err != nil {
			t.Error(err)
			return
		}
		var list []store.Ending
		for _, j := range got {
			book.begin(j)
			e := store.Ending{ID: j.ID, Token: j.Token, Verdict: store.Done}
			if rand.IntN(10) == 0 {
				e.Verdict = store.Snooze // as it was, so that the order stays
			}
			book.end(j, e.Verdict == store.Done)
			list = append(list, e)
		}
		for range 1 + rand.IntN(2) {
			var out []store.Ended
			err := r.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
				out, err = r.End(ctx, tx, "work", nil, list)
				return err
			})
			if err != nil {
				t.Error(err)
				return
			}
			for i, e := range out {
				if e.Finished != nil && e.Finished.Verdict == store.Done {
					book.ended(got[i])
				}
			}
		}
	}
}
