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
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// errLost is an answer that did not come.
var errLost = errors.New("connection reset by peer")

// loseAnswers makes the desk do what it is told and lose its answers.
func (d *desk) loseAnswers() { d.answer = func(tool.Call) error { return errLost } }

// loseRequests makes calls of the desk get lost on the way: nothing happens,
// and nobody knows.
func (d *desk) loseRequests() {
	d.refuse = func(c tool.Call) *tool.Error {
		if c.Method == "read" {
			return nil
		}
		return &tool.Error{Class: pawl.ClassTransient, Code: "lost", Msg: "the request was lost"}
	}
}

// knowNothing makes the desk answer every question with: later.
func (d *desk) knowNothing() { d.inquiry = func(tool.Call) (bool, bool) { return false, false } }

// context 3.6.3, A-117, X-69: a call of unknown outcome is asked about once at
// once. What happened goes on in the same run with the result that was found;
// what is not there is asked about until it cannot be under way any more, and
// then released and done afresh with the same key.
func TestUnknownOutcomeIsAskedAboutAtOnce(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.desk.loseAnswers()
		w := k.deploy("applied", "1", orderDefinition())
		k.publish(w, "in", "a")
		k.settle(w)
		rows := k.ledgerRows(w)
		if len(rows) != 1 || rows[0].State != pawl.MutationApplied || rows[0].ResolvedBy != "reconcile" || string(rows[0].Result) != `{"number":"asked"}` {
			t.Errorf("applied: the rows are %+v", rows)
		}
		for _, r := range k.runs(w) {
			expectRun(t, r, pawl.PhaseCommitted, pawl.StatusCommitted)
		}
		if out := k.find(w, "out", "out-a"); string(out.Payload) != `{"status":"applied","result":{"number":"asked"}}` {
			t.Errorf("applied: next was told %s", out.Payload)
		}

		k.desk.answer = nil
		k.desk.loseRequests()
		w = k.deploy("failed", "1", orderDefinition())
		k.publish(w, "in", "b")
		until := k.work(w)
		if rows := k.ledgerRows(w); len(rows) != 1 || rows[0].State != pawl.MutationNeedsReconcile || time.Until(until) != 10*time.Second {
			t.Errorf("failed: it is asked again in %v, the rows are %+v", time.Until(until), rows)
		}
		first := k.lastRun(w)
		expectRun(t, first, pawl.PhaseMutating, pawl.StatusPausedReconciliation)
		if e := k.find(w, "in", "b"); e.Status != eventstore.EventReserved {
			t.Errorf("failed: the event is %s while the call may be under way", e.Status)
		}
		k.desk.refuse = nil
		k.settle(w)
		k.expectSuccessor(t, w, first, first.ScriptVersion)
		rows = k.ledgerRows(w)
		if len(rows) != 2 || rows[0].State != pawl.MutationFailed || rows[0].ResolvedBy != "reconcile" || rows[1].IdempotencyKey != rows[0].IdempotencyKey {
			t.Errorf("failed: the rows are %+v", rows)
		}
		if got := k.desk.things(); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("orders %v", got)
		}
	})
}

// context 3.6.4, 3.6.5, lessons 4, 5, 40: a question without an
// answer is asked again after 10 s, 20 s, 40 s, 80 s and 160 s, with the stored
// arguments and key, across restarts; meanwhile the events are held and no run
// of the workflow starts. The fifth in vain leaves it to a person.
func TestReconcileLoopEndsWithAPerson(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.desk.loseAnswers()
		var asked []tool.Call
		var at []time.Duration
		begun := time.Now()
		k.desk.inquiry = func(c tool.Call) (bool, bool) {
			asked, at = append(asked, c), append(at, time.Since(begun).Round(time.Second))
			return false, false
		}
		d := orderDefinition()
		d.config.Producers = []Producer{{Name: "poll", Publishes: []string{"in"}, Schedule: Schedule{Interval: "1s"}}}
		d = d.with(map[string]goHandler{"producers.poll.handler": func(*goCtx, []json.RawMessage) any { return nothing{} }})
		w := k.deploy("shop", "1", d)
		k.publish(w, "in", "a")
		until := k.work(w)
		waits := k.lastRun(w)
		expectRun(t, waits, pawl.PhaseMutating, pawl.StatusPausedReconciliation)
		k.publish(w, "in", "b")
		k.publish(w, "out", "c")
		if see := k.look(w.Name); see.State != run.Running || see.Issue != run.IssueReconciling {
			t.Errorf("people see %s, %s", see.State, see.Issue)
		}
		for n := 1; !until.IsZero(); n++ {
			if n > run.ReconcileAttempts {
				t.Fatalf("it asks for a %d. time at %v", n, until)
			}
			if m := k.ledgerRows(w)[0]; m.State != pawl.MutationNeedsReconcile || m.ReconcileAttempts != n-1 {
				t.Errorf("before question %d the row is %s after %d", n, m.State, m.ReconcileAttempts)
			}
			k.checkInvariants(w)
			k.start(fmt.Sprint("n-", n))
			pass(time.Until(until))
			until = k.work(w)
		}
		want := []time.Duration{0, 10 * time.Second, 30 * time.Second, 70 * time.Second, 150 * time.Second, 310 * time.Second}
		if !slices.Equal(at, want) {
			t.Errorf("it was asked at %v, want %v", at, want)
		}
		m := k.ledgerRows(w)[0]
		for _, c := range asked {
			if c.Method != "order" || string(c.Args) != `"a"` || c.Key != m.IdempotencyKey {
				t.Errorf("it was asked about %s %s with key %q, not about the call", c.Method, c.Args, c.Key)
			}
		}
		if m.State != pawl.MutationIndeterminate || m.ReconcileAttempts != run.ReconcileAttempts {
			t.Errorf("the row is %s after %d questions", m.State, m.ReconcileAttempts)
		}
		if see := k.look(w.Name); see.State != run.NeedsAttention || see.Issue != run.IssueOutcomeUnknown {
			t.Errorf("people see %s, %s", see.State, see.Issue)
		}
		k.expectStuckOn(t, w, waits)
	})
}

// expectStuckOn holds that a workflow with a call of unknown outcome does
// nothing, whatever time, a restart, a new version and a person who resumes it
// do (context 3.7.6).
func (k *kit) expectStuckOn(t *testing.T, w workflowstore.Workflow, waits runstore.Run) {
	t.Helper()
	for what, do := range map[string]func(){
		"a day":         func() { pass(24 * time.Hour) },
		"a restart":     func() { k.start("again") },
		"resume":        func() { k.resume(w.Name) },
		"a new version": func() { k.deploy(w.Name, "stuck", orderDefinition()) },
	} {
		do()
		if until := k.work(w); !until.IsZero() {
			t.Errorf("after %s it wants to be woken at %v", what, until)
		}
		k.checkInvariants(w)
		if r := k.lastRun(w); r.ID != waits.ID || r.Status != waits.Status {
			t.Errorf("after %s there is a run of %s that is %s", what, r.Handler, r.Status)
		}
	}
	if e := k.find(w, "in", "a"); e.Status != eventstore.EventReserved || e.ReservedBy != waits.ID {
		t.Errorf("the event is %s by %q", e.Status, e.ReservedBy)
	}
}

// context 3.6.3: what the loop finds out ends the
// wait: an applied call in the same row, with its result; one that did not
// happen in a fresh run. In both cases there is one effect in the end.
func TestReconcileLoopFindsOut(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		for _, happened := range []bool{true, false} {
			k.desk.clear()
			k.desk.answer, k.desk.refuse = nil, nil
			if happened {
				k.desk.loseAnswers()
			} else {
				k.desk.loseRequests()
			}
			k.desk.knowNothing()
			w := k.deploy(fmt.Sprint("shop-", happened), "1", orderDefinition())
			k.publish(w, "in", "a", "b")
			pass(time.Until(k.work(w)))
			until := k.work(w) // once in vain
			waits := k.lastRun(w)
			k.desk.answer, k.desk.refuse, k.desk.inquiry = nil, nil, nil
			k.start("n2")
			pass(time.Until(until))
			k.settle(w)
			m := k.ledgerRows(w)[0]
			wantState := map[bool]pawl.MutationState{true: pawl.MutationApplied, false: pawl.MutationFailed}[happened]
			if m.State != wantState || m.ResolvedBy != "reconcile" || m.RunID != waits.ID {
				t.Errorf("happened %v: the row is %s by %q of run %s, want %s of %s", happened, m.State, m.ResolvedBy, m.RunID, wantState, waits.ID)
			}
			for _, r := range k.runs(w) {
				switch {
				case r.ID == waits.ID && happened:
					expectRun(t, r, pawl.PhaseCommitted, pawl.StatusCommitted)
				case r.ID == waits.ID:
					expectRun(t, r, pawl.PhaseMutating, pawl.StatusPausedReconciliation)
				case r.RetryOf == waits.ID && happened:
					t.Errorf("a pause is not a retry: %v", k.story(w))
				default:
					expectRun(t, r, pawl.PhaseCommitted, pawl.StatusCommitted)
				}
			}
			if got := k.desk.things(); !slices.Equal(got, []string{"a", "b"}) {
				t.Errorf("happened %v: orders %v", happened, got)
			}
			wantAttempt := map[bool]int{true: 0, false: 1}[happened]
			if e := k.find(w, "in", "a"); e.Status != eventstore.EventConsumed || e.Attempt != wantAttempt {
				t.Errorf("happened %v: the event is %s after %d releases", happened, e.Status, e.Attempt)
			}
		}
	})
}

// context 3.6.2, 3.6.6, lesson 5: a tool that cannot be asked leaves a person to
// say what happened at once, after a lost answer and after a crash alike.
func TestToolWithoutReconcileGoesToAPerson(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		for _, how := range []string{"lost-answer", "crash-in-flight", "crash-after-the-call"} {
			w := k.deploy(how, "1", orderBy("desk", "mail"))
			k.publish(w, "in", "a")
			switch how {
			case "lost-answer":
				k.desk.loseAnswers()
			case "crash-in-flight":
				k.crashAt(w, "in flight", 1)
			default:
				k.crashAt(w, "called", 1)
			}
			if until := k.work(w); !until.IsZero() {
				t.Errorf("%s: it wants to be woken at %v", how, until)
			}
			k.desk.answer = nil
			waits := k.lastRun(w)
			expectRun(t, waits, pawl.PhaseMutating, pawl.StatusPausedReconciliation)
			if rows := k.ledgerRows(w); len(rows) != 1 || rows[0].State != pawl.MutationIndeterminate || rows[0].RunID != waits.ID || rows[0].CanReconcile {
				t.Errorf("%s: the rows are %+v", how, rows)
			}
			k.expectStuckOn(t, w, waits)
		}
		if k.desk.asked != 0 {
			t.Errorf("the tool was asked %d times", k.desk.asked)
		}
	})
}

// context 3.6.6, A-124: the successor of a run that crashed with a
// call in flight has its prepared data, its event and its call; the crashed row
// stays as it was.
func TestSuccessorOfACrashOwnsTheOpenCall(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.desk.knowNothing()
		w := k.deploy("shop", "1", orderDefinition())
		k.publish(w, "in", "a")
		k.crashAt(w, "called", 1)
		k.work(w)
		list := k.runs(w)
		crashed, waits := list[len(list)-2], list[len(list)-1]
		expectRun(t, crashed, pawl.PhaseMutating, pawl.StatusCrashed)
		expectRun(t, waits, pawl.PhaseMutating, pawl.StatusPausedReconciliation)
		if waits.RetryOf != crashed.ID || string(waits.PrepareResult) != string(crashed.PrepareResult) || len(waits.PrepareResult) == 0 || waits.Attempt != 2 {
			t.Errorf("the successor is %+v", waits)
		}
		if m := k.ledgerRows(w)[0]; m.State != pawl.MutationNeedsReconcile || m.RunID != waits.ID {
			t.Errorf("the row is %s of run %s", m.State, m.RunID)
		}
		if e := k.find(w, "in", "a"); e.ReservedBy != waits.ID || e.Attempt != 0 {
			t.Errorf("the event is held by %s", e.ReservedBy)
		}
		// Another crash, between the answer and its record, changes nothing.
		k.desk.inquiry = nil
		pass(20 * time.Second)
		if !k.crashAt(w, "asked", 1) {
			t.Error("it was not asked")
		}
		k.settle(w)
		if got := k.desk.things(); !slices.Equal(got, []string{"a"}) {
			t.Errorf("orders %v", got)
		}
		if n := len(k.runs(w)) - len(list); k.runs(w)[len(list)-1].Status != pawl.StatusCommitted || n < 1 {
			t.Errorf("the run that waited did not go on itself: %v", k.story(w))
		}
	})
}

// context 3.6.1, 3.6.3: a question that fails, takes longer than 30 s, says
// nothing, says something unheard of, or has an answer that cannot be read is
// one for later; and so is one for a connection that is gone.
func TestQuestionsWithoutAnAnswerAreAskedAgain(t *testing.T) {
	answers := map[string]func(ctx context.Context) (tool.Answer, error){
		"an-error": func(context.Context) (tool.Answer, error) { return tool.Answer{State: tool.NotApplied}, errLost },
		"for-ever": func(ctx context.Context) (tool.Answer, error) {
			<-ctx.Done()
			return tool.Answer{}, ctx.Err()
		},
		"nothing":    func(context.Context) (tool.Answer, error) { return tool.Answer{}, nil },
		"unheard-of": func(context.Context) (tool.Answer, error) { return tool.Answer{State: "perhaps"}, nil },
		"unreadable": func(context.Context) (tool.Answer, error) {
			return tool.Answer{State: tool.Applied, Result: json.RawMessage("<html>")}, nil
		},
	}
	inTime(t, func(t *testing.T, k *kit) {
		for name, answer := range answers {
			calls, asked := 0, 0
			k.plug("odd", goTool{
				call: func(context.Context, tool.Call) (json.RawMessage, error) { calls++; return nil, errLost },
				reconcile: func(ctx context.Context, _ tool.Call) (tool.Answer, error) {
					if asked++; asked > run.ReconcileAttempts+1 {
						t.Fatalf("%s: it was asked %d times", name, asked)
					}
					return answer(ctx)
				},
			})
			w := k.deploy(name, "1", orderBy("odd", "act"))
			k.publish(w, "in", "a")
			begun := time.Now()
			k.work(w)
			if took := time.Since(begun); took > reconcileTime {
				t.Errorf("%s: the first question took %v", name, took)
			}
			if rows := k.ledgerRows(w); len(rows) != 1 || rows[0].State != pawl.MutationNeedsReconcile || time.Until(rows[0].NextReconcileAt) != 10*time.Second {
				t.Errorf("%s: the rows are %+v", name, rows)
			}
			if name == "nothing" { // the connection is taken away
				k.start("without")
			}
			k.settle(w)
			if rows := k.ledgerRows(w); rows[0].State != pawl.MutationIndeterminate || calls != 1 {
				t.Errorf("%s: in the end the row is %s after %d calls", name, rows[0].State, calls)
			}
		}
	})
}
