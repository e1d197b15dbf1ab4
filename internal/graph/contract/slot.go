package contract

import "slices"

// SlotStatus is how far a slot of a schedule has come.
type SlotStatus string

// The closed set of slot statuses. The last three are final.
const (
	SlotPending SlotStatus = "pending"
	SlotRunning SlotStatus = "running"
	SlotSuccess SlotStatus = "success"
	SlotError   SlotStatus = "error"
	SlotSkipped SlotStatus = "skipped"
)

// SlotStatuses returns the closed set of slot statuses.
func SlotStatuses() []SlotStatus {
	return []SlotStatus{SlotPending, SlotRunning, SlotSuccess, SlotError, SlotSkipped}
}

// Valid reports whether s is one of the closed set.
func (s SlotStatus) Valid() bool { return slices.Contains(SlotStatuses(), s) }

// Final reports whether a slot of this status is closed for good.
func (s SlotStatus) Final() bool { return s == SlotSuccess || s == SlotError || s == SlotSkipped }

// Disposition is what became of a due slot; every one ends with one.
type Disposition string

// The closed set of dispositions.
const (
	Fired           Disposition = "fired"
	Coalesced       Disposition = "coalesced"        // another slot stands for it
	SkippedOverlap  Disposition = "skipped_overlap"  // the schedule was busy
	SkippedMissed   Disposition = "skipped_missed"   // nobody was at work
	SkippedDisabled Disposition = "skipped_disabled" // the schedule was paused
	SkippedGrant    Disposition = "skipped_grant"    // the grant did not allow it
	SkippedBudget   Disposition = "skipped_budget"   // a cap was reached, or the credits were used up
	Superseded      Disposition = "superseded"       // the schedule was changed
)

// Dispositions returns the closed set of dispositions.
func Dispositions() []Disposition {
	return []Disposition{Fired, Coalesced, SkippedOverlap, SkippedMissed, SkippedDisabled, SkippedGrant, SkippedBudget, Superseded}
}

// Valid reports whether d is one of the closed set.
func (d Disposition) Valid() bool { return slices.Contains(Dispositions(), d) }

// ConcurrencyPolicy is what happens when a slot comes due while the one before
// it still runs.
type ConcurrencyPolicy string

// The closed set of concurrency policies.
const (
	Queue   ConcurrencyPolicy = "Queue"   // it waits; later ones coalesce into it
	Forbid  ConcurrencyPolicy = "Forbid"  // it is skipped
	Allow   ConcurrencyPolicy = "Allow"   // it runs beside it
	Replace ConcurrencyPolicy = "Replace" // the running one is cancelled first
)

// ConcurrencyPolicies returns the closed set of concurrency policies.
func ConcurrencyPolicies() []ConcurrencyPolicy {
	return []ConcurrencyPolicy{Queue, Forbid, Allow, Replace}
}

// Valid reports whether p is one of the closed set.
func (p ConcurrencyPolicy) Valid() bool { return slices.Contains(ConcurrencyPolicies(), p) }
