package run

import (
	"slices"
	"testing"

	"github.com/pawlrun/pawl"
)

// everyRun yields every combination of words, the impossible and the unknown
// ones included.
func everyRun(yield func(Run) bool) {
	for _, ht := range append(handlerTypes(), "", "other") {
		for _, p := range append(allPhases(), "", "other") {
			for _, s := range append(pawl.Statuses(), "", "other") {
				for _, l := range append(MutationStates(), "other") {
					for _, can := range []bool{false, true} {
						if !yield(Run{Type: ht, Phase: p, Status: s, Ledger: l, CanReconcile: can}) {
							return
						}
					}
				}
			}
		}
	}
}

// ..A-111, A-125, X-06, X-18: what must hold whatever was found.
func TestDecideIsSafeForEveryCombination(t *testing.T) {
	for r := range everyRun {
		d := Decide(r)
		fail := func(why string) { t.Errorf("%+v: %s: %+v", r, why, d) }
		if d.Reservations == ReservationsRelease && !slices.Contains([]pawl.MutationState{none, failed}, r.Ledger) {
			fail("releases events whose mutation happened or may have")
		}
		late := slices.Contains([]pawl.Phase{pawl.PhaseMutated, pawl.PhaseEmitting, pawl.PhaseCommitted}, r.Phase)
		if late && (d.Successor == SuccessorFresh || d.Reservations == ReservationsRelease) {
			fail("starts again after the mutation")
		}
		if d.Successor == SuccessorFresh && (Unresolved(r.Ledger) || r.Ledger == applied || r.Ledger == skipped) {
			fail("starts again over a call that may have happened")
		}
		if Terminal(r.Status) && (d.Successor != SuccessorNone || d.Resume) {
			fail("lets something follow a run that is over")
		}
		if r.Status == pawl.StatusActive && (d.Successor != SuccessorNone || d.Resume) {
			fail("doubles a run that is still active")
		}
		if d.Resume && (!Resumable(r.Status) || Unresolved(r.Ledger)) {
			fail("resumes what cannot resume")
		}
		if d.LedgerMove != none && !CanMoveMutation(r.Ledger, d.LedgerMove, false) {
			fail("moves the ledger illegally")
		}
		if r.Ledger == inFlight && d.Exit != ExitRunning && d.LedgerMove == none {
			fail("leaves a row in flight that nobody waits for")
		}
		if d.Reason == "" || d.Exit == "" || d.Reservations == "" || d.Successor == "" {
			fail("leaves a word empty")
		}
	}
}

// The fields of a decision agree with each other for every combination, and
// every successor is a legal row of the same type.
func TestDecisionsAreConsistent(t *testing.T) {
	for r := range everyRun {
		d := Decide(r)
		fail := func(why string) { t.Errorf("%+v: %s: %+v", r, why, d) }
		hasSuccessor := d.Successor != SuccessorNone
		if hasSuccessor != (d.SuccessorPhase != "") || hasSuccessor != (d.SuccessorStatus != "") {
			fail("phase or status of the successor missing or left over")
		}
		if hasSuccessor && (Order(r.Type, d.SuccessorPhase) < 0 || !CanBegin(d.SuccessorStatus)) {
			fail("the successor is not a row that may begin")
		}
		carries := d.Successor == SuccessorForward || d.Successor == SuccessorSamePhase
		if carries != (d.Reservations == ReservationsTransfer) || carries != d.CopyResults {
			fail("reservations and results must move together with the work")
		}
		if hasSuccessor && (d.Exit == ExitNone || d.Exit == ExitRunning || d.Exit == ExitReconcile) {
			fail("nobody starts the successor")
		}
		if d.Exit == ExitFix && Unresolved(r.Ledger) {
			fail("auto-fix while a call is open")
		}
		if r.Type != pawl.HandlerConsumer && !d.Alarm && d.Reservations != ReservationsNone {
			fail("only consumers reserve")
		}
	}
}

// Asking again after the decision was carried out gives the same answer, so
// that a repeated recovery changes nothing.
func TestDecideIsStableOnceTheLedgerMoved(t *testing.T) {
	for r := range everyRun {
		first := Decide(r)
		if first.LedgerMove != none {
			r.Ledger = first.LedgerMove
		}
		again := Decide(r)
		if again.LedgerMove != none {
			t.Errorf("%+v: the ledger would move twice", r)
		}
		if again.Successor != first.Successor || again.Reservations != first.Reservations {
			t.Errorf("%+v: first %+v, then %+v", r, first, again)
		}
	}
}

// The waiting successor is itself a run that Decide knows how to treat: it
// stays until its ledger row is resolved.
func TestWaitingSuccessorWaits(t *testing.T) {
	for r := range everyRun {
		d := Decide(r)
		if d.Successor != SuccessorSamePhase {
			continue
		}
		next := Run{Type: r.Type, Phase: d.SuccessorPhase, Status: d.SuccessorStatus, Ledger: r.Ledger, CanReconcile: r.CanReconcile}
		if d.LedgerMove != none {
			next.Ledger = d.LedgerMove
		}
		got := Decide(next)
		if got.Successor != SuccessorNone || got.Resume || got.Alarm || got.Reservations != ReservationsKeep {
			t.Errorf("%+v: its successor %+v gets %+v", r, next, got)
		}
	}
}

// possible lists, independently of Decide, what the transitions can leave
// behind for a run that is not active.
func possible(r Run) bool {
	ends := r.Status == pawl.StatusCommitted
	if ends != (r.Phase == pawl.PhaseCommitted) {
		return false
	}
	if r.Type != pawl.HandlerConsumer {
		return r.Ledger == none && r.Status != pawl.StatusPausedReconciliation
	}
	reconciling, approval, cancelled := r.Status == pawl.StatusPausedReconciliation,
		r.Status == pawl.StatusPausedApproval, r.Status == pawl.StatusCancelled
	switch r.Phase {
	case pawl.PhasePreparing, pawl.PhasePrepared:
		return r.Ledger == none && !reconciling
	case pawl.PhaseMutating:
		switch r.Ledger {
		case none:
			return !reconciling
		case failed:
			return true
		case inFlight:
			return !reconciling && !approval && !cancelled
		case needs, indeterminate:
			return !approval && !cancelled
		default:
			return false
		}
	default:
		return !Unresolved(r.Ledger) && !cancelled
	}
}

// The alarm sounds exactly for what the transitions cannot leave behind.
func TestAlarmExactlyForTheImpossible(t *testing.T) {
	for r := range everyRun {
		known := Order(r.Type, r.Phase) >= 0 && r.Status.Valid() && r.Ledger != "other"
		if known && r.Status == pawl.StatusActive {
			if got := Decide(r).Alarm; got != (r.Phase == pawl.PhaseCommitted) {
				t.Errorf("%+v: alarm %v", r, got)
			}
			continue
		}
		if got, want := Decide(r).Alarm, !known || !possible(r); got != want {
			t.Errorf("%+v: alarm %v, want %v", r, got, want)
		}
	}
}

// a run can be ended by a person exactly while nothing was sent, and
// ending it then gives back its events and leaves nothing to be done.
func TestCancelOnlyWhileNothingWasSent(t *testing.T) {
	for r := range everyRun {
		want := Order(r.Type, r.Phase) >= 0 && r.Phase != pawl.PhaseCommitted &&
			(r.Status == pawl.StatusActive || r.Status == pawl.StatusPausedApproval) &&
			(r.Ledger == none || r.Ledger == failed) &&
			r.Phase != pawl.PhaseMutated && r.Phase != pawl.PhaseEmitting
		if got := CanCancel(r); got != want {
			t.Errorf("CanCancel(%+v) = %v", r, got)
		}
		if !want {
			continue
		}
		r.Status = pawl.StatusCancelled
		if d := Decide(r); d.Alarm == possible(r) || d.Exit != ExitNone || d.Reservations == ReservationsKeep {
			t.Errorf("%+v after cancelling: %+v", r, d)
		}
	}
}
