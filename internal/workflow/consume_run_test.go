package workflow

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

func TestConsumers(t *testing.T) {
	hold(t,
		behaviour{"with nothing due and no events nothing is invoked for days", idleInvokesNothing},
		behaviour{"an event that comes while prepare runs is not forgotten", eventDuringPrepare},
		behaviour{"an event that comes after the prepare of a crashed run is not forgotten", eventAfterPrepareOfACrashedRun},
		behaviour{"a consumer that took some runs again for the rest", partialBatchRunsAgain},
		behaviour{"triggers while another handler runs collapse into one run", triggersCollapse},
		behaviour{"an event of another topic wakes nobody", otherTopicWakesNobody},
		behaviour{"after a restart pending events make their consumer run once", pendingEventsAfterRestart},
		behaviour{"a flag is no write", flagIsNoWrite},
		behaviour{"next runs when nothing was taken", nextRunsAfterNothing},
		behaviour{"mutate that calls nothing consumes its events", mutateWithoutCall},
		behaviour{"a failed next publishes nothing and a fix goes on with the same results", failedNextGoesForward},
	)
}

// A-03, lesson 17: a lane that has nothing to wait for asks for no time, and
// looking at it does nothing; one with a schedule runs by it and not more.
func idleInvokesNothing(t *testing.T, k *kit) {
	quiet := k.deploy("quiet", "1", consuming(takeOne("in")))
	timed := k.deploy("timed", "1", producing(map[string]string{"p": "1d"}))
	k.work(quiet)
	k.work(timed)
	k.ranSince()
	for hour := range 10 * 24 {
		if until := k.work(quiet); !until.IsZero() {
			t.Fatalf("after %d hours it wants to be woken at %v", hour, until)
		}
		if until := k.work(timed); time.Until(until) > 24*time.Hour || !until.After(time.Now()) {
			t.Fatalf("after %d hours the other one wants to be woken at %v", hour, until)
		}
		pass(time.Hour)
	}
	expect(t, "runs in ten days", k.ranSince(), []string{
		"producers.p.handler", "producers.p.handler", "producers.p.handler", "producers.p.handler", "producers.p.handler",
		"producers.p.handler", "producers.p.handler", "producers.p.handler", "producers.p.handler",
	})
}

// prepare has looked, found nothing to take, and then the event
// comes, in a transaction of somebody else.
func eventDuringPrepare(t *testing.T, k *kit) {
	late := []string{"b"}
	w := k.deploy("during", "1", consuming(func(c *goCtx, _ []json.RawMessage) any {
		ids := c.peek("in")
		for _, id := range late {
			k.publish(k.workflow("during"), "in", id)
		}
		late = nil
		if len(ids) < 2 {
			return take("in")
		}
		return take("in", ids...)
	}))
	k.publish(w, "in", "a")
	k.work(w)
	expect(t, "taken", k.taken(w, "take"), []string{"event: a b"})
}

// the process ends after prepare took nothing; the successor only
// finishes that run, so what came since is still news.
func eventAfterPrepareOfACrashedRun(t *testing.T, k *kit) {
	w := k.deploy("crashed", "1", consuming(func(c *goCtx, _ []json.RawMessage) any {
		ids := c.peek("in")
		if len(ids) < 2 {
			return take("in")
		}
		return take("in", ids...)
	}))
	k.work(w)
	k.publish(w, "in", "a")
	k.crashAt(w, "reserved", 1)
	k.publish(w, "in", "b")
	k.work(w)
	expect(t, "taken", k.taken(w, "take"), []string{"event: a b"})
}

// X-03, lesson 19: it stays dirty as long as it takes some and more wait.
func partialBatchRunsAgain(t *testing.T, k *kit) {
	w := k.deploy("partial", "1", consuming(func(c *goCtx, _ []json.RawMessage) any {
		ids := c.peek("in")
		return take("in", ids[:min(2, len(ids))]...)
	}))
	k.work(w)
	k.publish(w, "in", "a", "b", "c", "d", "e")
	k.ranSince()
	k.work(w)
	expect(t, "taken", k.taken(w, "take"), []string{"event: a b", "event: c d", "event: e"})
	expect(t, "runs", len(k.ranSince()), 3)
}

// many events during one run are one run.
func triggersCollapse(t *testing.T, k *kit) {
	d := consuming(func(c *goCtx, _ []json.RawMessage) any { return take("in", c.peek("in")...) })
	w := k.deploy("collapse", "1", d.consumer("slow", func(c *goCtx, _ []json.RawMessage) any {
		ids := c.peek("other")
		if len(ids) > 0 {
			for _, id := range []string{"a", "b", "c"} {
				pass(time.Minute)
				k.publish(k.workflow("collapse"), "in", id)
			}
		}
		return take("other", ids...)
	}, "other"))
	k.work(w)
	k.publish(w, "other", "x")
	k.ranSince()
	k.settle(w)
	expect(t, "runs", k.ranSince(), []string{"consumers.slow.prepare", "consumers.take.prepare"})
	expect(t, "taken", k.taken(w, "take"), []string{"event: a b c"})
}

// who does not subscribe stays as it is.
func otherTopicWakesNobody(t *testing.T, k *kit) {
	w := k.deploy("other-topic", "1", consuming(takeOne("in")).consumer("else", takeOne("other"), "other"))
	k.work(w)
	k.ranSince()
	k.publish(w, "other", "x")
	k.work(w)
	expect(t, "runs", k.ranSince(), []string{"consumers.else.prepare"})
}

// one run, even for a consumer that has declined them
// before; who has none does not run.
func pendingEventsAfterRestart(t *testing.T, k *kit) {
	w := k.deploy("restart", "1", consuming(func(*goCtx, []json.RawMessage) any { return take("in") }).consumer("else", takeOne("other"), "other"))
	k.publish(w, "in", "a")
	k.publish(w, "other", "x")
	k.work(w)
	k.start("second")
	k.ranSince()
	k.work(w)
	k.work(w)
	expect(t, "runs after a restart", k.ranSince(), []string{"consumers.take.prepare"})
}

// an event makes a consumer dirty without a word about it in the
// store; the flag is not there to be written.
func flagIsNoWrite(t *testing.T, k *kit) {
	w := k.deploy("no-write", "1", producing(map[string]string{"p": "1h"}))
	k.work(w)
	row, schedules, kept := k.workflow("no-write"), k.schedules(w), k.kept(w, "take")
	k.publish(w, "in", "a")
	expect(t, "workflow", k.workflow("no-write"), row)
	expect(t, "schedules", k.schedules(w), schedules)
	expect(t, "state of the consumer", k.kept(w, "take"), kept)
}

// next gets status none and its state is kept.
func nextRunsAfterNothing(t *testing.T, k *kit) {
	var got string
	w := k.deploy("nothing", "1", consuming(takeOne("in")).
		handler("consumers.take.mutate", func(*goCtx, []json.RawMessage) any { t.Error("mutate runs for nothing"); return nothing{} }).
		handler("consumers.take.next", func(_ *goCtx, args []json.RawMessage) any {
			got = string(args[1])
			return map[string]bool{"ran": true}
		}))
	k.work(w)
	expect(t, "result", got, `{"status":"none"}`)
	expect(t, "state", string(k.kept(w, "take").State), `{"ran":true}`)
	k.allCommitted(w)
}

// no ledger row, result none, events consumed.
func mutateWithoutCall(t *testing.T, k *kit) {
	var got string
	w := k.deploy("no-call", "1", consuming(takeOne("in")).handler("consumers.take.mutate", idle).
		handler("consumers.take.next", func(_ *goCtx, args []json.RawMessage) any {
			got = string(args[1])
			return nothing{}
		}))
	k.publish(w, "in", "a")
	k.work(w)
	expect(t, "result", got, `{"status":"none"}`)
	expect(t, "event", k.statuses(w, "in")["a"], eventstore.EventConsumed)
	k.read(func(ctx context.Context, tx *store.Tx) error {
		calls, err := mutationstore.In(tx).ListMutations(ctx, w.ID, mutationstore.MutationCursor{}, 10)
		expect(t, "ledger rows", len(calls), 0)
		return err
	})
}

// A-88..A-92, X-22: every attempt is a row of its own that stays as it ended;
// the successor has copies of both results; what the first next published is
// not there, what the second one published is.
func failedNextGoesForward(t *testing.T, k *kit) {
	d := orderDefinition()
	next := d.handlers["consumers.order.next"]
	w := k.deploy("forward", "1", d.handler("consumers.order.next", func(c *goCtx, args []json.RawMessage) any {
		next(c, args)
		throw("a fault in next")
		return nil
	}))
	k.publish(w, "in", "a")
	k.work(w)
	first := k.lastRun(w)
	if first.Status != pawl.StatusFailedLogic || first.Phase != pawl.PhaseEmitting {
		t.Fatalf("the run is %s at %s", first.Status, first.Phase)
	}
	expect(t, "events of the failed attempt", len(k.statuses(w, "out")), 0)
	k.deploy("forward", "2", d)
	k.work(w)
	expect(t, "events of the successor", k.statuses(w, "out"), map[string]eventstore.EventStatus{"out-a": "consumed"})
	var second runstore.Run
	for _, r := range k.runs(w) {
		if r.ID == first.ID {
			expect(t, "the first attempt", r, first)
		}
		if r.RetryOf == first.ID {
			second = r
		}
	}
	if string(second.PrepareResult) != string(first.PrepareResult) || string(second.MutationResult) != string(first.MutationResult) || second.ID == "" {
		t.Errorf("the successor has %s and %s", second.PrepareResult, second.MutationResult)
	}
	if second.Handler != "order" || second.HandlerType != pawl.HandlerConsumer || second.Lane != w.Lane || second.CreatedAt.IsZero() || second.UpdatedAt.IsZero() {
		t.Errorf("the row of the successor is not whole: %+v", second)
	}
	details, err := k.details(t.Context(), second.ID)
	if err != nil || len(details.Chain) != 2 || details.Chain[0].ID != second.ID || details.Chain[1].ID != first.ID {
		t.Errorf("the chain is %v (%v)", details.Chain, err)
	}
	if first.ErrorMessage == "" || details.Run.ErrorMessage != "" {
		t.Errorf("the attempts say %q and %q", first.ErrorMessage, details.Run.ErrorMessage)
	}
	expect(t, "orders", k.desk.things(), []string{"a"})
}
