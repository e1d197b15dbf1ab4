package budget

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// No more is held at once than there is, everybody comes to their turn, and
// nothing is left over.
func TestPoolIsNeverOverdrawn(t *testing.T) {
	phase, process := New(30), New(100)
	var most atomic.Int64
	var done sync.WaitGroup
	for i := range 200 {
		done.Go(func() {
			c := NewCall(phase, process)
			defer c.Release()
			if err := Reserve(With(t.Context(), c), int64(1+i%40)); err != nil {
				t.Error(err)
			}
			for held := phase.Held(); ; {
				if old := most.Load(); held <= old || most.CompareAndSwap(old, held) {
					return
				}
			}
		})
	}
	done.Wait()
	if most.Load() > 30 || phase.Held() != 0 || process.Held() != 0 {
		t.Errorf("held %d at once, %d and %d are left", most.Load(), phase.Held(), process.Held())
	}
}

// Who gives up waiting holds nothing back, neither in the pool that it got nor
// in the one that it waited for.
func TestGivingUpLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		phase, process := New(10), New(10)
		first := NewCall(process)
		if err := Reserve(With(t.Context(), first), 10); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() { gone <- Reserve(With(ctx, NewCall(phase, process)), 5) }()
		synctest.Wait()
		if phase.Held() != 5 {
			t.Errorf("the waiting call holds %d of its phase", phase.Held())
		}
		next := NewCall(process)
		came := make(chan error, 1)
		go func() { came <- Reserve(With(t.Context(), next), 3) }()
		synctest.Wait()
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		first.Release()
		if err := <-came; err != nil || process.Held() != 3 || phase.Held() != 0 {
			t.Errorf("afterwards %d and %d are held (%v)", phase.Held(), process.Held(), err)
		}
		next.Release()
		next.Release()
		if process.Held() != 0 {
			t.Errorf("%d are left", process.Held())
		}
	})
}

// A call reserves once, and one that is over not at all.
func TestCallReservesOnce(t *testing.T) {
	p := New(10)
	c := NewCall(p)
	ctx := With(t.Context(), c)
	for range 3 {
		if err := Reserve(ctx, 8); err != nil {
			t.Fatal(err)
		}
	}
	if p.Held() != 8 {
		t.Errorf("holds %d", p.Held())
	}
	c.Release()
	if err := Reserve(ctx, 8); err != nil || p.Held() != 0 {
		t.Errorf("a call that is over holds %d (%v)", p.Held(), err)
	}
	if err := Reserve(t.Context(), 1<<40); err != nil {
		t.Error("where nobody counts, nobody waits:", err)
	}
}
