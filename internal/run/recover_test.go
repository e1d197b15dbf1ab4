package run

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
)

// consumer builds a consumer run whose tool can be asked what became of a call.
func consumer(p pawl.Phase, s pawl.Status, l pawl.MutationState) Run {
	return Run{Type: pawl.HandlerConsumer, Phase: p, Status: s, Ledger: l, CanReconcile: true}
}

// wantFresh, wantForward and wantWaiting are the three successors of the
// recovery table.
func wantFresh(p pawl.Phase, e Exit, r Reservations) Decision {
	return Decision{Successor: SuccessorFresh, SuccessorPhase: p, SuccessorStatus: pawl.StatusActive, Exit: e, Reservations: r}
}

func wantForward(e Exit) Decision {
	return Decision{
		Successor: SuccessorForward, SuccessorPhase: pawl.PhaseEmitting, SuccessorStatus: pawl.StatusActive,
		Exit: e, Reservations: ReservationsTransfer, CopyResults: true,
	}
}

func wantWaiting(move pawl.MutationState) Decision {
	return Decision{
		Successor: SuccessorSamePhase, SuccessorPhase: pawl.PhaseMutating,
		SuccessorStatus: pawl.StatusPausedReconciliation, Exit: ExitNow,
		Reservations: ReservationsTransfer, CopyResults: true, LedgerMove: move,
	}
}

func wantNothing(e Exit, r Reservations) Decision {
	return Decision{Successor: SuccessorNone, Exit: e, Reservations: r}
}

func wantResume(e Exit, r Reservations) Decision {
	return Decision{Successor: SuccessorNone, Resume: true, Exit: e, Reservations: r}
}

func alarmed(d Decision) Decision { d.Alarm = true; return d }

func check(t *testing.T, r Run, want Decision) {
	t.Helper()
	got := Decide(r)
	if got.Reason == "" {
		t.Errorf("%+v: no reason", r)
	}
	got.Reason = ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s %s %s ledger %q (-want +got):\n%s", r.Type, r.Phase, r.Status, r.Ledger, diff)
	}
}

// The rows of the recovery table, for every status that is succeeded by a new
// row. Only the moment at which the successor starts depends on the status
//
func TestRecoveryTableForStoppedConsumers(t *testing.T) {
	exits := map[pawl.Status]Exit{
		pawl.StatusCrashed: ExitNow, pawl.StatusPausedTransient: ExitBackoff,
		pawl.StatusFailedLogic: ExitFix, pawl.StatusFailedInternal: ExitUser,
	}
	for s, e := range exits {
		//
		check(t, consumer(pawl.PhasePreparing, s, none), wantFresh(pawl.PhasePreparing, e, ReservationsNone))
		//
		check(t, consumer(pawl.PhasePrepared, s, none), wantFresh(pawl.PhasePreparing, e, ReservationsRelease))
		// none or failed
		check(t, consumer(pawl.PhaseMutating, s, none), wantFresh(pawl.PhasePreparing, e, ReservationsRelease))
		check(t, consumer(pawl.PhaseMutating, s, failed), wantFresh(pawl.PhasePreparing, e, ReservationsRelease))
		// uncertain
		check(t, consumer(pawl.PhaseMutating, s, inFlight), wantWaiting(needs))
		check(t, consumer(pawl.PhaseMutating, s, needs), wantWaiting(none))
		check(t, consumer(pawl.PhaseMutating, s, indeterminate), wantWaiting(none))
		// cannot occur; treated as mutated
		check(t, consumer(pawl.PhaseMutating, s, applied), alarmed(wantForward(e)))
		check(t, consumer(pawl.PhaseMutating, s, skipped), alarmed(wantForward(e)))
		//
		for _, p := range []pawl.Phase{pawl.PhaseMutated, pawl.PhaseEmitting} {
			for _, l := range []pawl.MutationState{applied, skipped, none} {
				check(t, consumer(p, s, l), wantForward(e))
			}
		}
	}
}

// A tool that cannot be asked leaves the question to a person at once.
func TestRecoveryWithoutReconcileMethodIsIndeterminate(t *testing.T) {
	for _, l := range []pawl.MutationState{inFlight, needs} {
		r := consumer(pawl.PhaseMutating, pawl.StatusCrashed, l)
		r.CanReconcile = false
		check(t, r, wantWaiting(indeterminate))
	}
	waiting := consumer(pawl.PhaseMutating, pawl.StatusPausedReconciliation, needs)
	waiting.CanReconcile = false
	want := wantNothing(ExitUser, ReservationsKeep)
	want.LedgerMove = indeterminate
	check(t, waiting, want)
}

// an approval resumes the same row where it stands
// and keeps its reservations.
func TestApprovalResumesTheSameRow(t *testing.T) {
	s := pawl.StatusPausedApproval
	check(t, consumer(pawl.PhasePreparing, s, none), wantResume(ExitUser, ReservationsNone))
	check(t, consumer(pawl.PhasePrepared, s, none), wantResume(ExitUser, ReservationsKeep))
	check(t, consumer(pawl.PhaseMutating, s, none), wantResume(ExitUser, ReservationsKeep))
	check(t, consumer(pawl.PhaseMutating, s, failed), wantResume(ExitUser, ReservationsKeep))
	check(t, consumer(pawl.PhaseMutated, s, applied), wantResume(ExitUser, ReservationsKeep))
	check(t, consumer(pawl.PhaseEmitting, s, none), wantResume(ExitUser, ReservationsKeep))
	check(t, Run{Type: pawl.HandlerProducer, Phase: pawl.PhaseExecuting, Status: s}, wantResume(ExitUser, ReservationsNone))
	// An approval never bypasses an open call.
	check(t, consumer(pawl.PhaseMutating, s, inFlight), alarmed(wantWaiting(needs)))
	check(t, consumer(pawl.PhaseMutating, s, applied), alarmed(wantForward(ExitNow)))
}

// a run that waits for reconciliation waits on its own row;
// the resolution sends it forward, or is succeeded by a fresh run.
func TestReconciliationWaitsThenGoesOn(t *testing.T) {
	s := pawl.StatusPausedReconciliation
	check(t, consumer(pawl.PhaseMutating, s, needs), wantNothing(ExitReconcile, ReservationsKeep))
	check(t, consumer(pawl.PhaseMutating, s, indeterminate), wantNothing(ExitUser, ReservationsKeep))
	check(t, consumer(pawl.PhaseMutating, s, failed), wantFresh(pawl.PhasePreparing, ExitNow, ReservationsRelease))
	check(t, consumer(pawl.PhaseMutated, s, applied), wantResume(ExitNow, ReservationsKeep))
	check(t, consumer(pawl.PhaseMutated, s, skipped), wantResume(ExitNow, ReservationsKeep))
	// The pause and the move of the ledger are one transaction.
	stuck := alarmed(wantNothing(ExitReconcile, ReservationsKeep))
	stuck.LedgerMove = needs
	check(t, consumer(pawl.PhaseMutating, s, inFlight), stuck)
}

// Nothing follows a run that is over (recovery table: committed; X-66).
func TestEndedRunsHaveNoSuccessor(t *testing.T) {
	for _, l := range []pawl.MutationState{none, failed, applied, skipped} {
		check(t, consumer(pawl.PhaseCommitted, pawl.StatusCommitted, l), wantNothing(ExitNone, ReservationsConsumed))
	}
	check(t, Run{Type: pawl.HandlerProducer, Phase: pawl.PhaseCommitted, Status: pawl.StatusCommitted},
		wantNothing(ExitNone, ReservationsNone))
	cancelled := pawl.StatusCancelled
	check(t, consumer(pawl.PhasePreparing, cancelled, none), wantNothing(ExitNone, ReservationsNone))
	check(t, consumer(pawl.PhasePrepared, cancelled, none), wantNothing(ExitNone, ReservationsRelease))
	check(t, consumer(pawl.PhaseMutating, cancelled, failed), wantNothing(ExitNone, ReservationsRelease))
	check(t, consumer(pawl.PhaseEmitting, cancelled, applied), alarmed(wantNothing(ExitUser, ReservationsKeep)))
	check(t, consumer(pawl.PhaseMutating, pawl.StatusCommitted, none), alarmed(wantNothing(ExitUser, ReservationsKeep)))
	check(t, consumer(pawl.PhaseCommitted, pawl.StatusCrashed, applied), alarmed(wantNothing(ExitNone, ReservationsConsumed)))
}

// the kinds without reservations and ledger.
func TestProducersSourcesAndSchedulesStartAfresh(t *testing.T) {
	producer := func(s pawl.Status) Run {
		return Run{Type: pawl.HandlerProducer, Phase: pawl.PhaseExecuting, Status: s}
	}
	source := func(s pawl.Status) Run {
		return Run{Type: pawl.HandlerSource, Phase: pawl.PhaseFetching, Status: s}
	}
	schedule := func(p pawl.Phase, s pawl.Status) Run {
		return Run{Type: pawl.HandlerSchedule, Phase: p, Status: s}
	}
	check(t, producer(pawl.StatusCrashed), wantFresh(pawl.PhaseExecuting, ExitNow, ReservationsNone))
	check(t, producer(pawl.StatusPausedTransient), wantFresh(pawl.PhaseExecuting, ExitBackoff, ReservationsNone))
	check(t, producer(pawl.StatusFailedLogic), wantFresh(pawl.PhaseExecuting, ExitFix, ReservationsNone))
	check(t, producer(pawl.StatusFailedInternal), wantFresh(pawl.PhaseExecuting, ExitUser, ReservationsNone))
	check(t, source(pawl.StatusCrashed), wantFresh(pawl.PhaseFetching, ExitNow, ReservationsNone))
	check(t, source(pawl.StatusPausedTransient), wantFresh(pawl.PhaseFetching, ExitBackoff, ReservationsNone))
	check(t, source(pawl.StatusFailedLogic), wantFresh(pawl.PhaseFetching, ExitBackoff, ReservationsNone))
	check(t, source(pawl.StatusFailedInternal), wantFresh(pawl.PhaseFetching, ExitBackoff, ReservationsNone))
	for _, p := range []pawl.Phase{pawl.PhaseValidating, pawl.PhaseExecuting} {
		check(t, schedule(p, pawl.StatusCrashed), wantFresh(pawl.PhaseValidating, ExitNow, ReservationsNone))
		check(t, schedule(p, pawl.StatusPausedTransient), wantFresh(pawl.PhaseValidating, ExitBackoff, ReservationsNone))
		check(t, schedule(p, pawl.StatusFailedLogic), wantNothing(ExitNone, ReservationsNone))
		check(t, schedule(p, pawl.StatusFailedInternal), wantNothing(ExitNone, ReservationsNone))
	}
}

// A run that is still active keeps what it has and is left alone.
func TestActiveRunsAreLeftAlone(t *testing.T) {
	check(t, consumer(pawl.PhasePreparing, pawl.StatusActive, none), wantNothing(ExitRunning, ReservationsNone))
	check(t, consumer(pawl.PhaseMutating, pawl.StatusActive, inFlight), wantNothing(ExitRunning, ReservationsKeep))
	check(t, consumer(pawl.PhaseEmitting, pawl.StatusActive, applied), wantNothing(ExitRunning, ReservationsKeep))
}

// A contradiction halts the lane only when no safe way on is known.
func TestAlarmHaltsOnlyWithoutASafeWayOn(t *testing.T) {
	tests := []struct {
		r    Run
		want bool
	}{
		{consumer(pawl.PhasePreparing, pawl.StatusCrashed, inFlight), true},
		{consumer(pawl.PhaseEmitting, pawl.StatusCrashed, needs), true},
		{consumer(pawl.PhaseEmitting, pawl.StatusCancelled, applied), true},
		{Run{Type: pawl.HandlerProducer, Phase: pawl.PhaseExecuting, Status: pawl.StatusCrashed, Ledger: applied}, true},
		{Run{Type: "other"}, true},
		{consumer(pawl.PhaseMutating, pawl.StatusCrashed, applied), false},
		{consumer(pawl.PhasePrepared, pawl.StatusFailedInternal, failed), false},
		{consumer(pawl.PhasePrepared, pawl.StatusPausedApproval, failed), false},
		{consumer(pawl.PhaseMutating, pawl.StatusPausedReconciliation, indeterminate), false},
	}
	for _, tt := range tests {
		if d := Decide(tt.r); d.Halted() != tt.want {
			t.Errorf("%+v: halted %v: %+v", tt.r, d.Halted(), d)
		}
	}
}
