package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// A plan keeps the input of each revision once, however many slots run it, and
// gives every slot what was in force then.
func TestAPlanKeepsTheInputOnce(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		in := ask("s", "")
		in.Input = json.RawMessage(fmt.Sprintf(`{"n":%q}`, strings.Repeat("x", 100_000)))
		sch := k.create(in)
		k.nobody(90 * time.Second)
		k.update(sch, client.SchedulePatch{Input: json.RawMessage(`{"n":2}`)})
		k.nobody(2 * time.Minute) // 00:02 waits, 00:03 has no slot
		b, plan := k.planFor(sch, at(4-maxBackfill), at(3).Add(time.Second), 60)
		if len(plan.Slots) < maxBackfill-2 || len(b.Plan) > 1_000_000 {
			t.Errorf("the plan of %d slots has %d bytes", len(plan.Slots), len(b.Plan))
		}
		first, last := plan.Slots[0], plan.Slots[len(plan.Slots)-1]
		if !sameJSON(first.Input, in.Input) || first.GraphID != "x:poet" || string(last.Input) != `{"n":2}` || last.Revision == first.Revision {
			t.Errorf("the first slot has %d bytes for %s, the last %d", len(first.Input), first.GraphID, len(last.Input))
		}
	})
}

// What a plan says survives being kept.
func TestAPlanIsReadAsItWasWritten(t *testing.T) {
	plan := Plan{
		GrantID: "g", Skipped: 2, Before: 1, Uncovered: []Uncovered{{"x:b", 1, contract.GrantRevoked, "m"}},
		Slots: []PlannedSlot{
			{client.At(at(1)), 1, "x:a", json.RawMessage(`{}`), "skipped_missed"}, {client.At(at(2)), 1, "x:a", json.RawMessage(`{}`), ""},
			{client.At(at(3)), 2, "x:b", json.RawMessage(`[1]`), ""},
		},
	}
	raw, err := plan.encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := decodePlan(raw)
	if diff := cmp.Diff(plan, back); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
}

// A plan that was kept when every slot had its own graph and input still runs.
func TestAPlanOfTheOlderLayoutRuns(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(ask("s", ""))
		b := schedulestore.Backfill{
			ScheduleID: sch.ID, From: at(-2), To: at(0), Hash: "h", State: BackfillPlanned, PerMinute: 60, Total: 2, CreatedBy: "ada",
			Plan: json.RawMessage(`{"slots":[{"at":"` + pawl.FormatTime(at(-2)) + `","revision":1,"graphId":"x:poet","input":{"n":1}},` +
				`{"at":"` + pawl.FormatTime(at(-1)) + `","revision":1,"graphId":"x:poet","input":{"n":1},"was":"skipped_missed"}],"skipped":3,"missing":0}`),
		}
		var plan Plan
		k.write(func(ctx context.Context, tx *store.Tx) (err error) {
			if b, err = schedulestore.In(tx).InsertBackfill(ctx, b); err != nil {
				return err
			}
			_, plan, _, err = k.s.Backfill(ctx, tx, k.owner, b.ID)
			return err
		})
		if len(plan.Slots) != 2 || plan.Skipped != 3 || plan.Slots[0].GraphID != "x:poet" || string(plan.Slots[1].Input) != `{"n":1}` || plan.Slots[1].Was != "skipped_missed" {
			t.Errorf("it is read as %+v", plan)
		}
		k.confirm(b)
		k.pass(10 * time.Second)
		if got := k.graph.executed(sch.ID); len(got) != 2 || k.backfill(b.ID).State != BackfillDone {
			t.Errorf("executed %v, it is %s", got, k.backfill(b.ID).State)
		}
	})
}

// C-79: a plan tells how many of its slots lie before the schedule was made.
func TestAPlanTellsWhatIsOlderThanTheSchedule(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.pass(30 * time.Second)
		sch := k.create(ask("s", ""))
		k.nobody(2 * time.Minute) // 00:02:30
		for from, want := range map[int]int{-2: 3, 0: 1, 1: 0} {
			if _, plan := k.planFor(sch, at(from), at(2), 0); plan.Before != want {
				t.Errorf("from %s: %d of %d are older, want %d", at(from), plan.Before, len(plan.Slots), want)
			}
		}
	})
}
