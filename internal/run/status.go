package run

import "github.com/pawlrun/pawl"

// Terminal reports whether the attempt and its whole chain are over: nothing
// ever follows a committed or a cancelled run.
func Terminal(s pawl.Status) bool {
	return s == pawl.StatusCommitted || s == pawl.StatusCancelled
}

// Open reports whether something is still expected of a run with this status:
// its own end, its resumption or a successor. Whether a particular run is open
// also depends on its successor; see IsOpen.
func Open(s pawl.Status) bool { return s.Valid() && !Terminal(s) }

// Resumable reports whether the wait ends on the same row, at the same phase
// and with the reservations intact. A pause is not a retry.
func Resumable(s pawl.Status) bool {
	return s == pawl.StatusPausedApproval || s == pawl.StatusPausedReconciliation
}

// NeedsSuccessor reports whether the work can only go on in a new row, because
// this attempt is history. A failed:internal run gets one only when a
// person asks for it; see ExitOf.
func NeedsSuccessor(s pawl.Status) bool {
	switch s {
	case pawl.StatusPausedTransient, pawl.StatusFailedLogic, pawl.StatusFailedInternal, pawl.StatusCrashed:
		return true
	default:
		return false
	}
}

// CanBegin reports whether a row may be inserted with this status. Besides
// active there is only the recovery run that waits for reconciliation.
func CanBegin(s pawl.Status) bool {
	return s == pawl.StatusActive || s == pawl.StatusPausedReconciliation
}

// CanMove reports whether the status of one row may change so. A status never
// changes the phase. How an attempt ended is never rewritten:
// only the two resumable pauses can be left, back to active or, for an
// approval, by rejection.
func CanMove(from, to pawl.Status) bool {
	switch from {
	case pawl.StatusActive:
		return to.Valid() && to != pawl.StatusActive
	case pawl.StatusPausedApproval:
		return to == pawl.StatusActive || to == pawl.StatusCancelled
	case pawl.StatusPausedReconciliation:
		return to == pawl.StatusActive
	default:
		return false
	}
}

// Settled reports whether a lane of this handler type is done with a run of
// this status. For schedules a failure is recorded and the next slot goes on
// so it expects no successor; for the others only the terminal
// statuses are.
func Settled(t pawl.HandlerType, s pawl.Status) bool {
	if t == pawl.HandlerSchedule && (s == pawl.StatusFailedLogic || s == pawl.StatusFailedInternal) {
		return true
	}
	return Terminal(s)
}

// Exit says who or what ends the wait of a run that stopped.
type Exit string

// The ways out.
const (
	ExitNone      Exit = "none"      // nothing follows
	ExitRunning   Exit = "running"   // it has not stopped yet
	ExitNow       Exit = "now"       // the host, at once
	ExitBackoff   Exit = "backoff"   // the host, when the backoff is over
	ExitFix       Exit = "fix"       // the host, once a new script version is active
	ExitReconcile Exit = "reconcile" // the reconcile loop
	ExitUser      Exit = "user"      // a person
)

// ExitOf returns the way out of a status for a handler type, while the budget
// for it lasts; once the budget is used up the way out is a person. A source
// retries every failure under one budget.
func ExitOf(t pawl.HandlerType, s pawl.Status) Exit {
	if Settled(t, s) {
		return ExitNone
	}
	switch s {
	case pawl.StatusActive:
		return ExitRunning
	case pawl.StatusCrashed:
		return ExitNow
	case pawl.StatusPausedTransient:
		return ExitBackoff
	case pawl.StatusPausedReconciliation:
		return ExitReconcile
	case pawl.StatusFailedLogic:
		if t == pawl.HandlerSource {
			return ExitBackoff
		}
		return ExitFix
	case pawl.StatusFailedInternal:
		if t == pawl.HandlerSource {
			return ExitBackoff
		}
		return ExitUser
	default:
		return ExitUser
	}
}
