package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
)

// A worker has as many jobs as it asked for, the first ones first, each with a token
// of its own and for as long as the task says. What was not asked for is one.
func TestClaimGivesJobsForAsLongAsTheTaskSays(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("mail", func(d *Definition) { d.Lease, d.MaxAttempts = time.Hour, 7 })
		jobs := r.enqueue(store.JobSpec{Task: "mail"}, store.JobSpec{Task: "mail"}, store.JobSpec{Task: "mail"}, store.JobSpec{Task: "mail"})
		before := time.Now()
		got := r.claim("mail", 2)
		if len(got) != 2 || got[0].ID != jobs[0].ID || got[1].ID != jobs[1].ID {
			r.t.Fatalf("claimed %v of %v", ids(got), jobs)
		}
		for _, j := range got {
			if d := j.Until.Sub(before); d < time.Hour-time.Second || d > time.Hour+time.Minute {
				r.t.Errorf("has it for %v", d)
			}
			if j.Token == "" || j.Attempt != 0 || j.MaxAttempts != 7 {
				r.t.Errorf("%+v", j)
			}
			if what := r.happened(j.ID); !slices.Equal(what, []string{"enqueued", "started"}) {
				r.t.Errorf("told of %v", what)
			}
		}
		if got[0].Token == got[1].Token {
			r.t.Error("two leases have one token")
		}
		if got := r.claim("mail", 0); len(got) != 1 || got[0].ID != jobs[2].ID {
			r.t.Errorf("without a number: %v", ids(got))
		}
		if n := r.count(`select count(*) from job_leases where worker = 'w' and task = 'mail'`); n != 3 {
			r.t.Errorf("%d leases", n)
		}
		if _, err := r.Claim(t.Context(), Request{Task: "none"}); !errors.Is(err, pawl.ErrNotFound) {
			r.t.Errorf("a task that is not there: %v", err)
		}
	})
}

// Who asks for the jobs of one user gets no others.
func TestClaimOfOneUsersJobs(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("mail", nil)
		r.enqueue(store.JobSpec{Task: "mail"}, store.JobSpec{Task: "mail", Owner: "bob"})
		bob, carol := "bob", "carol"
		if got := r.ask(Request{Task: "mail", Owner: &carol, Limit: 9}); len(got) != 0 {
			r.t.Errorf("carol has %v", got)
		}
		if got := r.ask(Request{Task: "mail", Owner: &bob, Limit: 9}); len(got) != 1 || got[0].Owner != "bob" {
			r.t.Errorf("bob has %v", got)
		}
		// He hears of jobs that come, too, and not of those of others alone.
		waits := r.waiting(Request{Task: "mail", Owner: &bob, Limit: 9, Wait: patience})
		r.enqueue(store.JobSpec{Task: "mail"})
		j := r.enqueue(store.JobSpec{Task: "mail", Owner: "bob"})
		if got := <-waits; len(got) != 1 || got[0].ID != j[0].ID {
			r.t.Errorf("then %v", got)
		}
	})
}

// A claim that does not find anything is answered when its time is over, at once if it
// has none, and with nothing.
func TestClaimThatFindsNothing(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("mail", nil)
		begin := time.Now()
		if got := r.claim("mail", 1); got != nil {
			r.t.Errorf("%v", got)
		}
		if took := time.Since(begin); took > patience/2 {
			r.t.Errorf("one that does not wait took %v", took)
		}
		begin = time.Now()
		if got := r.ask(Request{Task: "mail", Wait: 300 * time.Millisecond}); got != nil {
			r.t.Errorf("%v", got)
		}
		if took := time.Since(begin); took < 300*time.Millisecond || took > patience/2 {
			r.t.Errorf("one that waits for 300ms took %v", took)
		}
		if n := r.inLine(); n != 0 {
			r.t.Errorf("%d are in line yet", n)
		}
	})
}

// A claim that waits has the job when it comes: in this process, and at another node
// of the same database.
func TestClaimHearsOfJobs(t *testing.T) {
	bothWith(t, deaf(), func(r *rig) {
		r.declare("mail", nil)
		at := []*rig{r}
		if r.db.Shared() {
			at = append(at, newNode(t, r.db, "node-2", deaf(), 1))
		}
		for _, node := range at {
			waits := node.waiting(Request{Task: "mail", Wait: patience})
			j := r.enqueue(store.JobSpec{Task: "mail"})[0]
			again := time.NewTicker(patience / 20) // the node may not listen to others yet
			for heard := false; !heard; {
				select {
				case got := <-waits:
					if heard = true; len(got) != 1 || got[0].ID != j.ID {
						r.t.Errorf("%v, want %v", got, j)
					}
				case <-again.C:
					r.enqueue(store.JobSpec{Task: "mail"})
				}
			}
			again.Stop()
			for len(r.claim("mail", 9)) > 0 { // what was enqueued again
			}
		}
	})
}

// A claim knows when the next job comes due, and when the lease of another worker is
// over, without being told.
func TestClaimKnowsWhatComesDue(t *testing.T) {
	bothWith(t, deaf(), func(r *rig) {
		r.declare("mail", func(d *Definition) { d.Lease = 300 * time.Millisecond })
		due := time.Now().Add(400 * time.Millisecond)
		j := r.enqueue(store.JobSpec{Task: "mail", RunAt: due})[0]
		if got := r.claim("mail", 1); len(got) != 0 {
			r.t.Fatalf("%v is not due", got)
		}
		got := r.ask(Request{Task: "mail", Worker: "first", Wait: patience})
		if len(got) != 1 || got[0].ID != j.ID || time.Now().Before(due.Truncate(time.Millisecond)) {
			r.t.Fatalf("claimed %v", got)
		}
		again := r.ask(Request{Task: "mail", Worker: "second", Wait: patience})
		if len(again) != 1 || again[0].ID != j.ID || again[0].Attempt != 1 || again[0].Token == got[0].Token {
			r.t.Fatalf("claimed again: %v", again)
		}
		if time.Now().Before(got[0].Until) {
			r.t.Error("before the first lease was over")
		}
		if what := r.happened(j.ID); !slices.Equal(what, []string{"enqueued", "started", "retried", "started"}) {
			r.t.Errorf("told of %v", what)
		}
		// The first one says it was done: it is told that it is not its own any more.
		if e := r.end("mail", ending(got[0], store.Done)); e[0].Code != store.LeaseLost {
			r.t.Errorf("the zombie: %+v", e)
		}
		if n := r.count(`select count(*) from jobs where id = $1 and attempt = 1`, j.ID); n != 1 {
			r.t.Error("the zombie changed something")
		}
	})
}

// What nobody was told of is found by looking, by the one that is first in line; also
// when another one comes before it leaves.
func TestClaimLooksByItself(t *testing.T) {
	l := deaf()
	l.poll = 50 * time.Millisecond
	bothWith(t, l, func(r *rig) {
		r.declare("mail", nil)
		first := r.waiting(Request{Task: "mail", Wait: patience})
		second := r.waiting(Request{Task: "mail", Wait: patience})
		for range 2 {
			r.write(func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Enqueue(ctx, []store.JobSpec{{Task: "mail", Owner: alice, Served: true}})
				return err
			})
			select {
			case got := <-first:
				if len(got) != 1 {
					r.t.Errorf("%v", got)
				}
				first = nil
			case got := <-second:
				if len(got) != 1 {
					r.t.Errorf("%v", got)
				}
				second = nil
			}
		}
	})
}

// Of those who wait, one has one job; and if there are more jobs than it takes, the
// others have those, although they come with one sign.
func TestClaimsThatWaitShareWhatComes(t *testing.T) {
	bothWith(t, deaf(), func(r *rig) {
		r.declare("mail", nil)
		out := make(chan []store.Claimed, 4)
		for range 4 {
			waits := r.waiting(Request{Task: "mail", Limit: 1, Wait: patience})
			go func() { out <- <-waits }()
		}
		j := r.enqueue(store.JobSpec{Task: "mail"})
		if got := <-out; len(got) != 1 || got[0].ID != j[0].ID {
			r.t.Errorf("one has %v", got)
		}
		r.enqueue(store.JobSpec{Task: "mail"}, store.JobSpec{Task: "mail"}, store.JobSpec{Task: "mail"})
		for range 3 {
			if got := <-out; len(got) != 1 {
				r.t.Errorf("another has %v", got)
			}
		}
	})
}

// Those who wait for the jobs of one user hear of them whoever else came earlier.
func TestUsersWaitInLinesOfTheirOwn(t *testing.T) {
	bothWith(t, deaf(), func(r *rig) {
		r.declare("mail", nil)
		alice, bob := alice, "bob"
		first := r.waiting(Request{Task: "mail", Owner: &alice, Wait: patience})
		second := r.waiting(Request{Task: "mail", Owner: &bob, Wait: patience})
		r.claim("mail", 1) // by when both have looked, and wait
		r.enqueue(store.JobSpec{Task: "mail", Owner: bob})
		if got := <-second; len(got) != 1 || got[0].Owner != bob {
			r.t.Errorf("bob has %v", got)
		}
		if got := r.feed("mail", first); got.Owner != alice {
			r.t.Errorf("alice has %v", got)
		}
	})
}

// One that leaves with a sign which it did not follow gives it to the next.
func TestSignOfOneThatLeavesIsForTheNext(t *testing.T) {
	bothWith(t, deaf(), func(r *rig) {
		r.declare("mail", nil)
		r.declare("other", nil)
		for range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan []store.Claimed, 1)
			go func() {
				got, _ := r.Claim(ctx, Request{Task: "mail", Limit: 1, Wait: patience})
				gone <- got
			}()
			r.eventually("the first waits", func() bool { return r.inLine() == 1 })
			waits := r.waiting(Request{Task: "mail", Limit: 1, Wait: patience})
			elsewhere := r.waiting(Request{Task: "other", Limit: 1, Wait: patience})
			go cancel()
			j := r.enqueue(store.JobSpec{Task: "mail"})
			has := <-gone
			if len(has) == 1 { // it was quicker: its job is done, or was given back
				r.end("mail", ending(has[0], store.Done))
				r.enqueue(store.JobSpec{Task: "mail"})
			}
			got := <-waits
			if len(got) != 1 {
				r.t.Fatalf("the second has %v, want %v", got, j)
			}
			for len(got) > 0 { // and whatever else is there
				r.end("mail", ending(got[0], store.Done))
				got = r.claim("mail", 1)
			}
			r.end("other", ending(r.feed("other", elsewhere), store.Done))
		}
	})
}

// feed gives a claim that waits a job.
func (r *rig) feed(task string, waits <-chan []store.Claimed) store.Claimed {
	r.t.Helper()
	r.enqueue(store.JobSpec{Task: task})
	got := <-waits
	if len(got) != 1 {
		r.t.Fatalf("claimed %v", got)
	}
	return got[0]
}

// When a lane is free again, who waits has its next job; and when a job is to be
// tried once more, too.
func TestClaimHearsThatALaneIsFree(t *testing.T) {
	bothWith(t, deaf(), func(r *rig) {
		r.declare("mail", func(d *Definition) { d.Lease = time.Hour })
		jobs := r.enqueue(store.JobSpec{Task: "mail", Lane: "l"}, store.JobSpec{Task: "mail", Lane: "l"})
		has := r.claim("mail", 5)
		if len(has) != 1 {
			r.t.Fatalf("%d jobs of a lane for one", len(has))
		}
		waits := r.waiting(Request{Task: "mail", Wait: patience})
		r.end("mail", ending(has[0], store.Done))
		next := <-waits
		if len(next) != 1 || next[0].ID != jobs[1].ID {
			r.t.Fatalf("then %v", next)
		}
		r.end("mail", ending(next[0], store.Done))
		// Without a lane: one that is given back.
		has = []store.Claimed{r.feed("mail", r.waiting(Request{Task: "mail", Wait: patience}))}
		waits = r.waiting(Request{Task: "mail", Wait: patience})
		r.end("mail", ending(has[0], store.Snooze))
		if got := <-waits; len(got) != 1 || got[0].ID != has[0].ID || got[0].Attempt != 0 {
			r.t.Errorf("given back: %v", got)
		}
	})
}

// A claim whose caller is gone takes nothing with it: what it was given comes back
// without an attempt, at once.
func TestClaimOfOneWhoIsGoneGivesJobsBack(t *testing.T) {
	bothWith(t, deaf(), func(r *rig) {
		r.declare("mail", func(d *Definition) { d.Lease = time.Hour })
		r.declare("held", func(d *Definition) { d.Lease = time.Hour })
		jobs := r.enqueue(store.JobSpec{Task: "mail", Lane: "l"}, store.JobSpec{Task: "mail"})
		ctx, cancel := context.WithCancel(t.Context())
		r.mu.Lock()
		r.onEach = func(e queue.Event) {
			if e.What == "started" { // the jobs are in hand, and nobody was told yet
				cancel()
			}
		}
		r.mu.Unlock()
		alice := alice
		_, _ = r.Claim(ctx, Request{Task: "mail", Owner: &alice, Worker: "gone", Limit: 5})
		r.mu.Lock()
		r.onEach = nil
		r.mu.Unlock()
		if ctx.Err() == nil {
			r.t.Fatal("it had no jobs")
		}
		got := r.claim("mail", 5)
		if len(got) != 2 || got[0].Attempt != 0 || got[1].Attempt != 0 {
			r.t.Fatalf("the next one has %v of %v", got, jobs)
		}
		// One that is there has its jobs, and keeps them.
		if n := r.count(`select count(*) from job_leases`); n != 2 {
			r.t.Errorf("%d are in hand", n)
		}
	})
}

// Who waits is let go when the caller is gone, and when the process stops.
func TestClaimsEndWithTheirCallerAndTheProcess(t *testing.T) {
	bothWith(t, deaf(), func(r *rig) {
		r.declare("mail", nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan []store.Claimed, 2)
		ask := func(ctx context.Context) {
			got, _ := r.Claim(ctx, Request{Task: "mail", Wait: patience})
			ended <- got
		}
		begin := time.Now()
		go ask(ctx)
		r.eventually("it waits", func() bool { return r.inLine() == 1 })
		cancel()
		if got := <-ended; len(got) > 0 {
			r.t.Errorf("%v", got)
		}
		go ask(t.Context())
		r.eventually("the other waits", func() bool { return r.inLine() == 1 })
		r.Close()
		r.Close() // once more does no harm
		if got := <-ended; len(got) > 0 {
			r.t.Errorf("%v", got)
		}
		if took := time.Since(begin); took > patience/2 {
			r.t.Errorf("it took %v", took)
		}
		// A claim that comes later waits for nothing, and what is there is left to
		// processes that go on.
		r.enqueue(store.JobSpec{Task: "mail"})
		begin = time.Now()
		if got := r.ask(Request{Task: "mail", Wait: patience}); len(got) > 0 || time.Since(begin) > patience/2 {
			r.t.Errorf("%v after %v", got, time.Since(begin))
		}
	})
}

// More claims than may wait are refused, and the others are not disturbed.
func TestTooManyClaims(t *testing.T) {
	l := deaf()
	l.waiting = 2
	bothWith(t, l, func(r *rig) {
		r.declare("mail", nil)
		waits := []<-chan []store.Claimed{r.waiting(Request{Task: "mail", Wait: patience}), r.waiting(Request{Task: "mail", Wait: patience})}
		_, err := r.Claim(t.Context(), Request{Task: "mail"})
		if e := (*pawl.Error)(nil); !errors.As(err, &e) || e.Code != pawl.CodeUnavailable || e.Reason != "too_many_claims" || e.Hint == "" {
			r.t.Errorf("a third: %v", err)
		}
		r.feed("mail", waits[0])
		r.eventually("it left", func() bool { return r.inLine() == 1 })
		if got := r.claim("mail", 1); got != nil {
			r.t.Errorf("%v", got)
		}
		r.feed("mail", waits[1])
	})
}

// While everything is halted workers are given nothing, and leases that are over stay
// as they are; afterwards both goes on.
func TestClaimDuringAHalt(t *testing.T) {
	bothWith(t, deaf(), func(r *rig) {
		r.declare("mail", nil)
		j := r.enqueue(store.JobSpec{Task: "mail"})
		r.write(func(ctx context.Context, tx *store.Tx) error {
			_, _, err := tx.BeginHalt(ctx, "ann", "")
			return err
		})
		if got := r.claim("mail", 5); len(got) != 0 {
			r.t.Errorf("claimed %v", got)
		}
		waits := r.waiting(Request{Task: "mail", Wait: patience})
		r.write(func(ctx context.Context, tx *store.Tx) error {
			_, _, err := tx.LiftHalt(ctx, "ann")
			return err
		})
		r.Wake("mail", queue.Chance{})
		if got := <-waits; len(got) != 1 || got[0].ID != j[0].ID {
			r.t.Errorf("then %v", got)
		}
	})
}

// Lanes take turns from claim to claim, and from node to node: who was served last is
// kept with the task.
func TestTurnIsKeptFromClaimToClaim(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("mail", func(d *Definition) { d.PerLane = 100 })
		var specs []store.JobSpec
		for range 30 {
			for _, lane := range []string{"a", "b", "c"} {
				specs = append(specs, store.JobSpec{Task: "mail", Lane: lane})
			}
		}
		slices.SortStableFunc(specs, func(a, b store.JobSpec) int { return int(a.Lane[0]) - int(b.Lane[0]) })
		r.enqueue(specs...)
		var order string
		at := r
		for range 9 {
			got := at.claim("mail", 1)
			order += got[0].Lane
			if r.db.Shared() {
				at = newRig(t, r.db, fmt.Sprint("node-", len(order)+1), limits{})
			}
		}
		if order != "abcabcabc" {
			r.t.Errorf("served %s", order)
		}
	})
}

// A claim goes on behind lanes that are full until it finds one that is not, also when
// there are more of them than it looks at before it rests.
func TestClaimGoesPastFullLanes(t *testing.T) {
	bothWith(t, deaf(), func(r *rig) {
		r.declare("mail", func(d *Definition) { d.Lease = time.Hour })
		var specs []store.JobSpec
		const lanes = 1300
		for i := range lanes {
			s := store.JobSpec{Task: "mail", Lane: fmt.Sprintf("full%04d", i)}
			specs = append(specs, s, s)
		}
		for some := range slices.Chunk(specs, 1000) {
			r.enqueue(some...)
		}
		for n := 0; n < lanes; {
			got := r.ask(Request{Task: "mail", Limit: MaxClaim, Wait: patience})
			if len(got) == 0 {
				r.t.Fatalf("%d of %d lanes were served", n, lanes)
			}
			n += len(got)
		}
		last := r.enqueue(store.JobSpec{Task: "mail", Lane: "zz"}, store.JobSpec{Task: "mail", Lane: "aa"})
		for range last {
			if got := r.ask(Request{Task: "mail", Wait: patience}); len(got) != 1 {
				r.t.Fatalf("behind lanes that are full: %v", got)
			}
		}
	})
}

// Lanes that have had their rate do not hide one that has not, however many they are.
func TestClaimGoesPastLanesThatHadTheirRate(t *testing.T) {
	bothWith(t, deaf(), func(r *rig) {
		r.declare("mail", func(d *Definition) {
			d.Rate = &store.Rate{Limit: 1, Period: time.Hour, PerLane: true}
			d.Lease = time.Hour
		})
		const lanes = 200
		var specs []store.JobSpec
		for i := range lanes {
			specs = append(specs, slices.Repeat([]store.JobSpec{{Task: "mail", Lane: fmt.Sprintf("lane%04d", i)}}, 3)...)
		}
		r.enqueue(specs...)
		for n := 0; n < lanes; {
			got := r.ask(Request{Task: "mail", Limit: 50, Wait: patience})
			if len(got) == 0 {
				r.t.Fatalf("%d of %d lanes were served", n, lanes)
			}
			for _, j := range got {
				r.end("mail", ending(j, store.Done))
			}
			n += len(got)
		}
		for _, lane := range []string{"lane0150a", "lane0100a", "lane0050a"} {
			r.enqueue(store.JobSpec{Task: "mail", Lane: lane})
			if got := r.ask(Request{Task: "mail", Wait: patience}); len(got) != 1 || got[0].Lane != lane {
				r.t.Fatalf("of %s there is %v", lane, got)
			}
		}
	})
}
