package run

import (
	"slices"

	"github.com/pawlrun/pawl"
)

// MutationStates returns every state of a mutation, the absence of a row
// included.
func MutationStates() []pawl.MutationState {
	return []pawl.MutationState{
		pawl.MutationNone, pawl.MutationInFlight, pawl.MutationApplied, pawl.MutationFailed,
		pawl.MutationNeedsReconcile, pawl.MutationIndeterminate, pawl.MutationSkipped,
	}
}

// Unresolved reports whether it is unknown if the call happened. While it is,
// reservations stay and no other run of the lane starts.
func Unresolved(s pawl.MutationState) bool {
	switch s {
	case pawl.MutationInFlight, pawl.MutationNeedsReconcile, pawl.MutationIndeterminate:
		return true
	default:
		return false
	}
}

// Final reports whether a mutation row can never change again.
func Final(s pawl.MutationState) bool {
	switch s {
	case pawl.MutationApplied, pawl.MutationFailed, pawl.MutationSkipped:
		return true
	default:
		return false
	}
}

// CanMoveMutation reports whether a mutation row may change so. Only the host
// moves a row while it can still find out what happened; only a person moves
// one that is indeterminate. A row begins as in_flight, which is its move from
// MutationNone.
func CanMoveMutation(from, to pawl.MutationState, byUser bool) bool {
	switch from {
	case pawl.MutationNone:
		return !byUser && to == pawl.MutationInFlight
	case pawl.MutationInFlight:
		return !byUser && slices.Contains([]pawl.MutationState{
			pawl.MutationApplied, pawl.MutationFailed, pawl.MutationNeedsReconcile, pawl.MutationIndeterminate,
		}, to)
	case pawl.MutationNeedsReconcile:
		return !byUser && slices.Contains([]pawl.MutationState{
			pawl.MutationNeedsReconcile, pawl.MutationApplied, pawl.MutationFailed, pawl.MutationIndeterminate,
		}, to)
	case pawl.MutationIndeterminate:
		return byUser && slices.Contains([]pawl.MutationState{
			pawl.MutationNeedsReconcile, pawl.MutationFailed, pawl.MutationApplied, pawl.MutationSkipped,
		}, to)
	default:
		return false
	}
}

// LedgerOf sums up the mutation rows of one run. A run may hold several, but
// at most one that is not failed; that one decides. ok is false if there
// are more, and then an unresolved row wins over a final one.
func LedgerOf(rows []pawl.MutationState) (state pawl.MutationState, ok bool) {
	others := 0
	for _, row := range rows {
		switch {
		case row == pawl.MutationNone:
			continue
		case row == pawl.MutationFailed:
			if others == 0 {
				state = row
			}
		default:
			if others == 0 || Unresolved(row) {
				state = row
			}
			others++
		}
	}
	return state, others <= 1
}

// CanCall reports whether a run whose ledger looks so may open a new mutation
// row: only if every call before it is known not to have happened.
func CanCall(s pawl.MutationState) bool {
	return s == pawl.MutationNone || s == pawl.MutationFailed
}

// AfterStop returns the state that a mutation row must move to when its run
// has stopped, or MutationNone if it stays. Nobody waits for the answer to an
// in_flight call any more, so it is left to reconciliation; a tool that
// cannot be asked leaves it to a person.
func AfterStop(s pawl.MutationState, canReconcile bool) pawl.MutationState {
	switch {
	case s == pawl.MutationInFlight && canReconcile:
		return pawl.MutationNeedsReconcile
	case s == pawl.MutationInFlight, s == pawl.MutationNeedsReconcile && !canReconcile:
		return pawl.MutationIndeterminate
	default:
		return pawl.MutationNone
	}
}
