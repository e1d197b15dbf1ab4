package worker

import (
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// A rate holds over claims and nodes, and who waits has the next job when it may go.
func TestRateOfATask(t *testing.T) {
	bothWith(t, deaf(), func(r *rig) {
		const period = 400 * time.Millisecond
		r.declare("mail", func(d *Definition) { d.Lease, d.Rate = time.Hour, &store.Rate{Limit: 2, Period: period} })
		r.enqueue(store.JobSpec{Task: "mail"}, store.JobSpec{Task: "mail", Lane: "l"}, store.JobSpec{Task: "mail"}, store.JobSpec{Task: "mail"})
		begin := time.Now()
		if got := r.claim("mail", 5); len(got) != 2 {
			r.t.Fatalf("%d at once, for 2", len(got))
		}
		if got := r.ask(Request{Task: "mail", Limit: 5, Wait: patience}); len(got) == 0 || len(got) > 2 || time.Since(begin) < period {
			r.t.Errorf("%d after %v", len(got), time.Since(begin))
		}
	})
}

// A rate of lanes bounds each lane, and not the others.
func TestRateOfLanes(t *testing.T) {
	bothWith(t, deaf(), func(r *rig) {
		r.declare("mail", func(d *Definition) { d.PerLane, d.Rate = 9, &store.Rate{Limit: 1, Period: time.Hour, PerLane: true} })
		r.enqueue(store.JobSpec{Task: "mail", Lane: "a"}, store.JobSpec{Task: "mail", Lane: "a"}, store.JobSpec{Task: "mail", Lane: "b"})
		got := r.claim("mail", 9)
		if len(got) != 2 || got[0].Lane == got[1].Lane {
			r.t.Errorf("%v", got)
		}
		if got := r.claim("mail", 9); len(got) != 0 {
			r.t.Errorf("then %v", got)
		}
	})
}

// Jobs wait for each other until there is a batch, or until the first has waited long
// enough; and a claim has one batch at most.
func TestBatches(t *testing.T) {
	bothWith(t, deaf(), func(r *rig) {
		r.declare("mail", func(d *Definition) { d.Lease, d.Batch = time.Hour, &store.Batch{Size: 3, Wait: time.Hour} })
		specs := []store.JobSpec{{Task: "mail"}, {Task: "mail"}}
		r.enqueue(specs...)
		if got := r.claim("mail", 9); len(got) != 0 {
			r.t.Fatalf("%d of a batch of 3", len(got))
		}
		if got := r.claim("mail", 2); len(got) != 2 { // who can do two does not wait for three
			r.t.Errorf("%d for who can do 2", len(got))
		}
		r.enqueue(append(specs, specs...)...)
		if got := r.claim("mail", 9); len(got) != 3 {
			r.t.Errorf("%d for who can do 9", len(got))
		}
		r.enqueue(append(specs, specs...)...)
		if got := r.claim("mail", 0); len(got) != 3 {
			r.t.Errorf("%d for who does not say", len(got))
		}
		r.declare("soon", func(d *Definition) { d.Lease, d.Batch = time.Hour, &store.Batch{Size: 3, Wait: 300 * time.Millisecond} })
		begin := time.Now()
		r.enqueue(store.JobSpec{Task: "soon"})
		if got := r.ask(Request{Task: "soon", Wait: patience}); len(got) != 1 || time.Since(begin) < 290*time.Millisecond {
			r.t.Errorf("%d after %v", len(got), time.Since(begin))
		}
	})
}
