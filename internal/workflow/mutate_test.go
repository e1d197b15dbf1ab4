package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// context 3.5.2, 3.5.3, lesson 40: when a call reaches the tool, its row is
// committed: in flight, with the arguments and with the key that the tool gets,
// and its run and its event are where recovery expects them.
func TestCallIsOnTheDiskBeforeItLeaves(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", orderDefinition())
		var looked []mutationstore.Mutation
		k.desk.refuse = func(c tool.Call) *tool.Error {
			rows := k.ledgerRows(w)
			m := rows[len(rows)-1]
			looked = append(looked, m)
			if m.State != pawl.MutationInFlight || m.IdempotencyKey != c.Key || c.Key == "" || string(m.Arguments) != string(c.Args) {
				t.Errorf("the row says %s, key %q, arguments %s; the call has %q and %s", m.State, m.IdempotencyKey, m.Arguments, c.Key, c.Args)
			}
			if m.Tool != "desk" || m.Method != "order" || !m.CanReconcile || m.N != 1 || !strings.HasPrefix(m.Title, "Order ") {
				t.Errorf("the row is %+v", m)
			}
			r := k.lastRun(w)
			expectRun(t, r, pawl.PhaseMutating, pawl.StatusActive)
			var id string
			if err := json.Unmarshal(c.Args, &id); err != nil {
				t.Fatal(err)
			}
			if e := k.find(w, "in", id); m.RunID != r.ID || e.Status != eventstore.EventReserved || e.ReservedBy != r.ID {
				t.Errorf("the row belongs to %s; the event is %s by %s; the run is %s", m.RunID, e.Status, e.ReservedBy, r.ID)
			}
			return nil
		}
		k.publish(w, "in", "a", "b")
		k.work(w)
		if len(looked) != 2 || looked[0].IdempotencyKey == looked[1].IdempotencyKey {
			t.Errorf("the calls were %+v, want two with keys of their own", looked)
		}
	})
}

// context 3.3.3, 3.5.5: a call that happened is recorded as
// applied with its result in the transaction that reaches mutated, and next is
// told; an answer without a value is null.
func TestAppliedCallIsRecordedWithItsResult(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for name, c := range map[string]struct{ answer, stored string }{
			"object":      {`{"number": 1}`, `{"number":1}`},
			"null":        {`null`, `null`},
			"nothing":     {``, `null`},
			"broken text": {"\"caf\xe9\"", "\"caf\uFFFD\""}, // JSON, but not UTF-8
		} {
			name = strings.ReplaceAll(name, " ", "-")
			k.plug("odd", goTool{call: func(context.Context, tool.Call) (json.RawMessage, error) { return json.RawMessage(c.answer), nil }})
			var told string
			w := k.deploy(name, "1", orderBy("odd", "fire").with(map[string]goHandler{"consumers.order.next": func(_ *goCtx, args []json.RawMessage) any {
				if dataOf(args[0]) != nil {
					told = string(args[1])
				}
				return nothing{}
			}}))
			k.publish(w, "in", "a")
			k.work(w)
			if want := `{"status":"applied","result":` + c.stored + `}`; told != want {
				t.Errorf("%s: next was told %s, want %s", name, told, want)
			}
			rows := k.ledgerRows(w)
			if len(rows) != 1 || rows[0].State != pawl.MutationApplied || rows[0].ResolvedBy != "answer" || rows[0].ResolvedAt.IsZero() || strings.ReplaceAll(string(rows[0].Result), " ", "") != c.stored {
				t.Errorf("%s: the rows are %+v", name, rows)
			}
			if e := k.find(w, "in", "a"); e.Status != eventstore.EventConsumed {
				t.Errorf("%s: the event is %s", name, e.Status)
			}
		}
	})
}

// context 3.5.5, 3.5.7: a refusal that the tool knows did not happen ends the
// row as failed, with its class and text, and is never asked about.
func TestRefusedCallIsRecordedAsFailed(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		for _, class := range []pawl.Class{pawl.ClassTransient, pawl.ClassLogic, pawl.ClassInternal} {
			w := k.deploy("shop-"+string(class), "1", orderDefinition())
			k.publish(w, "in", string(class))
			k.desk.refuseTimes("order", class)
			k.work(w)
			rows := k.ledgerRows(w)
			if len(rows) != 1 || rows[0].State != pawl.MutationFailed || rows[0].ErrorClass != class || rows[0].ErrorMessage != "refused as "+string(class) || rows[0].ResolvedAt.IsZero() {
				t.Errorf("%s: the rows are %+v", class, rows)
			}
			k.resume(w.Name)
			k.settle(w)
			again := k.ledgerRows(w)
			if len(again) != 2 || again[1].State != pawl.MutationApplied || again[1].IdempotencyKey == again[0].IdempotencyKey || again[0].RunID == again[1].RunID {
				t.Errorf("%s: after the retry the rows are %+v; want a second one, of another run and with another key", class, again)
			}
		}
		if k.desk.asked != 0 {
			t.Errorf("the desk was asked %d times about calls that it had refused", k.desk.asked)
		}
		if got := k.desk.things(); !slices.Equal(got, []string{"internal", "logic", "transient"}) {
			t.Errorf("orders %v", got)
		}
	})
}

// a call that is refused for want of a right closes its row
// and keeps the reservations, because the run only pauses. Resumed, the same run
// opens a new row with a new key; a second refusal waits for a person again.
func TestResumeAfterRefusedRightsOpensANewRow(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		for _, class := range []pawl.Class{pawl.ClassAuth, pawl.ClassPermission, pawl.ClassPrecondition} {
			w := k.deploy("shop-"+string(class), "1", orderDefinition())
			k.publish(w, "in", string(class))
			k.desk.refuseTimes("order", class, class)
			k.settle(w)
			first := k.lastRun(w)
			for n := 1; n <= 2; n++ {
				k.start(fmt.Sprint("n-", class, n))
				k.settle(w)
				r := k.lastRun(w)
				expectRun(t, r, pawl.PhaseMutating, pawl.StatusPausedApproval)
				if rows := k.ledgerRows(w); len(rows) != n || rows[n-1].State != pawl.MutationFailed || rows[n-1].N != n || rows[n-1].RunID != first.ID {
					t.Errorf("%s, refusal %d: the rows are %+v", class, n, rows)
				}
				if e := k.find(w, "in", string(class)); e.Status != eventstore.EventReserved || e.ReservedBy != first.ID || e.Attempt != 0 {
					t.Errorf("%s, refusal %d: the event is %s by %q", class, n, e.Status, e.ReservedBy)
				}
				if !k.resume(w.Name) {
					t.Error("resume changes nothing")
				}
				k.settle(w)
			}
			rows := k.ledgerRows(w)
			keys := map[string]bool{}
			for _, m := range rows {
				keys[m.IdempotencyKey] = true
			}
			if len(rows) != 3 || len(keys) != 3 || rows[2].State != pawl.MutationApplied || rows[2].N != 3 || rows[2].RunID != first.ID {
				t.Errorf("%s: in the end the rows are %+v", class, rows)
			}
			for _, r := range k.runs(w) {
				if r.RetryOf != "" || r.Status != pawl.StatusCommitted {
					t.Errorf("%s: a pause is not a retry: %v", class, k.story(w))
				}
			}
		}
		if got := k.desk.things(); !slices.Equal(got, []string{"auth", "permission", "precondition"}) {
			t.Errorf("orders %v", got)
		}
	})
}

// recovery table, X-66: a run that waits for a right after a refused call can
// be taken back; its event is pending again and goes through another run.
func TestRunThatWaitsForRightsCanBeCancelled(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", orderDefinition())
		k.publish(w, "in", "a")
		k.desk.refuseTimes("order", pawl.ClassAuth)
		k.settle(w)
		waits := k.lastRun(w)
		k.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.CancelRun(ctx, tx, waits, "tester")
			return err
		})
		if e := k.find(w, "in", "a"); e.Status != eventstore.EventPending || e.Attempt != 1 {
			t.Errorf("the event is %s after %d releases", e.Status, e.Attempt)
		}
		k.settle(w)
		if got := k.desk.things(); !slices.Equal(got, []string{"a"}) {
			t.Errorf("orders %v: %v", got, k.story(w))
		}
	})
}

// mutate that returns without a call has the result none; its events are
// consumed and next is told.
func TestMutateWithoutACallHasTheResultNone(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		var told []string
		w := k.deploy("shop", "1", orderDefinition().with(map[string]goHandler{
			"consumers.order.mutate": func(*goCtx, []json.RawMessage) any { return map[string]any{"status": "applied"} },
			"consumers.order.next": func(_ *goCtx, args []json.RawMessage) any {
				told = append(told, string(args[1]))
				return nothing{}
			},
		}))
		k.work(w) // without an event next runs as well
		k.publish(w, "in", "a")
		k.work(w)
		if want := []string{resultNone, resultNone}; !slices.Equal(told, want) {
			t.Errorf("next was told %q, want %q", told, want)
		}
		if rows := k.ledgerRows(w); len(rows) != 0 {
			t.Errorf("there are the rows %+v", rows)
		}
		if e := k.find(w, "in", "a"); e.Status != eventstore.EventConsumed {
			t.Errorf("the event is %s", e.Status)
		}
	})
}

// context 3.3, 3.3.4: a second call of mutate, at the same time or after the
// first, has no effect and does not disturb the first; and the run fails.
func TestSecondCallHasNoEffect(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		release := make(chan struct{})
		var mu sync.Mutex
		var calls []string
		k.plug("slow", goTool{call: func(_ context.Context, c tool.Call) (json.RawMessage, error) {
			mu.Lock()
			calls = append(calls, string(c.Args))
			mu.Unlock()
			<-release
			return json.RawMessage(`"done"`), nil
		}})
		answered := 0
		w := k.deploy("shop", "1", orderDefinition().with(map[string]goHandler{"consumers.order.mutate": func(c *goCtx, _ []json.RawMessage) any {
			var all sync.WaitGroup
			call := func(method, arg string) {
				all.Go(func() { caught(func() { c.tool("slow", method, arg) }); mu.Lock(); answered++; mu.Unlock() })
				synctest.Wait() // it is with the tool, or waits
			}
			call("fire", "first")
			call("fire", "second")
			call("act", "third")
			call("look", "a violation")
			mu.Lock()
			if answered != 0 {
				t.Errorf("%d calls were answered, which ends the phase, while the first was under way", answered)
			}
			mu.Unlock()
			close(release)
			all.Wait()
			caught(func() { c.tool("slow", "fire", "late") })
			return nothing{}
		}}))
		k.publish(w, "in", "a")
		k.work(w)
		if want := []string{`"first"`}; !slices.Equal(calls, want) {
			t.Errorf("the tool got %v, want %v", calls, want)
		}
		rows := k.ledgerRows(w)
		if len(rows) != 1 || rows[0].State != pawl.MutationApplied || string(rows[0].Result) != `"done"` {
			t.Errorf("the rows are %+v", rows)
		}
		// What happened is recorded; that the script wanted more is its fault.
		r := k.newest(w)
		expectRun(t, r, pawl.PhaseEmitting, pawl.StatusFailedLogic)
		if r.ErrorCode != codeSecondCall || !strings.Contains(r.ErrorMessage, "tools.slow.fire was called in mutate in addition to another call") {
			t.Errorf("the error is %s: %s", r.ErrorCode, r.ErrorMessage)
		}
		k.deploy("shop", "2", orderDefinition())
		k.settle(w)
		if want := []string{`"first"`}; !slices.Equal(calls, want) || k.newest(w).Status != pawl.StatusCommitted {
			t.Errorf("after the script was mended the tool got %v; %v", calls, k.story(w))
		}
	})
}

// A second call beside one whose outcome is unknown is not forgotten while it is
// asked what became of the first: the run fails once that is recorded.
func TestSecondCallBesideAnUnknownOne(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		known := false
		k.plug("slow", goTool{
			call: func(context.Context, tool.Call) (json.RawMessage, error) {
				pass(time.Second)
				return nil, errLost
			},
			reconcile: func(context.Context, tool.Call) (tool.Answer, error) {
				if !known {
					return tool.Answer{State: tool.Later}, nil
				}
				return tool.Answer{State: tool.Applied}, nil
			},
		})
		w := k.deploy("shop", "1", orderDefinition().with(map[string]goHandler{"consumers.order.mutate": func(c *goCtx, _ []json.RawMessage) any {
			var all sync.WaitGroup
			for range 2 {
				all.Go(func() { caught(func() { c.tool("slow", "act", "x") }) })
			}
			all.Wait()
			return nothing{}
		}}))
		k.publish(w, "in", "a")
		until := k.work(w)
		expectRun(t, k.newest(w), pawl.PhaseMutating, pawl.StatusPausedReconciliation)
		known = true
		pass(time.Until(until))
		k.settle(w)
		r := k.newest(w)
		expectRun(t, r, pawl.PhaseMutated, pawl.StatusFailedLogic)
		if rows := k.ledgerRows(w); len(rows) != 1 || rows[0].State != pawl.MutationApplied || r.ErrorCode != codeSecondCall {
			t.Errorf("%s: %s; the rows are %+v", r.ErrorCode, r.ErrorMessage, rows)
		}
		k.deploy("shop", "2", orderDefinition())
		k.settle(w)
		if got := k.newest(w).Status; got != pawl.StatusCommitted || len(k.ledgerRows(w)) != 1 {
			t.Errorf("after the script was mended it is %s: %v", got, k.story(w))
		}
	})
}

// lateTool tells of its methods only when it is let, so that a call is on its
// way for as long as a test wants.
type lateTool struct {
	goTool
	let func()
}

func (l lateTool) Methods() []tool.Method {
	l.let()
	return l.goTool.Methods()
}

// X-24, context 3.3.1: a call that is on its way when the phase fails is not
// made any more; a phase that has ended would cut it off.
func TestCallOnItsWayIsNotMadeAfterAFailure(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		let := func() {}
		k.plug("late", lateTool{goTool{call: func(context.Context, tool.Call) (json.RawMessage, error) {
			t.Error("the call was made")
			return nil, nil
		}}, func() { let() }})
		w, r := k.probeRun("shop", "mutate", func(c *goCtx, _ string) {
			gate := make(chan struct{})
			let = func() { <-gate }
			var call sync.WaitGroup
			call.Go(func() { caught(func() { c.tool("late", "fire", 1) }) })
			synctest.Wait() // the call is on its way
			caught(func() { c.peek("in") })
			close(gate)
			call.Wait()
		})
		expectRun(t, r, pawl.PhaseMutating, pawl.StatusFailedLogic)
		k.expectNoEffect(t, w, "mutate")
	})
}

// context 3.8: what the operator denies leaves no row and sends nothing; the
// run waits with its reservations. A connection or method that there is not is
// a fault of the script.
func TestCallsThatMayNotLeaveAreNotMade(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		strict, err := tool.NewSet(tool.Named{Name: "desk", Type: "test", Connection: k.desk, Policy: map[string]tool.Policy{"burn": tool.Deny, "read": tool.Deny}})
		if err != nil {
			t.Fatal(err)
		}
		k.s.cfg.Tools = strict
		for i, c := range []struct {
			connection, method string
			phase              pawl.Phase
			status             pawl.Status
			class              pawl.Class
			code, text         string
		}{
			{"desk", "burn", pawl.PhaseMutating, pawl.StatusPausedApproval, pawl.ClassPermission, "denied", `"desk" denies burn`},
			{"desk", "read", pawl.PhasePreparing, pawl.StatusPausedApproval, pawl.ClassPermission, "denied", `"desk" denies read`},
			{"dask", "order", pawl.PhaseMutating, pawl.StatusPausedApproval, pawl.ClassPrecondition, "unknown_connection", `no connection "dask"`},
			{"desk", "ordre", pawl.PhaseMutating, pawl.StatusFailedLogic, pawl.ClassLogic, "unknown_method", `no method "ordre"`},
			{"dask", "read", pawl.PhasePreparing, pawl.StatusPausedApproval, pawl.ClassPrecondition, "unknown_connection", `no connection "dask"`},
		} {
			phase := map[pawl.Phase]string{pawl.PhaseMutating: "mutate", pawl.PhasePreparing: "prepare"}[c.phase]
			w, r := k.probeRun(fmt.Sprintf("w%d", i), phase, func(g *goCtx, _ string) { g.tool(c.connection, c.method, "x") })
			expectRun(t, r, c.phase, c.status)
			if r.ErrorClass != c.class || r.ErrorCode != c.code || !strings.Contains(r.ErrorMessage, c.text) {
				t.Errorf("%s.%s: the error is %s of class %s: %s", c.connection, c.method, r.ErrorCode, r.ErrorClass, r.ErrorMessage)
			}
			if rows := k.ledgerRows(w); len(rows) != 0 {
				t.Errorf("%s.%s: there are the rows %+v", c.connection, c.method, rows)
			}
			want := eventstore.EventPending
			if c.status == pawl.StatusPausedApproval && c.phase == pawl.PhaseMutating {
				want = eventstore.EventReserved
			}
			if e := k.find(w, "in", "a"); e.Status != want {
				t.Errorf("%s.%s: the event is %s, not %s", c.connection, c.method, e.Status, want)
			}
			k.checkInvariants(w)
		}
		if got := k.desk.things(); len(got) != 0 {
			t.Errorf("orders %v", got)
		}
	})
}

// context 3.5.6, 3.5.7, X-40, lesson 38: an answer that cannot be read, a call
// that ran out of time and an error that does not say what happened are
// unknown, never failed, whatever their class.
func TestUnclearAnswersAreUnknown(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		for i, c := range []struct {
			name, answer string
			err          error
		}{
			{"no JSON", `<html>thank you</html>`, nil},
			{"half of JSON", `{"number":`, nil},
			{"a plain error", "", errors.New("connection reset")},
			{"out of time", "", context.DeadlineExceeded},
			{"a server's fault", "", &tool.Error{Class: pawl.ClassTransient, Code: "http_500", Msg: "500"}},
			{"a fault of the script, they say", "", &tool.Error{Class: pawl.ClassLogic, Code: "schema", Msg: "the answer has another shape"}},
			{"rights, they say", "", &tool.Error{Class: pawl.ClassAuth, Code: "http_401", Msg: "401 after sending"}},
		} {
			for _, method := range []string{"act", "fire"} {
				calls := 0
				k.plug("odd", goTool{
					call: func(context.Context, tool.Call) (json.RawMessage, error) {
						calls++
						return json.RawMessage(c.answer), c.err
					},
					reconcile: func(context.Context, tool.Call) (tool.Answer, error) { return tool.Answer{State: tool.Later}, nil },
				})
				w := k.deploy(fmt.Sprintf("w-%d-%s", i, method), "1", orderBy("odd", method))
				k.publish(w, "in", "a")
				k.work(w)
				k.checkInvariants(w)
				r := k.lastRun(w)
				expectRun(t, r, pawl.PhaseMutating, pawl.StatusPausedReconciliation)
				if r.ErrorClass != pawl.ClassIndeterminate {
					t.Errorf("%s: the class is %s", c.name, r.ErrorClass)
				}
				want := map[string]pawl.MutationState{"act": pawl.MutationNeedsReconcile, "fire": pawl.MutationIndeterminate}[method]
				if rows := k.ledgerRows(w); len(rows) != 1 || rows[0].State != want || calls != 1 {
					t.Errorf("%s: after %d calls of %s the rows are %+v, want one that is %s", c.name, calls, method, rows, want)
				}
			}
		}
	})
}

// context 3.3.2: mutate gets what prepare returned as it was stored, and its own
// return value means nothing; keys are unique over all calls of a workflow.
func TestMutateGetsWhatPrepareReturned(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		var got []string
		d := orderDefinition().with(map[string]goHandler{
			"consumers.order.prepare": func(c *goCtx, _ []json.RawMessage) any {
				ids := c.peek("in")
				if len(ids) == 0 {
					return map[string]any{"reservations": []any{}}
				}
				return map[string]any{"reservations": []any{map[string]any{"topic": "in", "ids": ids[:1]}}, "data": map[string]any{"id": ids[0], "n": 1.5}, "ui": map[string]any{"title": "T"}}
			},
			"consumers.order.mutate": func(c *goCtx, args []json.RawMessage) any {
				got = append(got, string(args[0]))
				c.tool("desk", "order", dataOf(args[0]))
				return nothing{}
			},
			"consumers.order.next": func(_ *goCtx, args []json.RawMessage) any {
				got = append(got, string(args[0]))
				return nothing{}
			},
		})
		w := k.deploy("shop", "1", d)
		k.settle(w)
		got = nil
		k.desk.refuseTimes("order", pawl.ClassTransient, pawl.ClassAuth)
		k.publish(w, "in", "a")
		k.settle(w)
		k.resume(w.Name)
		k.settle(w)
		want := `{"reservations":[{"topic":"in","ids":["a"]}],"data":{"id":"a","n":1.5},"ui":{"title":"T"}}`
		if diff := cmp.Diff([]string{want, want, want, want}, got); diff != "" {
			t.Errorf("mutate three times and next got (-want +got):\n%s", diff)
		}
		keys := map[string]bool{}
		for _, m := range k.ledgerRows(w) {
			keys[m.IdempotencyKey] = true
		}
		if len(keys) != 3 || keys[""] {
			t.Errorf("three calls had the keys %v", keys)
		}
		if d := k.look(w.Name); d.State != run.Idle {
			t.Errorf("people see %s, %s", d.State, d.Sentence)
		}
	})
}
