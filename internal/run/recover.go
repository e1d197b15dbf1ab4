package run

import (
	"slices"

	"github.com/pawlrun/pawl"
)

// Decide says what follows a stopped run, for every handler type, phase,
// status and ledger state. It is total: what cannot occur gets an alarm and
// the answer that repeats no effect.
//
// It is the one place that knows the recovery rules (A-107..A-112, A-125,
// X-06), whether the run failed, paused, crashed or was resolved by a person.
func Decide(r Run) Decision {
	if !known(r) {
		return halt(r, "the stored words do not fit together")
	}
	d := decide(r)
	// A ledger row proves that mutating was entered, whatever the phase says.
	stray := r.Ledger != pawl.MutationNone && !AtLeast(r.Type, r.Phase, pawl.PhaseMutating)
	if stray && r.Status != pawl.StatusActive {
		d.Alarm = true
	}
	return d
}

func decide(r Run) Decision {
	switch {
	case Terminal(r.Status) || r.Phase == pawl.PhaseCommitted:
		return decideEnded(r)
	case r.Status == pawl.StatusActive:
		return Decision{Successor: SuccessorNone, Exit: ExitRunning, Reservations: held(r), Reason: "it is still running"}
	case r.Type != pawl.HandlerConsumer:
		return decideWithoutLedger(r)
	case MutationApplied(r.Type, r.Phase):
		return decideApplied(r)
	case r.Phase == pawl.PhasePreparing && !CanCall(r.Ledger):
		return halt(r, "there is a mutation of a run that prepared nothing")
	default:
		return decideBeforeApplied(r)
	}
}

// CanCancel reports whether a person may end the run for good: reject, cancel,
// pause in mid-run or skip its input. Only while nothing was sent, or what was
// sent is known not to have happened; otherwise the run goes on to its commit
//
func CanCancel(r Run) bool {
	return known(r) && CanMove(r.Status, pawl.StatusCancelled) && nothingSent(r)
}

func nothingSent(r Run) bool {
	return r.Phase != pawl.PhaseCommitted && !MutationApplied(r.Type, r.Phase) && CanCall(r.Ledger)
}

func known(r Run) bool {
	return Order(r.Type, r.Phase) >= 0 && r.Status.Valid() && slices.Contains(MutationStates(), r.Ledger)
}

// held returns the disposition of a run that keeps what it has.
func held(r Run) Reservations {
	if r.Type != pawl.HandlerConsumer || r.Phase == pawl.PhasePreparing {
		return ReservationsNone
	}
	return ReservationsKeep
}

// given returns the disposition of a run that gives back what it has.
func given(r Run) Reservations {
	if held(r) == ReservationsNone {
		return ReservationsNone
	}
	return ReservationsRelease
}

func decideEnded(r Run) Decision {
	if r.Phase == pawl.PhaseCommitted {
		d := Decision{Successor: SuccessorNone, Exit: ExitNone, Reservations: ReservationsNone, Reason: "it is committed"}
		if r.Type == pawl.HandlerConsumer {
			d.Reservations = ReservationsConsumed
		}
		d.LedgerMove = AfterStop(r.Ledger, r.CanReconcile)
		d.Alarm = r.Status != pawl.StatusCommitted || Unresolved(r.Ledger)
		return d
	}
	if r.Status == pawl.StatusCommitted {
		return halt(r, "it says committed but its phase does not")
	}
	if !nothingSent(r) {
		return halt(r, "it was cancelled although its call may have happened")
	}
	return Decision{Successor: SuccessorNone, Exit: ExitNone, Reservations: given(r), Reason: "it was cancelled"}
}

// decideWithoutLedger is for producers, sources and schedules: they reserve
// nothing and call nothing that must not be repeated, so every retry is fresh
// . A schedule repeats under the run id of its slot.
func decideWithoutLedger(r Run) Decision {
	switch {
	case !CanCall(r.Ledger):
		return halt(r, "there is a mutation of a run that cannot have one")
	case r.Status == pawl.StatusPausedReconciliation:
		return halt(r, "it waits for a mutation that it cannot have")
	case Settled(r.Type, r.Status):
		return Decision{
			Successor: SuccessorNone, Exit: ExitNone, Reservations: ReservationsNone,
			Reason: "the failure is recorded and the next slot goes on",
		}
	case r.Status == pawl.StatusPausedApproval:
		return resume(ReservationsNone, ExitUser, "it waits for a person")
	default:
		return fresh(r, ReservationsNone, "nothing was committed, so it starts again")
	}
}

// decideApplied is for consumers whose result is recorded: forward only.
func decideApplied(r Run) Decision {
	switch {
	case Unresolved(r.Ledger):
		return halt(r, "a result is recorded for a mutation that is not resolved")
	case r.Status == pawl.StatusPausedApproval:
		return resume(ReservationsKeep, ExitUser, "it waits for a person")
	case r.Status == pawl.StatusPausedReconciliation:
		return resume(ReservationsKeep, ExitNow, "the mutation is resolved and its result recorded")
	default:
		return forward(r, "the result is recorded, so only the last phase is repeated")
	}
}

// decideBeforeApplied is for consumers without a recorded result. The phase
// cannot say what happened; the ledger decides.
func decideBeforeApplied(r Run) Decision {
	switch {
	case CanCall(r.Ledger):
		return decideUnsent(r)
	case Unresolved(r.Ledger):
		return decideUncertain(r)
	default:
		d := forward(r, "the mutation is resolved but its result was not recorded")
		d.Alarm = true
		return d
	}
}

func decideUnsent(r Run) Decision {
	if r.Status == pawl.StatusPausedApproval {
		return resume(held(r), ExitUser, "it waits for a person")
	}
	d := fresh(r, given(r), "the mutation did not happen, so it starts again")
	// Waiting for reconciliation without a call is not a state of the machine.
	d.Alarm = r.Status == pawl.StatusPausedReconciliation && r.Ledger == pawl.MutationNone
	return d
}

func decideUncertain(r Run) Decision {
	if r.Status != pawl.StatusPausedReconciliation {
		d := awaitOutcome(r, "it is unknown whether the mutation happened")
		d.Alarm = r.Status == pawl.StatusPausedApproval
		return d
	}
	d := Decision{
		Successor: SuccessorNone, Exit: ExitReconcile, Reservations: ReservationsKeep,
		LedgerMove: AfterStop(r.Ledger, r.CanReconcile),
		Alarm:      r.Ledger == pawl.MutationInFlight,
		Reason:     "it waits until it is known whether the mutation happened",
	}
	if r.Ledger == pawl.MutationIndeterminate || d.LedgerMove == pawl.MutationIndeterminate {
		d.Exit = ExitUser
		d.Reason = "only a person can say whether the mutation happened"
	}
	return d
}
