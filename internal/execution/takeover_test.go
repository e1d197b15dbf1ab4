package execution

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/store"
)

type outcome struct {
	answer contract.RunAnswerV1
	err    error
}

// begin runs a key in the background.
func begin(k *kit, s *Service, key string) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		answer, err := s.Run(k.t.Context(), key, graph, k.request(`{}`))
		done <- outcome{answer, err}
	}()
	return done
}

// X-65, context 3.17.5: a claim whose owner died is taken over by another node;
// the executor gets back what it asked to be remembered, under the same run id
// and attempt. The old owner, who lives after all, changes nothing any more,
// and every unit is charged once.
func TestDeadClaimIsTakenOver(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		hang := make(chan struct{})
		k.fake.run = func(ctx context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
			if err := errors.Join(emit(remote(`{"thread":7}`)), emit(usage("a", 5))); err != nil {
				return runner.Result{}, err
			}
			if r.Remote == nil {
				<-hang
				return runner.Result{Code: "internal", Message: "from the dead"}, nil
			}
			return succeed(ctx, r, emit)
		}
		old := begin(k, k.s, "k")
		k.eventually("the first usage is charged", func() bool { return k.count(`select count(*) from charge_receipts`) == 1 })
		second := k.service("node-2")
		if _, err := second.Run(t.Context(), "k", graph, k.request(`{}`)); !errors.Is(err, pawl.ErrConflict) {
			t.Fatalf("taken from the living: %v", err)
		}
		k.expire("k")
		answer, err := second.Run(t.Context(), "k", graph, k.request(`{}`))
		if err != nil || !answer.OK || *answer.CostUSD != 5 {
			t.Fatalf("%+v %v", answer, err)
		}
		asked := k.fake.asked()
		if len(asked) != 2 || string(asked[1].Remote) != `{"thread":7}` || asked[1].RunID != asked[0].RunID || asked[1].Attempt != 1 {
			t.Errorf("%+v", asked)
		}
		close(hang)
		if o := <-old; !errors.Is(o.err, pawl.ErrConflict) {
			t.Errorf("the old owner: %+v", o)
		}
		if got, err := second.Outcome(t.Context(), "k"); err != nil || !got.OK {
			t.Errorf("%+v %v", got, err)
		}
		if n := k.count(`select count(*) from charge_receipts`); n != 1 {
			t.Errorf("%d receipts", n)
		}
	})
}

// Of two nodes that see a dead claim one goes on.
func TestTwoNodesTakeOverOnce(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		second := k.service("node-2")
		k.fake.run = func(context.Context, runner.Run, func(runner.Event) error) (runner.Result, error) {
			return runner.Result{}, errors.New("the line is dead")
		}
		if _, err := k.run("k"); !errors.Is(err, pawl.ErrUnavailable) {
			t.Fatalf("%v", err)
		}
		release := make(chan struct{})
		k.fake.run = func(ctx context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
			<-release
			return succeed(ctx, r, emit)
		}
		one, two := make(chan outcome, 1), make(chan outcome, 1)
		for s, done := range map[*Service]chan outcome{k.s: one, second: two} {
			go func() {
				answer, err := s.Run(t.Context(), "k", graph, k.request(`{"topic":"autumn"}`))
				done <- outcome{answer, err}
			}()
		}
		var lost, won outcome
		select {
		case lost = <-one:
			close(release)
			won = <-two
		case lost = <-two:
			close(release)
			won = <-one
		}
		if _, busy := errors.AsType[*InProgressError](lost.err); !busy || won.err != nil || !won.answer.OK {
			t.Errorf("lost %+v, won %+v", lost, won)
		}
		if n := len(k.fake.asked()); n != 2 {
			t.Errorf("%d runs", n)
		}
	})
}

// An error of the infrastructure is no outcome: the claim ends, nothing stays
// reserved, and whoever asks next goes on.
func TestInfrastructureErrorGivesTheRunBack(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.fake.run = func(_ context.Context, _ runner.Run, emit func(runner.Event) error) (runner.Result, error) {
			return runner.Result{}, errors.Join(emit(remote(`1`)), errors.New("connection reset"))
		}
		if _, err := k.run("k"); !errors.Is(err, pawl.ErrUnavailable) {
			t.Fatalf("%v", err)
		}
		if n := k.count(`select count(*) from charge_reservations`); n != 0 {
			t.Errorf("%d reservations", n)
		}
		k.fake.run = succeed
		if answer := k.mustRun("k"); !answer.OK || string(k.fake.asked()[1].Remote) != `1` {
			t.Errorf("%+v", answer)
		}
	})
}

// Context 3.19.5, lesson 56: a caller that goes away does not stop the run, and
// the outcome is that of the run.
func TestCallerMayGoAway(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		started, release := make(chan struct{}), make(chan struct{})
		k.fake.run = func(ctx context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
			close(started)
			<-release
			if ctx.Err() != nil {
				return runner.Result{}, ctx.Err()
			}
			return succeed(ctx, r, emit)
		}
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := k.s.Run(ctx, "k", graph, k.request(`{}`))
			gone <- err
		}()
		<-started
		leave()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if _, err := k.s.Outcome(t.Context(), "k"); !errors.Is(err, pawl.ErrConflict) {
			t.Errorf("outcome: %v", err)
		}
		close(release)
		k.eventually("there is an outcome", func() bool {
			answer, err := k.s.Outcome(t.Context(), "k")
			return err == nil && answer.OK
		})
	})
}

// A service that closes gives its runs back at once.
func TestCloseGivesRunsBack(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		first := k.service("node-0")
		k.fake.run = func(ctx context.Context, _ runner.Run, emit func(runner.Event) error) (runner.Result, error) {
			if err := emit(remote(`1`)); err != nil {
				return runner.Result{}, err
			}
			<-ctx.Done()
			return runner.Result{}, context.Cause(ctx)
		}
		done := begin(k, first, "k")
		k.eventually("it runs", func() bool { return len(k.fake.asked()) == 1 })
		if err := first.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if o := <-done; !errors.Is(o.err, pawl.ErrUnavailable) {
			t.Errorf("%+v", o)
		}
		if _, err := first.Run(t.Context(), "other", graph, k.request(`{}`)); !errors.Is(err, pawl.ErrUnavailable) {
			t.Errorf("a closed service: %v", err)
		}
		k.fake.run = succeed
		if answer, err := k.s.Run(t.Context(), "k", graph, k.request(`{}`)); err != nil || !answer.OK {
			t.Errorf("%+v %v", answer, err)
		}
	})
}

// The lease of a living run does not end, however long the run takes.
func TestHeartbeatKeepsTheLease(t *testing.T) {
	url := "sqlite:" + t.TempDir() + "/pawl.db"
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, url)
		k.fake.run = func(ctx context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
			time.Sleep(5 * time.Minute)
			return succeed(ctx, r, emit)
		}
		second := k.service("node-2")
		done := begin(k, k.s, "k")
		for range 9 {
			time.Sleep(31 * time.Second)
			if _, err := second.Run(t.Context(), "k", graph, k.request(`{}`)); !errors.Is(err, pawl.ErrConflict) {
				t.Fatalf("%v", err)
			}
		}
		if o := <-done; o.err != nil || !o.answer.OK {
			t.Errorf("%+v", o)
		}
	})
}

// What died and nobody asks for any more does not keep its reservation.
func TestSweepGivesUpWhatNobodyWants(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		hang := make(chan struct{})
		defer close(hang)
		k.fake.run = func(context.Context, runner.Run, func(runner.Event) error) (runner.Result, error) {
			<-hang
			return runner.Result{}, errors.New("late")
		}
		for _, key := range []string{"dead", "alive"} {
			begin(k, k.s, key)
		}
		k.eventually("both run", func() bool { return len(k.fake.asked()) == 2 })
		k.expire("dead")
		if closed, err := k.s.Sweep(t.Context()); closed != 1 || err != nil {
			t.Fatalf("%d %v", closed, err)
		}
		if n := k.count(`select count(*) from charge_reservations`); n != 1 {
			t.Errorf("%d reservations", n)
		}
		answer, err := k.s.Outcome(t.Context(), "dead")
		if err != nil || answer.OK || answer.ErrorCode != contract.Aborted || !answer.Unknown {
			t.Errorf("%+v %v", answer, err)
		}
		if closed, err := k.s.Sweep(t.Context()); closed != 0 || err != nil {
			t.Errorf("again: %d %v", closed, err)
		}
	})
}

// An outcome is not lost when the database is away for a moment.
func TestOutcomeWaitsForTheDatabase(t *testing.T) {
	url := "sqlite:" + t.TempDir() + "/pawl.db"
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, url)
		tries := 0
		f := &flight{s: k.s, key: "k"}
		err := f.retryWrite(func(context.Context, *store.Tx) error {
			if tries++; tries < 4 {
				return &pawl.Error{Code: pawl.CodeUnavailable, Msg: "away"}
			}
			return nil
		})
		if err != nil || tries != 4 {
			t.Errorf("%d tries: %v", tries, err)
		}
	})
}

// A process that knows itself to be the successor of a dead one of its node
// waits for no lease; the claims of other nodes are left alone.
func TestARestartedNodeWaitsForNoLease(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		hang := make(chan struct{})
		k.fake.run = func(ctx context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
			if len(k.fake.asked()) <= 2 {
				<-hang
			}
			return succeed(ctx, r, emit)
		}
		other := k.service("node-10")
		mine, theirs := begin(k, k.s, "mine"), begin(k, other, "theirs")
		k.eventually("both run", func() bool { return len(k.fake.asked()) == 2 })
		again := k.service("node-1")
		if n, err := again.Recover(t.Context()); err != nil || n != 1 {
			t.Fatalf("%d claims were given up, %v", n, err)
		}
		if answer, err := again.Run(t.Context(), "mine", graph, k.request(`{}`)); err != nil || !answer.OK {
			t.Errorf("%+v %v", answer, err)
		}
		if _, err := again.Run(t.Context(), "theirs", graph, k.request(`{}`)); !errors.Is(err, pawl.ErrConflict) {
			t.Errorf("the claim of another node: %v", err)
		}
		close(hang)
		<-mine
		<-theirs
	})
}

// What a node executes ends with it: once the others have buried it, nobody
// waits for the rest of its leases. One that still lives keeps its claims.
func TestTheClaimsOfADeadNodeEndWithIt(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		hang := make(chan struct{})
		k.fake.run = func(ctx context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
			if len(k.fake.asked()) <= 1 {
				<-hang
			}
			return succeed(ctx, r, emit)
		}
		if err := k.db.Join(t.Context(), store.Node{ID: "node-1", Name: "one", Share: true}); err != nil {
			t.Fatal(err)
		}
		old := begin(k, k.s, "k")
		k.eventually("it runs", func() bool { return len(k.fake.asked()) == 1 })
		second := k.service("node-2")
		if buried, err := k.db.Bury(t.Context(), "node-1", 7); err != nil || buried { // another heartbeat than it has: it lives
			t.Fatal(err)
		}
		if _, err := second.Run(t.Context(), "k", graph, k.request(`{}`)); !errors.Is(err, pawl.ErrConflict) {
			t.Fatalf("taken from the living: %v", err)
		}
		v, err := k.db.Cluster(t.Context())
		if err != nil || len(v.Nodes) != 1 {
			t.Fatal(v.Nodes, err)
		}
		if buried, err := k.db.Bury(t.Context(), "node-1", v.Nodes[0].Beat); err != nil || !buried {
			t.Fatal(err)
		}
		if answer, err := second.Run(t.Context(), "k", graph, k.request(`{}`)); err != nil || !answer.OK {
			t.Errorf("%+v %v", answer, err)
		}
		close(hang)
		if o := <-old; !errors.Is(o.err, pawl.ErrConflict) {
			t.Errorf("the old owner: %+v", o)
		}
	})
}
