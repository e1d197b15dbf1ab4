package execution

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/pgtest"
)

// lapse makes the fake ask, as an executor's call does, whether it may leave.
func (f *fake) lapse(denied *atomic.Int32) {
	f.run = func(ctx context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
		if err := outbound.Permitted(ctx); err != nil {
			denied.Add(1)
			return runner.NoAnswer(ctx, &outbound.Error{Kind: outbound.KindCancelled, Err: err})
		}
		return succeed(ctx, r, emit)
	}
}

// A process that others may hold for dead calls no executor. The run is given
// back at once: no attempt is spent, and whoever asks next goes on with it.
func TestNoExecutorIsCalledByWhoMayBeDead(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		var denied atomic.Int32
		k.fake.lapse(&denied)
		k.s.alive = func() error { return errors.New("no heartbeat") }
		if answer, err := k.s.Run(t.Context(), "k", graph, k.request(`{}`)); !errors.Is(err, pawl.ErrUnavailable) || denied.Load() != 1 {
			t.Fatalf("%+v, %v; denied %d times", answer, err, denied.Load())
		}
		answer, err := k.service("node-2").Run(t.Context(), "k", graph, k.request(`{}`))
		if err != nil || !answer.OK {
			t.Fatalf("the next one: %+v, %v", answer, err)
		}
		if asked := k.fake.asked(); len(asked) != 2 || asked[1].Attempt != 1 || asked[1].RunID != asked[0].RunID {
			t.Errorf("asked %+v", asked)
		}
	})
}

// A claim whose lease was not moved for long is not acted for, either; one whose
// lease is moved is, however old it is.
func TestNoExecutorIsCalledForALeaseThatMayBeOver(t *testing.T) {
	url := pgtest.SQLite(t)
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, url)
		k.fake.run = func(ctx context.Context, _ runner.Run, _ func(runner.Event) error) (runner.Result, error) {
			for range 10 {
				time.Sleep(leaseFor)
				if err := outbound.Permitted(ctx); err != nil {
					t.Errorf("a lease that is moved: %v", err)
				}
			}
			long := time.Now().Add(-actFor) // its process was stopped
			k.s.flightOf("k").beaten.Store(&long)
			if err := outbound.Permitted(ctx); !errors.Is(err, errLapsed) {
				t.Errorf("a lease that was not moved: %v", err)
			}
			return runner.Result{}, context.Cause(ctx)
		}
		if _, err := k.s.Run(t.Context(), "k", graph, k.request(`{}`)); !errors.Is(err, pawl.ErrUnavailable) {
			t.Errorf("it ended with %v", err)
		}
	})
}
