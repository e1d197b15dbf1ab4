package sqltool

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

const addOne = "insert into log (n) values ($1) returning n"

// logTable is where the calls of these tests leave their marks.
const logTable = "create table log (n integer)"

// marks counts how often a call was applied.
func marks(t *testing.T, d *Database, n int) int {
	t.Helper()
	rows := query(t, d, "select count(*) as n from log where n = $1", n)
	return int(rows[0].(object)["n"].(float64))
}

func TestACallWithTheSameKeyIsAppliedOnce(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		setUp(t, url, logTable)
		first, second := open(t, url), open(t, url)
		call := callOf(t, "exec", "key", addOne, 1)
		want := do(t, first, call)
		same(t, want, do(t, first, call))
		same(t, want, do(t, second, call))
		// The key decides, not what is asked for.
		same(t, want, do(t, first, callOf(t, "exec", "key", "delete from log")))
		same(t, 1, marks(t, first, 1))
		answer := reconcile(t, second, call)
		same(t, connector.Applied, answer.State)
		same(t, want, decode(t, answer.Result))
		same(t, want["rowsAffected"], do(t, first, callOf(t, "exec", "other", addOne, 1))["rowsAffected"])
		same(t, 2, marks(t, first, 1))
	})
}

func TestCallsAtTheSameTimeWithTheSameKeyAreAppliedOnce(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		setUp(t, url, logTable)
		d := open(t, url)
		call := callOf(t, "exec", "key", addOne, 1)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				if _, err := d.Call(context.WithoutCancel(t.Context()), call); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		same(t, 1, marks(t, d, 1))
	})
}

func TestAFailedCallLeavesNothing(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		setUp(t, url, "create table log (n integer unique)", "insert into log values (1)")
		d := open(t, url)
		call := callOf(t, "exec", "key", addOne, 1)
		checkFault(t, fail(t, d, call), pawl.ClassLogic, "constraint")
		same(t, []any{}, query(t, d, "select * from pawl_calls"))
		// The same key may be used again: nothing happened.
		do(t, d, callOf(t, "exec", "key", addOne, 2))
		same(t, 1, marks(t, d, 2))
	})
}

func TestWhatWasReportedAsNotHappenedNeverHappens(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		setUp(t, url, logTable)
		d := open(t, url)
		call := callOf(t, "exec", "key", addOne, 1)
		same(t, connector.Answer{State: connector.NotApplied}, reconcile(t, d, call))
		same(t, connector.Answer{State: connector.NotApplied}, reconcile(t, d, call))
		checkFault(t, fail(t, d, call), pawl.ClassTransient, "withdrawn") // it comes late
		same(t, 0, marks(t, d, 1))
		same(t, connector.Answer{State: connector.NotApplied}, reconcile(t, d, call))
	})
}

// A call that is still under way holds its key: Reconcile waits for its end.
func TestReconcileWaitsForTheCallThatIsUnderWay(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		setUp(t, url, logTable)
		for i, commits := range []bool{true, false} {
			d := open(t, url)
			call := callOf(t, "exec", fmt.Sprint("key", i), addOne, i)
			tx, err := d.engine.begin(t.Context(), true)
			if err != nil {
				t.Fatal(err)
			}
			if _, isNew, err := d.enter(t.Context(), tx, call.Key, t0); err != nil || !isNew {
				t.Fatal(isNew, err)
			}
			answers := make(chan connector.Answer, 1)
			go func() {
				answer, err := d.Reconcile(context.WithoutCancel(t.Context()), call)
				if err != nil {
					t.Error(err)
				}
				answers <- answer
			}()
			// Whether it waits already or comes later makes no difference.
			want := connector.Answer{State: connector.NotApplied}
			if commits {
				if err := record(t.Context(), tx, call.Key, []byte(`{"rowsAffected":7}`)); err != nil {
					t.Fatal(err)
				}
				if err := tx.commit(t.Context()); err != nil {
					t.Fatal(err)
				}
				want = connector.Answer{State: connector.Applied, Result: []byte(`{"rowsAffected":7}`)}
			}
			tx.close(t.Context())
			same(t, want, <-answers)
		}
	})
}

func TestWithoutItsTableReconcileHasNoAnswer(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		setUp(t, url, logTable)
		d := open(t, url)
		call := callOf(t, "exec", "key", addOne, 1)
		do(t, d, call)
		setUp(t, url, "drop table pawl_calls")
		answer, err := d.Reconcile(t.Context(), call)
		if e, ok := err.(*connector.Error); !ok || e.NotApplied || e.Class != pawl.ClassPrecondition { //nolint:errorlint // the contract
			t.Errorf("Reconcile = %v, %v; want an error that says nothing about the call", answer, err)
		}
		// The next call makes a new one.
		do(t, d, callOf(t, "exec", "other", addOne, 1))
		same(t, connector.Applied, reconcile(t, d, callOf(t, "exec", "other", "x")).State)
	})
}

func TestUntrackedCallsLeaveNoTable(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		setUp(t, url, logTable)
		d := open(t, url, "track: false")
		call := callOf(t, "exec", "key", addOne, 1)
		do(t, d, call)
		do(t, d, call)
		same(t, 2, marks(t, d, 1))
		if e := fail(t, d, callOf(t, "query", "", "select * from pawl_calls")); !e.NotApplied {
			t.Error(e)
		}
		if answer, err := d.Reconcile(t.Context(), call); err == nil {
			t.Errorf("Reconcile = %v", answer)
		}
	})
}

func TestAMutationNeedsAKey(t *testing.T) {
	d := open(t, liteURL(t))
	checkFault(t, fail(t, d, callOf(t, "exec", "", customers)), pawl.ClassInternal, "no_key")
}
