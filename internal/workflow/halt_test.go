package workflow

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

func TestHalt(t *testing.T) {
	hold(t,
		behaviour{"one broken consumer halts every handler of its workflow and of no other", brokenConsumerHaltsAll},
		behaviour{"a backoff holds the whole workflow and what came meanwhile is done after it", backoffHoldsAll},
		behaviour{"a used up budget waits for a person and resume grants a new one", budgetThenResume},
		behaviour{"resume that changes nothing outside halts again", resumeThatDoesNotHelp},
		behaviour{"a restart between recovery and the recovered run loses nothing", restartBeforeRecoveredRun},
		behaviour{"a crashed run of a paused workflow is recovered after resume", crashWhilePaused},
		behaviour{"a run of a lost lease writes nothing", lostLeaseWritesNothing},
	)
}

// the producer does not ingest while a consumer is broken.
func brokenConsumerHaltsAll(t *testing.T, k *kit) {
	d := producing(map[string]string{"p": "10m"}).consumer("broken", func(c *goCtx, _ []json.RawMessage) any {
		if len(c.peek("other")) > 0 {
			throw("broken")
		}
		return take("other")
	}, "other")
	w, healthy := k.deploy("broken", "1", d), k.deploy("healthy", "1", producing(map[string]string{"p": "10m"}))
	k.work(w)
	k.work(healthy)
	k.publish(w, "other", "x")
	k.work(w)
	k.publish(w, "in", "a")
	k.ranSince()
	k.follow(w, 24*time.Hour)
	expect(t, "runs of the halted workflow in a day", len(k.ranSince()), 0)
	k.work(healthy)
	expect(t, "runs of the other one", k.ranSince(), []string{"producers.p.handler"})
	expect(t, "word", k.look("broken").State, run.NeedsAttention)
}

// schedules fire and events come during the backoff; they
// wait for the handler that backs off, and then run.
func backoffHoldsAll(t *testing.T, k *kit) {
	w := k.deploy("backoff", "1", producing(map[string]string{"p": "1s"}).consumer("read", func(c *goCtx, _ []json.RawMessage) any {
		c.tool("desk", "read", nil)
		return take("other", c.peek("other")...)
	}, "other"))
	k.work(w)
	k.desk.fail(pawl.ClassTransient)
	k.publish(w, "other", "x")
	until := k.work(w)
	expect(t, "backoff", time.Until(until), 10*time.Second)
	k.publish(w, "in", "a", "b")
	k.ranSince()
	for range 9 {
		pass(time.Second)
		expect(t, "next look", k.work(w), until)
	}
	expect(t, "runs during the backoff", len(k.ranSince()), 0)
	k.desk.fail("")
	pass(time.Second)
	k.work(w)
	expect(t, "runs after it", k.ranSince(), []string{"consumers.read.prepare", "consumers.take.prepare", "consumers.take.prepare", "producers.p.handler"})
}

// the first attempt and five retries, then nothing for ever; resume tries again at
// once, and ordinary scheduling goes on.
func budgetThenResume(t *testing.T, k *kit) {
	w := k.deploy("budget", "1", producing(nil).producer("p", Schedule{Interval: "1h"}, func(c *goCtx, _ []json.RawMessage) any {
		c.tool("desk", "read", nil)
		return nothing{}
	}))
	k.desk.fail(pawl.ClassTransient)
	k.follow(w, 30*24*time.Hour)
	expect(t, "attempts", count(k.ranSince(), "producers.p.handler"), run.TransientAttempts)
	d := k.look("budget")
	if d.State != run.NeedsAttention || d.Issue != run.IssueRetriesUsedUp || !d.NextAt.IsZero() {
		t.Errorf("people see %s, %s, next at %v", d.State, d.Issue, d.NextAt)
	}
	k.desk.fail("")
	k.resume("budget")
	expect(t, "next look", k.work(w), time.Now().Add(time.Hour))
	expect(t, "runs after resume", k.ranSince(), []string{"producers.p.handler"})
}

// Context 3.7.6: the click is a statement, held once; if it was wrong the issue
// is there again.
func resumeThatDoesNotHelp(t *testing.T, k *kit) {
	w := k.deploy("not-mended", "1", producing(nil).producer("p", Schedule{Interval: "1h"}, func(c *goCtx, _ []json.RawMessage) any {
		c.tool("desk", "read", nil)
		return nothing{}
	}))
	k.desk.fail(pawl.ClassAuth)
	k.work(w)
	k.ranSince()
	k.resume("not-mended")
	k.follow(w, 24*time.Hour)
	expect(t, "runs after resume", k.ranSince(), []string{"producers.p.handler"})
	d := k.look("not-mended")
	if d.State != run.NeedsAttention || d.Issue != run.IssueSignIn {
		t.Errorf("people see %s, %s", d.State, d.Issue)
	}
}

// recovery has made the successor, and then the process ends
// before it starts. The next owner goes on all the same.
func restartBeforeRecoveredRun(t *testing.T, k *kit) {
	k.writeThrough()
	w := k.deploy("twice-down", "1", orderDefinition())
	k.publish(w, "in", "a")
	k.crashAt(w, "begun", 1)
	e := &session{Service: k.s, claim: k, memory: k.s.memoryOf(w.ID, k.fence), id: w.ID}
	v, st, err := e.next(t.Context())
	if err != nil || st.do != actRecover {
		t.Fatalf("the next step is %s (%v)", st.do, err)
	}
	if err := e.take(t.Context(), v, st); err != nil {
		t.Fatal(err)
	}
	k.start("third")
	if _, err := k.s.work(t.Context(), k, w.ID); err != nil {
		t.Fatalf("the new owner cannot go on: %v", err)
	}
	expect(t, "orders", k.desk.things(), []string{"a"})
	k.checkInvariants(w)
}

// while it is paused nobody touches the run; after resume it is
// found, ended as crashed, and its work is done once.
func crashWhilePaused(t *testing.T, k *kit) {
	k.writeThrough()
	w := k.deploy("down-paused", "1", orderDefinition())
	k.publish(w, "in", "a")
	k.crashAt(w, "reserved", 1)
	k.pause("down-paused")
	k.ranSince()
	k.work(w)
	expect(t, "runs while paused", len(k.ranSince()), 0)
	k.resume("down-paused")
	k.settle(w)
	expect(t, "orders", k.desk.things(), []string{"a"})
	expect(t, "first run", k.runs(w)[0].Status, pawl.StatusCrashed)
}

// another node took the lane while a handler ran; what it returns
// is not written, and the new owner does the work once.
func lostLeaseWritesNothing(t *testing.T, k *kit) {
	const name = "lost"
	first := true
	w := k.deploy(name, "1", producing(nil).producer("p", Schedule{Interval: "1h"}, func(c *goCtx, _ []json.RawMessage) any {
		c.thing(k, name, "x")
		if first {
			first = false
			if _, err := k.db.Take(t.Context(), "thief", store.Bucket{ID: k.fence.Bucket, Node: k.fence.Node, Epoch: k.fence.Epoch}); err != nil {
				t.Error(err)
			}
		}
		return map[string]int{"n": 1}
	}))
	_, err := k.s.work(t.Context(), k, w.ID)
	if pawl.ErrorCode(err) != pawl.CodeLeaseLost {
		t.Fatalf("the old owner says %v", err)
	}
	if len(k.statuses(w, "in")) != 0 || k.kept(w, "p").State != nil {
		t.Error("the old owner wrote something")
	}
	k.fence = store.Fence{Bucket: k.fence.Bucket, Node: "thief", Epoch: k.fence.Epoch + 1}
	k.start("second")
	k.settleOnce(w)
	expect(t, "event", k.statuses(w, "in")["x"], eventstore.EventConsumed)
	k.read(func(ctx context.Context, tx *store.Tx) error {
		list, err := eventstore.In(tx).ListEvents(ctx, w.ID, eventstore.EventFilter{Topic: "in"}, 0, 10)
		expect(t, "events", len(list), 1)
		return err
	})
}

// settleOnce works on a lane until it asks for a time ahead.
func (k *kit) settleOnce(w workflowstore.Workflow) {
	k.t.Helper()
	for range 10 {
		if until := k.work(w); until.IsZero() || until.After(time.Now()) {
			return
		}
	}
	k.t.Fatal("the lane does not come to rest")
}
