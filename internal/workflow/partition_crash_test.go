package workflow

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store/eventstore"
)

// partPlaces are the places at which a process can end beside those of a run: on both
// sides of sorting, and of taking and leaving a place.
var partPlaces = []string{"before sort", "sorted", "before place", "placed", "before leave", "left"}

// Whatever the instant of a crash, every event of every partition has its one effect and
// its one successor event, and all partitions come to rest.
func TestCrashWithPartitionsLosesAndRepeatsNothing(t *testing.T) {
	for _, through := range []bool{false, true} {
		t.Run(fmt.Sprintf("through=%v", through), func(t *testing.T) {
			inTime(t, func(t *testing.T, k *kit) {
				most := 3
				if through {
					k.writeThrough()
					most = 1
				}
				for i, place := range slices.Concat(partPlaces, places) {
					for n := 1; n <= most; n++ {
						k.crashInParts(fmt.Sprintf("shop-%d-%d", i, n), place, n)
					}
				}
			})
		})
	}
}

func (k *kit) crashInParts(name, place string, n int) {
	t := k.t
	t.Helper()
	d := shopDefinition()
	d.config.Consumers[0].PartitionLimit = 2
	w := k.deploy(name, "1", d)
	b := newBoard(k)
	k.desk.clear()
	b.take()
	for _, id := range []string{"a1", "b1", "a2", "c1"} {
		k.send(w, id[:1], id)
	}
	if place == "placed" { // all places are taken when somebody comes for one by itself
		b.run()
		k.send(w, "a", "a0")
		b.take()
		for _, customer := range []string{"a", "b", "c"} {
			b.due["workflow:"+w.Lane+"/"+partitionID("order", customer)] = b.due["workflow:"+w.Lane]
			b.of["workflow:"+w.Lane+"/"+partitionID("order", customer)] = jobPayload{Workflow: w.ID, Partition: partitionID("order", customer)}
		}
	}
	if !b.crashAt(place, n) && n == 1 {
		t.Errorf("%s: nobody comes by", place)
	}
	k.checkInvariants(w)
	b.finish()
	k.checkParts(w, 0)
	want, told := []string{"a1", "a2", "b1", "c1"}, map[string]eventstore.EventStatus{}
	if place == "placed" {
		want = slices.Insert(want, 0, "a0")
	}
	for _, id := range want {
		told["out-"+id] = eventstore.EventConsumed
	}
	if diff := cmp.Diff(want, k.desk.things()); diff != "" {
		t.Errorf("crash at %s (%d): orders (-want +got):\n%s\n%v", place, n, diff, k.story(w))
	}
	if diff := cmp.Diff(told, k.statuses(w, "out")); diff != "" {
		t.Errorf("crash at %s (%d): events (-want +got):\n%s\n%v", place, n, diff, k.story(w))
	}
	for _, r := range k.runs(w) {
		if r.Status == pawl.StatusActive {
			t.Errorf("crash at %s (%d): run %s is %s", place, n, r.ID, r.Status)
		}
	}
}
