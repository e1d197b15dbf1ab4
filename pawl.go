// Package pawl holds the words of the domain: the kinds of things Pawl runs,
// the phases and statuses a run moves through, and the errors it reports.
// It imports the standard library only, so that every other package can
// speak these words without depending on another.
package pawl

import (
	"slices"
	"time"
)

// Kind is what a lane is: a workflow, a source or a schedule.
type Kind string

// The three kinds. The set is closed.
const (
	KindWorkflow Kind = "workflow"
	KindSource   Kind = "source"
	KindSchedule Kind = "schedule"
)

// HandlerType says which phase machine a run follows.
type HandlerType string

// The four phase machines.
const (
	HandlerProducer HandlerType = "producer"
	HandlerConsumer HandlerType = "consumer"
	HandlerSource   HandlerType = "source"
	HandlerSchedule HandlerType = "schedule"
)

// Phase is how far a run has come. A run's phase only moves forward, and only
// when the phase before it completed.
type Phase string

// All phases of all handler types; see Phases for their order.
const (
	PhaseExecuting  Phase = "executing"
	PhasePreparing  Phase = "preparing"
	PhasePrepared   Phase = "prepared"
	PhaseMutating   Phase = "mutating"
	PhaseMutated    Phase = "mutated"
	PhaseEmitting   Phase = "emitting"
	PhaseFetching   Phase = "fetching"
	PhaseValidating Phase = "validating"
	PhaseCommitted  Phase = "committed"
)

// Phases returns the phases of a handler type in order, or nil for an unknown
// type.
func Phases(t HandlerType) []Phase {
	switch t {
	case HandlerProducer:
		return []Phase{PhaseExecuting, PhaseCommitted}
	case HandlerConsumer:
		return []Phase{PhasePreparing, PhasePrepared, PhaseMutating, PhaseMutated, PhaseEmitting, PhaseCommitted}
	case HandlerSource:
		return []Phase{PhaseFetching, PhaseCommitted}
	case HandlerSchedule:
		return []Phase{PhaseValidating, PhaseExecuting, PhaseCommitted}
	}
	return nil
}

// Status says what became of a run. It is independent of the phase: changing
// one never changes the other.
type Status string

// The closed set of run statuses.
const (
	StatusActive               Status = "active"
	StatusPausedTransient      Status = "paused:transient"
	StatusPausedApproval       Status = "paused:approval"
	StatusPausedReconciliation Status = "paused:reconciliation"
	StatusFailedLogic          Status = "failed:logic"
	StatusFailedInternal       Status = "failed:internal"
	StatusCommitted            Status = "committed"
	StatusCrashed              Status = "crashed"
	StatusCancelled            Status = "cancelled"
)

// Statuses returns the closed set of run statuses.
func Statuses() []Status {
	return []Status{
		StatusActive, StatusPausedTransient, StatusPausedApproval, StatusPausedReconciliation,
		StatusFailedLogic, StatusFailedInternal, StatusCommitted, StatusCrashed, StatusCancelled,
	}
}

// Valid reports whether s is one of the closed set.
func (s Status) Valid() bool { return slices.Contains(Statuses(), s) }

// MutationState is what the ledger knows about one external call.
type MutationState string

// The closed set of mutation states. MutationNone is the absence of a row.
const (
	MutationNone           MutationState = ""
	MutationInFlight       MutationState = "in_flight"
	MutationApplied        MutationState = "applied"
	MutationFailed         MutationState = "failed"
	MutationNeedsReconcile MutationState = "needs_reconcile"
	MutationIndeterminate  MutationState = "indeterminate"
	MutationSkipped        MutationState = "skipped"
)

// Class is the class of a failure; it is decided where the error arises.
type Class string

// The closed set of error classes.
const (
	ClassTransient     Class = "transient"
	ClassLogic         Class = "logic"
	ClassAuth          Class = "auth"
	ClassPermission    Class = "permission"
	ClassIndeterminate Class = "indeterminate"
	ClassPrecondition  Class = "precondition"
	ClassInternal      Class = "internal"
)

// TimeFormat is how instants look in JSON, keys and logs: UTC, milliseconds, Z.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// FormatTime renders an instant in TimeFormat.
func FormatTime(t time.Time) string { return t.UTC().Format(TimeFormat) }

// SlotKey names one slot of a schedule. It is the one place that builds such
// keys, so that the same slot has the same key however it came to be enqueued.
func SlotKey(scheduleID string, slot time.Time) string {
	return scheduleID + ":" + FormatTime(slot)
}
