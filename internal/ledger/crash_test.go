package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// stopped is one row of the recovery table.
type stopped struct {
	h      pawl.HandlerType
	phase  pawl.Phase
	ledger pawl.MutationState

	next   pawl.Phase // of the successor
	waits  bool       // for reconciliation
	copies bool
	event  string // none, released or transferred
	call   pawl.MutationState
}

// recoveryTable is that of the specification, for runs that are followed by a
// new row. call is the state of the call afterwards.
func recoveryTable() []stopped {
	const c = pawl.HandlerConsumer
	return []stopped{
		{h: pawl.HandlerProducer, phase: pawl.PhaseExecuting, next: pawl.PhaseExecuting, event: "none"},
		{h: pawl.HandlerSource, phase: pawl.PhaseFetching, next: pawl.PhaseFetching, event: "none"},
		{h: pawl.HandlerSchedule, phase: pawl.PhaseValidating, next: pawl.PhaseValidating, event: "none"},
		{h: pawl.HandlerSchedule, phase: pawl.PhaseExecuting, next: pawl.PhaseValidating, event: "none"},
		{h: c, phase: pawl.PhasePreparing, next: pawl.PhasePreparing, event: "none"},
		{h: c, phase: pawl.PhasePrepared, next: pawl.PhasePreparing, event: "released"},
		{h: c, phase: pawl.PhaseMutating, next: pawl.PhasePreparing, event: "released"},
		{h: c, phase: pawl.PhaseMutating, ledger: pawl.MutationFailed, next: pawl.PhasePreparing, event: "released", call: pawl.MutationFailed},
		{h: c, phase: pawl.PhaseMutating, ledger: pawl.MutationInFlight, next: pawl.PhaseMutating, waits: true, copies: true, event: "transferred", call: pawl.MutationNeedsReconcile},
		{h: c, phase: pawl.PhaseMutating, ledger: pawl.MutationNeedsReconcile, next: pawl.PhaseMutating, waits: true, copies: true, event: "transferred", call: pawl.MutationNeedsReconcile},
		{h: c, phase: pawl.PhaseMutating, ledger: pawl.MutationIndeterminate, next: pawl.PhaseMutating, waits: true, copies: true, event: "transferred", call: pawl.MutationIndeterminate},
		{h: c, phase: pawl.PhaseMutating, ledger: pawl.MutationApplied, next: pawl.PhaseEmitting, copies: true, event: "transferred", call: pawl.MutationApplied},
		{h: c, phase: pawl.PhaseMutated, ledger: pawl.MutationApplied, next: pawl.PhaseEmitting, copies: true, event: "transferred", call: pawl.MutationApplied},
		{h: c, phase: pawl.PhaseMutated, ledger: pawl.MutationSkipped, next: pawl.PhaseEmitting, copies: true, event: "transferred", call: pawl.MutationSkipped},
		{h: c, phase: pawl.PhaseMutated, next: pawl.PhaseEmitting, copies: true, event: "transferred"},
		{h: c, phase: pawl.PhaseEmitting, ledger: pawl.MutationApplied, next: pawl.PhaseEmitting, copies: true, event: "transferred", call: pawl.MutationApplied},
		{h: c, phase: pawl.PhaseEmitting, next: pawl.PhaseEmitting, copies: true, event: "transferred"},
	}
}

// arrive brings a run to a row of the table.
func (k *kit) arrive(s Spec, phase pawl.Phase, ledger pawl.MutationState) runstore.Run {
	k.t.Helper()
	if !run.MutationApplied(s.HandlerType, phase) {
		r := k.reach(s, phase)
		k.callUpTo(r.ID, ledger)
		return r
	}
	r := k.reach(s, pawl.PhaseMutating)
	k.callUpTo(r.ID, ledger)
	for r.Phase != phase {
		r = k.advance(r, pawl.Phases(s.HandlerType)[run.Order(s.HandlerType, r.Phase)+1])
	}
	return r
}

func (row stopped) check(k *kit, before, after, next runstore.Run) {
	k.t.Helper()
	name := after.Lane
	want := runstore.Run{
		ID: next.ID, Kind: before.Kind, Lane: before.Lane, Handler: before.Handler, HandlerType: before.HandlerType, Trigger: before.Trigger,
		RetryOf: before.ID, Attempt: before.Attempt + 1, ScriptVersion: next.ScriptVersion,
		Phase: row.next, Status: pawl.StatusActive, Owner: k.owner,
		CreatedAt: next.CreatedAt, UpdatedAt: next.UpdatedAt, StartedAt: next.StartedAt,
	}
	if row.waits {
		want.Status, want.Owner = pawl.StatusPausedReconciliation, store.Fence{}
	}
	if row.copies {
		want.PrepareResult, want.MutationResult = before.PrepareResult, before.MutationResult
	}
	if diff := cmp.Diff(want, k.get(next.ID)); diff != "" {
		k.t.Errorf("%s: successor (-want +got):\n%s", name, diff)
	}
	if after.Phase != before.Phase || string(after.PrepareResult) != string(before.PrepareResult) || string(after.MutationResult) != string(before.MutationResult) {
		k.t.Errorf("%s: the stopped run became %+v", name, after)
	}
	if row.event != "none" {
		owner, status := k.held(before.ID)
		if row.event == "released" && (owner != "" || status != "pending") || row.event == "transferred" && (owner != next.ID || status != "reserved") {
			k.t.Errorf("%s: the event is %s by %q, want it %s", name, status, owner, row.event)
		}
	}
	if before.Kind == pawl.KindWorkflow {
		holder := before.ID
		if row.waits {
			holder = next.ID
		}
		if got := k.mutation(holder); got != row.call {
			k.t.Errorf("%s: the call is %q, want %q", name, got, row.call)
		}
	}
}

// ..A-111, A-123..A-126, X-06, X-08: every row of the table, for a
// run whose owner died.
func TestRecoveryTableAfterACrash(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for i, row := range recoveryTable() {
			s := specOf(row.h, fmt.Sprintf("%d %s %s %s", i, row.h, row.phase, row.ledger))
			before := k.arrive(s, row.phase, row.ledger)
			k.takeOver(fmt.Sprintf("n%d", i))
			o, err := k.l.RecoverLane(t.Context(), k.db, k.owner, s.Kind, s.Lane)
			if err != nil {
				t.Fatal(err)
			}
			after := k.get(before.ID)
			if after.Status != pawl.StatusCrashed || after.EndedAt.IsZero() || cmp.Diff(after, o.Run) != "" || !o.Successor.StartedAt.IsZero() {
				t.Errorf("%s: %+v", s.Lane, o)
			}
			row.check(k, before, after, o.Successor)
		}
	})
}

// the same rows for runs that failed; only the
// moment of the successor differs.
func TestRecoveryTableAfterAFailure(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for i, row := range recoveryTable() {
			for _, class := range []pawl.Class{pawl.ClassTransient, pawl.ClassLogic, pawl.ClassInternal} {
				if row.h == pawl.HandlerSchedule && class != pawl.ClassTransient {
					continue // the slot is over: TestRetryRefusals
				}
				s := specOf(row.h, fmt.Sprintf("%d %s %s %s %s", i, row.h, row.phase, row.ledger, class))
				before := k.arrive(s, row.phase, row.ledger)
				after := k.stop(before, class).Run
				next := k.again(after, "v2")
				if diff := cmp.Diff(after, k.get(before.ID)); diff != "" {
					t.Errorf("%s: the retry rewrote the attempt:\n%s", s.Lane, diff)
				}
				row.check(k, before, after, next)
			}
		}
	})
}

// The last row of the table, and the first of the restart rules: only active
// runs crash.
func TestOnlyActiveRunsCrash(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		var runs []runstore.Run
		for _, class := range []pawl.Class{pawl.ClassTransient, pawl.ClassLogic, pawl.ClassInternal, pawl.ClassAuth} {
			runs = append(runs, k.stop(k.begin(consumer(string(class))), class).Run)
		}
		runs = append(runs, k.commit(k.reach(consumer("done"), pawl.PhaseEmitting)))
		before := k.dump()
		k.takeOver("n2")
		for _, r := range runs {
			if _, err := step(k, func(ctx context.Context, tx *store.Tx) (Outcome, error) { return k.l.Crash(ctx, tx, k.owner, r) }); !errors.Is(err, pawl.ErrConflict) {
				t.Errorf("%s: %v", r.Status, err)
			}
			if o, err := k.l.RecoverLane(t.Context(), k.db, k.owner, r.Kind, r.Lane); err != nil || o.Run.ID != "" {
				t.Errorf("%s: %+v, %v", r.Status, o, err)
			}
		}
		if k.dump() != before {
			t.Error("something changed")
		}
	})
}

// recovery done twice, or by several at once, makes one successor, and
// leaves alone what it has made until somebody started it.
func TestRecoveryIsIdempotent(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		s := consumer("lane")
		a := k.reach(s, pawl.PhasePrepared)
		k.takeOver("n2")
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				if _, err := k.l.RecoverLane(t.Context(), k.db, k.owner, s.Kind, s.Lane); err != nil && !errors.Is(err, pawl.ErrConflict) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		once := k.dump()
		if _, err := k.l.RecoverLane(t.Context(), k.db, k.owner, s.Kind, s.Lane); err != nil {
			t.Fatal(err)
		}
		if k.dump() != once {
			t.Error("the second recovery changed something")
		}
		chain, err := runstore.On(k.db).RunChain(t.Context(), a.ID)
		if err != nil || len(chain) != 2 || k.retry(s).Crashes != 1 {
			t.Fatalf("%d in the chain, %v, %+v", len(chain), err, k.retry(s))
		}
		// The owner began it and gave up: found again by the same owner.
		must(k, func(ctx context.Context, tx *store.Tx) (runstore.Run, error) { return k.l.Start(ctx, tx, chain[0]) })
		if o, err := k.l.RecoverLane(t.Context(), k.db, k.owner, s.Kind, s.Lane); err != nil || o.Run.ID != chain[0].ID || o.Successor.ID == "" {
			t.Errorf("%+v, %v", o, err)
		}
	})
}

// after three crashes in a row nothing is started any more; a person
// can. A successor that only waits is made all the same, and a failure that is
// no crash breaks the row.
func TestCrashLoopNeedsAPerson(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		s := consumer("lane")
		r := k.reach(s, pawl.PhasePrepared)
		crash := func(r runstore.Run) Outcome {
			t.Helper()
			k.takeOver("n")
			return must(k, func(ctx context.Context, tx *store.Tx) (Outcome, error) { return k.l.Crash(ctx, tx, k.owner, r) })
		}
		for n := 1; n <= run.CrashAttempts; n++ {
			o := crash(r)
			last := n == run.CrashAttempts
			if o.Retry.Crashes != n || o.Exhausted != last || (o.Successor.ID == "") != last {
				t.Fatalf("crash %d: %+v", n, o)
			}
			if n == 1 {
				if _, status := k.held(o.Run.ID); status != "pending" {
					t.Errorf("the event is %s", status)
				}
			}
			if last {
				r = k.again(o.Run, "") // a person
				continue
			}
			r = o.Successor
		}
		for _, to := range []pawl.Phase{pawl.PhasePrepared, pawl.PhaseMutating} {
			r = k.advance(r, to)
		}
		k.call(r.ID, pawl.MutationInFlight)
		o := crash(r)
		if !o.Exhausted || o.Successor.Status != pawl.StatusPausedReconciliation || k.mutation(o.Successor.ID) != pawl.MutationNeedsReconcile {
			t.Errorf("the waiting successor: %+v", o)
		}
		k.call(o.Successor.ID, pawl.MutationFailed)
		k.stop(k.again(o.Successor, ""), pawl.ClassLogic)
		if got := k.retry(s).Crashes; got != 0 {
			t.Errorf("%d crashes in a row after a failure", got)
		}
	})
}

// A crash loop keeps what must not be given back.
func TestCrashLoopKeepsWhatWasApplied(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		s := consumer("lane")
		r := k.reach(s, pawl.PhaseEmitting)
		k.setRetry(s, run.Retry{Crashes: run.CrashAttempts - 1, PeriodStart: r.CreatedAt})
		o := must(k, func(ctx context.Context, tx *store.Tx) (Outcome, error) { return k.l.Crash(ctx, tx, k.owner, r) })
		if owner, status := k.held(r.ID); o.Successor.ID != "" || owner != r.ID || status != "reserved" {
			t.Errorf("the event is %s by %q: %+v", status, owner, o)
		}
		next := k.again(o.Run, "")
		if owner, _ := k.held(r.ID); owner != next.ID || next.Phase != pawl.PhaseEmitting {
			t.Errorf("%+v has not the event, but %q", next, owner)
		}
	})
}
