package mcp

import (
	"testing"

	"github.com/pawlrun/pawl/internal/budget"
)

// What a call may hold of the memory of this process is set aside before it is
// made.
func TestCallsSetAsideWhatTheyMayHold(t *testing.T) {
	r := newRig(t)
	c := r.open(r.program("plain"))
	room := budget.New(1 << 40)
	_, fault := call(budget.With(t.Context(), budget.NewCall(room)), c, "note", `{"text":"once"}`)
	if fault != nil || room.Held() != 2*largestMessage {
		t.Errorf("%d bytes are set aside, want %d, %v", room.Held(), 2*largestMessage, fault)
	}
}
