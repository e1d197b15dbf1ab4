package run

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/pawlrun/pawl"
)

const (
	none          = pawl.MutationNone
	inFlight      = pawl.MutationInFlight
	applied       = pawl.MutationApplied
	failed        = pawl.MutationFailed
	needs         = pawl.MutationNeedsReconcile
	indeterminate = pawl.MutationIndeterminate
	skipped       = pawl.MutationSkipped
)

// The allowed moves of the mutation ledger, by host and by person (A-96,
// every other one is refused.
func TestMutationMoves(t *testing.T) {
	type move struct {
		from, to pawl.MutationState
		byUser   bool
	}
	legal := map[move]bool{
		{none, inFlight, false}:          true,
		{inFlight, applied, false}:       true,
		{inFlight, failed, false}:        true,
		{inFlight, needs, false}:         true,
		{inFlight, indeterminate, false}: true,
		{needs, needs, false}:            true,
		{needs, applied, false}:          true,
		{needs, failed, false}:           true,
		{needs, indeterminate, false}:    true,
		{indeterminate, needs, true}:     true,
		{indeterminate, failed, true}:    true,
		{indeterminate, applied, true}:   true,
		{indeterminate, skipped, true}:   true,
	}
	states := append(MutationStates(), "other")
	for _, from := range states {
		for _, to := range states {
			for _, byUser := range []bool{false, true} {
				if got := CanMoveMutation(from, to, byUser); got != legal[move{from, to, byUser}] {
					t.Errorf("CanMoveMutation(%q, %q, user %v) = %v", from, to, byUser, got)
				}
				if Final(from) && CanMoveMutation(from, to, byUser) {
					t.Errorf("%q is final but moves to %q", from, to)
				}
			}
		}
	}
}

// Every state is one of: absent, unresolved, final.
func TestMutationStatesAreAbsentUnresolvedOrFinal(t *testing.T) {
	for _, s := range MutationStates() {
		n := 0
		for _, is := range []bool{s == none, Unresolved(s), Final(s)} {
			if is {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%q is %d of absent, unresolved, final", s, n)
		}
	}
	if Unresolved("other") || Final("other") {
		t.Error("an unknown state counts as known")
	}
}

// failed rows are history, the other one decides.
func TestLedgerOfRows(t *testing.T) {
	tests := []struct {
		rows []pawl.MutationState
		want pawl.MutationState
		ok   bool
	}{
		{nil, none, true},
		{[]pawl.MutationState{failed}, failed, true},
		{[]pawl.MutationState{failed, failed}, failed, true},
		{[]pawl.MutationState{failed, inFlight}, inFlight, true},
		{[]pawl.MutationState{applied, failed}, applied, true},
		{[]pawl.MutationState{failed, skipped, failed}, skipped, true},
		{[]pawl.MutationState{none, failed, none}, failed, true},
		{[]pawl.MutationState{applied, applied}, applied, false},
		{[]pawl.MutationState{inFlight, applied}, inFlight, false},
		{[]pawl.MutationState{applied, needs}, needs, false},
	}
	for _, tt := range tests {
		got, ok := LedgerOf(tt.rows)
		if got != tt.want || ok != tt.ok {
			t.Errorf("LedgerOf(%q) = %q, %v; want %q, %v", tt.rows, got, ok, tt.want, tt.ok)
		}
	}
}

// a new call is possible exactly when no row but failed ones exists, and
// the order of the rows does not matter.
func TestLedgerForbidsASecondCall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOf(rapid.SampledFrom(MutationStates())).Draw(t, "rows")
		others, open := 0, false
		for _, row := range rows {
			if row != none && row != failed {
				others++
				open = open || Unresolved(row)
			}
		}
		state, ok := LedgerOf(rows)
		if CanCall(state) != (others == 0) {
			t.Fatalf("rows %q sum up to %q: CanCall = %v", rows, state, CanCall(state))
		}
		if ok != (others <= 1) || Unresolved(state) != open {
			t.Fatalf("rows %q sum up to %q, %v", rows, state, ok)
		}
	})
}

// a stopped run leaves no row behind that nobody will resolve, and moves
// it only as the ledger allows.
func TestAfterStopLeavesNothingInFlight(t *testing.T) {
	for _, s := range MutationStates() {
		for _, can := range []bool{false, true} {
			to := AfterStop(s, can)
			if to != none && !CanMoveMutation(s, to, false) {
				t.Errorf("AfterStop(%q, %v) = %q, which is not a legal move", s, can, to)
			}
			after := s
			if to != none {
				after = to
			}
			if after == inFlight || (after == needs && !can) {
				t.Errorf("AfterStop(%q, %v) leaves %q", s, can, after)
			}
			if !Unresolved(s) && to != none {
				t.Errorf("AfterStop(%q, %v) = %q moves a resolved row", s, can, to)
			}
		}
	}
	if got := AfterStop(inFlight, true); got != needs {
		t.Errorf("AfterStop(in_flight, true) = %q", got)
	}
}
