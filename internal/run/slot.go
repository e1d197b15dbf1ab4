package run

import (
	"slices"
	"strconv"
)

// SlotStatus is the status of one slot of a schedule.
type SlotStatus string

// The closed set of slot statuses (C-18, X-48).
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

// Closed reports whether the slot is over for good. Claiming such a slot does
// nothing.
func (s SlotStatus) Closed() bool {
	return s == SlotSuccess || s == SlotError || s == SlotSkipped
}

// CanMoveSlot reports whether a slot may change so: it starts only from
// pending and closes only from pending or running, so it never goes back. A
// further attempt within the slot leaves it running.
func CanMoveSlot(from, to SlotStatus) bool {
	switch from {
	case SlotPending:
		return to == SlotRunning || to.Closed()
	case SlotRunning:
		return to.Closed()
	default:
		return false
	}
}

// Disposition is the one recorded answer to what became of a due slot.
type Disposition string

// The closed set of dispositions.
const (
	DispositionFired           Disposition = "fired"
	DispositionCoalesced       Disposition = "coalesced"        // a later slot stands for it
	DispositionSkippedOverlap  Disposition = "skipped_overlap"  // the lane was busy
	DispositionSkippedMissed   Disposition = "skipped_missed"   // due while nobody was there
	DispositionSkippedDisabled Disposition = "skipped_disabled" // the schedule is switched off
	DispositionSkippedGrant    Disposition = "skipped_grant"    // not authorised any more
	DispositionSkippedBudget   Disposition = "skipped_budget"   // the money or the count is spent
	DispositionSuperseded      Disposition = "superseded"       // the schedule was edited
	DispositionHalted          Disposition = "halted"           // due while everything was halted
	DispositionSkippedStale    Disposition = "skipped_stale"    // a source that it needs was too old for too long
	DispositionWaitingFresh    Disposition = "waiting_fresh"    // it waits for a source that it needs; the only one of a slot that is not over
	DispositionExcluded        Disposition = "excluded"         // an edit of the schedule or a calendar leaves it out, or a person did
)

// Dispositions returns the closed set of dispositions.
func Dispositions() []Disposition {
	return []Disposition{
		DispositionFired, DispositionCoalesced, DispositionSkippedOverlap, DispositionSkippedMissed,
		DispositionSkippedDisabled, DispositionSkippedGrant, DispositionSkippedBudget, DispositionSuperseded, DispositionExcluded, DispositionHalted,
		DispositionSkippedStale, DispositionWaitingFresh,
	}
}

// Valid reports whether d is one of the closed set.
func (d Disposition) Valid() bool { return slices.Contains(Dispositions(), d) }

// Closes reports whether a slot may close with this status and disposition: a
// slot that fired succeeded or failed, every other one was skipped.
func (d Disposition) Closes(s SlotStatus) bool {
	if d == DispositionFired {
		return s == SlotSuccess || s == SlotError
	}
	return d.Valid() && d != DispositionWaitingFresh && s == SlotSkipped
}

// AttemptID names one attempt of a slot. The run id is that of the slot, made
// at its first start and the same for all its attempts (X-56, C-57); attempts
// count from 1.
func AttemptID(runID string, attempt int) string {
	return runID + "/" + strconv.Itoa(attempt)
}

// UsageReference names one unit of usage of one attempt, so that it is charged
// once however often it is reported (C-55).
func UsageReference(runID string, attempt int, unit string) string {
	return AttemptID(runID, attempt) + "/" + unit
}
