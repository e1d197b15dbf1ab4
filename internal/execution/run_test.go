package execution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/billing"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/grantstore"
)

// C-36, C-37, C-41, context 3.17.2: the run is drained, charged to the
// account of its grant and answered.
func TestRunAnswersAndCharges(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.fake.run = func(ctx context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
			for _, e := range []runner.Event{{Kind: runner.KindProgress, Text: "hm"}, usage("a", 5), usage("a", 5), usage("", 0), usage("", 2)} {
				if err := emit(e); err != nil {
					return runner.Result{}, err
				}
			}
			return succeed(ctx, r, emit)
		}
		at := client.At(time.Date(2030, 1, 31, 9, 0, 0, 0, time.UTC))
		req := k.request(`{"topic":"autumn"}`)
		req.RunID, req.ScheduleID, req.ScheduledFor = "run-1", "sched", at
		answer, err := k.s.Run(t.Context(), "k", graph, req)
		if err != nil || !answer.OK || answer.RunID != "run-1" || answer.TraceID != "trace" || string(answer.Output) != `{"poem":"leaf"}` || *answer.CostUSD != 7 || answer.ErrorCode != "" {
			t.Fatalf("%+v %v", answer, err)
		}
		asked := k.fake.asked()[0]
		if asked.Key != "k" || asked.Attempt != 1 || asked.Name != "poet" || asked.ScheduleID != "sched" || !asked.ScheduledFor.Equal(at.Time) || asked.Remote != nil {
			t.Errorf("asked for %+v", asked)
		}
		for _, reference := range []string{"run-1/1/a", "run-1/1/unit-3", "run-1/1/unit-4"} {
			if k.count(`select count(*) from charge_receipts where source_reference = $1 and schedule_id = 'sched' and executor = 'x'`, reference) != 1 {
				t.Errorf("no receipt %s", reference)
			}
		}
		if n := k.count(`select count(*) from charge_receipts`); n != 3 {
			t.Errorf("%d receipts", n)
		}
		if n := k.count(`select count(*) from charge_receipts r join execution_grants g on g.id = $1 and g.billing_account_id = r.billing_account_id`, k.grantID); n != 3 {
			t.Errorf("%d receipts are those of the grant's account", n)
		}
		if n := k.count(`select count(*) from charge_reservations`); n != 0 {
			t.Errorf("%d reservations are left", n)
		}
	})
}

// Context 3.17.3: a finished key answers what is stored, also for failures, and
// starts nothing.
func TestFinishedKeyAnswersFromStore(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for name, result := range map[string]runner.Result{
			"good":    {OK: true, TraceID: "t", Output: json.RawMessage(`1`)},
			"bad":     {Code: "rate_limit", Message: "slow down", TraceID: "t", Retry: true, RetryAfter: 1500e6},
			"unknown": {Code: "timeout", Unknown: true},
			"odd":     {Code: "what?", Output: json.RawMessage(`not json`)},
		} {
			k.fake.run = func(context.Context, runner.Run, func(runner.Event) error) (runner.Result, error) { return result, nil }
			first := k.mustRun(name)
			k.fake.run = nil
			second, err := k.s.Run(t.Context(), name, graph, k.request(` {"topic" : "autumn"} `))
			outcome, err2 := k.s.Outcome(t.Context(), name)
			if err != nil || err2 != nil || fmt.Sprint(first) == "" {
				t.Fatalf("%s: %v %v", name, err, err2)
			}
			a, _ := json.Marshal(first)
			b, _ := json.Marshal(second)
			c, _ := json.Marshal(outcome)
			if string(a) != string(b) || string(a) != string(c) {
				t.Errorf("%s: %s, then %s, outcome %s", name, a, b, c)
			}
			if name == "odd" && (first.ErrorCode != contract.Internal || string(first.Output) != `"not json"`) {
				t.Errorf("%+v", first)
			}
			if name == "bad" && (first.ErrorCode != contract.RateLimit || !first.Retry || first.RetryAfterMS != 1500 || first.ErrorMessage != "slow down") {
				t.Errorf("%+v", first)
			}
		}
	})
}

// Context 3.17.3, 3.17.5: the key belongs to graph, input and grant.
func TestKeyOfAnotherRequestIsRefused(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.mustRun("k")
		other := k.grant(grant.Caps{}, graph, "x:other")
		sameInput := k.request(`{"topic":"autumn"}`)
		foreign := sameInput
		foreign.ExecutionGrantID = other.ID
		for name, call := range map[string]func() error{
			"input": func() error { _, err := k.s.Run(t.Context(), "k", graph, k.request(`{"topic":"spring"}`)); return err },
			"grant": func() error { _, err := k.s.Run(t.Context(), "k", graph, foreign); return err },
			"graph": func() error { _, err := k.s.Run(t.Context(), "k", "x:other", sameInput); return err },
		} {
			e, ok := errors.AsType[*pawl.Error](call())
			if !ok || e.Code != pawl.CodeInvalid || e.Reason != ReasonMismatch {
				t.Errorf("%s: %v", name, e)
			}
		}
	})
}

// Lesson 55, X-65, C-06: many callers with one key make one execution, on two
// nodes; the others hear that it is in progress, and its run.
func TestManyCallersMakeOneExecution(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		second := k.service("node-2")
		go1 := make(chan struct{})
		k.fake.run = func(ctx context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
			<-go1
			return succeed(ctx, r, emit)
		}
		var answered, busy atomic.Int32
		var runID sync.Map
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				s := k.s
				if i%2 == 1 {
					s = second
				}
				answer, err := s.Run(t.Context(), "k", graph, k.request(`{}`))
				progress, inProgress := errors.AsType[*InProgressError](err)
				switch {
				case err == nil && answer.OK:
					answered.Add(1)
					runID.Store(answer.RunID, true)
				case inProgress:
					runID.Store(progress.RunID, true)
					if busy.Add(1) == 99 {
						close(go1)
					}
				default:
					t.Errorf("%+v %v", answer, err)
				}
			})
		}
		all.Wait()
		ids := 0
		runID.Range(func(_, _ any) bool { ids++; return true })
		if len(k.fake.asked()) != 1 || answered.Load() != 1 || busy.Load() != 99 || ids != 1 {
			t.Errorf("%d executions, %d answers, %d busy, %d run ids", len(k.fake.asked()), answered.Load(), busy.Load(), ids)
		}
	})
}

// Context 3.17.2, 3.18, C-68: what is refused leaves no trace, and the key may
// be used again.
func TestRefusalsLeaveNoTrace(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		expired, revoked, other := k.grant(grant.Caps{}, graph), k.grant(grant.Caps{}, graph), k.grant(grant.Caps{}, "x:other", "y:gone")
		none := int64(0)
		broke := k.grant(grant.Caps{RunsPerDay: &none}, graph)
		k.write(func(ctx context.Context, tx *store.Tx) error {
			if _, err := grantstore.In(tx).RevokeGrant(ctx, revoked.ID); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `update execution_grants set expires_at = 1 where id = $1`, expired.ID)
			return err
		})
		for _, c := range []struct {
			grant, graph string
			want         contract.ErrorCode
			code         pawl.Code
		}{
			{"nobody's", graph, contract.GrantNotFound, pawl.CodeForbidden},
			{expired.ID, graph, contract.GrantExpired, pawl.CodeForbidden},
			{revoked.ID, graph, contract.GrantRevoked, pawl.CodeForbidden},
			{other.ID, graph, contract.GrantScope, pawl.CodeForbidden},
			{other.ID, "y:gone", contract.NotFound, pawl.CodeNotFound},
			{broke.ID, graph, contract.InsufficientCredits, pawl.CodeForbidden},
			{k.grantID, "poet", contract.NotFound, pawl.CodeNotFound},
			{k.grantID, "x:*", contract.NotFound, pawl.CodeNotFound},
		} {
			_, err := k.s.Run(t.Context(), "k", c.graph, contract.RunRequestV1{ExecutionGrantID: c.grant, Input: json.RawMessage(`{}`)})
			if contract.CodeOf(err) != c.want || pawl.ErrorCode(err) != c.code {
				t.Errorf("%s: %v", c.want, err)
			}
			if e, ok := errors.AsType[*billing.CapError](err); ok != (c.want == contract.InsufficientCredits) || ok && e.Which != billing.CapRunsPerDay {
				t.Errorf("%s: %v", c.want, err)
			}
		}
		if n := k.count(`select (select count(*) from execution_requests) + (select count(*) from charge_reservations)`); n != 0 || len(k.fake.asked()) != 0 {
			t.Errorf("%d rows, %d runs", n, len(k.fake.asked()))
		}
		k.mustRun("k")
	})
}

// Lesson 58: when the grant cannot be read, that is no refusal.
func TestInfrastructureErrorIsNoGrantError(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `alter table execution_grants rename to lost`)
			return err
		})
		_, err := k.run("k")
		if _, refused := grant.RefusalCode(err); err == nil || refused || contract.CodeOf(err) != contract.Internal {
			t.Errorf("%v", err)
		}
	})
}

// a later attempt of a failed key runs again under the same run id
// and is charged by its own units; what nobody knows is not started again.
func TestLaterAttemptRunsAgain(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		result := runner.Result{Code: "internal", Retry: true}
		k.fake.run = func(_ context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
			if err := emit(usage("a", 5)); err != nil {
				return runner.Result{}, err
			}
			return result, emit(remote(fmt.Sprint(r.Attempt)))
		}
		ask := func(attempt int) contract.RunAnswerV1 {
			req := k.request(`{}`)
			req.Attempt = attempt
			answer, err := k.s.Run(t.Context(), "k", graph, req)
			if err != nil {
				t.Fatal(err)
			}
			return answer
		}
		first, again := ask(1), ask(1)
		if first.Attempt != 1 || again.RunID != first.RunID || len(k.fake.asked()) != 1 {
			t.Errorf("%+v %+v", first, again)
		}
		result = runner.Result{Code: "timeout", Unknown: true}
		second := ask(2)
		if second.Attempt != 2 || second.RunID != first.RunID || *second.CostUSD != 10 || !second.Unknown {
			t.Errorf("%+v", second)
		}
		if asked := k.fake.asked(); len(asked) != 2 || asked[1].Attempt != 2 || string(asked[1].Remote) != "1" {
			t.Errorf("%+v", asked)
		}
		if third := ask(3); third.Attempt != 2 || len(k.fake.asked()) != 2 {
			t.Errorf("the unknown was started again: %+v", third)
		}
	})
}

// an attempt remembers nothing of the one before it but where its
// run is: usage without a name is counted from the beginning, no question is
// open, and a wish to be asked later is gone.
func TestLaterAttemptBeginsAnew(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.fake.run = asks
		req := k.request(`{}`)
		req.Attempt = 1
		if answer, err := k.s.Run(t.Context(), "k", graph, req); err != nil || answer.Interrupt == nil {
			t.Fatalf("%+v %v", answer, err)
		}
		k.fake.run = func(_ context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
			if err := emit(usage("", 3)); err != nil {
				return runner.Result{}, err
			}
			if r.Attempt == 1 {
				return runner.Result{Code: "internal", Retry: true, RetryAfter: time.Minute}, nil
			}
			return runner.Result{Code: "internal"}, nil
		}
		if answer, err := k.s.Resume(t.Context(), "k", "", []byte(`"yes"`)); err != nil || !answer.Retry || answer.RetryAfterMS != 60_000 {
			t.Fatalf("%+v %v", answer, err)
		}
		req.Attempt = 2
		answer, err := k.s.Run(t.Context(), "k", graph, req)
		if err != nil || answer.Attempt != 2 || answer.Retry || answer.RetryAfterMS != 0 {
			t.Errorf("%+v %v", answer, err)
		}
		if n := k.count(`select count(*) from charge_receipts where source_reference like $1`, answer.RunID+"/2/%"); n != 1 {
			t.Errorf("%d receipts", n)
		}
		first := k.count(`select count(*) from charge_receipts where source_reference = $1`, answer.RunID+"/2/"+billing.Unit("", 1))
		if first != 1 {
			t.Error("the units of the second attempt go on counting those of the first")
		}
		if _, err := k.s.Resume(t.Context(), "k", "", []byte(`"yes"`)); err != nil {
			t.Errorf("an answer to what is over: %v", err)
		}
	})
}

// A run that nothing bounds sets nothing aside, so that runs of one owner do not
// wait for each other.
func TestWhatNothingBoundsSetsNothingAside(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.grantID = k.grant(grant.Caps{}, graph).ID
		set := -1
		k.fake.run = func(ctx context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
			set = k.count(`select count(*) from charge_reservations`)
			return succeed(ctx, r, emit)
		}
		if answer := k.mustRun("k"); !answer.OK || set != 0 {
			t.Errorf("%+v with %d reservations", answer, set)
		}
	})
}
