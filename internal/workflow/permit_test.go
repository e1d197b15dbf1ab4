package workflow

import (
	"errors"
	"slices"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/tool"
)

// A call asks once more, after it has connected, whether the lane is still its
// own. What was not sent then is not known to anybody outside, and is sent by the
// next owner, under the same key.
func TestACallAsksAfterItHasConnected(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", orderDefinition())
		k.settle(w)
		k.publish(w, "in", "a")
		s := &sleeper{kit: k, wakes: 3} // before prepare, before mutate, before the call
		asked := 0
		k.desk.permit = func(err error) *tool.Error {
			if asked++; errors.Is(err, queue.ErrLeaseLost) {
				return &tool.Error{Class: pawl.ClassTransient, Code: "cancelled", NotApplied: true, NotSent: true, Msg: "not sent", Err: err}
			}
			return nil
		}
		_, _ = k.s.work(t.Context(), s, w.ID)
		if got := k.desk.things(); asked != 1 || len(got) > 0 {
			t.Errorf("asked %d times, orders %v", asked, got)
		}
		k.start("another owner")
		k.settle(w)
		rows := k.ledgerRows(w)
		keys := []string{}
		for _, r := range rows {
			keys = append(keys, r.IdempotencyKey)
		}
		if got := k.desk.things(); !slices.Equal(got, []string{"a"}) || len(slices.Compact(keys)) != 1 {
			t.Errorf("orders %v under the keys %v", got, keys)
		}
	})
}
