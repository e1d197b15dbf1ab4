package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// askDefinition is orderDefinition with a method that must be asked for. Its
// arguments depend on the time, so that a repeated mutate must see the same.
func askDefinition() definition {
	d := orderDefinition()
	d.handlers["consumers.order.mutate"] = func(c *goCtx, args []json.RawMessage) any {
		c.tool("desk", "sign", map[string]any{"for": dataOf(args[0]), "at": c.now})
		return nothing{}
	}
	return d
}

// person does something to a run in a transaction and returns its refusal.
func (k *kit) person(fn func(ctx context.Context, tx *store.Tx) error) error {
	k.t.Helper()
	return k.db.Write(k.t.Context(), fn)
}

func (k *kit) newest(w workflowstore.Workflow) runstore.Run {
	k.t.Helper()
	runs := k.runs(w)
	return runs[len(runs)-1]
}

func refusalOf(err error) string {
	e, ok := errors.AsType[*pawl.Error](err)
	if !ok {
		return ""
	}
	return string(e.Code) + " " + e.Reason
}

// a call that must be asked for waits, is made once
// after it was approved, by the same run; a second click changes nothing.
func TestApprovedCallIsMadeOnceByTheSameRun(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", askDefinition())
		k.publish(w, "in", "a")
		until := k.work(w)
		r := k.newest(w)
		if r.Status != pawl.StatusPausedApproval || r.Phase != pawl.PhaseMutating || r.ErrorClass != "" {
			t.Fatalf("the run is %s at %s (%s), and does not just wait for approval", r.Status, r.Phase, r.ErrorClass)
		}
		if left := time.Until(until); left != approvalTime-approvalWarn {
			t.Errorf("somebody is reminded in %v, not %v", left, approvalTime-approvalWarn)
		}
		if n := len(k.desk.things()); n != 0 {
			t.Fatalf("%d calls were made before anybody approved", n)
		}
		if d, err := k.s.Describe(t.Context(), "shop"); err != nil || d.State != run.NeedsAttention || d.Issue != run.IssueApproval {
			t.Errorf("people see %s, %s (%v)", d.State, d.Issue, err)
		}
		pass(time.Hour)
		approve := func(hash string) error {
			return k.person(func(ctx context.Context, tx *store.Tx) error { return k.s.Approve(ctx, tx, r.ID, hash, false, "ann") })
		}
		if err := approve("another"); refusalOf(err) != "conflict changed" {
			t.Errorf("approving something else than what was seen: %v", err)
		}
		if err := approve(""); err != nil {
			t.Fatal(err)
		}
		if err := approve(""); refusalOf(err) != "conflict decided" {
			t.Errorf("a second click: %v", err)
		}
		k.settle(w)
		if n := len(k.desk.things()); n != 1 {
			t.Errorf("%d calls were made, not one", n)
		}
		if err := approve(""); refusalOf(err) == "" {
			t.Error("approving a run that is over is not refused")
		}
		if got, err := runstore.On(k.db).GetRun(t.Context(), r.ID); err != nil || got.Status != pawl.StatusCommitted {
			t.Errorf("the run that asked is %s (%v): a pause is no end", got.Status, err)
		}
	})
}

// rejecting ends the run, releases its events and pauses the workflow.
func TestRejectedRunEndsAndPausesTheWorkflow(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", askDefinition())
		k.publish(w, "in", "a")
		k.work(w)
		r := k.newest(w)
		for i := range 2 {
			err := k.person(func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.Reject(ctx, tx, r.ID, "ann")
				return err
			})
			if (err == nil) != (i == 0) {
				t.Errorf("click %d: %v", i+1, err)
			}
		}
		k.settle(w)
		if got := k.newest(w); got.ID != r.ID || got.Status != pawl.StatusCancelled {
			t.Errorf("the run is %s", got.Status)
		}
		if got := k.statuses(w, "in")["a"]; got != eventstore.EventPending {
			t.Errorf("its event is %s", got)
		}
		if d, err := k.s.Describe(t.Context(), "shop"); err != nil || d.State != run.Stopped || !d.Paused {
			t.Errorf("people see %s (%v), not a workflow that a person paused", d.State, err)
		}
	})
}

// Approving always asks no more for that method, until it is revoked; another
// version or other arguments of a single approval are asked for again.
func TestApprovalHoldsForWhatWasApproved(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", askDefinition())
		k.publish(w, "in", "a")
		k.work(w)
		r := k.newest(w)
		if err := k.person(func(ctx context.Context, tx *store.Tx) error { return k.s.Approve(ctx, tx, r.ID, "", true, "ann") }); err != nil {
			t.Fatal(err)
		}
		k.settle(w)
		k.publish(w, "in", "b")
		k.settle(w)
		if n := len(k.desk.things()); n != 2 {
			t.Errorf("%d calls were made, not two", n)
		}
		if err := k.person(func(ctx context.Context, tx *store.Tx) error {
			return mutationstore.In(tx).RevokeApprovalRule(ctx, w.ID, "desk", "sign", "ann")
		}); err != nil {
			t.Fatal(err)
		}
		k.publish(w, "in", "c")
		k.work(w)
		if got := k.newest(w).Status; got != pawl.StatusPausedApproval {
			t.Errorf("after the rule was revoked the run is %s", got)
		}
	})
}

// A question expires after a warning; resuming the run asks again.
func TestQuestionExpiresAfterAWarning(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", askDefinition())
		k.publish(w, "in", "a")
		k.settle(w) // sleeps through warning and expiry
		var told []string
		for _, c := range k.changes {
			if c.Run != "" {
				told = append(told, c.What)
			}
		}
		if diff := cmp.Diff([]string{"asked", "needs_attention", "asked again", "expired"}, told); diff != "" {
			t.Errorf("people were told (-want +got):\n%s", diff)
		}
		r := k.newest(w)
		approve := func() error {
			return k.person(func(ctx context.Context, tx *store.Tx) error { return k.s.Approve(ctx, tx, r.ID, "", false, "ann") })
		}
		if err := approve(); refusalOf(err) != "conflict expired" {
			t.Errorf("approving an expired question: %v", err)
		}
		if err := k.person(func(ctx context.Context, tx *store.Tx) error { return k.s.ResumeRun(ctx, tx, r.ID, "ann") }); err != nil {
			t.Fatal(err)
		}
		k.work(w)
		if err := approve(); err != nil {
			t.Fatal(err)
		}
		k.settle(w)
		if n := len(k.desk.things()); n != 1 {
			t.Errorf("%d calls were made, not one", n)
		}
	})
}

// The durable steps of asking survive a crash on either side.
func TestCrashAroundAQuestion(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		for _, place := range []string{"before ask", "asked person"} {
			w := k.deploy("shop-"+strings.ReplaceAll(place, " ", "-"), "1", askDefinition())
			k.desk.clear()
			k.publish(w, "in", "a")
			if !k.crashAt(w, place, 1) {
				t.Fatalf("the run does not come by %q", place)
			}
			k.work(w)
			r := k.newest(w)
			if r.Status != pawl.StatusPausedApproval {
				t.Fatalf("crash at %q: the run is %s", place, r.Status)
			}
			if err := k.person(func(ctx context.Context, tx *store.Tx) error { return k.s.Approve(ctx, tx, r.ID, "", false, "ann") }); err != nil {
				t.Fatal(err)
			}
			k.crashAt(w, "before call", 1)
			k.settleApproving(w)
			if n := len(k.desk.things()); n != 1 {
				t.Errorf("crash at %q: %d calls were made, not one: %v", place, n, k.story(w))
			}
		}
	})
}

// settleApproving settles and approves whatever is asked.
func (k *kit) settleApproving(w workflowstore.Workflow) {
	k.t.Helper()
	for range 10 {
		k.work(w)
		r := k.newest(w)
		if r.Status != pawl.StatusPausedApproval {
			break
		}
		if err := k.person(func(ctx context.Context, tx *store.Tx) error { return k.s.Approve(ctx, tx, r.ID, "", false, "ann") }); err != nil {
			k.t.Fatal(err)
		}
	}
	k.settle(w)
}

// A question dies with its run.
func TestQuestionEndsWithItsRun(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", askDefinition())
		k.publish(w, "in", "a")
		k.work(w)
		r := k.newest(w)
		if err := k.person(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.CancelRun(ctx, tx, r, "ann")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		k.read(func(ctx context.Context, tx *store.Tx) error {
			pending, err := mutationstore.In(tx).ListApprovals(ctx, mutationstore.ApprovalFilter{State: mutationstore.ApprovalPending}, store.Place{}, 10)
			if len(pending) > 0 {
				t.Errorf("%d questions of a run that is over wait for an answer", len(pending))
			}
			return err
		})
	})
}

// Context 3.7.6: resuming a workflow answers no question. What waits for an
// answer goes on waiting for it, and can still be answered.
func TestResumedWorkflowKeepsItsQuestion(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", askDefinition())
		k.publish(w, "in", "a")
		k.work(w)
		r := k.newest(w)
		if k.resume("shop") {
			t.Error("resuming a workflow that only waits for an answer changes something")
		}
		k.pause("shop")
		k.resume("shop")
		k.work(w)
		if got := k.newest(w); got.ID != r.ID || got.Status != pawl.StatusPausedApproval {
			t.Fatalf("the newest run is %s, %s", got.ID, got.Status)
		}
		if err := k.person(func(ctx context.Context, tx *store.Tx) error { return k.s.Approve(ctx, tx, r.ID, "", false, "ann") }); err != nil {
			t.Fatal(err)
		}
		k.settle(w)
		expect(t, "calls", len(k.desk.things()), 1)
	})
}

// A question whose time is over cannot be answered, even if nobody worked on
// the lane when it ended; whoever resumes the run is asked again.
func TestQuestionExpiresWhileNobodyWorks(t *testing.T) {
	for _, resume := range []struct {
		name string
		run  bool // else the workflow
	}{{"run", true}, {"workflow", false}} {
		t.Run(resume.name, func(t *testing.T) {
			inTime(t, func(t *testing.T, k *kit) {
				w := k.deploy("shop", "1", askDefinition())
				k.publish(w, "in", "a")
				k.work(w)
				r := k.newest(w)
				approve := func() error {
					return k.person(func(ctx context.Context, tx *store.Tx) error { return k.s.Approve(ctx, tx, r.ID, "", false, "ann") })
				}
				pass(approvalTime)
				if err := approve(); refusalOf(err) != "conflict expired" {
					t.Errorf("an approval that comes too late: %v", err)
				}
				if !resume.run {
					k.resume("shop")
				} else if err := k.person(func(ctx context.Context, tx *store.Tx) error { return k.s.ResumeRun(ctx, tx, r.ID, "ann") }); err != nil {
					t.Fatal(err)
				}
				k.work(w)
				if err := approve(); err != nil {
					t.Fatal(err)
				}
				k.settle(w)
				expect(t, "calls", len(k.desk.things()), 1)
			})
		})
	}
}

// A run whose process is gone is recovered before anybody can cancel it.
func TestCancellingAnInterruptedRunIsRefused(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.writeThrough()
		w := k.deploy("shop", "1", orderDefinition())
		k.publish(w, "in", "a")
		k.crashAt(w, "begun", 1)
		err := k.person(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.CancelRun(ctx, tx, k.newest(w), "ann")
			return err
		})
		if refusalOf(err) != "conflict recovering" {
			t.Errorf("it is told: %v", err)
		}
		k.settle(w)
		expect(t, "calls", len(k.desk.things()), 1)
	})
}
