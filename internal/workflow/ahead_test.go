package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
)

// lesson 37: whatever others do between the commit of a run, with
// which its owner asked what comes next, and the run that comes next, is
// respected by that run: nothing runs that was paused or deleted, an event that
// was skipped is not taken, what was published is seen, and a new version runs.
func TestWhatChangesBetweenTwoRunsIsRespected(t *testing.T) {
	events := func(a, b, c, d eventstore.EventStatus) map[string]eventstore.EventStatus {
		all := map[string]eventstore.EventStatus{"a": a, "b": b, "c": c, "d": d}
		for id, status := range all {
			if status == "" {
				delete(all, id)
			}
		}
		return all
	}
	const pending, consumed, skipped = eventstore.EventPending, eventstore.EventConsumed, eventstore.EventSkipped
	for _, c := range []struct {
		name   string
		change func(k *kit, name string)
		ran    []string // versions whose run took something
		want   map[string]eventstore.EventStatus
	}{
		{"nothing", func(*kit, string) {}, []string{"1", "1", "1"}, events(consumed, consumed, consumed, "")},
		{"pause", func(k *kit, name string) { k.pause(name) }, []string{"1"}, events(consumed, pending, pending, "")},
		{"remove", func(k *kit, name string) {
			if err := k.remove(name); err != nil {
				k.t.Error(err)
			}
		}, []string{"1"}, events(consumed, pending, pending, "")},
		{"skip", func(k *kit, name string) { k.skipInput(k.workflow(name), "b") }, []string{"1", "1"}, events(consumed, skipped, consumed, "")},
		{"publish", func(k *kit, name string) { k.publish(k.workflow(name), "in", "d") }, []string{"1", "1", "1", "1"}, events(consumed, consumed, consumed, consumed)},
		{"deploy", nil, []string{"1", "2", "2"}, events(consumed, consumed, consumed, "")},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, func(t *testing.T, k *kit) {
				var ran []string
				version := func(v string) definition {
					take := takeOne("in")
					return consuming(take).handler("consumers.take.next", func(_ *goCtx, args []json.RawMessage) any {
						if dataOf(args[0]) != nil {
							ran = append(ran, v)
						}
						return nothing{}
					})
				}
				change := c.change
				if change == nil {
					change = func(k *kit, name string) { k.deploy(name, "2", version("2")) }
				}
				w := k.deploy("between", "1", version("1"))
				k.settle(w) // a new consumer is asked once
				k.publish(w, "in", "a", "b", "c")
				k.fault = func(place string) error {
					if place == "committed" && change != nil {
						act := change
						change = nil
						act(k, "between")
					}
					return nil
				}
				k.settle(w)
				k.fault = nil
				expect(t, "events", k.statuses(w, "in"), c.want)
				expect(t, "runs", fmt.Sprint(committed(k, w.Lane)), fmt.Sprint(len(c.ran)))
				if c.name != "pause" && c.name != "remove" { // a run that was refused has told nobody
					expect(t, "versions", distinct(ran), distinct(c.ran))
				}
				k.checkInvariants(w)
			})
		})
	}
}

// committed counts the runs of a lane that took something.
func committed(k *kit, lane string) (n int) {
	k.read(func(ctx context.Context, tx *store.Tx) error {
		return tx.QueryRow(ctx, `select count(*) from runs where lane = $1 and status = $2 and prepare_result like '%"ids"%'`, lane, pawl.StatusCommitted).Scan(&n)
	})
	return n
}

func distinct(list []string) (out []string) {
	for _, s := range list {
		if len(out) == 0 || out[len(out)-1] != s {
			out = append(out, s)
		}
	}
	return out
}

// A run whose first steps are not written yet leaves nothing behind when the
// database refuses them, and the lane goes on.
func TestARunThatIsNotWrittenLeavesNothing(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		refuse := true
		w := k.deploy("refused", "1", consuming(takeOne("in")).handler("consumers.take.next", func(*goCtx, []json.RawMessage) any {
			if refuse { // somebody changes the workflow while the run is only in memory
				refuse = false
				k.write(func(ctx context.Context, tx *store.Tx) error {
					_, err := tx.Exec(ctx, `update workflows set revision = revision + 1 where name = 'refused'`)
					return err
				})
			}
			return nothing{}
		}))
		k.settle(w)
		before := len(k.runs(w))
		refuse = true
		k.publish(w, "in", "a")
		k.settle(w)
		runs := k.runs(w)
		if len(runs) != before+1 || runs[len(runs)-1].Status != pawl.StatusCommitted {
			t.Errorf("the runs are %v", k.story(w))
		}
		expect(t, "event", k.statuses(w, "in")["a"], eventstore.EventConsumed)
	})
}

// An event that prepare saw, and somebody skipped before the call left, stops the
// call and nobody is to blame.
func TestASkippedEventStopsACallThatIsNotWritten(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		d, first := orderDefinition(), true
		mutate := d.handlers["consumers.order.mutate"]
		w := k.deploy("skips", "1", d.handler("consumers.order.mutate", func(c *goCtx, args []json.RawMessage) any {
			if first {
				first = false
				k.skipInput(k.workflow("skips"), "a")
			}
			return mutate(c, args)
		}))
		k.publish(w, "in", "a", "b")
		if _, err := k.s.work(t.Context(), k, w.ID); err != nil && !errors.Is(err, pawl.ErrConflict) {
			t.Fatal(err)
		}
		k.settle(w)
		expect(t, "orders", k.desk.things(), []string{"b"})
		for _, r := range k.runs(w) {
			if r.Status != pawl.StatusCommitted && r.Status != pawl.StatusCancelled {
				t.Errorf("a run is %s: %s", r.Status, r.ErrorMessage)
			}
		}
	})
}

// A run that is not written yet when its workflow is paused is not executed to its
// end: the phase that is under way is stopped.
func TestPausingEndsARunThatIsNotWritten(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		stopped := false
		w := k.deploy("early", "1", consuming(func(c *goCtx, _ []json.RawMessage) any {
			k.pause("early")
			select {
			case <-c.ctx.Done():
				stopped = true
			case <-time.After(time.Hour):
			}
			return take("in")
		}))
		k.settle(w)
		expect(t, "stopped", stopped, true)
		expect(t, "runs", len(k.story(w)), 0)
	})
}

// a session reads with its look the events at which prepare looked last
// time. What is published after the look is for the run that follows.
func TestPrepareSeesWhatTheLookSaw(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		var saw [][]string
		w := k.deploy("looks", "1", consuming(func(c *goCtx, _ []json.RawMessage) any {
			ids := append([]string{}, c.peekSome("in", 10)...)
			saw = append(saw, ids)
			return map[string]any{"reservations": []any{map[string]any{"topic": "in", "ids": ids}}, "data": nil}
		}))
		k.settle(w) // a new consumer is asked once
		k.publish(w, "in", "a")
		k.settle(w)
		saw = nil
		k.publish(w, "in", "b")
		k.fault = func(place string) error {
			if place == "begun" && len(saw) == 0 {
				k.publish(w, "in", "c")
			}
			return nil
		}
		k.settle(w)
		k.fault = nil
		expect(t, "what prepare saw", saw, [][]string{{"b"}, {"c"}})
		k.allCommitted(w)
		k.checkInvariants(w)
	})
}
