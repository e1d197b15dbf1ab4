package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/billing"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

func (k *kit) planFor(sch schedulestore.Schedule, from, to time.Time, pace int) (schedulestore.Backfill, Plan) {
	k.t.Helper()
	return k.planAs(sch, BackfillAsk{From: from, To: to, PerMinute: pace})
}

func (k *kit) planAs(sch schedulestore.Schedule, ask BackfillAsk) (b schedulestore.Backfill, plan Plan) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) (err error) {
		if b, err = k.s.PlanBackfill(ctx, tx, k.owner, sch.ID, ask, "ada"); err != nil {
			return err
		}
		_, plan, _, err = k.s.Backfill(ctx, tx, k.owner, b.ID)
		return err
	})
	return b, plan
}

func (k *kit) confirm(b schedulestore.Backfill) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) error {
		_, err := k.s.Confirm(ctx, tx, k.owner, b.ID, b.Hash, "ada")
		return err
	})
}

func (k *kit) move(b schedulestore.Backfill, to string) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) error {
		_, err := k.s.Move(ctx, tx, k.owner, b.ID, to, "ada")
		return err
	})
}

func (k *kit) backfill(id string) (b schedulestore.Backfill) {
	k.t.Helper()
	k.read(func(ctx context.Context, tx *store.Tx) (err error) {
		b, err = schedulestore.In(tx).GetBackfill(ctx, id)
		return err
	})
	return b
}

func (p Plan) words() (out []string) {
	for _, slot := range p.Slots {
		out = append(out, fmt.Sprint(slot.At.Format("15:04"), " ", string(slot.Input), " ", slot.Was))
	}
	return out
}

// C-60, C-79: a backfill is a plan that a person confirms by its hash; nothing
// runs before. It leaves out what ran, makes up for what was missed with what
// was in force then, at its pace, and never repeats a slot.
func TestABackfillMakesUpForWhatWasMissed(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(ask("s", ""))
		k.pass(90 * time.Second)
		k.restart(2 * time.Minute) // missed 00:02; 00:03 is about to run
		k.update(sch, client.SchedulePatch{Input: json.RawMessage(`{"n":2}`)})
		k.pass(time.Minute)        // 00:04:30
		k.restart(2 * time.Minute) // the same with 00:05 and 00:06
		k.update(sch, client.SchedulePatch{Input: json.RawMessage(`{"n":3}`)})
		b, plan := k.planFor(sch, at(1), at(6).Add(time.Second), 6)
		want := []string{`00:02 {"n":1} skipped_missed`, `00:03 {"n":1} superseded`, `00:05 {"n":2} skipped_missed`, `00:06 {"n":2} superseded`}
		if !slices.Equal(plan.words(), want) || plan.Skipped != 2 || b.Total != 4 || b.State != BackfillPlanned {
			t.Errorf("the plan is %v, %d ran: %+v", plan.words(), plan.Skipped, b)
		}
		again, _ := k.planFor(sch, at(1), at(6).Add(time.Second), 6)
		other, _ := k.planFor(sch, at(1), at(6).Add(time.Second), 7)
		if again.Hash != b.Hash || other.Hash == b.Hash || again.ID == b.ID {
			t.Error("the hash does not stand for the plan and its pace")
		}
		e := k.try(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.Confirm(ctx, tx, k.owner, b.ID, other.Hash, "ada")
			return err
		})
		if e.Reason != "plan_changed" {
			t.Errorf("another hash: %v", e)
		}
		k.pass(20 * time.Second) // 00:06:50
		if got := k.graph.executed(sch.ID); !slices.Equal(got, []string{"00:01", "00:04"}) {
			t.Errorf("before anybody confirmed, executed %v", got)
		}
		k.confirm(b)
		k.confirm(b) // once more says nothing new
		k.pass(45 * time.Second)
		if got := k.graph.executed(sch.ID); !slices.Equal(got, []string{"00:01", "00:02", "00:03", "00:04", "00:05", "00:06", "00:07"}) {
			t.Errorf("executed %v", got)
		}
		var begun []time.Time
		for _, m := range []int{2, 3, 5, 6} {
			r := k.graph.seen(pawl.SlotKey(sch.ID, at(m)))
			begun = append(begun, r.begun[0])
			if want := map[bool]string{true: `{"n":1}`, false: `{"n":2}`}[m < 4]; r.input != want {
				t.Errorf("the slot of %s ran with %s, want %s", at(m), r.input, want)
			}
		}
		for i := 1; i < len(begun); i++ {
			if gap := begun[i].Sub(begun[i-1]); gap < 10*time.Second || gap > 12*time.Second {
				t.Errorf("two begin %s apart, want 10s", gap)
			}
		}
		if now := k.backfill(b.ID); now.State != BackfillDone || now.Begun != 4 || now.ConfirmedBy != "ada" {
			t.Errorf("it is %+v", now)
		}
		k.confirm(again) // the same plan again finds everything done
		k.pass(20 * time.Second)
		if now := k.backfill(again.ID); now.State != BackfillDone {
			t.Errorf("it is %+v", now)
		}
		for key, r := range k.graph.all() {
			if len(r.begun) != 1 {
				t.Errorf("%s ran %d times", key, len(r.begun))
			}
		}
		for _, slot := range k.slots(sch)[1:3] {
			if slot.Trigger != "backfill" || slot.BackfillID != b.ID || slot.Disposition != "fired" {
				t.Errorf("the slot is %+v", slot)
			}
		}
	})
}

// Slots of a backfill and those of the schedule itself never overlap, one of
// the backfill waits at a time, and the schedule goes on.
func TestABackfillSharesTheLane(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		for _, policy := range []pawl.ConcurrencyPolicy{pawl.PolicyQueue, pawl.PolicyForbid} {
			k.pass(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)))
			k.graph.takes = 25 * time.Second
			sch := k.create(ask(string(policy), policy))
			k.pass(time.Second)
			b, _ := k.planFor(sch, time.Now().Add(-10*time.Minute), time.Now(), 600)
			k.confirm(b)
			for range 60 {
				k.pass(10 * time.Second)
				if waiting := k.column(`select id from schedule_runs where backfill_id = $1 and status = 'pending'`, b.ID); len(waiting) > 1 {
					t.Fatalf("%s: %d slots of the backfill wait", policy, len(waiting))
				}
			}
			if k.graph.overlaps(sch.ID) != "" || k.backfill(b.ID).State != BackfillDone {
				t.Errorf("%s: runs overlap, or it is %s", policy, k.backfill(b.ID).State)
			}
			if got := k.graph.executed(sch.ID); len(got) < 15 {
				t.Errorf("%s: executed %v", policy, got)
			}
			k.wholeStory(sch)
			k.write(func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.Delete(ctx, tx, k.owner, sch.ID, "t")
				return err
			})
		}
	})
}

// A backfill can be paused, gone on with and cancelled; what has begun goes on,
// and what it did not begin can be planned anew.
func TestABackfillStopsWhenTold(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.takes = 15 * time.Second
		in := ask("s", "")
		in.Cron = "0 * * * *"
		sch := k.create(in)
		b, plan := k.planFor(sch, at(0).Add(-8*time.Hour), at(0), 60)
		if len(plan.Slots) != 8 {
			t.Fatalf("the plan has %d slots", len(plan.Slots))
		}
		k.confirm(b)
		k.pass(5 * time.Second)
		k.move(b, BackfillPaused)
		k.pass(15 * time.Minute)
		if got := k.graph.executed(sch.ID); len(got) != 1 {
			t.Errorf("paused, it executed %v", got)
		}
		k.move(b, BackfillRunning)
		k.pass(20 * time.Second)
		if got := k.graph.executed(sch.ID); len(got) < 2 || len(got) > 3 {
			t.Errorf("going on, it executed %v", got)
		}
		k.move(b, BackfillCancelled)
		k.pass(time.Minute)
		n := len(k.graph.executed(sch.ID))
		k.pass(10 * time.Minute)
		if got := k.graph.executed(sch.ID); len(got) != n {
			t.Errorf("cancelled, it executed %v", got)
		}
		e := k.try(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.Move(ctx, tx, k.owner, b.ID, BackfillRunning, "ada")
			return err
		})
		if e.Reason != "wrong_state" {
			t.Errorf("going on after that: %v", e)
		}
		if _, again := k.planFor(sch, at(0).Add(-8*time.Hour), at(0), 60); len(again.Slots) != 8-n {
			t.Errorf("%d are left, want %d", len(again.Slots), 8-n)
		}
	})
}

// A backfill that reaches a cap is paused, and spends no further slot.
func TestACapPausesTheBackfill(t *testing.T) {
	onSQLite(t, func(t *testing.T, k *kit) {
		k.graph.refuse = func(string, contract.RunRequestV1) error {
			return &billing.CapError{Which: "usd_per_day", Msg: "no more today"}
		}
		sch := k.create(ask("s", ""))
		b, _ := k.planFor(sch, at(-5), at(0), 60)
		k.confirm(b)
		k.pass(30 * time.Second)
		if now := k.backfill(b.ID); now.State != BackfillPaused || now.Begun != 1 || k.schedule(sch.ID).Enabled {
			t.Errorf("it is %+v", now)
		}
	})
}

// So is one that reaches a daily cap, which holds the schedule back and leaves it on; the
// end of the day does not let the backfill go on.
func TestADailyCapPausesTheBackfill(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.capUntil(at(3).Add(30 * time.Second))
		in := ask("s", "")
		in.Cron = "*/10 * * * *"
		sch := k.create(in)
		b, _ := k.planFor(sch, at(-50), at(0), 60)
		k.confirm(b)
		k.pass(time.Minute)
		if now := k.backfill(b.ID); now.State != BackfillPaused || now.Begun != 1 || !k.schedule(sch.ID).Enabled || k.schedule(sch.ID).CappedUntil.IsZero() {
			t.Errorf("it is %+v", now)
		}
		k.pass(4 * time.Minute)
		if now := k.backfill(b.ID); now.State != BackfillPaused || !k.schedule(sch.ID).CappedUntil.IsZero() {
			t.Errorf("afterwards it is %+v", now)
		}
	})
}

// What cannot be planned is refused with its place.
func TestABackfillIsBounded(t *testing.T) {
	onSQLite(t, func(t *testing.T, k *kit) {
		sch := k.create(ask("s", ""))
		for name, c := range map[string]struct {
			ask    BackfillAsk
			places []string
		}{
			"nothing":    {BackfillAsk{}, []string{"/from"}},
			"backwards":  {BackfillAsk{From: at(0), To: at(-1)}, []string{"/from"}},
			"the future": {BackfillAsk{From: at(-1), To: at(1)}, []string{"/to"}},
			"too fast":   {BackfillAsk{From: at(-1), To: at(0), PerMinute: 601}, []string{"/perMinute"}},
			"too many":   {BackfillAsk{From: at(-20_000), To: at(0)}, nil},
		} {
			e := k.try(func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.PlanBackfill(ctx, tx, k.owner, sch.ID, c.ask, "ada")
				return err
			})
			var places []string
			for _, f := range e.Fields {
				places = append(places, f.Pointer)
			}
			if e.Code != pawl.CodeInvalid || !slices.Equal(places, c.places) {
				t.Errorf("%s: %v at %v", name, e, places)
			}
		}
	})
}
