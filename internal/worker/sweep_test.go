package worker

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
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
				r.t.Fatalf("%v", got)
			}
		}
		r.declare("kept", func(d *Definition) { d.Lease = time.Hour })
		r.enqueue(store.JobSpec{Task: "kept"})
		r.claim("kept", 1)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		r.Service.mu.Lock()
		r.lines[group{task: "left"}] = &line{}
		r.Service.mu.Unlock()
		go func() { r.Run(ctx); close(ended) }()
		r.eventually("both are taken back", func() bool { return r.count(`select count(*) from job_leases where task <> 'kept'`) == 0 })
		r.eventually("a line in which nobody is is forgotten", func() bool {
			r.Service.mu.Lock()
			defer r.Service.mu.Unlock()
			return r.lines[group{task: "left"}] == nil
		})
		stop()
		<-ended
		for _, id := range want {
			if what := r.happened(id); !slices.Equal(what, []string{"enqueued", "started", "failed"}) {
				r.t.Errorf("told of %v", what)
			}
			if n := r.count(`select attempt from jobs where id = $1`, id); n != 1 {
				r.t.Errorf("%d attempts count", n)
			}
		}
		if n := r.count(`select count(*) from job_leases where task = 'kept'`); n != 1 {
			r.t.Error("a lease that is not over was taken back")
		}
	})
}

// A pass of the sweep tells how much it took back, and wakes who waits for it.
func TestSweepWakesWhoWaits(t *testing.T) {
	bothWith(t, deaf(), func(r *rig) {
		r.declare("mail", func(d *Definition) { d.Lease = time.Hour })
		j := r.enqueue(store.JobSpec{Task: "mail", Lane: "l"}, store.JobSpec{Task: "mail", Lane: "l"})[0]
		over := func() {
			r.write(func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Exec(ctx, `update job_leases set lease_until = 1`)
				return err
			})
		}
		sweep := func(want ...int) {
			t.Helper()
			if n, err := r.runOnce(t.Context()); !slices.Contains(want, n) || err != nil {
				r.t.Errorf("took back %d: %v", n, err)
			}
		}
		r.claim("mail", 1)
		sweep(0)
		over()
		sweep(1)
		r.claim("mail", 1)
		waits := r.waiting(Request{Task: "mail", Wait: patience})
		over()
		sweep(0, 1) // the claim may not have looked yet, and does it itself
		if got := <-waits; len(got) != 1 || got[0].ID != j.ID || got[0].Attempt != 2 {
			r.t.Errorf("then %v", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.runOnce(ctx); err == nil {
			r.t.Error("a pass that could not look says that all is well")
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
			r.t.Fatalf("%d slices", n)
		}
		r.eventually("the old one is forgotten", func() bool {
			if err := r.forgetStarts(t.Context()); err != nil {
				r.t.Fatal(err)
			}
			return r.count(`select count(*) from worker_starts where task = 'old'`) == 0
		})
		if n := r.count(`select count(*) from worker_starts where task = 'new'`); n != 1 {
			r.t.Error("one that counts was forgotten")
		}
	})
}

// A sweep that fails is told in the log, and one that ends with the process is not. Who
// gave no log is spared.
func TestSweepTellsThatItFails(t *testing.T) {
	l := deaf()
	l.sweep = time.Millisecond
	bothWith(t, l, func(r *rig) {
		var log lines
		broken, err := store.Open(t.Context(), pgtest.SQLite(r.t), store.Options{})
		if err != nil {
			r.t.Fatal(err)
		}
		if err := broken.Close(); err != nil {
			r.t.Fatal(err)
		}
		sweep := func(s *Service, until func() bool) {
			t.Helper()
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { s.Run(ctx); close(ended) }()
			r.eventually("it has looked", until)
			stop()
			<-ended
		}
		sweep(New(Config{DB: broken, Log: slog.New(&log), limits: l}), func() bool {
			return log.has("take back leases that are over") && log.has("forget what counts no more for rates")
		})
		silent := New(Config{DB: broken, limits: l})
		ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer stop()
		silent.Run(ctx)
		var well lines
		s := New(Config{DB: r.db, Log: slog.New(&well), limits: l})
		s.Attach(r.queue)
		r.declare("old", func(d *Definition) { d.Rate = &store.Rate{Limit: 1, Period: time.Millisecond} })
		r.enqueue(store.JobSpec{Task: "old"})
		r.claim("old", 1)
		sweep(s, func() bool { return r.count(`select count(*) from worker_starts`) == 0 })
		if len(well.all) != 0 {
			r.t.Errorf("all is well, and the log says %v", well.all)
		}
	})
}

// lines is a log that is kept.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) has(msg string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.all, msg)
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, r.Message)
	return nil
}

func (l *lines) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *lines) WithGroup(string) slog.Handler      { return l }
