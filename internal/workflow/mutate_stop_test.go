package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// lesson 30, A-126: a process that is told to stop in the middle of a call
// still records what became of it; the next process goes on from there and
// calls nothing again.
func TestShutdownInTheMiddleOfACallLosesNothing(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		for i, c := range []struct {
			name         string
			sent, answer bool // whether the request, and the answer, came through
			state        pawl.MutationState
			phase        pawl.Phase
		}{
			{"the answer came all the same", true, true, pawl.MutationApplied, pawl.PhaseEmitting},
			{"the answer was lost", true, false, pawl.MutationApplied, pawl.PhaseEmitting},
			{"the request was lost", false, false, pawl.MutationFailed, pawl.PhaseMutating},
		} {
			w := k.deploy(fmt.Sprintf("shop-%d", i), "1", orderBy("slow", "act"))
			orders := map[string]int{}
			stop := func(error) {}
			slow := goTool{
				call: func(ctx context.Context, call tool.Call) (json.RawMessage, error) {
					stop(queue.ErrShutdown)
					<-ctx.Done()
					if c.sent {
						orders[call.Key]++
					}
					if !c.answer {
						return nil, ctx.Err()
					}
					return json.RawMessage(`1`), nil
				},
				reconcile: func(_ context.Context, call tool.Call) (tool.Answer, error) {
					if orders[call.Key] > 0 {
						return tool.Answer{State: tool.Applied, Result: json.RawMessage(`2`)}, nil
					}
					return tool.Answer{State: tool.NotApplied}, nil
				},
			}
			k.plug("slow", slow)
			k.publish(w, "in", "a")
			ctx, cancel := context.WithCancelCause(t.Context())
			stop = cancel
			if _, err := k.s.work(ctx, k, w.ID); !errors.Is(err, queue.ErrShutdown) && !errors.Is(err, context.Canceled) {
				t.Fatalf("%s: the session ended with %v", c.name, err)
			}
			if rows := k.ledgerRows(w); len(rows) != 1 || rows[0].State != c.state {
				t.Errorf("%s: the rows are %+v, want one that is %s", c.name, rows, c.state)
			}
			if r := k.lastRun(w); r.Phase != c.phase {
				t.Errorf("%s: the run is %s at %s, want it at %s", c.name, r.Status, r.Phase, c.phase)
			}
			k.start(fmt.Sprint("next-", i))
			slow.call = func(_ context.Context, call tool.Call) (json.RawMessage, error) {
				orders[call.Key]++
				return json.RawMessage(`3`), nil
			}
			k.plug("slow", slow)
			k.settle(w)
			if len(orders) != 1 || k.find(w, "in", "a").Status != eventstore.EventConsumed {
				t.Errorf("%s: there are the orders %v; the runs are %v", c.name, orders, k.story(w))
			}
		}
	})
}

// a process that is told to stop before anything was sent cancels its
// run and gives the events back, so that it does not look like a crash.
func TestShutdownBeforeTheCallGivesBack(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.writeThrough()
		for i, path := range []string{"consumers.order.prepare", "consumers.order.mutate"} {
			k.desk.clear()
			stop := func(error) {}
			d := orderDefinition()
			was := d.handlers[path]
			d = d.with(map[string]goHandler{path: func(c *goCtx, args []json.RawMessage) any {
				stop(queue.ErrShutdown)
				if c.ctx.Err() != nil {
					panic(goAbort{c.ctx.Err()})
				}
				return was(c, args)
			}})
			w := k.deploy(fmt.Sprintf("shop-%d", i), "1", d)
			k.settle(w)
			k.publish(w, "in", "a")
			ctx, cancel := context.WithCancelCause(t.Context())
			stop = cancel
			if _, err := k.s.work(ctx, k, w.ID); !errors.Is(err, queue.ErrShutdown) {
				t.Fatalf("%s: the session ended with %v", path, err)
			}
			if r := k.lastRun(w); r.Status != pawl.StatusCancelled {
				t.Errorf("%s: the run is %s at %s", path, r.Status, r.Phase)
			}
			if e := k.find(w, "in", "a"); e.Status != eventstore.EventPending {
				t.Errorf("%s: the event is %s", path, e.Status)
			}
			stop = func(error) {}
			k.start(fmt.Sprint("next-", i))
			k.settle(w)
			if got := k.desk.things(); !slices.Equal(got, []string{"a"}) {
				t.Errorf("%s: orders %v", path, got)
			}
		}
	})
}

// firmClaim is a claim that does not notice when another process takes over.
type firmClaim store.Fence

func (f firmClaim) Fence() store.Fence { return store.Fence(f) }
func (f firmClaim) Stopping() bool     { return false }
func (f firmClaim) StillOwned() error  { return nil }

// a process that loses its lane in the middle of a call cannot
// write what became of it any more; the new owner asks, and nothing happens
// twice.
func TestLostLeaseInTheMiddleOfACall(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", orderDefinition())
		k.settle(w)
		k.publish(w, "in", "a")
		old, claim := k.s, firmClaim(k.fence)
		k.desk.answer = func(tool.Call) error {
			k.start("n2")
			return nil
		}
		if _, err := old.work(t.Context(), claim, w.ID); !errors.Is(err, pawl.ErrLeaseLost) {
			t.Fatalf("the session of the old owner ended with %v", err)
		}
		k.desk.answer = nil
		if rows := k.ledgerRows(w); len(rows) != 1 || rows[0].State != pawl.MutationInFlight {
			t.Errorf("the old owner wrote %+v", rows)
		}
		if _, err := old.work(t.Context(), claim, w.ID); !errors.Is(err, pawl.ErrLeaseLost) {
			t.Errorf("another session of the old owner ended with %v", err)
		}
		k.settle(w)
		if got := k.desk.things(); !slices.Equal(got, []string{"a"}) || k.find(w, "in", "a").Status != eventstore.EventConsumed {
			t.Errorf("orders %v: %v", got, k.story(w))
		}
	})
}
