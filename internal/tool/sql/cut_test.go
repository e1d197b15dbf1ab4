package sqltool

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Whatever is lost on the way, what is said about the call is true (context
// 3.5): never "it did not happen" when the row is there, never "it happened"
// when it is not; and Reconcile knows.
func TestOutcomesAreTrueWhereverTheConnectionIsCut(t *testing.T) {
	direct := pgtest.URL(t)
	setUp(t, direct, logTable)
	between, address := newProxy(t, direct)
	d, look := open(t, address), open(t, direct)
	seen, n := map[string]int{}, 0
	for _, how := range []string{cutBefore, cutAtOnce, cutAnswered} {
		for message := 1; ; message++ {
			n++
			call := callOf(t, "exec", fmt.Sprintf("%s %d", how, message), addOne, n)
			d.booksReady.Store(true) // so that the messages are always the same
			between.arm(&cut{message: message, how: how})
			_, err := d.Call(t.Context(), call)
			met := between.met()
			between.arm(nil)
			settle(t, look)
			outcome := judge(t, look, call, n, err)
			seen[how+": "+outcome]++
			if !met {
				if err != nil {
					t.Fatalf("the call failed by itself: %v", err)
				}
				break
			}
		}
	}
	for _, want := range []string{cutBefore + ": unknown, did not happen", cutAnswered + ": unknown, happened", cutAtOnce + ": did not happen"} {
		if seen[want] == 0 {
			t.Errorf("no cut ended with %q: %v", want, seen)
		}
	}
}

// judge compares what was said about a call with what is there.
func judge(t *testing.T, look *Database, call connector.Call, n int, err error) string {
	t.Helper()
	there := marks(t, look, n)
	if there > 1 {
		t.Errorf("%s: applied %d times", call.Key, there)
	}
	fault, failed := errors.AsType[*connector.Error](err)
	answer := reconcile(t, look, call)
	if truth := there == 1; truth != (answer.State == connector.Applied) {
		t.Errorf("%s: Reconcile says %s, and %d rows are there", call.Key, answer.State, there)
	}
	switch {
	case !failed:
		if there != 1 {
			t.Errorf("%s: reported as applied, and it is not", call.Key)
		}
		return "happened"
	case fault.NotApplied:
		if there != 0 {
			t.Errorf("%s: reported as not applied, and it is: %v", call.Key, err)
		}
		return "did not happen"
	case there == 1:
		return "unknown, happened"
	default:
		return "unknown, did not happen"
	}
}

// settle waits until the server has noticed that its clients are gone.
func settle(t *testing.T, look *Database) {
	t.Helper()
	for range 500 {
		rows := query(t, look, "select count(*) as n, pg_sleep(0.02)::text from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and state <> 'idle'")
		if rows[0].(object)["n"] == 0.0 {
			return
		}
	}
	t.Fatal("a session does not end")
}

// faulty makes the context of a call end before or after a step.
type faulty struct {
	engine
	step func()
}

type faultyTransaction struct {
	transaction
	step func()
}

func (f faulty) begin(ctx context.Context, writes bool) (transaction, error) {
	f.step()
	tx, err := f.engine.begin(ctx, writes)
	f.step()
	return faultyTransaction{tx, f.step}, err
}

func (f faultyTransaction) run(ctx context.Context, s statement, l limit) (table, error) {
	f.step()
	defer f.step()
	return f.transaction.run(ctx, s, l)
}

func (f faultyTransaction) commit(ctx context.Context) error {
	f.step()
	defer f.step()
	return f.transaction.commit(ctx)
}

func TestOutcomesAreTrueWheneverTheCallIsStopped(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		setUp(t, url, logTable)
		d, look := open(t, url), open(t, url)
		real, inTime := d.engine, 0
		for n := 1; ; n++ {
			d.booksReady.Store(true) // so that the steps are always the same
			ctx, cancel := context.WithCancel(t.Context())
			left := n
			d.engine = faulty{real, func() {
				if left--; left == 0 {
					cancel()
				}
			}}
			call := callOf(t, "exec", fmt.Sprint("stop ", n), addOne, n)
			_, err := d.Call(ctx, call)
			cancel()
			outcome := judge(t, look, call, n, err)
			if left > 0 {
				if outcome != "happened" || n < 10 || inTime != 2 {
					t.Errorf("after %d steps: %s; %d were stopped after the commit began", n, outcome, inTime)
				}
				return
			}
			switch outcome {
			case "happened":
				inTime++
			case "did not happen":
			default:
				t.Errorf("stopped at step %d: %s", n, outcome)
			}
		}
	})
}
