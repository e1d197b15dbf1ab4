package ledger

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"pgregory.net/rapid"
)

// Random transitions on one lane, allowed and forbidden ones, undone ones and
// crashes, against a model that knows only the rules of internal/run.
func TestRandomLivesKeepTheInvariants(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		pgtest.Percent(t, 30)
		rapid.Check(t, func(rt *rapid.T) {
			m := &machine{t: rt, k: k, lane: store.NewID(), ended: map[string]runstore.Run{}, events: map[string]*modelEvent{}}
			rt.Repeat(map[string]func(*rapid.T){
				"begin": m.begin, "advance": m.advance, "commit": m.commit, "stop": m.stop, "cancel": m.cancel,
				"retry": m.retry, "resume": m.resume, "call": m.call, "answer": m.answer,
				"crash": m.crash, "stale": m.stale, "": m.check,
			})
		})
	})
}

// modelRun is a run as the model has it. rows are the states of its calls.
type modelRun struct {
	run.Run
	attempt int
	rows    []pawl.MutationState
}

type modelEvent struct{ owner, status string }

type machine struct {
	t       *rapid.T
	k       *kit
	lane    string
	runs    []*modelRun             // oldest first
	events  map[string]*modelEvent  // by the run that reserved it first
	crashes int                     // in a row
	seen    []runstore.Run          // copies that callers may still have
	ended   map[string]runstore.Run // rows as they were when their attempt ended
}

func (m *machine) begin(t *rapid.T) {
	var r runstore.Run
	m.try(t, m.active() == nil, func(ctx context.Context, tx *store.Tx) (err error) {
		r, err = m.k.l.Begin(ctx, tx, m.k.owner, consumer(m.lane))
		return err
	}, func() { m.add(r, run.Run{}, 1) })
}

func (m *machine) advance(t *rapid.T) {
	at := m.pick(t)
	if at == nil {
		return
	}
	phases := pawl.Phases(pawl.HandlerConsumer)
	to := phases[min(run.Order(at.Type, at.Phase)+1, len(phases)-1)]
	if rapid.IntRange(0, 3).Draw(t, "anywhere") == 0 {
		to = rapid.SampledFrom(phases).Draw(t, "to")
	}
	waiting := at.Status == pawl.StatusPausedReconciliation && to == pawl.PhaseMutated && !run.CanCall(at.Ledger)
	allowed := (at.Status == pawl.StatusActive || waiting) && to != pawl.PhaseCommitted && run.CanAdvance(at.Type, at.Phase, to) &&
		!(to == pawl.PhaseMutated && run.Unresolved(at.Ledger))
	m.try(t, allowed, func(ctx context.Context, tx *store.Tx) error {
		r, err := runstore.In(tx).GetRun(ctx, at.ID)
		if err != nil {
			return err
		}
		if allowed && to == pawl.PhasePrepared {
			if err := reserve(ctx, tx, at.ID); err != nil {
				return err
			}
		}
		_, err = m.k.l.Advance(ctx, tx, r, checkpoint(to), to)
		return err
	}, func() {
		at.Phase = to
		if to == pawl.PhasePrepared {
			m.events[at.ID] = &modelEvent{at.ID, "reserved"}
		}
	})
}

func (m *machine) commit(t *rapid.T) {
	at := m.pick(t)
	if at == nil {
		return
	}
	m.try(t, at.Status == pawl.StatusActive && at.Phase == pawl.PhaseEmitting, m.on(at, func(ctx context.Context, tx *store.Tx, r runstore.Run) error {
		_, err := m.k.l.Commit(ctx, tx, r, nil)
		return err
	}), func() {
		at.Phase, at.Status, m.crashes = pawl.PhaseCommitted, pawl.StatusCommitted, 0
		m.settle(at, run.Decide(at.Run), nil)
	})
}

func (m *machine) stop(t *rapid.T) {
	at := m.pick(t)
	if at == nil {
		return
	}
	class := rapid.SampledFrom([]pawl.Class{pawl.ClassTransient, pawl.ClassLogic, pawl.ClassAuth, pawl.ClassIndeterminate, pawl.ClassInternal}).Draw(t, "class")
	m.try(t, at.Status == pawl.StatusActive, m.on(at, func(ctx context.Context, tx *store.Tx, r runstore.Run) error {
		_, err := m.k.l.Stop(ctx, tx, r, Failure{Class: class})
		return err
	}), func() {
		at.Status, at.Class = run.StatusFor(at.Type, class), class
		if !run.Resumable(at.Status) {
			m.crashes = 0
		}
		m.settle(at, run.Decide(at.Run), nil)
	})
}

func (m *machine) cancel(t *rapid.T) {
	at := m.pick(t)
	if at == nil {
		return
	}
	m.try(t, run.CanCancel(at.Run), m.on(at, func(ctx context.Context, tx *store.Tx, r runstore.Run) error {
		_, err := m.k.l.Cancel(ctx, tx, r)
		return err
	}), func() {
		at.Status, m.crashes = pawl.StatusCancelled, 0
		m.settle(at, run.Decide(at.Run), nil)
	})
}

func (m *machine) retry(t *rapid.T) {
	at := m.pick(t)
	if at == nil {
		return
	}
	d := run.Decide(at.Run)
	allowed := d.Successor != run.SuccessorNone && m.successor(at.ID) == nil && (d.SuccessorStatus != pawl.StatusActive || m.active() == nil)
	var next runstore.Run
	m.try(t, allowed, m.on(at, func(ctx context.Context, tx *store.Tx, r runstore.Run) (err error) {
		next, err = m.k.l.Retry(ctx, tx, m.k.owner, r, "version "+r.ID, false)
		return err
	}), func() { m.settle(at, d, m.add(next, at.Run, at.attempt+1)) })
}

func (m *machine) resume(t *rapid.T) {
	at := m.pick(t)
	if at == nil {
		return
	}
	allowed := run.Decide(at.Run).Resume && m.successor(at.ID) == nil && m.active() == nil
	m.try(t, allowed, m.on(at, func(ctx context.Context, tx *store.Tx, r runstore.Run) error {
		_, err := m.k.l.Resume(ctx, tx, m.k.owner, r)
		return err
	}), func() { at.Status, at.Class = pawl.StatusActive, "" })
}

// call opens a mutation row, as a kind does it.
func (m *machine) call(t *rapid.T) {
	at := m.active()
	if at == nil || at.Phase != pawl.PhaseMutating || !run.CanCall(at.Ledger) {
		return
	}
	m.try(t, true, m.on(at, func(ctx context.Context, tx *store.Tx, r runstore.Run) error {
		if err := m.k.l.Hold(ctx, tx, r); err != nil {
			return err
		}
		return putCall(ctx, tx, r.ID, true, pawl.MutationInFlight)
	}), func() { at.rows = append(at.rows, pawl.MutationInFlight); at.sum() })
}

// answer moves the open call of a run.
func (m *machine) answer(t *rapid.T) {
	at := m.pick(t)
	to := rapid.SampledFrom(run.MutationStates()[1:]).Draw(t, "outcome")
	if at == nil || to == pawl.MutationInFlight || !run.Unresolved(at.Ledger) ||
		!run.CanMoveMutation(at.Ledger, to, false) && !run.CanMoveMutation(at.Ledger, to, true) {
		return
	}
	m.try(t, true, func(ctx context.Context, tx *store.Tx) error { return putCall(ctx, tx, at.ID, true, to) }, func() {
		at.rows[len(at.rows)-1] = to
		at.sum()
	})
}

// crash forgets everything but the database: another owner comes and recovers
// the lane. It may die before its commit, and another one follows.
func (m *machine) crash(t *rapid.T) {
	at := m.active()
	if at != nil && rapid.Bool().Draw(t, "dies too") {
		m.k.takeOver("dying")
		if err := m.k.db.Write(m.k.t.Context(), m.on(at, func(ctx context.Context, tx *store.Tx, r runstore.Run) error {
			if _, err := m.k.l.Crash(ctx, tx, m.k.owner, r); err != nil {
				return err
			}
			return errUndo
		})); !errors.Is(err, errUndo) {
			t.Fatal(err)
		}
	}
	m.k.takeOver("next")
	o, err := m.k.l.RecoverLane(m.k.t.Context(), m.k.db, m.k.owner, pawl.KindWorkflow, m.lane)
	if err != nil || (at != nil) != (o.Run.ID != "") {
		t.Fatalf("recovered %+v, %v", o, err)
	}
	if at != nil {
		m.applyCrash(at, o)
	}
	if again, err := m.k.l.RecoverLane(m.k.t.Context(), m.k.db, m.k.owner, pawl.KindWorkflow, m.lane); err != nil || again.Run.ID != "" {
		t.Fatalf("recovered twice: %+v, %v", again, err)
	}
}

func (m *machine) applyCrash(at *modelRun, o Outcome) {
	at.Status = pawl.StatusCrashed
	m.crashes++
	d := run.Decide(at.Run)
	if run.CrashLoop(m.crashes) && d.SuccessorStatus == pawl.StatusActive || d.Successor == run.SuccessorNone {
		m.settle(at, d, nil)
		if o.Successor.ID != "" {
			m.t.Fatalf("a crash loop goes on: %+v", o)
		}
		return
	}
	m.settle(at, d, m.add(o.Successor, at.Run, at.attempt+1))
}

// stale is a caller whose copy is old.
func (m *machine) stale(t *rapid.T) {
	if len(m.seen) == 0 {
		return
	}
	r := rapid.SampledFrom(m.seen).Draw(t, "copy")
	now := m.k.get(r.ID)
	if now.Phase == r.Phase && now.Status == r.Status && now.Owner == r.Owner {
		return
	}
	tr := rapid.SampledFrom(transitions()).Filter(func(tr transition) bool {
		switch tr.name { // these look at the row themselves
		case "begin", "retry", "resume", "cancel", "crash":
			return false
		default:
			return true
		}
	}).Draw(t, "transition")
	err := m.k.db.Write(m.k.t.Context(), func(ctx context.Context, tx *store.Tx) error { return tr.do(ctx, tx, m.k, m.k.owner, r) })
	if !errors.Is(err, pawl.ErrConflict) && !errors.Is(err, pawl.ErrLeaseLost) {
		t.Fatalf("%s with an old copy (%s at %s, now %s at %s): %v", tr.name, r.Status, r.Phase, now.Status, now.Phase, err)
	}
}

// try makes a step, sometimes in a transaction that fails at the end. A
// forbidden step must be refused; after an undone one the model stays.
func (m *machine) try(t *rapid.T, allowed bool, do store.Func, apply func()) {
	undo := rapid.IntRange(0, 3).Draw(t, "undo") == 0
	err := m.k.db.Write(m.k.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		if err := do(ctx, tx); err != nil {
			return err
		}
		if undo {
			return errUndo
		}
		return nil
	}, store.Lazy)
	switch {
	case !allowed && !errors.Is(err, pawl.ErrConflict):
		t.Fatalf("a forbidden step: %v", err)
	case allowed && undo && !errors.Is(err, errUndo), allowed && !undo && err != nil:
		t.Fatalf("an allowed step: %v", err)
	case allowed && !undo:
		apply()
	}
}

func (m *machine) on(at *modelRun, do func(ctx context.Context, tx *store.Tx, r runstore.Run) error) store.Func {
	return func(ctx context.Context, tx *store.Tx) error {
		r, err := runstore.In(tx).GetRun(ctx, at.ID)
		if err != nil {
			return err
		}
		return do(ctx, tx, r)
	}
}

// pick chooses a run of the lane, mostly the newest.
func (m *machine) pick(t *rapid.T) *modelRun {
	if len(m.runs) == 0 {
		return nil
	}
	back := rapid.IntRange(0, 2*len(m.runs)).Draw(t, "back")
	if back >= len(m.runs) {
		back = 0
	}
	return m.runs[len(m.runs)-1-back]
}

func (m *machine) add(r runstore.Run, before run.Run, attempt int) *modelRun {
	next := &modelRun{attempt: attempt, Run: run.Run{
		ID: r.ID, RetryOf: before.ID, Type: pawl.HandlerConsumer, Phase: pawl.PhasePreparing, Status: pawl.StatusActive,
	}}
	if before.ID != "" {
		d := run.Decide(before)
		next.Phase, next.Status = d.SuccessorPhase, d.SuccessorStatus
	}
	m.runs = append(m.runs, next)
	return next
}

func (m *machine) active() *modelRun {
	for _, r := range m.runs {
		if r.Status == pawl.StatusActive {
			return r
		}
	}
	return nil
}

func (m *machine) successor(id string) *modelRun {
	for _, r := range m.runs {
		if r.RetryOf == id {
			return r
		}
	}
	return nil
}

// sum brings the summary up to date. The tools of the model can be asked.
func (r *modelRun) sum() {
	r.Ledger, _ = run.LedgerOf(r.rows)
	r.CanReconcile = len(r.rows) > 0
}

func (m *machine) settle(r *modelRun, d run.Decision, next *modelRun) {
	if d.LedgerMove != pawl.MutationNone {
		r.rows[len(r.rows)-1] = d.LedgerMove
	}
	for _, e := range m.events {
		switch {
		case e.owner != r.ID || e.status != "reserved":
		case d.Reservations == run.ReservationsRelease:
			*e = modelEvent{"", "pending"}
		case d.Reservations == run.ReservationsConsumed:
			e.status = "consumed"
		case d.Reservations == run.ReservationsTransfer && next != nil:
			e.owner = next.ID
		}
	}
	if n := len(r.rows); d.Reservations == run.ReservationsTransfer && next != nil && n > 0 && run.Unresolved(r.rows[n-1]) {
		next.rows, r.rows = append(next.rows, r.rows[n-1]), r.rows[:n-1]
		next.sum()
	}
	r.sum()
}

// check compares the database with the model and looks at the invariants.
func (m *machine) check(t *rapid.T) {
	stored, _, err := runstore.On(m.k.db).ListRuns(m.k.t.Context(), runstore.RunFilter{Lane: m.lane}, store.Place{}, 1000)
	if err != nil || len(stored) != len(m.runs) {
		t.Fatalf("%d rows, %d in the model, %v", len(stored), len(m.runs), err)
	}
	active, followed := 0, map[string]int{}
	for i, r := range stored {
		want := m.runs[len(m.runs)-1-i]
		if r.ID != want.ID || r.RetryOf != want.RetryOf || r.Phase != want.Phase || r.Status != want.Status || r.Attempt != want.attempt || r.ErrorClass != want.Class {
			t.Fatalf("run %d is %+v, want %+v", i, r, want)
		}
		m.checkRow(t, r, want)
		if r.Status == pawl.StatusActive {
			active++
		}
		if r.RetryOf != "" {
			followed[r.RetryOf]++
		}
	}
	for id, n := range followed {
		if n > 1 {
			t.Fatalf("run %s has %d successors", id, n)
		}
	}
	if active > 1 {
		t.Fatalf("%d runs are active", active)
	}
	m.checkRetry(t)
	m.seen = append(m.seen, stored...)
	m.seen = m.seen[max(0, len(m.seen)-12):]
}

func (m *machine) checkRow(t *rapid.T, r runstore.Run, want *modelRun) {
	if was, ended := m.ended[r.ID]; ended {
		if diff := cmp.Diff(was, r); diff != "" {
			t.Fatalf("a row that ended was changed:\n%s", diff)
		}
	} else if !r.EndedAt.IsZero() {
		m.ended[r.ID] = r
	}
	if (r.Status == pawl.StatusActive || run.Resumable(r.Status)) != r.EndedAt.IsZero() {
		t.Fatalf("run %s is %s and ended %v", r.ID, r.Status, r.EndedAt)
	}
	if run.MutationApplied(r.HandlerType, r.Phase) && r.PrepareResult == nil {
		t.Fatalf("run %s is at %s without what was prepared", r.ID, r.Phase)
	}
	if got := m.k.mutation(r.ID); got != want.Ledger {
		t.Fatalf("the ledger of run %s is %q, want %q", r.ID, got, want.Ledger)
	}
	if e := m.events[r.ID]; e != nil {
		if owner, status := m.k.held(r.ID); owner != e.owner || status != e.status {
			t.Fatalf("the event of run %s is %s by %q, want %+v", r.ID, status, owner, e)
		}
	}
	// The links lead to the first attempt and never in a circle.
	if _, err := run.Walk(want.Run, func(id string) (run.Run, error) {
		for _, r := range m.runs {
			if r.ID == id {
				return r.Run, nil
			}
		}
		return run.Run{}, errors.New("no such run")
	}); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) checkRetry(t *rapid.T) {
	err := m.k.db.Read(m.k.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		r, err := runstore.In(tx).GetRetry(ctx, pawl.KindWorkflow, m.lane)
		if err == nil && r.Crashes != m.crashes || err != nil && m.crashes != 0 {
			t.Fatalf("%d crashes in a row, want %d, %v", r.Crashes, m.crashes, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
