package httptool

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/budget"
)

// What a large answer may hold of the memory of this process is set aside while
// it is read; a small one waits for nobody.
func TestLargeAnswersSetAsideWhatTheyMayHold(t *testing.T) {
	for name, c := range map[string]struct {
		size int
		held int64
	}{"small": {smallAnswer / 2, 0}, "large": {4 * smallAnswer, heldByAnswer}} {
		s := connect(t, serve(t, reply(200, "text/plain", strings.Repeat("x", c.size))).URL, "")
		room := budget.New(1 << 40)
		_, err := s.Call(budget.With(t.Context(), budget.NewCall(room)), callOf(t, "get", object{"path": "/"}))
		if err != nil || room.Held() != c.held {
			t.Errorf("%s: %d bytes are set aside, want %d, %v", name, room.Held(), c.held, err)
		}
	}
}
