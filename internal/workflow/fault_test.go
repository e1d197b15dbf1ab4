package workflow

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/pgtest/proxy"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// stale is the claim of a process that was stopped and does not know that its
// lane was taken: the worst case, in which no clock tells it.
type stale struct{ fence store.Fence }

func (s stale) Fence() store.Fence { return s.fence }
func (s stale) Stopping() bool     { return false }
func (s stale) StillOwned() error  { return nil }

// standsStill runs a session that stands still at the n-th time it comes by a
// place, while another process takes the lane and does what meanwhile says, and
// then goes on as if nothing had happened. It reports whether it came by.
func (k *kit) standsStill(w workflowstore.Workflow, place string, n int, meanwhile func()) (came bool, err error) {
	k.t.Helper()
	k.fault = func(at string) error {
		if at != place {
			return nil
		}
		if n--; n == 0 {
			came, k.fault = true, nil
			k.start("other")
			meanwhile()
		}
		return nil
	}
	_, err = k.s.work(k.t.Context(), stale{k.fence}, w.ID)
	k.fault = nil
	return came, err
}

// a process that stands still for longer than its lease, wherever in
// a run, and wakes without knowing, writes nothing any more: another one has done
// its work, and every event has its one effect and its one successor. Its call may
// leave late, under the key that the other one used.
func TestAWokenProcessWritesNothing(t *testing.T) {
	for _, through := range []bool{false, true} {
		t.Run(fmt.Sprintf("through=%v", through), func(t *testing.T) {
			inTime(t, func(t *testing.T, k *kit) {
				if through {
					k.writeThrough()
				}
				for i, place := range places {
					for n := 1; n <= 2; n++ {
						k.wakeAndLook(fmt.Sprintf("shop-%d-%d", i, n), place, n)
					}
				}
			})
		})
	}
}

// wakeAndLook lets a process stand still at a place while another one does all
// there is, and one event comes after that, for which it wakes.
func (k *kit) wakeAndLook(name, place string, n int) {
	t := k.t
	t.Helper()
	w := k.deploy(name, "1", orderDefinition())
	k.settle(w)
	k.desk.clear()
	k.publish(w, "in", "a", "b")
	var ended []string
	came, err := k.standsStill(w, place, n, func() {
		k.settle(w)
		ended = k.story(w)
		k.publish(w, "in", "c")
	})
	if !came {
		t.Errorf("%s: the run does not come by %d times", place, n)
	}
	if !errors.Is(err, pawl.ErrLeaseLost) {
		t.Errorf("woken at %s (%d): the session ended with %v", place, n, err)
	}
	expect(t, fmt.Sprintf("runs after waking at %s (%d)", place, n), k.story(w), ended)
	expect(t, "the event that came while it stood still", k.statuses(w, "in")["c"], eventstore.EventPending)
	k.settle(w)
	k.expectOrders(w, fmt.Sprintf("woken at %s (%d)", place, n), "a", "b", "c")
}

// expectOrders holds that each of these was ordered once and told of once.
func (k *kit) expectOrders(w workflowstore.Workflow, when string, things ...string) {
	k.t.Helper()
	expect(k.t, when+": orders", k.desk.things(), things)
	told := map[string]eventstore.EventStatus{}
	for _, thing := range things {
		told["out-"+thing] = eventstore.EventConsumed
	}
	expect(k.t, when+": events", k.statuses(w, "out"), told)
	k.checkInvariants(w)
}

// a commit that PostgreSQL carries out and whose answer is lost, at every
// step of a run, is found out about by looking: nothing is repeated, and nothing
// is lost. The process goes on, or another one does.
func TestALostAnswerAtEveryStepRepeatsNothing(t *testing.T) {
	for _, c := range []struct{ through, dies bool }{{false, false}, {true, false}, {false, true}} {
		t.Run(fmt.Sprintf("through=%v dies=%v", c.through, c.dies), func(t *testing.T) {
			p := proxy.New(t, pgtest.URL(t)) // outside of the bubble, in which the network would stop the clock
			synctest.Test(t, func(t *testing.T) {
				k := newKit(t, p.URL())
				if c.through {
					k.writeThrough()
				}
				lost := 0
				for i, place := range places {
					lost += k.loseAndLook(p, fmt.Sprint("shop-", i), place, 1+i%2, c.dies)
				}
				if lost < len(places)-1 { // after the last commit there may be none
					t.Errorf("only %d answers were lost", lost)
				}
			})
		})
	}
}

// loseAndLook loses the answer to the commit that follows a place, and goes on.
func (k *kit) loseAndLook(p *proxy.Proxy, name, place string, n int, dies bool) int {
	t := k.t
	t.Helper()
	w := k.deploy(name, "1", orderDefinition())
	k.settle(w)
	k.desk.clear()
	k.publish(w, "in", "a", "b")
	before := p.Lost()
	k.fault = func(at string) error {
		if at == place {
			if n--; n == 0 {
				p.LoseAnswers("COMMIT", 1)
			}
		}
		return nil
	}
	_, err := k.s.work(t.Context(), k, w.ID)
	k.fault = nil
	p.KeepAnswers()
	lost := p.Lost() - before
	if err != nil && (lost == 0 || !errors.Is(err, pawl.ErrUnavailable)) { // one of a step that nobody waits for is found out about by the next
		t.Errorf("%d answers lost after %s, and the session says %v", lost, place, err)
	}
	if dies {
		k.start("n-" + place)
	}
	k.settle(w)
	k.expectOrders(w, "lost after "+place, "a", "b")
	return lost
}

// A lane with many pending events is worked on in the memory that a few take: no
// step of it reads them all.
func TestManyPendingEventsTakeNoMemory(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		k := newKit(t, url)
		grown := map[int]uint64{}
		for _, waiting := range []int{1_000, 80_000} {
			w := k.deploy(fmt.Sprint("heap-", waiting), "1", orderDefinition())
			k.settle(w)
			k.publish(w, "in", "first")
			k.multiply(w, waiting)
			k.start("fresh") // which knows nothing of the lane
			grown[waiting] = growth(func() {
				begun := time.Now()
				if until := k.work(w); !until.After(begun) {
					t.Error("a session of many events rests")
				}
			})
			if n := len(k.desk.things()); n < 10 { // as many as a slow machine does in a session
				t.Errorf("a session took %d events", n)
			}
			k.desk.clear()
		}
		t.Logf("the process grew by %d KiB beside few and %d KiB beside many", grown[1_000]>>10, grown[80_000]>>10)
		if grown[80_000] > grown[1_000]+8<<20 {
			t.Errorf("the process grew by %d KiB, and by %d KiB beside many events", grown[1_000]>>10, grown[80_000]>>10)
		}
	})
}

// multiply makes many pending events of the one that a topic has.
func (k *kit) multiply(w workflowstore.Workflow, n int) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `with recursive count(n) as (select 2 union all select n + 1 from count where n < $2)
			insert into events (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, created_by, caused_by, created_at, updated_at)
			select $2 + count.n, workflow_id, topic, count.n, count.n, 'm' || count.n, payload, status, created_by, caused_by, created_at, updated_at
			from events, count where workflow_id = $1 and topic = 'in'`, w.ID, n)
		if err == nil {
			_, err = tx.Exec(ctx, `update topics set seq = $2 where workflow_id = $1 and name = 'in'`, w.ID, n)
		}
		return err
	})
}
