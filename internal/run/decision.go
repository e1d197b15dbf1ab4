package run

import "github.com/pawlrun/pawl"

// Successor says in what shape the work of a stopped run goes on.
type Successor string

// The shapes.
const (
	// SuccessorNone: no new row. The run is over, waits, or resumes itself.
	SuccessorNone Successor = "none"
	// SuccessorFresh: begin at the first phase with nothing copied.
	SuccessorFresh Successor = "fresh"
	// SuccessorForward: begin at emitting with both results copied.
	SuccessorForward Successor = "forward"
	// SuccessorSamePhase: be born at mutating, paused, and wait until it is
	// known what became of the call. The ledger row changes hands to it.
	SuccessorSamePhase Successor = "same_phase"
)

// Reservations says what becomes of the events that the stopped run holds.
type Reservations string

// The dispositions of reserved events.
const (
	ReservationsNone     Reservations = "none"          // there are none
	ReservationsRelease  Reservations = "release"       // back to pending
	ReservationsKeep     Reservations = "keep"          // stay with this run
	ReservationsTransfer Reservations = "keep_transfer" // move to the successor
	ReservationsConsumed Reservations = "consumed"      // used up by the commit
)

// Decision is what must follow a stopped run. Release belongs into the
// transaction that records the stop, transfer and copies into the one that
// inserts the successor. Asking again in between gives the same answer.
type Decision struct {
	Successor       Successor
	SuccessorPhase  pawl.Phase  // empty without a successor
	SuccessorStatus pawl.Status // empty without a successor

	// Resume says that this same row goes on at its phase, once its wait ends.
	Resume bool
	// Exit says who ends the wait, or starts the successor.
	Exit Exit

	Reservations Reservations
	// CopyResults: prepare_result and, if there is one, mutation_result.
	CopyResults bool
	// LedgerMove is the state the mutation row must move to in the transaction
	// that records the stop; MutationNone means that it stays.
	LedgerMove pawl.MutationState

	// Alarm says that the rules cannot lead to what was found. The rest of
	// the decision is then the answer that cannot repeat an effect.
	Alarm  bool
	Reason string // one sentence for logs and for "why"
}

// Halted reports whether the contradiction is such that only a person can
// decide how to go on.
func (d Decision) Halted() bool {
	return d.Alarm && d.Successor == SuccessorNone && !d.Resume && d.Exit == ExitUser
}

func fresh(r Run, res Reservations, reason string) Decision {
	return Decision{
		Successor: SuccessorFresh, SuccessorPhase: FirstPhase(r.Type), SuccessorStatus: pawl.StatusActive,
		Exit: successorExit(r), Reservations: res, Reason: reason,
	}
}

func forward(r Run, reason string) Decision {
	return Decision{
		Successor: SuccessorForward, SuccessorPhase: pawl.PhaseEmitting, SuccessorStatus: pawl.StatusActive,
		Exit: successorExit(r), Reservations: ReservationsTransfer, CopyResults: true, Reason: reason,
	}
}

// awaitOutcome never waits for a backoff, a fix or a person: the successor only
// waits itself, and until it exists nobody asks what became of the call.
func awaitOutcome(r Run, reason string) Decision {
	return Decision{
		Successor: SuccessorSamePhase, SuccessorPhase: pawl.PhaseMutating,
		SuccessorStatus: pawl.StatusPausedReconciliation, Exit: ExitNow,
		Reservations: ReservationsTransfer, CopyResults: true,
		LedgerMove: AfterStop(r.Ledger, r.CanReconcile), Reason: reason,
	}
}

func resume(res Reservations, exit Exit, reason string) Decision {
	return Decision{Successor: SuccessorNone, Resume: true, Exit: exit, Reservations: res, Reason: reason}
}

// halt starts nothing, releases nothing and calls a person. An in_flight row
// still moves, because nobody can resolve it otherwise.
func halt(r Run, reason string) Decision {
	return Decision{
		Successor: SuccessorNone, Exit: ExitUser, Reservations: ReservationsKeep,
		LedgerMove: AfterStop(r.Ledger, r.CanReconcile), Alarm: true, Reason: reason,
	}
}

// successorExit is when the successor may start. The two resumable pauses get
// one only after their wait is over.
func successorExit(r Run) Exit {
	if Resumable(r.Status) {
		return ExitNow
	}
	return ExitOf(r.Type, r.Status)
}
