package run

import "github.com/pawlrun/pawl"

// StatusFor returns the status of a run that ended with a failure of the
// class (A-113..A-118). It only looks the class up; the class is decided where
// the error arises. What has no class is a fault of the host, so that a bug of
// ours is never handed to auto-fix.
//
// A missing precondition of the outside world, a used-up balance among them,
// waits for a person like a missing permission, because neither a retry nor a
// new script can help. Sources and schedules wait for nobody:
// what needs a person is recorded as failed and their own policy goes on.
func StatusFor(t pawl.HandlerType, c pawl.Class) pawl.Status {
	switch c {
	case pawl.ClassTransient:
		return pawl.StatusPausedTransient
	case pawl.ClassLogic:
		return pawl.StatusFailedLogic
	case pawl.ClassAuth, pawl.ClassPermission, pawl.ClassPrecondition:
		if waitsForPeople(t) {
			return pawl.StatusPausedApproval
		}
		return pawl.StatusFailedLogic
	case pawl.ClassIndeterminate:
		// Only a consumer has a mutation whose outcome can be unknown.
		if t == pawl.HandlerConsumer {
			return pawl.StatusPausedReconciliation
		}
		return pawl.StatusFailedInternal
	default:
		return pawl.StatusFailedInternal
	}
}

// TimeoutClass returns the class of a run that outlived its deadline. With a
// call in flight nobody knows whether it happened; everywhere else nothing was
// sent that a retry could repeat.
func TimeoutClass(r Run) pawl.Class {
	if r.Type == pawl.HandlerConsumer && r.Phase == pawl.PhaseMutating && Unresolved(r.Ledger) {
		return pawl.ClassIndeterminate
	}
	return pawl.ClassTransient
}

// MayAutoFix reports whether a new script version may be sought for the run:
// only for workflows, only after a logic failure, never while it is unknown
// what its mutation did. Budgets and permissions are the caller's.
func MayAutoFix(r Run) bool {
	return waitsForPeople(r.Type) && r.Status == pawl.StatusFailedLogic && !Unresolved(r.Ledger)
}

// waitsForPeople tells workflows from sources and schedules.
func waitsForPeople(t pawl.HandlerType) bool {
	return t == pawl.HandlerProducer || t == pawl.HandlerConsumer
}
