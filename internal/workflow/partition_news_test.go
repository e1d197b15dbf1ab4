package workflow

import (
	"slices"
	"testing"
)

// What is sorted into a partition while it is about to leave its place is not forgotten.
func TestNewsForAPartitionThatLeavesAreNotForgotten(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", shopDefinition())
		b := newBoard(k)
		k.send(w, "a", "a1")
		told := false
		k.fault = func(place string) error {
			if place != "before leave" || told {
				return nil
			}
			told = true
			k.send(w, "a", "a2")
			_, err := k.s.work(t.Context(), k, w.ID) // the workflow's own lane sorts beside it
			return err
		}
		b.run()
		if got := k.desk.things(); !slices.Equal(got, []string{"a1", "a2"}) {
			t.Errorf("orders: %v\n%v", got, k.story(w))
		}
		k.checkParts(w, 0)
	})
}
