package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// quietDefinition orders what comes in, one after the other, and tells nobody: the
// commit of a run waits for the next one.
func quietDefinition() definition {
	d := orderDefinition()
	d.config.Topics, d.config.Consumers = []string{"in"}, []Consumer{{Name: "order", Subscribe: []string{"in"}}}
	delete(d.handlers, "consumers.tell.prepare")
	d.handlers["consumers.order.prepare"] = takeFirst
	d.handlers["consumers.order.next"] = func(_ *goCtx, args []json.RawMessage) any {
		return map[string]any{"last": dataOf(args[0])}
	}
	return d
}

// takeFirst looks at one event only.
func takeFirst(c *goCtx, _ []json.RawMessage) any {
	ids := c.peekSome("in", 1)
	if len(ids) == 0 {
		return map[string]any{"reservations": []any{}, "data": nil}
	}
	return map[string]any{"reservations": []any{map[string]any{"topic": "in", "ids": ids}}, "data": ids[0]}
}

// stateOf is what a handler keeps.
func (k *kit) stateOf(w workflowstore.Workflow, handler string) (state string) {
	k.read(func(ctx context.Context, tx *store.Tx) error {
		kept, err := workflowstore.In(tx).GetHandlerState(ctx, w.ID, handler)
		state = string(kept.State)
		return err
	})
	return state
}

// atCommit calls something once, when the first run is committed as far as its owner
// knows.
func (k *kit) atCommit(do func() error) {
	k.fault = func(at string) error {
		if at != "committed" || do == nil {
			return nil
		}
		act := do
		do = nil
		return act()
	}
}

// ..A-111, X-06, lessons 1-5: a crash while the commit of the run before
// is not written yet runs next again, and nothing else.
func TestCrashWithACommitThatIsHeldRepeatsNothing(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		for i, place := range places {
			for n := 1; n <= 3; n++ {
				w := k.deploy(fmt.Sprintf("quiet-%d-%d", i, n), "1", quietDefinition())
				k.settle(w) // a new consumer is asked once
				k.desk.clear()
				k.publish(w, "in", "a", "b", "c")
				if !k.crashAt(w, place, n) {
					t.Errorf("%s: the run does not come by %d times", place, n)
				}
				held := n > 1 && slices.Contains(unwrittenAt, place) || n < 3 && place == "committed"
				if got := slices.Contains(k.story(w), "order emitting active"); held && !got {
					t.Errorf("crash at %s (%d): the commit was not held: %v", place, n, k.story(w))
				}
				k.settle(w)
				what := fmt.Sprintf("crash at %s (%d): ", place, n)
				expect(t, what+"orders", k.desk.things(), []string{"a", "b", "c"})
				expect(t, what+"events", k.statuses(w, "in"), map[string]eventstore.EventStatus{"a": "consumed", "b": "consumed", "c": "consumed"})
				expect(t, what+"state", k.stateOf(w, "order"), `{"last":"c"}`)
				crashes := 0
				for _, r := range k.runs(w) {
					if r.Status == pawl.StatusCrashed {
						crashes++
					}
				}
				wants := 1
				if !held && (place == "committed" || slices.Contains(unwrittenAt, place)) {
					wants = 0
				}
				expect(t, what+"crashes", crashes, wants)
			}
		}
	})
}

// lesson 37: what others do while the commit of a run is held is
// respected by the next one, and does not keep the commit from being written.
func TestWhatChangesWhileACommitIsHeldIsRespected(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(k *kit, name string)
		orders []string
		events map[string]eventstore.EventStatus
	}{
		{"pause", func(k *kit, name string) { k.pause(name) }, []string{"a"}, map[string]eventstore.EventStatus{"a": "consumed", "b": "pending", "c": "pending"}},
		{"skip", func(k *kit, name string) { k.skipInput(k.workflow(name), "b") }, []string{"a", "c"}, map[string]eventstore.EventStatus{"a": "consumed", "b": "skipped", "c": "consumed"}},
		{"publish", func(k *kit, name string) { k.publish(k.workflow(name), "in", "d") }, []string{"a", "b", "c", "d"}, map[string]eventstore.EventStatus{"a": "consumed", "b": "consumed", "c": "consumed", "d": "consumed"}},
		{"deploy", func(k *kit, name string) { k.deploy(name, "2", quietDefinition()) }, []string{"a", "b", "c"}, map[string]eventstore.EventStatus{"a": "consumed", "b": "consumed", "c": "consumed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, func(t *testing.T, k *kit) {
				w := k.deploy("held", "1", quietDefinition())
				k.settle(w)
				k.publish(w, "in", "a", "b", "c")
				k.atCommit(func() error {
					expect(t, "the run", k.story(w)[len(k.story(w))-1], "order emitting active")
					c.change(k, "held")
					return nil
				})
				k.settle(w)
				k.fault = nil
				expect(t, "orders", k.desk.things(), c.orders)
				expect(t, "events", k.statuses(w, "in"), c.events)
				k.allCommitted(w)
				k.checkInvariants(w)
			})
		})
	}
}

// A commit is not held for longer than the next run takes to come, nor by one that
// calls somebody outside, nor by a process that stops.
func TestAHeldCommitIsWrittenSoon(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		d, slow := quietDefinition(), false
		w := k.deploy("soon", "1", d.handler("consumers.order.prepare", func(c *goCtx, args []json.RawMessage) any {
			if slow {
				<-time.After(holdTime + time.Millisecond)
				expect(t, "the run before", k.story(k.workflow("soon"))[1], "order committed committed")
			}
			slow = false
			return takeFirst(c, args)
		}))
		k.settle(w)
		k.publish(w, "in", "a", "b")
		k.atCommit(func() error { slow = true; return nil })
		k.scripts.says = "consumers.order.next"
		k.settle(w)
		expect(t, "orders", k.desk.things(), []string{"a", "b"})
		k.allCommitted(w)
		for _, r := range k.runs(w)[1:] {
			if d, err := k.details(t.Context(), r.ID); err != nil || len(d.Logs) != 1 || d.Logs[0].Text != "said" {
				t.Errorf("what next logged: %v, %v", d.Logs, err)
			}
		}
	})
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("soon", "1", quietDefinition())
		k.settle(w)
		k.publish(w, "in", "a", "b")
		ctx, cancel := context.WithCancelCause(t.Context())
		k.atCommit(func() error { cancel(queue.ErrShutdown); return nil })
		if _, err := k.s.work(ctx, k, w.ID); err != nil && !errors.Is(err, queue.ErrShutdown) && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		k.fault = nil
		k.allCommitted(w)
		k.settle(w)
		expect(t, "orders", k.desk.things(), []string{"a", "b"})
	})
}

// A run that is not what it was while its commit was held stays as it is, and no
// call is made by the one that stood on it.
func TestACommitThatIsRefusedTakesTheNextRunAlong(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		var called []string
		d := quietDefinition()
		d.handlers["consumers.order.next"] = func(_ *goCtx, args []json.RawMessage) any {
			if id := dataOf(args[0]); id != nil {
				called = append(called, fmt.Sprint(id))
			}
			return nothing{}
		}
		w := k.deploy("refused", "1", d)
		k.settle(w)
		k.publish(w, "in", "a", "b")
		k.atCommit(func() error {
			k.write(func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Exec(ctx, `update runs set status = 'committed', phase = 'committed' where status = 'active'`)
				if err == nil {
					_, err = tx.Exec(ctx, `update events set status = 'consumed' where status = 'reserved'`)
				}
				return err
			})
			return nil
		})
		k.settle(w)
		k.fault = nil
		expect(t, "orders", k.desk.things(), []string{"a", "b"})
		expect(t, "story", k.story(w), []string{"order committed committed", "order committed committed", "order committed committed"})
		expect(t, "calls", called, []string{"a", "b"})
	})
}
