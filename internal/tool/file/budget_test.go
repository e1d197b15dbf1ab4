package file

import (
	"testing"

	"github.com/pawlrun/pawl/internal/budget"
)

// What a read may hold of the memory of this process is set aside before it is
// made.
func TestReadsSetAsideWhatTheyMayHold(t *testing.T) {
	f, dir := open(t)
	put(t, "text", dir, "a.txt")
	room := budget.New(1 << 40)
	_, err := f.Call(budget.With(t.Context(), budget.NewCall(room)), callOf(t, "read", "", object{"path": "a.txt"}))
	if err != nil || room.Held() != 4*largestRead {
		t.Errorf("%d bytes are set aside, want %d, %v", room.Held(), 4*largestRead, err)
	}
}
