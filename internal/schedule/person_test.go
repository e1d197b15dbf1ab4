package schedule

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// asks makes the graph ask a person at its first attempt.
func (f *fakeGraph) asksPeople() {
	f.set(func() {
		f.answer = func(string, int) contract.RunAnswerV1 {
			return contract.RunAnswerV1{Interrupt: json.RawMessage(`{"question":"may I?"}`)}
		}
	})
}

func (k *kit) approve(r runstore.Run, answer string) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) error {
		return k.s.Approve(ctx, tx, r, json.RawMessage(answer), "ada")
	})
}

// A schedule whose question was answered runs, and needs nobody any more.
func TestAnAnsweredScheduleRuns(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.asksPeople()
		sch := k.create(ask("s", ""))
		k.pass(70 * time.Second)
		k.checkRows()
		k.graph.set(func() { k.graph.answer, k.graph.takes = nil, 30*time.Second })
		k.approve(k.runOf(sch), `true`)
		k.pass(5 * time.Second)
		if d, err := k.s.Describe(t.Context(), k.owner, sch.ID); err != nil || d.State != run.Running {
			t.Fatalf("it is %s (%v)", d.State, err)
		}
		k.checkRows()
	})
}

// A graph that asks a person waits without costing anything; the answer makes
// the same run go on, and the chain goes on after it.
func TestAnAnswerResumesTheRun(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.asksPeople()
		sch := k.create(ask("s", ""))
		k.pass(2*time.Minute + 30*time.Second)
		k.wantStory(sch, "00:01 running")
		r := k.runOf(sch)
		if len(k.notices) != 1 || k.notices[0].Issue != run.IssueApproval || k.notices[0].RunID != r.ID {
			t.Errorf("people were told %+v, want of run %s", k.notices, r.ID)
		}
		if jobs := k.column(`select key from jobs`); len(jobs) != 0 {
			t.Errorf("it waits with the jobs %v", jobs)
		}
		if n, err := k.s.Reconcile(t.Context()); n != 0 || err != nil {
			t.Errorf("the reconciler repaired %d (%v)", n, err)
		}
		k.restart(3 * time.Second) // a restart changes nothing
		k.graph.answer = nil
		if e := k.try(func(ctx context.Context, tx *store.Tx) error {
			return k.s.Approve(ctx, tx, r, json.RawMessage(`{`), "ada")
		}); e.Code != pawl.CodeInvalid {
			t.Errorf("an answer that is not JSON: %v", e)
		}
		k.approve(r, `{"yes":true}`)
		if e := k.try(func(ctx context.Context, tx *store.Tx) error { return k.s.Approve(ctx, tx, r, nil, "ada") }); e.Reason != "not_waiting" {
			t.Errorf("a second answer: %v", e)
		}
		k.pass(10 * time.Second)
		k.wantStory(sch, "00:01 success", "00:02 success", "00:03 pending")
		first := k.slots(sch)[0]
		if fake := k.graph.seen(pawl.SlotKey(sch.ID, at(1))); !slices.Equal(fake.resumed, []string{`{"yes":true}`}) || len(fake.begun) != 1 || first.Attempts != 1 || first.RunID != r.ID {
			t.Errorf("it was resumed with %v: %+v", fake.resumed, first)
		}
		if len(k.notices) != 2 || k.notices[1].What != "recovered" {
			t.Errorf("people were told %+v", k.notices)
		}
	})
}

// A crash while the answer is passed on asks nobody again.
func TestACrashDoesNotLoseTheAnswer(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		for _, place := range []string{"claimed", "answered"} {
			k.graph.asksPeople()
			sch := k.create(ask(place, ""))
			k.pass(time.Until(sch.NextRunAt.Add(5 * time.Second)))
			k.approve(k.runOf(sch), `"yes"`)
			crashes := 0
			k.crashAt(func(at string) error {
				if at == place && crashes < 2 {
					crashes++
					return errCrash
				}
				return nil
			})
			k.pass(10 * time.Second)
			k.crashAt(nil)
			fake := k.graph.seen(pawl.SlotKey(sch.ID, sch.NextRunAt))
			if slot := k.slots(sch)[0]; slot.Status != "success" || crashes != 2 || !slices.Equal(fake.resumed, []string{`"yes"`}) || len(fake.begun) != 1 {
				t.Errorf("%s: resumed with %v after %d crashes: %v", place, fake.resumed, crashes, k.story(sch))
			}
			k.write(func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.Delete(ctx, tx, k.owner, sch.ID, "t")
				return err
			})
		}
	})
}

// A crash after a graph has asked a second thing does not answer it with the
// answer to the first.
func TestAnAnswerReachesOneQuestion(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.asksPeople()
		k.graph.resume = func(string, json.RawMessage) (contract.RunAnswerV1, time.Duration) {
			return contract.RunAnswerV1{Interrupt: json.RawMessage(`"delete everything?"`)}, 0
		}
		sch := k.create(ask("s", ""))
		k.pass(65 * time.Second)
		k.approve(k.runOf(sch), `"yes"`)
		crashes := 0
		k.crashAt(func(at string) error {
			if at == "answered" && crashes < 1 {
				crashes++
				return errCrash
			}
			return nil
		})
		k.pass(30 * time.Second)
		fake := k.graph.seen(pawl.SlotKey(sch.ID, at(1)))
		if r := k.runOf(sch); crashes != 1 || r.Status != pawl.StatusPausedApproval || !slices.Equal(fake.resumed, []string{`"yes"`}) {
			t.Errorf("after %d crashes it is %s, resumed with %v", crashes, r.Status, fake.resumed)
		}
		if q := k.column(`select question from graph_questions where answer is null`); !slices.Equal(q, []string{`"delete everything?"`}) {
			t.Errorf("people are asked %v", q)
		}
	})
}

// A graph may ask more than once.
func TestAGraphAsksAgain(t *testing.T) {
	onSQLite(t, func(t *testing.T, k *kit) {
		k.graph.asksPeople()
		k.graph.resume = func(_ string, answer json.RawMessage) (contract.RunAnswerV1, time.Duration) {
			if string(answer) == `"more"` {
				return contract.RunAnswerV1{Interrupt: json.RawMessage(`"and now?"`)}, 0
			}
			return contract.RunAnswerV1{ErrorCode: contract.Internal, ErrorMessage: "no"}, 0
		}
		sch := k.create(ask("s", ""))
		k.pass(65 * time.Second)
		k.approve(k.runOf(sch), `"more"`)
		k.pass(5 * time.Second)
		r := k.runOf(sch)
		if r.Status != pawl.StatusPausedApproval {
			t.Errorf("it is %s", r.Status)
		}
		k.approve(r, "")
		k.pass(5 * time.Second)
		k.wantStory(sch, "00:01 error internal", "00:02 pending")
		if fake := k.graph.seen(pawl.SlotKey(sch.ID, at(1))); !slices.Equal(fake.resumed, []string{`"more"`, `true`}) {
			t.Errorf("it was resumed with %v", fake.resumed)
		}
	})
}

// A person who says no ends the run everywhere, and the chain goes on.
func TestARejectionEndsTheRun(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.asksPeople()
		sch := k.create(ask("s", ""))
		k.pass(3*time.Minute + 30*time.Second)
		r := k.runOf(sch)
		k.graph.answer = nil
		k.write(func(ctx context.Context, tx *store.Tx) error { return k.s.Reject(ctx, tx, r, "ada") })
		k.pass(5 * time.Second)
		k.wantStory(sch, "00:01 error aborted", "00:02 success", "00:03 skipped coalesced", "00:04 pending")
		if !slices.Contains(k.graph.cancelled(), pawl.SlotKey(sch.ID, at(1))) {
			t.Errorf("cancelled %v", k.graph.cancelled())
		}
		if e := k.try(func(ctx context.Context, tx *store.Tx) error {
			gone, err := runstore.In(tx).GetRun(ctx, r.ID)
			if err != nil {
				return err
			}
			return k.s.Approve(ctx, tx, gone, nil, "ada")
		}); e.Reason != "not_waiting" {
			t.Errorf("an answer after that: %v", e)
		}
	})
}

// Cancelling reaches the execution service; a run that waits for its next
// attempt ends at once; what is over, or followed by a later attempt, is
// refused.
func TestCancelARun(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		cancel := func(r runstore.Run) error {
			return k.db.Write(context.Background(), func(ctx context.Context, tx *store.Tx) error { return k.s.cancelRun(ctx, tx, r, "ada") })
		}
		k.graph.takes = 40 * time.Second
		sch := k.create(ask("s", ""))
		k.pass(65 * time.Second)
		r := k.runOf(sch)
		if err := cancel(r); err != nil {
			t.Fatal(err)
		}
		k.pass(5 * time.Second)
		k.wantStory(sch, "00:01 error aborted", "00:02 pending")
		if len(k.notices) != 0 {
			t.Errorf("people were told %v of what one of them did", k.notices)
		}
		k.graph.takes = 0
		k.graph.answer = func(_ string, attempt int) contract.RunAnswerV1 {
			return contract.RunAnswerV1{ErrorCode: contract.RateLimit, Retry: true, RetryAfterMS: 15_000}
		}
		k.pass(55 * time.Second) // 00:02:05, after the first attempt
		first := k.runOf(sch)
		k.pass(15 * time.Second)
		second := k.runOf(sch)
		e := k.try(func(ctx context.Context, tx *store.Tx) error { return k.s.cancelRun(ctx, tx, first, "ada") })
		if second.RetryOf != first.ID || e.Reason != "not_running" {
			t.Errorf("an attempt that another one follows: %v", e)
		}
		if err := cancel(second); err != nil {
			t.Fatal(err)
		}
		k.pass(20 * time.Second)
		k.wantStory(sch, "00:01 error aborted", "00:02 error aborted", "00:03 pending")
		if got := k.graph.executed(sch.ID); !slices.Equal(got, []string{"00:01", "00:02 x2"}) {
			t.Errorf("executed %v", got)
		}
		for _, r := range []runstore.Run{r, second} {
			k.read(func(ctx context.Context, tx *store.Tx) (err error) {
				r, err = runstore.In(tx).GetRun(ctx, r.ID)
				return err
			})
			if e := k.try(func(ctx context.Context, tx *store.Tx) error { return k.s.cancelRun(ctx, tx, r, "ada") }); e.Reason != "not_running" {
				t.Errorf("a run that is over: %v", e)
			}
		}
	})
}

// Failures of one kind in a row are told once, with the run, and so is the
// recovery.
func TestPeopleAreToldOnce(t *testing.T) {
	onSQLite(t, func(t *testing.T, k *kit) {
		k.graph.answer = func(string, int) contract.RunAnswerV1 {
			return contract.RunAnswerV1{ErrorCode: contract.InvalidRequest, ErrorMessage: "no"}
		}
		sch := k.create(ask("s", ""))
		k.pass(3 * time.Minute)
		k.graph.answer = nil
		k.pass(2 * time.Minute)
		var told []string
		for _, n := range k.notices {
			told = append(told, n.What)
		}
		if !slices.Equal(told, []string{"needs_attention", "recovered"}) || k.notices[0].RunID != k.slots(sch)[0].RunID {
			t.Errorf("people were told %+v", k.notices)
		}
	})
}

// C-69, X-49: a slot that ran until it asked a person, and cost money, was not
// skipped, even if it may not go on with the answer.
func TestARefusedResumptionTellsThatTheSlotRan(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		refusals := map[string]*pawl.Error{
			"grant_revoked":        {Code: pawl.CodeForbidden, Reason: string(contract.GrantRevoked), Msg: "the grant was revoked"},
			"insufficient_credits": {Code: pawl.CodeConflict, Reason: string(contract.InsufficientCredits), Msg: "the account is empty"},
		}
		for code, refusal := range refusals {
			cost := pawl.USD(7)
			k.graph.set(func() {
				k.graph.answer = func(string, int) contract.RunAnswerV1 {
					return contract.RunAnswerV1{Interrupt: json.RawMessage(`{"q":1}`), CostUSD: &cost}
				}
				k.graph.refuseResume = func() error { return refusal }
			})
			sch := k.create(ask(code, ""))
			k.pass(time.Until(sch.NextRunAt.Add(5 * time.Second)))
			k.approve(k.runOf(sch), `"yes"`)
			k.pass(5 * time.Second)
			slot := k.slots(sch)[0]
			if slot.Status != "error" || slot.Disposition != "fired" || slot.ErrorCode != code || slot.Cost != 7 || slot.StartedAt.IsZero() ||
				slot.ErrorMessage != "It could not continue with the answer of a person: "+refusal.Msg {
				t.Errorf("%+v", slot)
			}
			if key := pawl.SlotKey(sch.ID, slot.ScheduledFor); !slices.Contains(k.graph.cancelled(), key) {
				t.Errorf("what waits for the answer was not given up: %v", k.graph.cancelled())
			}
			k.write(func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.Delete(ctx, tx, k.owner, sch.ID, "t")
				return err
			})
		}
	})
}

// a schedule that failed needs attention until a slot of it has
// run well; one that was passed over mends nothing.
func TestAttentionOutlivesSkippedSlots(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(ask("s", pawl.PolicyForbid))
		fails := func(string, int) contract.RunAnswerV1 {
			return contract.RunAnswerV1{ErrorCode: contract.InvalidRequest, ErrorMessage: "no topic"}
		}
		k.graph.set(func() { k.graph.answer = fails })
		k.pass(70 * time.Second)
		word := func(want run.State, text string) {
			t.Helper()
			d, err := k.s.Describe(t.Context(), k.owner, sch.ID)
			if err != nil || d.State != want || d.Sentence != text {
				t.Errorf("it is %s: %q, want %s: %q (%v)", d.State, d.Sentence, want, text, err)
			}
			page, _, err := k.s.List(t.Context(), lane.Query{Owner: k.owner, Limit: 10})
			if err != nil || len(page) != 1 || page[0].State != want {
				t.Errorf("in the list it is %+v (%v)", page, err)
			}
		}
		word(run.NeedsAttention, "The run of 2000-01-01T00:01:00.000Z failed (invalid_request): no topic")
		k.restart(5*time.Minute + 5*time.Second) // some are missed
		if last := k.slots(sch); last[len(last)-2].Disposition != "skipped_missed" {
			t.Fatalf("%+v", last)
		}
		word(run.NeedsAttention, "The run of 2000-01-01T00:01:00.000Z failed (invalid_request): no topic")
		k.pass(time.Minute)
		word(run.NeedsAttention, "The run of 2000-01-01T00:07:00.000Z failed (invalid_request): no topic")
		if len(k.notices) != 1 {
			t.Errorf("people were told %+v", k.notices)
		}
		k.graph.set(func() { k.graph.answer = nil })
		k.pass(time.Minute)
		word(run.Idle, "")
	})
}

// X-67, lessons 56: a slot whose lane, or whose database, is away for a while
// did not crash: however often that happens, it is one attempt, and it gets the
// outcome of its run.
func TestLosingTheLaneIsNoCrash(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.takes = 30 * time.Minute
		sch := k.create(ask("s", pawl.PolicyForbid))
		k.pass(70 * time.Second)
		for range 4 {
			k.end(queue.ErrLeaseLost)
			k.jobs.Wait()
			k.process, k.end = context.WithCancelCause(context.Background())
			k.busy = map[string]bool{}
			k.pass(time.Minute)
		}
		if bad := k.column(`select status from runs where status = 'crashed'`); len(bad) != 0 {
			t.Errorf("%d runs crashed", len(bad))
		}
		k.pass(30 * time.Minute)
		if slot := k.slots(sch)[0]; slot.Status != "success" || slot.Attempts != 1 {
			t.Errorf("%+v", slot)
		}
	})
}
