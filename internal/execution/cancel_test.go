package execution

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/grantstore"
)

// stoppable is a graph that runs until it is cancelled.
func stoppable(k *kit) {
	stop := make(chan struct{})
	k.fake.run = func(ctx context.Context, _ runner.Run, emit func(runner.Event) error) (runner.Result, error) {
		if err := emit(remote(`"thread"`)); err != nil {
			return runner.Result{}, err
		}
		select {
		case <-stop:
			return runner.Result{Code: "aborted", Message: "cancelled"}, nil
		case <-ctx.Done():
			return runner.Result{}, context.Cause(ctx)
		}
	}
	k.fake.cancel = func(runner.Run) error {
		close(stop)
		return nil
	}
}

// C-82, X-62: a run that is cancelled ends as aborted, at its executor too,
// whichever node is asked.
func TestCancelReachesTheExecutor(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		nodes := map[string]*Service{"here": k.s}
		if k.db.Shared() {
			nodes["there"] = k.service("node-2")
		}
		for name, node := range nodes {
			stoppable(k)
			done := begin(k, k.s, name)
			k.eventually("it is remembered", func() bool {
				return k.count(`select count(*) from execution_requests where idempotency_key = $1 and remote like '%thread%'`, name) == 1
			})
			for range 2 {
				if err := node.Cancel(t.Context(), name); err != nil {
					t.Fatal(err)
				}
			}
			o := <-done
			if o.err != nil || o.answer.OK || o.answer.ErrorCode != contract.Aborted {
				t.Errorf("%s: %+v", name, o)
			}
			if last := k.fake.cancels[len(k.fake.cancels)-1]; string(last.Remote) != `"thread"` || last.Key != name {
				t.Errorf("%s: cancelled %+v", name, last)
			}
			if err := node.Cancel(t.Context(), name); err != nil {
				t.Errorf("what is over: %v", err)
			}
		}
		if err := k.s.Cancel(t.Context(), "unknown"); !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("unknown: %v", err)
		}
	})
}

// What nobody executes any more is cancelled by whoever is asked.
func TestCancelEndsWhatNobodyExecutes(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.fake.run = func(_ context.Context, _ runner.Run, emit func(runner.Event) error) (runner.Result, error) {
			return runner.Result{}, errors.Join(emit(remote(`"thread"`)), errors.New("the line is dead"))
		}
		if _, err := k.run("k"); err == nil {
			t.Fatal("no error")
		}
		if _, err := k.s.Outcome(t.Context(), "k"); reasonOf(err) != ReasonAbandoned {
			t.Errorf("before that: %v", err)
		}
		if err := k.s.Cancel(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		k.eventually("it is over", func() bool {
			answer, err := k.s.Outcome(t.Context(), "k")
			return err == nil && answer.ErrorCode == contract.Aborted && !answer.Unknown
		})
		if len(k.fake.cancels) != 1 || string(k.fake.cancels[0].Remote) != `"thread"` || len(k.fake.asked()) != 1 {
			t.Errorf("%+v", k.fake.cancels)
		}
	})
}

// What nobody executes ends even if its graph is not defined any more; whether
// it goes on where it ran is not known.
func TestCancelEndsWhatHasNoGraphAnyMore(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.fake.run = func(_ context.Context, _ runner.Run, emit func(runner.Event) error) (runner.Result, error) {
			return runner.Result{}, errors.Join(emit(remote(`"thread"`)), errors.New("the line is dead"))
		}
		if _, err := k.run("k"); err == nil {
			t.Fatal("no error")
		}
		other := k.service("node-2")
		other.graphs = nothing{}
		if err := other.Cancel(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		k.eventually("it is over", func() bool {
			answer, err := k.s.Outcome(t.Context(), "k")
			return err == nil && answer.ErrorCode == contract.Aborted && answer.Unknown
		})
	})
}

// nothing has no graphs.
type nothing struct{}

func (nothing) Lookup(string) (runner.Executor, string, error) {
	return nil, "", &pawl.Error{Code: pawl.CodeNotFound, Msg: "there is no such graph"}
}

// C-82: an executor hears of a cancellation at once, and a run that does not
// end by itself is ended a moment later.
func TestCancelIsHeardAtOnceAndDoesNotWaitForEver(t *testing.T) {
	url := "sqlite:" + t.TempDir() + "/pawl.db"
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, url)
		heard := make(chan time.Time, 1)
		k.fake.run = func(ctx context.Context, _ runner.Run, _ func(runner.Event) error) (runner.Result, error) {
			<-ctx.Done()
			return runner.Result{}, context.Cause(ctx)
		}
		k.fake.cancel = func(runner.Run) error {
			heard <- time.Now()
			return nil
		}
		done := begin(k, k.s, "k")
		time.Sleep(5500 * time.Millisecond) // between two beats of the lease
		asked := time.Now()
		if err := k.s.Cancel(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		if at := <-heard; !at.Equal(asked) {
			t.Errorf("it was heard %s later", at.Sub(asked))
		}
		if o := <-done; o.err != nil || o.answer.ErrorCode != contract.Aborted || time.Since(asked) > cancelGrace+time.Second {
			t.Errorf("after %s: %+v", time.Since(asked), o)
		}
	})
}

// asks is a graph that asks a person, and says what it was told.
func asks(_ context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
	if err := errors.Join(emit(usage("", 3)), emit(remote(`"thread"`))); err != nil {
		return runner.Result{}, err
	}
	if r.Resume == nil {
		return runner.Result{Interrupt: json.RawMessage(`{"ask":"sure?"}`), TraceID: "t1"}, nil
	}
	return runner.Result{OK: true, Output: r.Resume, TraceID: "t2"}, nil
}

// A graph that asks a person has neither succeeded nor failed; the answer goes
// on with it, and usage without a name goes on counting.
func TestInterruptWaitsForAPerson(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.fake.run = asks
		for range 2 { // the second is answered from the store
			answer := k.mustRun("k")
			if answer.OK || answer.ErrorCode != "" || string(answer.Interrupt) != `{"ask":"sure?"}` || answer.TraceID != "t1" || *answer.CostUSD != 3 {
				t.Fatalf("%+v", answer)
			}
		}
		if n := k.count(`select count(*) from charge_reservations`); n != 0 || len(k.fake.asked()) != 1 {
			t.Errorf("%d reservations, %d runs", n, len(k.fake.asked()))
		}
		if _, err := k.s.Resume(t.Context(), "k", "", []byte(`{`)); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("an answer that is not JSON: %v", err)
		}
		for range 2 { // the second is answered from the store
			answer, err := k.s.Resume(t.Context(), "k", "", []byte(`"yes"`))
			if err != nil || !answer.OK || string(answer.Output) != `"yes"` || answer.Interrupt != nil || *answer.CostUSD != 6 {
				t.Fatalf("%+v %v", answer, err)
			}
		}
		if asked := k.fake.asked(); len(asked) != 2 || string(asked[1].Remote) != `"thread"` || asked[1].RunID != asked[0].RunID || asked[1].Attempt != 1 {
			t.Errorf("%+v", asked)
		}
		if n := k.count(`select count(*) from charge_receipts where source_reference like '%/1/unit-1' or source_reference like '%/1/unit-2'`); n != 2 {
			t.Errorf("%d receipts", n)
		}
	})
}

// An answer is for one question. Whoever passes it on again, because a crash kept
// the next question from being told, gets that question.
func TestAnAnswerIsForOneQuestion(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.fake.run = func(_ context.Context, r runner.Run, _ func(runner.Event) error) (runner.Result, error) {
			if string(r.Resume) == `"both"` {
				return runner.Result{OK: true}, nil
			}
			return runner.Result{Interrupt: json.RawMessage(`"and?"`)}, nil
		}
		first := k.mustRun("k")
		var second contract.RunAnswerV1
		for range 2 {
			answer, err := k.s.Resume(t.Context(), "k", first.QuestionID, []byte(`"one"`))
			if err != nil || answer.Interrupt == nil || answer.QuestionID == "" || answer.QuestionID == first.QuestionID {
				t.Fatalf("%+v %v", answer, err)
			}
			second = answer
		}
		if asked := k.fake.asked(); len(asked) != 2 {
			t.Errorf("the graph was asked %d times", len(asked))
		}
		if answer, err := k.s.Resume(t.Context(), "k", second.QuestionID, []byte(`"both"`)); err != nil || !answer.OK || answer.QuestionID != "" {
			t.Errorf("%+v %v", answer, err)
		}
	})
}

func reasonOf(err error) string {
	e, ok := errors.AsType[*pawl.Error](err)
	if !ok {
		return ""
	}
	return e.Reason
}

func TestResumeNeedsAQuestion(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		if _, err := k.s.Resume(t.Context(), "unknown", "", []byte(`1`)); !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("unknown: %v", err)
		}
		k.fake.run = func(context.Context, runner.Run, func(runner.Event) error) (runner.Result, error) {
			return runner.Result{}, errors.New("the line is dead")
		}
		_, _ = k.run("k")
		e, ok := errors.AsType[*pawl.Error](resumeError(k, "k"))
		if !ok || e.Reason != ReasonNotInterrupted {
			t.Errorf("%v", e)
		}
	})
}

func resumeError(k *kit, key string) error {
	_, err := k.s.Resume(k.t.Context(), key, "", []byte(`1`))
	return err
}

// A resumption is a beginning: the grant is asked again. One that died is begun
// again with the answer.
func TestResumeAsksTheGrantAndSurvivesDeath(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.fake.run = asks
		k.mustRun("revoked")
		k.mustRun("dies")
		k.fake.run = func(context.Context, runner.Run, func(runner.Event) error) (runner.Result, error) {
			return runner.Result{}, errors.New("the line is dead")
		}
		if err := resumeError(k, "dies"); !errors.Is(err, pawl.ErrUnavailable) {
			t.Errorf("%v", err)
		}
		k.fake.run = asks
		if answer, err := k.s.Resume(t.Context(), "dies", "", []byte(`"again"`)); err != nil || string(answer.Output) != `"again"` {
			t.Errorf("%+v %v", answer, err)
		}
		k.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := grantstore.In(tx).RevokeGrant(ctx, k.grantID)
			return err
		})
		if code, _ := grant.RefusalCode(resumeError(k, "revoked")); code != contract.GrantRevoked {
			t.Errorf("%s", code)
		}
		if err := k.s.Cancel(t.Context(), "revoked"); err != nil {
			t.Errorf("cancel under a revoked grant: %v", err)
		}
		k.eventually("the question is over", func() bool {
			answer, err := k.s.Outcome(t.Context(), "revoked")
			return err == nil && answer.ErrorCode == contract.Aborted && answer.Interrupt == nil
		})
	})
}
