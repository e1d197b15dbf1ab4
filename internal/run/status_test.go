package run

import (
	"testing"

	"github.com/pawlrun/pawl"
)

// A-93..A-101, A-91, X-07, X-66: entry and exit of every status.
func TestStatusMoves(t *testing.T) {
	type move struct{ from, to pawl.Status }
	legal := map[move]bool{
		{pawl.StatusActive, pawl.StatusPausedTransient}:      true,
		{pawl.StatusActive, pawl.StatusPausedApproval}:       true,
		{pawl.StatusActive, pawl.StatusPausedReconciliation}: true,
		{pawl.StatusActive, pawl.StatusFailedLogic}:          true,
		{pawl.StatusActive, pawl.StatusFailedInternal}:       true,
		{pawl.StatusActive, pawl.StatusCommitted}:            true,
		{pawl.StatusActive, pawl.StatusCrashed}:              true,
		{pawl.StatusActive, pawl.StatusCancelled}:            true,
		{pawl.StatusPausedApproval, pawl.StatusActive}:       true,
		{pawl.StatusPausedApproval, pawl.StatusCancelled}:    true,
		{pawl.StatusPausedReconciliation, pawl.StatusActive}: true,
	}
	for _, from := range append(pawl.Statuses(), "", "other") {
		for _, to := range append(pawl.Statuses(), "", "other") {
			if got := CanMove(from, to); got != legal[move{from, to}] {
				t.Errorf("CanMove(%q, %q) = %v", from, to, got)
			}
		}
	}
}

// ..A-100: what each status expects next.
func TestStatusExpectations(t *testing.T) {
	tests := []struct {
		status                                       pawl.Status
		terminal, open, resumable, successor, begins bool
	}{
		{pawl.StatusActive, false, true, false, false, true},
		{pawl.StatusPausedTransient, false, true, false, true, false},
		{pawl.StatusPausedApproval, false, true, true, false, false},
		{pawl.StatusPausedReconciliation, false, true, true, false, true},
		{pawl.StatusFailedLogic, false, true, false, true, false},
		{pawl.StatusFailedInternal, false, true, false, true, false},
		{pawl.StatusCommitted, true, false, false, false, false},
		{pawl.StatusCrashed, false, true, false, true, false},
		{pawl.StatusCancelled, true, false, false, false, false},
		{"other", false, false, false, false, false},
	}
	if len(tests) != len(pawl.Statuses())+1 {
		t.Fatalf("the table has %d rows for %d statuses", len(tests), len(pawl.Statuses()))
	}
	for _, tt := range tests {
		got := [5]bool{Terminal(tt.status), Open(tt.status), Resumable(tt.status), NeedsSuccessor(tt.status), CanBegin(tt.status)}
		want := [5]bool{tt.terminal, tt.open, tt.resumable, tt.successor, tt.begins}
		if got != want {
			t.Errorf("%s: terminal, open, resumable, successor, begins = %v, want %v", tt.status, got, want)
		}
	}
}

// who ends the wait, for each kind of lane.
func TestExitPerCauseAndKind(t *testing.T) {
	workflow := map[pawl.Status]Exit{
		pawl.StatusActive: ExitRunning, pawl.StatusPausedTransient: ExitBackoff, pawl.StatusPausedApproval: ExitUser,
		pawl.StatusPausedReconciliation: ExitReconcile, pawl.StatusFailedLogic: ExitFix,
		pawl.StatusFailedInternal: ExitUser, pawl.StatusCommitted: ExitNone,
		pawl.StatusCrashed: ExitNow, pawl.StatusCancelled: ExitNone,
	}
	differs := map[pawl.HandlerType]map[pawl.Status]Exit{
		pawl.HandlerSource:   {pawl.StatusFailedLogic: ExitBackoff, pawl.StatusFailedInternal: ExitBackoff},
		pawl.HandlerSchedule: {pawl.StatusFailedLogic: ExitNone, pawl.StatusFailedInternal: ExitNone},
	}
	for _, ht := range handlerTypes() {
		for _, s := range pawl.Statuses() {
			want := workflow[s]
			if exit, ok := differs[ht][s]; ok {
				want = exit
			}
			if got := ExitOf(ht, s); got != want {
				t.Errorf("ExitOf(%s, %s) = %s, want %s", ht, s, got, want)
			}
			if got := Settled(ht, s); got != (want == ExitNone) {
				t.Errorf("Settled(%s, %s) = %v", ht, s, got)
			}
		}
	}
	if got := ExitOf(pawl.HandlerConsumer, "other"); got != ExitUser {
		t.Errorf("ExitOf(consumer, other) = %s, want a person", got)
	}
}
