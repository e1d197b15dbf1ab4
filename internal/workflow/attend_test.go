package workflow

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// notices makes the kit note what people are told.
func (k *kit) notices() *[]string {
	var told []string
	k.s.cfg.Notify = func(_ context.Context, tx *store.Tx, n lane.Notice) error {
		tx.AfterCommit(func() { told = append(told, n.What+" "+string(n.Issue)) })
		return nil
	}
	return &told
}

// deployBroken deploys a shop whose orders fail, and notes what people are told.
func (k *kit) deployBroken() (workflowstore.Workflow, *[]string) {
	k.t.Helper()
	broken := orderDefinition()
	broken.handlers["consumers.order.prepare"] = func(*goCtx, []json.RawMessage) any { throw("no"); return nil }
	return k.deploy("shop", "1", broken), k.notices()
}

// A-139, lesson 33: every entry into needs attention is told once for its cause,
// also by the next owner, and so is its end.
func TestPeopleAreToldOncePerCauseAndOnRecovery(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w, told := k.deployBroken()
		k.settle(w)
		k.work(w)
		if want := []string{"needs_attention fixes_used_up"}; !slices.Equal(*told, want) {
			t.Fatalf("people were told %v, not %v", *told, want)
		}
		k.start("n2")
		told = k.notices()
		k.work(w)
		if len(*told) > 0 {
			t.Errorf("the next owner tells again: %v", *told)
		}
		k.deploy("shop", "2", orderDefinition())
		k.settle(w)
		if diff := cmp.Diff([]string{"recovered "}, *told); diff != "" {
			t.Errorf("people were told (-want +got):\n%s", diff)
		}
	})
}

// What ends a run is in the row of its lane, and people are told, even if the
// process ends right after it; so is what it asks.
func TestWhatEndsARunIsInTheRowOfItsLane(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w, told := k.deployBroken()
		if !k.crashAt(w, "stopped", 1) {
			t.Fatal("no run stopped")
		}
		k.checkRow(w, "the stop")
		if want := []string{"needs_attention fixes_used_up"}; !slices.Equal(*told, want) {
			t.Errorf("people were told %v, not %v", *told, want)
		}
	})
}
