package worker

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
)

// work asks for jobs of the task work, and does not wait longer than it says.
func (r *rig) work(worker string, limit int, wait time.Duration) []store.Claimed {
	r.t.Helper()
	got, err := r.Claim(r.t.Context(), Request{Task: "work", Worker: worker, Limit: limit, Wait: wait})
	if err != nil {
		r.t.Error(err)
	}
	return got
}

// atRest waits until so many claims are in line, and nobody looks for them.
func (r *rig) atRest(n int) {
	r.t.Helper()
	for quiet := false; !quiet; runtime.Gosched() {
		r.Service.mu.Lock()
		l := r.lines[group{task: "work"}]
		quiet = l != nil && len(l.waiters) == n && !l.looking && !l.news && !slices.ContainsFunc(l.waiters, func(w *waiter) bool { return !w.looked })
		r.Service.mu.Unlock()
	}
}

// hold keeps claims from going on until it is let go.
func (r *rig) hold() (letGo func()) {
	held, free, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		err := r.db.Write(context.Background(), func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `update worker_tasks set updated_by = updated_by where name = $1`, "work")
			close(held)
			<-free
			return err
		})
		if err != nil {
			r.t.Error(err)
		}
	}()
	<-held
	return sync.OnceFunc(func() { close(free); <-done })
}

// One look is for all claims that wait: each gets its jobs, and is who has them.
func TestOneLookServesAllWhoWait(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("work", nil)
		var wg sync.WaitGroup
		var mu sync.Mutex
		of := map[int64]string{}
		for i := range 3 {
			wg.Go(func() {
				name := "w" + strconv.Itoa(i)
				got := r.work(name, 2, time.Minute)
				mu.Lock()
				defer mu.Unlock()
				if len(got) != 2 {
					t.Errorf("%s has %d jobs", name, len(got))
				}
				for _, j := range got {
					of[j.ID] = name
				}
			})
		}
		r.atRest(3)
		r.enqueue(slices.Repeat([]store.JobSpec{{Task: "work"}}, 6)...)
		wg.Wait()
		if len(of) != 6 {
			t.Errorf("%d jobs were handed out", len(of))
		}
		for id, name := range of {
			if n := r.count(`select count(*) from job_leases l join jobs j on j.id = l.job_id where l.job_id = $1 and l.worker = $2 and j.node = $2`, id, name); n != 1 {
				t.Errorf("job %d is not with %s", id, name)
			}
		}
	})
}

// A claim whose worker has gone while somebody looked for it gives its jobs back, and
// no attempt counts.
func TestJobsOfAClaimThatLeftAreGivenBack(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("work", nil)
		r.enqueue(store.JobSpec{Task: "work"})
		letGo := r.hold()
		defer letGo()
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan []store.Claimed)
		go func() {
			got, _ := r.Claim(ctx, Request{Task: "work", Worker: "gone", Limit: 1, Wait: time.Minute})
			gone <- got
		}()
		for looking := false; !looking; runtime.Gosched() {
			r.Service.mu.Lock()
			l := r.lines[group{task: "work"}]
			looking = l != nil && l.looking
			r.Service.mu.Unlock()
		}
		leave()
		if got := <-gone; len(got) != 0 {
			t.Errorf("who left has %d jobs", len(got))
		}
		letGo()
		if got := r.work("next", 1, 20*time.Second); len(got) != 1 || got[0].Attempt != 0 {
			t.Errorf("after it: %+v", got)
		}
	})
}

// A claim that comes back when nothing has happened does not look. One that does not
// want to wait does.
func TestWhoComesBackDoesNotLookForNothing(t *testing.T) {
	both(t, func(r *rig) {
		r.limits.poll = time.Hour
		r.declare("work", nil)
		if got := r.work("w", 1, time.Millisecond); len(got) != 0 {
			t.Fatal(got)
		}
		r.write(func(ctx context.Context, tx *store.Tx) error { // nobody is told
			_, err := tx.Enqueue(ctx, []store.JobSpec{{Task: "work", Owner: alice, Served: true, MaxAttempts: 1}})
			return err
		})
		if got := r.work("w", 1, 200*time.Millisecond); len(got) != 0 {
			t.Errorf("it looked: %+v", got)
		}
		if got := r.work("w", 1, 0); len(got) != 1 {
			t.Errorf("it did not look: %+v", got)
		}
	})
}

// What another node committed is handed out here when its hint comes, whatever this one
// believed.
func TestWhoWaitsAtAnotherNodeIsTold(t *testing.T) {
	both(t, func(r *rig) {
		two := newRig(t, r.db, "node-2", limits{})
		two.limits.poll = time.Hour
		r.declare("work", nil)
		hand := func(tell func()) []store.Claimed {
			t.Helper()
			got := make(chan []store.Claimed)
			go func() { got <- two.work("w", 1, time.Minute) }()
			two.atRest(1)
			tell()
			two.Wake("work", queue.Chance{}) // as the hint does
			begin := time.Now()
			list := <-got
			if len(list) != 1 || time.Since(begin) > 20*time.Second {
				t.Fatalf("%d jobs after %v", len(list), time.Since(begin))
			}
			return list
		}
		first := hand(func() { r.enqueue(store.JobSpec{Task: "work", Lane: "l"}) })
		r.enqueue(store.JobSpec{Task: "work", Lane: "l"})
		two.Wake("work", queue.Chance{})
		hand(func() {
			r.write(func(ctx context.Context, tx *store.Tx) error { // the lane is free, which the other node did
				_, err := r.End(ctx, tx, "work", nil, []store.Ending{{ID: first[0].ID, Token: first[0].Token}})
				return err
			})
		})
	})
}

// What a line knows decides when it is looked at again.
func TestSignsOfALine(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	soon, later, poll := now.Add(time.Second), now.Add(2*time.Second), now.Add(3*time.Second)
	for name, c := range map[string]struct {
		line line
		of   queue.Chance
		at   time.Time // zero: at once
	}{
		"due":                          {line{known: true}, queue.Chance{At: now}, time.Time{}},
		"anything":                     {line{known: true, next: later}, queue.Chance{}, time.Time{}},
		"comes due":                    {line{known: true}, queue.Chance{At: soon}, soon},
		"comes due, later than others": {line{known: true, next: soon}, queue.Chance{At: later}, soon},
		"comes due, nothing is known":  {line{}, queue.Chance{At: soon}, time.Time{}},
		"free, nobody waits":           {line{known: true}, queue.Chance{At: now, Freed: true}, poll},
		"free, somebody waits":         {line{known: true, blocked: true}, queue.Chance{At: now, Freed: true}, time.Time{}},
		"free, during a look":          {line{known: true, looking: true}, queue.Chance{At: now, Freed: true}, time.Time{}},
		"free, nothing is known":       {line{}, queue.Chance{At: now, Freed: true}, time.Time{}},
	} {
		s, l := New(Config{}), c.line
		s.limits.poll = 3 * time.Second
		l.looked, l.tick = now, make(chan struct{}, 1)
		l.hear(c.of, now)
		if at := s.lookAt(&l); !at.Equal(c.at) {
			t.Errorf("%s: it is looked at %v, want %v", name, at, c.at)
		}
		if c.of == (queue.Chance{}) && l.known {
			t.Errorf("%s: it believes what it knew", name)
		}
	}
}

// What is told while somebody looks is not lost, and leases that were given end.
func TestALookKeepsWhatWasToldMeanwhile(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	l := line{looking: true, known: true, tick: make(chan struct{}, 1)}
	l.hear(queue.Chance{At: now.Add(time.Second)}, now)
	l.noted(&party{began: now}, claimed{asked: true, next: now.Add(time.Minute)}, nil)
	if !l.next.Equal(now.Add(time.Second)) || l.news {
		t.Errorf("%+v", l)
	}
	l.soon = time.Time{}
	l.noted(&party{began: now}, claimed{asked: true, jobs: []store.Claimed{{Until: now.Add(time.Hour)}}}, nil)
	if !l.next.Equal(now.Add(time.Hour)) {
		t.Errorf("%+v", l)
	}
	l.hear(queue.Chance{At: now}, now)
	l.noted(&party{began: now}, claimed{}, nil)
	if !l.news {
		t.Error("a sign during a look is lost")
	}
}

// A claim that waits for a batch gets one of its own; one with less room need not wait.
func TestBatchesOfClaimsThatWaitTogether(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("work", func(d *Definition) { d.Batch = &store.Batch{Size: 4, Wait: time.Hour} })
		large, small := make(chan int), make(chan int)
		go func() { large <- len(r.work("large", 4, time.Minute)) }()
		r.atRest(1)
		go func() { small <- len(r.work("small", 2, time.Minute)) }()
		r.atRest(2)
		r.enqueue(slices.Repeat([]store.JobSpec{{Task: "work"}}, 2)...)
		if n := <-small; n != 2 {
			t.Errorf("the small one has %d", n)
		}
		r.enqueue(slices.Repeat([]store.JobSpec{{Task: "work"}}, 5)...)
		if n := <-large; n != 4 {
			t.Errorf("the large one has %d", n)
		}
	})
}

// Nobody is left behind in a line that is closed or empty.
func TestLinesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := store.Open(t.Context(), "sqlite:"+t.TempDir()+"/pawl.db", store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := newRig(t, db, "node-1", limits{})
		t.Cleanup(func() { _ = db.Close() })
		r.declare("work", nil)
		ended := make(chan int)
		for range 2 {
			go func() { ended <- len(r.work("w", 1, time.Hour)) }()
		}
		synctest.Wait()
		if n := r.work("short", 1, time.Minute); len(n) != 0 {
			t.Error(n)
		}
		r.Close()
		for range 2 {
			if n := <-ended; n != 0 {
				t.Error(n)
			}
		}
		if got := r.work("late", 1, time.Hour); len(got) != 0 {
			t.Error(got)
		}
		if n := r.inLine(); n != 0 {
			t.Errorf("%d are counted as waiting", n)
		}
	})
}

// Who waits while somebody looks for him, and the process is to end, ends when that
// look does.
func TestLinesEndDuringALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := store.Open(t.Context(), "sqlite:"+t.TempDir()+"/pawl.db", store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := newRig(t, db, "node-1", deaf())
		t.Cleanup(func() { _ = db.Close() })
		r.declare("work", nil)
		letGo := r.hold()
		begin, ended := time.Now(), make(chan int)
		go func() { ended <- len(r.work("w", 1, time.Minute)) }()
		synctest.Wait()
		r.Close()
		synctest.Wait() // it has heard of the end, and waits for the look
		letGo()
		if n := <-ended; n != 0 {
			t.Error(n)
		}
		if took := time.Since(begin); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// While everything is halted, nobody looks again and again for what has come due.
func TestLinesRestDuringAHalt(t *testing.T) {
	bothWith(t, deaf(), func(r *rig) {
		r.declare("work", nil)
		due := time.Now().Add(300 * time.Millisecond).Truncate(time.Millisecond) // as it is stored
		r.enqueue(store.JobSpec{Task: "work", RunAt: due})
		waits := r.waiting(Request{Task: "work", Wait: patience})
		r.atRest(1) // and known is when there is something
		r.write(func(ctx context.Context, tx *store.Tx) error {
			_, _, err := tx.BeginHalt(ctx, "ann", "")
			return err
		})
		r.eventually("it rests although something is due", func() bool {
			r.Service.mu.Lock()
			defer r.Service.mu.Unlock()
			l := r.lines[group{task: "work"}]
			return !l.looked.Before(due) && !l.looking && r.lookAt(l).After(time.Now())
		})
		r.write(func(ctx context.Context, tx *store.Tx) error {
			_, _, err := tx.LiftHalt(ctx, "ann")
			return err
		})
		r.Wake("work", queue.Chance{})
		if got := <-waits; len(got) != 1 {
			t.Errorf("then %v", got)
		}
	})
}

// Beside a lane that is full nobody looks again and again for what waits in it, however
// much that is.
func TestLinesRestBesideAFullLane(t *testing.T) {
	bothWith(t, deaf(), func(r *rig) {
		r.declare("work", nil)
		r.enqueue(slices.Repeat([]store.JobSpec{{Task: "work", Lane: "crowded"}}, 200)...)
		first := r.work("w", 1, 0)
		waits := r.waiting(Request{Task: "work", Wait: patience})
		r.eventually("it rests until the lease ends", func() bool {
			r.Service.mu.Lock()
			defer r.Service.mu.Unlock()
			l := r.lines[group{task: "work"}]
			return !l.looking && r.lookAt(l).After(time.Now().Add(10*time.Second))
		})
		r.end("work", ending(first[0], store.Done))
		if got := <-waits; len(got) != 1 {
			t.Errorf("when the lane is free: %v", got)
		}
	})
}

// Nor beside many of them, which one step does not see.
func TestLinesRestBesideManyFullLanes(t *testing.T) {
	bothWith(t, deaf(), func(r *rig) {
		r.declare("work", nil)
		const lanes = 150
		for i := range lanes {
			r.enqueue(slices.Repeat([]store.JobSpec{{Task: "work", Lane: "full" + strconv.Itoa(i)}}, 3)...)
		}
		var held []store.Claimed
		for len(held) < lanes {
			held = append(held, r.work("w", lanes, patience)...)
		}
		waits := r.waiting(Request{Task: "work", Wait: patience})
		r.eventually("it rests", func() bool {
			r.Service.mu.Lock()
			defer r.Service.mu.Unlock()
			l := r.lines[group{task: "work"}]
			return !l.looking && r.lookAt(l).After(time.Now())
		})
		r.end("work", ending(held[lanes/2], store.Done))
		if got := <-waits; len(got) != 1 || got[0].Lane != held[lanes/2].Lane {
			t.Errorf("when a lane is free: %v", got)
		}
	})
}

// Who went through all lanes for nothing rests before the next look; who did not come to
// their end goes on at once.
func TestALookThroughAllLanesIsFollowedByARest(t *testing.T) {
	const took = 50 * time.Millisecond
	for name, next := range map[string]time.Time{"it knew of nothing": {}, "what it knew of is over": time.Now().Add(-time.Hour), "later": time.Now().Add(time.Hour)} {
		l := &line{next: next, known: true}
		began := time.Now().Add(-took)
		l.noted(&party{began: began}, claimed{more: true, blocked: true, round: true}, nil)
		if rest := l.next.Sub(began); l.news || !l.blocked || rest < 4*took || rest > time.Minute {
			t.Errorf("%s: it looks again after %v; %+v", name, rest, l)
		}
	}
	for _, got := range []claimed{{more: true}, {more: true, jobs: []store.Claimed{{Until: time.Now().Add(time.Hour)}}}} {
		l := &line{known: true}
		l.noted(&party{began: time.Now()}, got, nil)
		if !l.news {
			t.Errorf("there was more than it saw: %+v", l)
		}
	}
}

// Of a line in which nobody has been of late nothing is kept; one in which somebody
// waits, or for which somebody looks, stays.
func TestLinesInWhichNobodyIsAreForgotten(t *testing.T) {
	now := time.Now()
	s := New(Config{})
	for name, l := range map[string]*line{
		"left":     {looked: now.Add(-time.Hour)},
		"of late":  {looked: now.Add(time.Hour)},
		"waited":   {looked: now.Add(-time.Hour), waiters: []*waiter{{}}},
		"attended": {looked: now.Add(-time.Hour), attended: true},
	} {
		s.lines[group{task: name}] = l
	}
	s.forgetLines()
	var kept []string
	for of := range s.lines {
		kept = append(kept, of.task)
	}
	slices.Sort(kept)
	if got := strings.Join(kept, ", "); got != "attended, of late, waited" {
		t.Errorf("kept are %s", got)
	}
}

// What ends leave for others: what can be had at once, what comes due, and that lanes
// are free; the earliest instant is told, and nothing if there is nothing.
func TestEndsTellWhatTheyLeave(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	end := func(v store.Verdict, lane string, after time.Duration) store.Ended {
		return store.Ended{Finished: &store.Finished{Job: &store.Job{Lane: lane}, Verdict: v, RunAt: now.Add(after)}}
	}
	soon, later := queue.Chance{At: now.Add(time.Second)}, queue.Chance{At: now.Add(time.Minute)}
	atOnce, freed := queue.Chance{At: now}, queue.Chance{At: now, Freed: true}
	for name, c := range map[string]struct {
		ends []store.Ended
		want []queue.Chance
	}{
		"done":                     {[]store.Ended{end(store.Done, "", 0)}, nil},
		"done in a lane":           {[]store.Ended{end(store.Done, "l", 0)}, []queue.Chance{freed}},
		"cancelled":                {[]store.Ended{{Code: store.LeaseCancelled}}, []queue.Chance{freed}},
		"lost":                     {[]store.Ended{{Code: store.LeaseLost}}, nil},
		"again at once":            {[]store.Ended{end(store.Retry, "l", 0)}, []queue.Chance{atOnce}},
		"put off":                  {[]store.Ended{end(store.Snooze, "", time.Minute)}, []queue.Chance{later}},
		"again, and earlier":       {[]store.Ended{end(store.Retry, "", time.Minute), end(store.Retry, "", time.Second)}, []queue.Chance{soon}},
		"failed, when it would be": {[]store.Ended{end(store.Fail, "", time.Minute)}, nil},
		"all of it":                {[]store.Ended{end(store.Done, "l", 0), end(store.Retry, "", time.Minute)}, []queue.Chance{freed, later}},
	} {
		if got := chances(c.ends, now); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
