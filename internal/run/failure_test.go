package run

import (
	"testing"

	"github.com/pawlrun/pawl"
)

// A-113..A-118, X-37, X-39: the status of each class, for each kind.
func TestStatusForClass(t *testing.T) {
	const (
		transient = pawl.StatusPausedTransient
		logic     = pawl.StatusFailedLogic
		approval  = pawl.StatusPausedApproval
		reconcile = pawl.StatusPausedReconciliation
		internal  = pawl.StatusFailedInternal
	)
	tests := []struct {
		class                                pawl.Class
		producer, consumer, source, schedule pawl.Status
	}{
		{pawl.ClassTransient, transient, transient, transient, transient},
		{pawl.ClassLogic, logic, logic, logic, logic},
		{pawl.ClassAuth, approval, approval, logic, logic},
		{pawl.ClassPermission, approval, approval, logic, logic},
		{pawl.ClassPrecondition, approval, approval, logic, logic},
		{pawl.ClassIndeterminate, internal, reconcile, internal, internal},
		{pawl.ClassInternal, internal, internal, internal, internal},
		{"", internal, internal, internal, internal},
		{"other", internal, internal, internal, internal},
	}
	for _, tt := range tests {
		for i, want := range []pawl.Status{tt.producer, tt.consumer, tt.source, tt.schedule} {
			ht := handlerTypes()[i]
			got := StatusFor(ht, tt.class)
			if got != want {
				t.Errorf("StatusFor(%s, %q) = %s, want %s", ht, tt.class, got, want)
			}
			if !CanMove(pawl.StatusActive, got) {
				t.Errorf("StatusFor(%s, %q) = %s, which an active run cannot take", ht, tt.class, got)
			}
		}
	}
}

// a timeout is unknown only with a call in flight at mutating.
func TestTimeoutIsUnknownOnlyWithACallInFlight(t *testing.T) {
	for r := range everyRun {
		want := pawl.ClassTransient
		open := r.Ledger == inFlight || r.Ledger == needs || r.Ledger == indeterminate
		if r.Type == pawl.HandlerConsumer && r.Phase == pawl.PhaseMutating && open {
			want = pawl.ClassIndeterminate
		}
		if got := TimeoutClass(r); got != want {
			t.Errorf("TimeoutClass(%+v) = %s, want %s", r, got, want)
		}
	}
}

// only logic failures of workflows may be fixed, and never while
// a call is open; what Decide sends to the fixer is always fixable.
func TestAutoFixOnlyForResolvedLogicFailures(t *testing.T) {
	tests := []struct {
		r    Run
		want bool
	}{
		{consumer(pawl.PhasePreparing, pawl.StatusFailedLogic, none), true},
		{consumer(pawl.PhaseEmitting, pawl.StatusFailedLogic, applied), true},
		{consumer(pawl.PhaseMutating, pawl.StatusFailedLogic, inFlight), false},
		{consumer(pawl.PhaseMutating, pawl.StatusFailedLogic, needs), false},
		{consumer(pawl.PhaseMutating, pawl.StatusFailedLogic, indeterminate), false},
		{consumer(pawl.PhasePreparing, pawl.StatusFailedInternal, none), false},
		{consumer(pawl.PhasePreparing, pawl.StatusPausedApproval, none), false},
		{Run{Type: pawl.HandlerProducer, Phase: pawl.PhaseExecuting, Status: pawl.StatusFailedLogic}, true},
		{Run{Type: pawl.HandlerSource, Phase: pawl.PhaseFetching, Status: pawl.StatusFailedLogic}, false},
		{Run{Type: pawl.HandlerSchedule, Phase: pawl.PhaseExecuting, Status: pawl.StatusFailedLogic}, false},
	}
	for _, tt := range tests {
		if got := MayAutoFix(tt.r); got != tt.want {
			t.Errorf("MayAutoFix(%+v) = %v", tt.r, got)
		}
	}
	for r := range everyRun {
		if Decide(r).Exit == ExitFix && !MayAutoFix(r) {
			t.Errorf("%+v goes to the fixer but may not be fixed", r)
		}
	}
}
