package run

import (
	"slices"
	"testing"
)

// C-18, X-48: started only from pending, closed only from pending or running.
func TestSlotMovesAreMonotonic(t *testing.T) {
	type move struct{ from, to SlotStatus }
	legal := map[move]bool{
		{SlotPending, SlotRunning}: true,
		{SlotPending, SlotSuccess}: true,
		{SlotPending, SlotError}:   true,
		{SlotPending, SlotSkipped}: true,
		{SlotRunning, SlotSuccess}: true,
		{SlotRunning, SlotError}:   true,
		{SlotRunning, SlotSkipped}: true,
	}
	all := append(SlotStatuses(), "", "other")
	for _, from := range all {
		for _, to := range all {
			if got := CanMoveSlot(from, to); got != legal[move{from, to}] {
				t.Errorf("CanMoveSlot(%q, %q) = %v", from, to, got)
			}
			if from.Closed() && CanMoveSlot(from, to) {
				t.Errorf("%q is closed but moves to %q", from, to)
			}
		}
		if from.Valid() != slices.Contains(SlotStatuses(), from) {
			t.Errorf("Valid(%q) = %v", from, from.Valid())
		}
	}
}

// X-36, C-69: a slot that fired succeeded or failed, any other was skipped; no
// disposition closes a slot that is not closed.
func TestDispositionFitsTheStatus(t *testing.T) {
	if len(Dispositions()) != 12 {
		t.Errorf("%d dispositions", len(Dispositions()))
	}
	for _, d := range append(Dispositions(), "", "other") {
		for _, s := range append(SlotStatuses(), "", "other") {
			want := s == SlotSkipped && d != "" && d != "other"
			switch d {
			case DispositionWaitingFresh: // which is that of one that waits
				want = false
			case DispositionFired:
				want = s == SlotSuccess || s == SlotError
			default:
			}
			if got := d.Closes(s); got != want {
				t.Errorf("%q closes a slot as %q: %v", d, s, got)
			}
			if d.Closes(s) && !s.Closed() {
				t.Errorf("%q closes a slot as %q, which is not closed", d, s)
			}
		}
	}
}

// C-55, C-57, X-56: the attempts of a slot share its run id and are told apart
// by their count; each unit of usage has one name.
func TestAttemptIDs(t *testing.T) {
	if got := AttemptID("run", 2); got != "run/2" {
		t.Errorf("AttemptID = %q", got)
	}
	if got := UsageReference("run", 2, "tokens"); got != "run/2/tokens" {
		t.Errorf("UsageReference = %q", got)
	}
}
