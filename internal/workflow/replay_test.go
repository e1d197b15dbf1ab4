package workflow

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
)

// replayable reads the desk in prepare and keeps a count.
func replayable(method string) definition {
	d := orderDefinition()
	d.handlers["consumers.order.prepare"] = func(c *goCtx, args []json.RawMessage) any {
		c.tool("desk", "read", map[string]any{"what": "door"})
		result := takeOne("in")(c, args).(map[string]any)
		return result
	}
	d.handlers["consumers.order.mutate"] = func(c *goCtx, args []json.RawMessage) any {
		c.tool("desk", method, dataOf(args[0]))
		return nothing{}
	}
	return d
}

// A replayed run sees what it read then, calls nothing, and does the same; with
// another script the difference in what it would do is told.
func TestReplayTellsWhatWouldBeDifferent(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", replayable("order"))
		k.publish(w, "in", "a")
		k.work(w)
		var id string
		for _, r := range k.runs(w) {
			if r.Handler == "order" && strings.Contains(string(r.PrepareResult), `"a"`) {
				id = r.ID
			}
		}
		orders := len(k.desk.things())
		same, err := k.s.Replay(t.Context(), id, "", "")
		if err != nil || same.Failure != "" || len(same.Differences) > 0 {
			t.Errorf("the same script: %+v, %v", same, err)
		}
		if same.Now.Call == nil || len(same.Now.Events) != 1 {
			t.Errorf("the replay did not go through all phases: %+v", same.Now)
		}
		other, err := k.s.Replay(t.Context(), id, "w.ts", k.define("shop", "2", replayable("mail")))
		if err != nil || !slices.Equal(other.Differences, []string{`it called desk.order "a" and would call desk.mail "a"`}) {
			t.Errorf("another call: %q, %v", other.Differences, err)
		}
		curious := replayable("order")
		curious.handlers["consumers.order.prepare"] = func(c *goCtx, _ []json.RawMessage) any {
			c.tool("desk", "read", map[string]any{"what": "window"})
			return nil
		}
		asks, err := k.s.Replay(t.Context(), id, "w.ts", k.define("shop", "3", curious))
		if err != nil || !strings.Contains(asks.Failure, "did not do this tool then") || asks.Class != pawl.ClassLogic {
			t.Errorf("a read that was not made: %q, %v", asks.Failure, err)
		}
		if n := len(k.desk.things()); n != orders {
			t.Errorf("replays made %d calls", n-orders)
		}
		if _, err := k.s.Replay(t.Context(), "nobody", "", ""); err == nil {
			t.Error("a run that does not exist can be replayed")
		}
	})
}
