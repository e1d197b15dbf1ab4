package run

import "github.com/pawlrun/pawl"

// State is the status of a lane as people read it.
type State string

// The four states.
const (
	Running        State = "Running"
	Idle           State = "Idle"
	NeedsAttention State = "Needs attention"
	Stopped        State = "Stopped"
)

// States are all of them.
func States() []State { return []State{Running, Idle, NeedsAttention, Stopped} }

// Desired is what a person wants of a lane. It never changes on its own, and
// what became of runs never changes it.
type Desired string

// The desired states.
const (
	DesiredActive     Desired = "active"
	DesiredPaused     Desired = "paused" // for schedules: not enabled
	DesiredArchived   Desired = "archived"
	DesiredUndeployed Desired = "undeployed"
)

// Issue names why a lane is not simply running or idle. It is a key for the
// sentence that people read; empty means that there is nothing to say.
type Issue string

// The issues.
const (
	IssueNone           Issue = ""
	IssuePaused         Issue = "paused"
	IssueArchived       Issue = "archived"
	IssueNotDeployed    Issue = "not_deployed"
	IssueBackingOff     Issue = "backing_off"     // will be retried
	IssueRetriesUsedUp  Issue = "retries_used_up" // will not
	IssueFixing         Issue = "fixing"
	IssueFixesUsedUp    Issue = "fixes_used_up"
	IssueReconciling    Issue = "reconciling"     // asking what became of a call
	IssueOutcomeUnknown Issue = "outcome_unknown" // a person must say it
	IssueApproval       Issue = "approval"
	IssueSignIn         Issue = "sign_in"
	IssuePermission     Issue = "permission"
	IssuePrecondition   Issue = "precondition"
	IssueRecovering     Issue = "recovering" // after a crash or a resolution
	IssueCrashLoop      Issue = "crash_loop"
	IssueFailed         Issue = "failed" // the last slot; the next one goes on
	IssueInternal       Issue = "internal"
	IssueInconsistent   Issue = "inconsistent"  // the stored state contradicts itself
	IssueNoWorker       Issue = "no_worker"     // nobody is there who could run it
	IssueHalted         Issue = "halted"        // somebody stopped all starts
	IssueWaitingFresh   Issue = "waiting_fresh" // a source that it needs is too old, and is to be fetched first
	IssueStale          Issue = "stale_source"  // that took too long
	IssueExpectation    Issue = "expectation"   // it works, and does not do what is expected of it
)

// StateOf returns the state and the issue of a lane: what a person wants comes
// first, then what its newest run says. exhausted says that the budget
// which belongs to that run's status is used up; a workflow without auto-fix
// has none for logic failures. The zero Run stands for a lane that never ran.
func StateOf(d Desired, newest Run, exhausted bool) (State, Issue) {
	switch d {
	case DesiredActive:
		return Health(newest, exhausted)
	case DesiredPaused:
		return Stopped, IssuePaused
	case DesiredArchived:
		return Stopped, IssueArchived
	default:
		return Stopped, IssueNotDeployed
	}
}

// Health returns the state and the issue of a lane that is meant to run.
func Health(newest Run, exhausted bool) (State, Issue) {
	if newest.Status == "" {
		return Idle, IssueNone
	}
	if Decide(newest).Halted() && newest.Status != pawl.StatusPausedReconciliation {
		return NeedsAttention, IssueInconsistent
	}
	switch newest.Status {
	case pawl.StatusCommitted, pawl.StatusCancelled:
		return Idle, IssueNone
	case pawl.StatusActive:
		return Running, IssueNone
	case pawl.StatusPausedTransient:
		return budgeted(exhausted, IssueBackingOff, IssueRetriesUsedUp)
	case pawl.StatusCrashed:
		return budgeted(exhausted, IssueRecovering, IssueCrashLoop)
	case pawl.StatusPausedApproval:
		return NeedsAttention, issueOf(newest.Class, IssueApproval)
	case pawl.StatusPausedReconciliation:
		return reconciling(newest)
	case pawl.StatusFailedLogic:
		return failedLogic(newest, exhausted)
	default:
		return NeedsAttention, IssueInternal
	}
}

// budgeted is Running while the host goes on by itself, with the reason told.
func budgeted(exhausted bool, going, usedUp Issue) (State, Issue) {
	if exhausted {
		return NeedsAttention, usedUp
	}
	return Running, going
}

func reconciling(r Run) (State, Issue) {
	d := Decide(r)
	switch {
	case d.Halted() && !Unresolved(r.Ledger):
		return NeedsAttention, IssueInconsistent
	case d.Exit == ExitUser:
		return NeedsAttention, IssueOutcomeUnknown
	case d.Exit == ExitReconcile:
		return Running, IssueReconciling
	default:
		return Running, IssueRecovering
	}
}

// failedLogic differs by kind: a workflow is being fixed, a source
// retries under its budget, a schedule goes on with the next slot. A missing
// precondition needs a person at once, whoever met it, and so do credentials
// that a source is refused: no retry mends them.
func failedLogic(r Run, exhausted bool) (State, Issue) {
	switch {
	case r.Class == pawl.ClassPrecondition:
		return NeedsAttention, IssuePrecondition
	case r.Type == pawl.HandlerSchedule:
		return NeedsAttention, issueOf(r.Class, IssueFailed)
	case r.Type == pawl.HandlerSource && (r.Class == pawl.ClassAuth || r.Class == pawl.ClassPermission):
		return NeedsAttention, issueOf(r.Class, IssueFailed)
	case r.Type == pawl.HandlerSource:
		return budgeted(exhausted, IssueBackingOff, IssueRetriesUsedUp)
	case !MayAutoFix(r):
		return Running, IssueReconciling
	default:
		return budgeted(exhausted, IssueFixing, IssueFixesUsedUp)
	}
}

func issueOf(c pawl.Class, otherwise Issue) Issue {
	switch c {
	case pawl.ClassAuth:
		return IssueSignIn
	case pawl.ClassPermission:
		return IssuePermission
	case pawl.ClassPrecondition:
		return IssuePrecondition
	default:
		return otherwise
	}
}
