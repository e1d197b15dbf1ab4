package workflow

import (
	"encoding/json"
	"slices"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store/eventstore"
)

// Events of different partitions do not wait for each other; those of one are taken in
// order, each once.
func TestPartitionsAreWorkedOnEachInItsOrder(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", shopDefinition())
		b := newBoard(k)
		for _, id := range []string{"a1", "b1", "a2", "c1", "a3", "b2"} {
			k.send(w, id[:1], id)
		}
		b.finish()
		if got := k.desk.things(); !slices.Equal(got, []string{"a1", "a2", "a3", "b1", "b2", "c1"}) {
			t.Errorf("orders: %v\n%v", got, k.story(w))
		}
		k.checkParts(w, 0)
		for id, status := range k.statuses(w, "out") {
			if status != eventstore.EventConsumed {
				t.Errorf("event %s is %s", id, status)
			}
		}
		if n := len(k.statuses(w, "out")); n != 6 {
			t.Errorf("%d events were told", n)
		}
		var taken []string
		for _, r := range k.runsOf(w, "a") {
			var p Prepared
			if err := json.Unmarshal(r.PrepareResult, &p); err == nil && p.Reserved() > 0 {
				taken = append(taken, p.Reservations[0].IDs...)
			}
		}
		if !slices.Equal(taken, []string{"a1", "a2", "a3"}) {
			t.Errorf("of a were taken %v", taken)
		}
		if p := k.partition(w, "a"); p.Open || p.Place != 0 || p.State == nil {
			t.Errorf("partition a rests as %+v", p)
		}
		for _, r := range k.runs(w) {
			if r.Status != pawl.StatusCommitted {
				t.Errorf("run %s of %s is %s", r.ID, r.Lane, r.Status)
			}
		}
	})
}
