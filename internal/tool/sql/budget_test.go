package sqltool

import (
	"testing"

	"github.com/pawlrun/pawl/internal/budget"
)

// What a call may hold of the memory of this process is set aside before it is
// made.
func TestCallsSetAsideWhatTheyMayHold(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		room := budget.New(1 << 40)
		d := open(t, url)
		if _, err := d.Call(budget.With(t.Context(), budget.NewCall(room)), callOf(t, "query", "", "select 1 as n")); err != nil || room.Held() != heldByCall {
			t.Errorf("%d bytes are set aside, want %d, %v", room.Held(), heldByCall, err)
		}
	})
}
