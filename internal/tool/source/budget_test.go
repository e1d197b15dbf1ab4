package sourcetool

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/pawlrun/pawl/internal/budget"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// What a read may hold of the memory of this process is set aside before the
// rows are read.
func TestReadsSetAsideWhatTheyMayHold(t *testing.T) {
	room := budget.New(1 << 40)
	held := int64(0)
	c, faults := open(t, "type: source\nsources: [prices]\n", connector.Env{Rows: func(context.Context, string, string, int) ([]map[string]any, string, error) {
		held = room.Held()
		return nil, "", nil
	}})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	_, err := c.Call(budget.With(t.Context(), budget.NewCall(room)), connector.Call{Method: "rows", Args: json.RawMessage(`{"source":"prices"}`)})
	if err != nil || held != 4*largestAnswer {
		t.Errorf("%d bytes are set aside, want %d, %v", held, 4*largestAnswer, err)
	}
}
