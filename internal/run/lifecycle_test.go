package run

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/pawlrun/pawl"
)

// lane is a model of one consumer with one event, kept by these rules alone.
// The world remembers whether the external call really happened.
type lane struct {
	t      *rapid.T
	chain  []Run                  // oldest first; the last one is the newest
	calls  []pawl.MutationState   // ledger rows of the newest run
	held   bool                   // the event is reserved by the newest run
	used   bool                   // the event is consumed or skipped
	effect int                    // how often the call happened in the world
	sent   bool                   // the newest call happened
	tool   bool                   // the tool can be asked
	reach  map[Successor]struct{} // shapes of successors seen
}

func (l *lane) newest() *Run { return &l.chain[len(l.chain)-1] }

func (l *lane) setStatus(s pawl.Status) {
	r := l.newest()
	if !CanMove(r.Status, s) {
		l.t.Fatalf("status %s -> %s", r.Status, s)
	}
	r.Status = s
}

func (l *lane) setPhase(p pawl.Phase) {
	r := l.newest()
	if !CanAdvance(r.Type, r.Phase, p) {
		l.t.Fatalf("phase %s -> %s", r.Phase, p)
	}
	r.Phase = p
}

func (l *lane) setCall(s pawl.MutationState, byUser bool) {
	last := len(l.calls) - 1
	if !CanMoveMutation(l.calls[last], s, byUser) {
		l.t.Fatalf("mutation %s -> %s by user %v", l.calls[last], s, byUser)
	}
	l.calls[last] = s
	l.sum()
	if s == applied || s == skipped {
		l.setPhase(pawl.PhaseMutated)
	}
}

func (l *lane) sum() {
	state, ok := LedgerOf(l.calls)
	if !ok {
		l.t.Fatalf("two calls at once: %q", l.calls)
	}
	l.newest().Ledger = state
}

// step executes one phase of the active run, or a part of it.
func (l *lane) step() {
	r := l.newest()
	switch r.Phase {
	case pawl.PhasePreparing:
		l.held = true
		l.setPhase(pawl.PhasePrepared)
	case pawl.PhasePrepared:
		l.setPhase(AfterPrepared(1))
	case pawl.PhaseMutating:
		l.mutate()
	case pawl.PhaseMutated:
		l.setPhase(pawl.PhaseEmitting)
	case pawl.PhaseEmitting:
		l.setPhase(pawl.PhaseCommitted)
		l.setStatus(pawl.StatusCommitted)
		l.held, l.used = false, true
	default:
		l.t.Fatalf("step at %s", r.Phase)
	}
}

// mutate opens a call, or receives the answer to the open one.
func (l *lane) mutate() {
	if CanCall(l.newest().Ledger) {
		l.calls = append(l.calls, inFlight)
		l.sum()
		l.sent = rapid.Bool().Draw(l.t, "happened")
		if l.sent {
			l.effect++
		}
		return
	}
	switch known := rapid.Bool().Draw(l.t, "answered"); {
	case known && l.sent:
		l.setCall(applied, false)
	case known:
		l.setCall(failed, false)
		l.stop(StatusFor(pawl.HandlerConsumer, rapid.SampledFrom(plainClasses()).Draw(l.t, "class")))
	default:
		l.setCall(AfterStop(inFlight, l.tool), false)
		l.stop(StatusFor(pawl.HandlerConsumer, pawl.ClassIndeterminate))
	}
}

func plainClasses() []pawl.Class {
	return []pawl.Class{
		pawl.ClassTransient, pawl.ClassLogic, pawl.ClassAuth, pawl.ClassPermission,
		pawl.ClassPrecondition, pawl.ClassInternal,
	}
}

// interrupt fails, times out, crashes or cancels the active run.
func (l *lane) interrupt() {
	r := l.newest()
	options := []pawl.Status{pawl.StatusCrashed}
	if r.Ledger == inFlight {
		if TimeoutClass(*r) != pawl.ClassIndeterminate {
			l.t.Fatal("a timeout of an open call is not unknown")
		}
	} else {
		for _, c := range append(plainClasses(), TimeoutClass(*r)) {
			options = append(options, StatusFor(r.Type, c))
		}
	}
	if CanCancel(*r) {
		options = append(options, pawl.StatusCancelled)
	}
	l.stop(rapid.SampledFrom(options).Draw(l.t, "interrupted as"))
}

// stop records how the run ended and what Decide says about its holdings.
func (l *lane) stop(s pawl.Status) {
	l.setStatus(s)
	l.settle()
}

func (l *lane) settle() {
	d := Decide(*l.newest())
	if d.Alarm {
		l.t.Fatalf("alarm for a state that the rules lead to: %+v %+v", *l.newest(), d)
	}
	if d.LedgerMove != none {
		l.setCall(d.LedgerMove, false)
	}
	if d.Reservations == ReservationsRelease {
		l.held = false
	}
}

// goOn ends the wait of the newest run: resume, resolve or succeed.
func (l *lane) goOn() {
	r := l.newest()
	d := Decide(*r)
	switch {
	case d.Resume && CanCancel(*r) && rapid.IntRange(0, 9).Draw(l.t, "reject") == 0:
		l.stop(pawl.StatusCancelled)
	case d.Resume:
		l.setStatus(pawl.StatusActive)
	case d.Exit == ExitReconcile || d.Exit == ExitUser && d.Successor == SuccessorNone:
		l.resolve()
	default:
		l.succeed(d)
	}
}

// resolve asks the tool, or a person who knows the truth.
func (l *lane) resolve() {
	byUser := l.newest().Ledger == indeterminate
	truth := failed
	if l.sent {
		truth = applied
	}
	options := []pawl.MutationState{truth, truth, indeterminate}
	if byUser {
		options = []pawl.MutationState{truth, truth, skipped}
		if l.tool {
			options = append(options, needs)
		}
	}
	l.setCall(rapid.SampledFrom(options).Draw(l.t, "resolved as"), byUser)
	l.settle()
}

func (l *lane) succeed(d Decision) {
	if d.Successor == SuccessorNone || !IsOpen(*l.newest(), false) {
		l.t.Fatalf("stuck: %+v %+v", *l.newest(), d)
	}
	l.reach[d.Successor] = struct{}{}
	l.chain = append(l.chain, Run{
		Type: pawl.HandlerConsumer, Phase: d.SuccessorPhase, Status: d.SuccessorStatus, CanReconcile: l.tool,
	})
	if d.Reservations != ReservationsTransfer {
		l.held = false
	}
	if d.Successor != SuccessorSamePhase {
		l.calls = nil
	}
	l.sum()
}

func (l *lane) over() bool { return Terminal(l.newest().Status) }

func (l *lane) turn(disturbed bool) {
	switch {
	case l.newest().Status != pawl.StatusActive:
		l.goOn()
	case disturbed && rapid.IntRange(0, 2).Draw(l.t, "disturbed") == 0:
		l.interrupt()
	default:
		l.step()
	}
}

func (l *lane) checkSafe() {
	if l.effect > 1 {
		l.t.Fatalf("the call happened %d times: %+v", l.effect, l.chain)
	}
	if l.effect == 1 && !l.held && !l.used {
		l.t.Fatalf("the event is free although its call happened: %+v", l.chain)
	}
	if Unresolved(l.newest().Ledger) && !l.held {
		l.t.Fatalf("the event is free although its call is open: %+v", l.chain)
	}
	for _, r := range l.chain[:len(l.chain)-1] {
		if !Open(r.Status) || IsOpen(r, true) {
			l.t.Fatalf("a run with a successor is over or open: %+v", l.chain)
		}
	}
}

// ..A-126, X-06..X-08, X-66, X-68: whatever fails, crashes or
// is cancelled, the call happens at most once for the event, the event is never
// free once it happened, and then the chain always ends committed.
func TestEffectHappensOnceWhateverGoesWrong(t *testing.T) {
	reach := map[Successor]struct{}{}
	rapid.Check(t, func(t *rapid.T) {
		l := &lane{t: t, tool: rapid.Bool().Draw(t, "tool can be asked"), reach: reach}
		l.chain = []Run{{
			Type: pawl.HandlerConsumer, Phase: FirstPhase(pawl.HandlerConsumer), Status: pawl.StatusActive, CanReconcile: l.tool,
		}}
		turns := rapid.IntRange(0, 60).Draw(t, "turns")
		for i := 0; i < turns && !l.over(); i++ {
			l.turn(true)
			l.checkSafe()
		}
		for i := 0; !l.over(); i++ {
			if i > 500 {
				t.Fatalf("no end: %+v", *l.newest())
			}
			l.turn(false)
			l.checkSafe()
		}
		if l.effect == 1 && l.newest().Status != pawl.StatusCommitted {
			t.Fatalf("the call happened but the last phase never ran: %+v", l.chain)
		}
	})
	for _, s := range []Successor{SuccessorFresh, SuccessorForward, SuccessorSamePhase} {
		if _, ok := reach[s]; !ok {
			t.Errorf("the model never reached a %s successor", s)
		}
	}
}
