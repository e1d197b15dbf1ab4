package run

import (
	"slices"

	"github.com/pawlrun/pawl"
)

// FirstPhase returns the phase in which a fresh run of the type begins, or
// the empty phase for an unknown type.
func FirstPhase(t pawl.HandlerType) pawl.Phase {
	phases := pawl.Phases(t)
	if len(phases) == 0 {
		return ""
	}
	return phases[0]
}

// Order returns the position of the phase within its type, counted from 0,
// or -1 if the type has no such phase.
func Order(t pawl.HandlerType, p pawl.Phase) int {
	return slices.Index(pawl.Phases(t), p)
}

// Before reports whether a comes earlier than b. It is false if either phase
// is foreign to the type, so that a foreign phase never looks harmless.
func Before(t pawl.HandlerType, a, b pawl.Phase) bool {
	i, j := Order(t, a), Order(t, b)
	return i >= 0 && j >= 0 && i < j
}

// AtLeast reports whether a is b or comes later. It is false if either phase
// is foreign to the type.
func AtLeast(t pawl.HandlerType, a, b pawl.Phase) bool {
	i, j := Order(t, a), Order(t, b)
	return i >= 0 && j >= 0 && i >= j
}

// CanAdvance reports whether a run may move from one phase to the other. A
// phase only moves forward and one step at a time. The single
// skip is that of a consumer that reserved nothing: it has nothing to mutate
// and goes from prepared to emitting; see AfterPrepared.
func CanAdvance(t pawl.HandlerType, from, to pawl.Phase) bool {
	i, j := Order(t, from), Order(t, to)
	if i < 0 || j < 0 {
		return false
	}
	if t == pawl.HandlerConsumer && from == pawl.PhasePrepared && to == pawl.PhaseEmitting {
		return true
	}
	return j == i+1
}

// AfterPrepared returns the phase that follows prepared for a consumer that
// reserved the given number of events.
func AfterPrepared(reserved int) pawl.Phase {
	if reserved == 0 {
		return pawl.PhaseEmitting
	}
	return pawl.PhaseMutating
}

// MutationApplied reports whether the result of the mutation is recorded,
// which is exactly phase >= mutated. The result may also be that
// nothing was called or that a person skipped it. From here on a run only
// goes forward.
func MutationApplied(t pawl.HandlerType, p pawl.Phase) bool {
	return AtLeast(t, p, pawl.PhaseMutated)
}
