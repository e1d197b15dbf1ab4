package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// lessons 15, 31, 32: a transient failure is tried
// again after 10 s, 20 s, 40 s, 80 s and 160 s, each time in a new row; the sixth
// one calls a person. A restart in every wait grants nothing.
func TestTransientFailuresBackOffAcrossRestarts(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", readFirst(false))
		k.settle(w)
		k.publish(w, "in", "a")
		k.desk.refuse = func(tool.Call) *tool.Error { return refusal(pawl.ClassTransient) }
		before := len(k.runs(w))
		for n, want := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second} {
			until := k.work(w)
			if wait := time.Until(until); wait != want {
				t.Errorf("after failure %d it waits %v, not %v", n+1, wait, want)
			}
			k.start(fmt.Sprint("again-", n))
			if again := k.work(w); !again.Equal(until) {
				t.Errorf("after a restart it waits until %v, not %v", again, until)
			}
			pass(time.Until(until) - time.Millisecond)
			k.work(w)
			if got := len(k.runs(w)) - before; got != n+1 {
				t.Errorf("%d attempts before the wait is over, not %d", got, n+1)
			}
			pass(time.Millisecond)
		}
		if until := k.work(w); !until.IsZero() {
			t.Errorf("after the sixth failure it wants to be woken at %v", until)
		}
		k.start("last")
		pass(time.Hour)
		k.work(w)
		chain := k.runs(w)[before:]
		if len(chain) != run.TransientAttempts {
			t.Fatalf("%d attempts, not %d: %v", len(chain), run.TransientAttempts, k.story(w))
		}
		for i, r := range chain {
			expectRun(t, r, pawl.PhasePreparing, pawl.StatusPausedTransient)
			if i > 0 && r.RetryOf != chain[i-1].ID || r.Attempt != i+1 {
				t.Errorf("attempt %d is number %d and follows %q", i+1, r.Attempt, r.RetryOf)
			}
		}
		if see := k.look(w.Name); see.State != run.NeedsAttention || see.Issue != run.IssueRetriesUsedUp || !strings.Contains(see.Sentence, "6 times") {
			t.Errorf("people see %s, %s: %s", see.State, see.Issue, see.Sentence)
		}
		k.desk.refuse = nil
		k.resume(w.Name)
		k.settle(w)
		if got := k.desk.things(); !slices.Equal(got, []string{"a"}) {
			t.Errorf("after a person resumed it the orders are %v", got)
		}
	})
}

// who answers 429 says how long to wait, to a read as to a mutation; a
// shorter time than our own is not taken.
func TestRetryAfterIsHonoured(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		for i, c := range []struct {
			method      string
			asked, want time.Duration
		}{{"read", time.Minute, time.Minute}, {"order", time.Minute, time.Minute}, {"read", time.Second, 10 * time.Second}, {"order", time.Second, 10 * time.Second}} {
			w := k.deploy(fmt.Sprintf("shop-%d", i), "1", readFirst(false))
			k.settle(w)
			k.publish(w, "in", "a")
			refused := false
			k.desk.refuse = func(call tool.Call) *tool.Error {
				if refused || call.Method != c.method {
					return nil
				}
				refused = true
				e := refusal(pawl.ClassTransient)
				e.RetryAfter = c.asked
				return e
			}
			if wait := time.Until(k.work(w)); wait != c.want {
				t.Errorf("%s: asked for %v it waits %v, not %v", c.method, c.asked, wait, c.want)
			}
			k.settle(w)
		}
	})
}

// lesson 32, X-17: a stop of the process in the middle of an attempt is no
// failure, and grants no new budget either.
func TestShutdownGrantsNoNewBudget(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", readFirst(false))
		k.settle(w)
		k.publish(w, "in", "a")
		failures := 0
		stop := func(error) {}
		k.desk.refuse = func(tool.Call) *tool.Error {
			if failures++; failures == 4 {
				stop(queue.ErrShutdown)
			}
			return refusal(pawl.ClassTransient)
		}
		for range 3 {
			pass(time.Until(k.work(w)))
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		stop = cancel
		if _, err := k.s.work(ctx, k, w.ID); !errors.Is(err, queue.ErrShutdown) {
			t.Fatalf("the session ended with %v", err)
		}
		if r := k.lastRun(w); r.Status != pawl.StatusCancelled {
			t.Fatalf("the run that was stopped is %s", r.Status)
		}
		k.start("n2")
		if wait := time.Until(k.work(w)); wait != 80*time.Second {
			t.Errorf("the failure after three others and a restart waits %v, not 80 s", wait)
		}
	})
}

// one handler that backs off holds all handlers of
// its workflow, and no other workflow; what came meanwhile is done afterwards.
func TestBackoffHoldsTheWholeWorkflow(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		d := readFirst(false)
		d.config.Topics = []string{"in", "out", "side"}
		d.config.Consumers = append(slices.Clone(d.config.Consumers), Consumer{Name: "side", Subscribe: []string{"side"}})
		d.config.Producers = []Producer{{Name: "poll", Publishes: []string{"in"}, Schedule: Schedule{Interval: "2s"}}}
		d = d.with(map[string]goHandler{
			"consumers.side.prepare": takeOne("side"),
			"producers.poll.handler": func(*goCtx, []json.RawMessage) any { return nothing{} },
		})
		held, other := k.deploy("held", "1", d), k.deploy("other", "1", d)
		k.work(held)
		k.work(other)
		k.desk.refuseTimes("read", pawl.ClassTransient)
		k.publish(held, "in", "a")
		until := k.work(held)
		k.publish(held, "side", "s")
		k.publish(other, "side", "s")
		k.publish(other, "in", "b")
		pass(5 * time.Second) // the producers are due
		if again := k.work(held); !again.Equal(until) {
			t.Errorf("the lane that backs off wants to be woken at %v, not %v", again, until)
		}
		if last := k.lastRun(held); last.Handler != "order" || last.Status != pawl.StatusPausedTransient || k.find(held, "side", "s").Status != eventstore.EventPending {
			t.Errorf("something ran while the workflow backs off: %v", k.story(held))
		}
		k.work(other)
		if k.find(other, "side", "s").Status != eventstore.EventConsumed || k.find(other, "in", "b").Status != eventstore.EventConsumed {
			t.Errorf("another workflow was held: %v", k.story(other))
		}
		pass(time.Until(until))
		k.work(held)
		if k.find(held, "in", "a").Status != eventstore.EventConsumed || k.find(held, "side", "s").Status != eventstore.EventConsumed {
			t.Errorf("what came meanwhile was not done: %v", k.story(held))
		}
		var after []string
		for _, r := range k.runs(held) {
			if r.CreatedAt.After(until.Add(-time.Second)) {
				after = append(after, r.Handler)
			}
		}
		if want := "order"; len(after) < 4 || after[0] != want || after[len(after)-1] != "poll" {
			t.Errorf("afterwards %v ran, want the retry of %s first and the producer last", after, want)
		}
	})
}

// a transient failure is retried with the version that failed, although
// another one was deployed meanwhile; work after it uses the new one.
func TestTransientRetryKeepsTheVersion(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		old := k.deploy("shop", "1", readFirst(false))
		k.settle(old)
		k.desk.refuseTimes("read", pawl.ClassTransient)
		k.publish(old, "in", "a")
		k.work(old)
		before := len(k.runs(old))
		w := k.deploy("shop", "2", readFirst(false))
		k.publish(w, "in", "b")
		k.settle(w)
		for i, r := range k.runs(w) {
			want := w.Version
			if i < before || r.RetryOf != "" {
				want = old.Version
			}
			if r.ScriptVersion != want {
				t.Errorf("run %s of %s (%s) used version %.8s, not %.8s", r.ID, r.Handler, r.Status, r.ScriptVersion, want)
			}
		}
		if got := k.desk.things(); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("orders %v", got)
		}
	})
}

// after a logic failure only another version goes
// on, afresh with its own prepare, and it may fail as well; deploying the same
// content again is no other version.
func TestLogicFailureWaitsForAnotherVersion(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		broken := func(text string) definition {
			return orderDefinition().with(map[string]goHandler{"consumers.order.mutate": func(*goCtx, []json.RawMessage) any { throw(text); return nil }})
		}
		w := k.deploy("shop", "1", broken("first"))
		k.publish(w, "in", "a")
		k.settle(w)
		k.deploy("shop", "1", broken("first"))
		k.settle(w)
		if n := len(k.runs(w)); k.lastRun(w).RetryOf != "" {
			t.Errorf("the same content was taken for a fix: %d runs", n)
		}
		k.deploy("shop", "2", broken("second"))
		k.settle(w)
		w = k.deploy("shop", "3", orderDefinition().with(map[string]goHandler{"consumers.order.prepare": func(c *goCtx, args []json.RawMessage) any {
			taken := takeOne("in")(c, args).(map[string]any)
			if taken["data"] != nil {
				taken["data"] = "mended " + fmt.Sprint(taken["data"])
			}
			return taken
		}}))
		k.settle(w)
		var chain []string
		for _, r := range k.runs(w) {
			if r.Handler == "order" && r.PrepareResult != nil && !strings.Contains(string(r.PrepareResult), `"reservations":[]`) {
				chain = append(chain, fmt.Sprintf("%d %s %s %s", r.Attempt, r.Phase, r.Status, strings.TrimPrefix(r.ErrorMessage, "Error: ")))
			}
		}
		want := []string{"1 mutating failed:logic first", "2 mutating failed:logic second", "3 committed committed "}
		if diff := cmp.Diff(want, chain); diff != "" {
			t.Errorf("the chain (-want +got):\n%s", diff)
		}
		if got := k.desk.things(); !slices.Equal(got, []string{"mended a"}) {
			t.Errorf("orders %v: the new prepare was not used", got)
		}
	})
}

// context 3.7.6, A-119: a person who says that the outside is mended lets the
// same version try once; what they said does not hold for a second failure.
func TestResumeRetriesALogicFailureOnce(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", readFirst(false))
		k.settle(w)
		k.desk.refuseTimes("read", pawl.ClassLogic, pawl.ClassLogic)
		k.publish(w, "in", "a")
		k.settle(w)
		first := k.lastRun(w)
		k.resume(w.Name)
		k.settle(w)
		second := k.lastRun(w)
		if second.RetryOf != first.ID || second.Status != pawl.StatusFailedLogic || second.ScriptVersion != first.ScriptVersion {
			t.Fatalf("after resume: %v", k.story(w))
		}
		k.start("n2")
		k.settle(w)
		if k.lastRun(w).ID != second.ID {
			t.Errorf("it went on although nobody said anything about the second failure: %v", k.story(w))
		}
		k.resume(w.Name)
		k.settle(w)
		if got := k.desk.things(); !slices.Equal(got, []string{"a"}) {
			t.Errorf("orders %v", got)
		}
	})
}

// lessons 2 and 3: next that fails after the call is
// repeated by a run that begins at emitting with copies of both results, sees
// the same as the first one did, holds the events and consumes them. The call
// is not made again, however often next fails.
func TestFailureAfterTheMutationOnlyRepeatsNext(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		var seen []string
		version := func(fails bool) definition {
			return orderDefinition().with(map[string]goHandler{"consumers.order.next": func(c *goCtx, args []json.RawMessage) any {
				if dataOf(args[0]) == nil {
					return nothing{}
				}
				seen = append(seen, fmt.Sprintf("%s %s", args[0], args[1]))
				c.publish("out", fmt.Sprint("out-", dataOf(args[0])), json.RawMessage(args[1]), "")
				if fails {
					throw("next fails")
				}
				return map[string]any{"done": true}
			}})
		}
		w := k.deploy("shop", "1", version(true))
		k.publish(w, "in", "a")
		k.settle(w)
		a := k.lastRun(w)
		expectRun(t, a, pawl.PhaseEmitting, pawl.StatusFailedLogic)
		if out := k.statuses(w, "out"); len(out) != 0 {
			t.Errorf("a run that failed published %v", out)
		}
		k.publish(w, "in", "b")
		w = k.deploy("shop", "2", version(true))
		k.settle(w)
		b := k.lastRun(w)
		w = k.deploy("shop", "3", version(false))
		k.work(w)
		var c runstore.Run
		for _, r := range k.runs(w) {
			if r.RetryOf == b.ID {
				c = r
			}
		}
		for _, r := range []runstore.Run{b, c} {
			if string(r.PrepareResult) != string(a.PrepareResult) || string(r.MutationResult) != string(a.MutationResult) || len(r.MutationResult) == 0 {
				t.Errorf("run %d has the results %s and %s, not %s and %s", r.Attempt, r.PrepareResult, r.MutationResult, a.PrepareResult, a.MutationResult)
			}
		}
		if b.RetryOf != a.ID || c.RetryOf != b.ID || b.Phase != pawl.PhaseEmitting || c.Status != pawl.StatusCommitted {
			t.Errorf("the chain is %v", k.story(w))
		}
		if len(seen) != 4 || seen[0] != seen[1] || seen[1] != seen[2] || !strings.Contains(seen[0], `"applied"`) {
			t.Errorf("next saw %q", seen)
		}
		if e := k.find(w, "in", "a"); e.Status != eventstore.EventConsumed || e.ReservedBy != c.ID || e.Attempt != 0 {
			t.Errorf("the event is %s by %s after %d releases; it is to be consumed by the last run", e.Status, e.ReservedBy, e.Attempt)
		}
		if got := k.desk.things(); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("orders %v", got)
		}
		if calls := k.ledgerRows(w); len(calls) != 2 || calls[0].RunID != a.ID {
			t.Errorf("a resolved call stays with the attempt that made it: %+v", calls)
		}
	})
}
