package worker

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// Leases that are over are taken back although nobody claims, also of many tasks; an
// attempt counts, what happened is told, and who waits has the job.
func TestSweepTakesBackWhatWorkersLeft(t *testing.T) {
	l := deaf()
	l.sweep = 20 * time.Millisecond
	bothWith(t, l, func(r *rig) {
		var want []int64
		for _, task := range []string{"a", "b"} {
			r.declare(task, func(d *Definition) { d.Lease, d.MaxAttempts = time.Millisecond, 1 })
			want = append(want, r.enqueue(store.JobSpec{Task: task}, store.JobSpec{Task: task})[0].ID)
			if got := r.claim(task, 1); len(got) != 1 {
				t.Fatalf("%v", got)
			}
		}
		r.declare("kept", func(d *Definition) { d.Lease = time.Hour })
		r.enqueue(store.JobSpec{Task: "kept"})
		r.claim("kept", 1)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { r.Run(ctx); close(ended) }()
		r.eventually("both are taken back", func() bool { return r.count(`select count(*) from job_leases where task <> 'kept'`) == 0 })
		stop()
		<-ended
		for _, id := range want {
			if what := r.happened(id); !slices.Equal(what, []string{"enqueued", "started", "failed"}) {
				t.Errorf("told of %v", what)
			}
			if n := r.count(`select attempt from jobs where id = $1`, id); n != 1 {
				t.Errorf("%d attempts count", n)
			}
		}
		if n := r.count(`select count(*) from job_leases where task = 'kept'`); n != 1 {
			t.Error("a lease that is not over was taken back")
		}
	})
}

// A pass of the sweep tells how much it took back, and wakes who waits for it.
func TestSweepWakesWhoWaits(t *testing.T) {
	bothWith(t, deaf(), func(r *rig) {
		r.declare("mail", func(d *Definition) { d.Lease = time.Hour })
		j := r.enqueue(store.JobSpec{Task: "mail", Lane: "l"}, store.JobSpec{Task: "mail", Lane: "l"})[0]
		r.claim("mail", 1)
		waits := r.waiting(Request{Task: "mail", Wait: patience})
		if n, err := r.runOnce(t.Context()); n != 0 || err != nil {
			t.Errorf("took back %d: %v", n, err)
		}
		r.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `update job_leases set lease_until = 1`)
			return err
		})
		if n, err := r.runOnce(t.Context()); n != 1 || err != nil {
			t.Errorf("took back %d: %v", n, err)
		}
		if got := <-waits; len(got) != 1 || got[0].ID != j.ID || got[0].Attempt != 1 {
			t.Errorf("then %v", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.runOnce(ctx); err == nil {
			t.Error("a pass that could not look says that all is well")
		}
	})
}

// What was handed out by a rate is forgotten when it counts no more, and not before.
func TestSweepForgetsWhatCountsNoMore(t *testing.T) {
	bothWith(t, deaf(), func(r *rig) {
		r.declare("old", func(d *Definition) { d.Rate = &store.Rate{Limit: 1, Period: time.Millisecond} })
		r.declare("new", func(d *Definition) { d.Rate = &store.Rate{Limit: 1, Period: time.Hour} })
		r.enqueue(store.JobSpec{Task: "old"}, store.JobSpec{Task: "new"})
		r.claim("old", 1)
		r.claim("new", 1)
		if n := r.count(`select count(*) from worker_starts`); n != 2 {
			t.Fatalf("%d slices", n)
		}
		r.eventually("the old one is forgotten", func() bool {
			if err := r.forgetStarts(t.Context()); err != nil {
				t.Fatal(err)
			}
			return r.count(`select count(*) from worker_starts where task = 'old'`) == 0
		})
		if n := r.count(`select count(*) from worker_starts where task = 'new'`); n != 1 {
			t.Error("one that counts was forgotten")
		}
	})
}
