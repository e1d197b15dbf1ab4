package schedule

import (
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// executedOf is how many slots of a schedule were executed.
func (k *kit) executedOf(sch schedulestore.Schedule) int { return len(k.graph.executed(sch.ID)) }

// hourly is a schedule of every hour and a backfill of three slots of it that
// begins, one a minute.
func (k *kit) hourly() (schedulestore.Schedule, schedulestore.Backfill) {
	k.t.Helper()
	in := ask("s", "")
	in.Cron = "0 * * * *"
	sch := k.create(in)
	b, _ := k.planFor(sch, at(-180), at(0), 1)
	k.confirm(b)
	k.pass(5 * time.Second)
	if n := k.executedOf(sch); n != 1 {
		k.t.Fatalf("it began with %d slots", n)
	}
	return sch, b
}

// C-60: whoever goes on with a backfill does not make it faster: not after a
// pause, not if the server was restarted meanwhile, and not if it died right
// after it began a slot.
func TestABackfillKeepsItsPaceWhenItGoesOn(t *testing.T) {
	for name, interrupt := range map[string]func(k *kit, b schedulestore.Backfill){
		"paused": func(k *kit, b schedulestore.Backfill) {
			k.move(b, BackfillPaused)
			k.pass(5 * time.Second)
			k.move(b, BackfillRunning)
		},
		"paused over a restart": func(k *kit, b schedulestore.Backfill) {
			k.move(b, BackfillPaused)
			k.restart(5 * time.Second)
			k.move(b, BackfillRunning)
		},
		"died": func(k *kit, _ schedulestore.Backfill) { // before it noted when the job is due again
			k.change(`update jobs set run_at = $1 where task = $2`, time.Now().UnixMilli(), BackfillName)
			k.restart(5 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T, k *kit) {
				sch, b := k.hourly()
				interrupt(k, b)
				k.pass(45 * time.Second) // 55 s after the first
				if n := k.executedOf(sch); n != 1 {
					t.Errorf("it ran %d slots in its first minute", n)
				}
				k.pass(10 * time.Second)
				interrupt(k, b)
				k.pass(5 * time.Second)
				if n := k.executedOf(sch); n != 2 {
					t.Errorf("after a minute it ran %d slots", n)
				}
				k.pass(time.Minute)
				if now := k.backfill(b.ID); k.executedOf(sch) != 3 || now.Begun != 3 {
					t.Errorf("after two minutes it ran %d slots: %+v", k.executedOf(sch), now)
				}
			})
		})
	}
}

// A slot that waited while the backfill was paused begins when it goes on; the
// one after it keeps its distance to that.
func TestABackfillKeepsItsPaceAfterASlotThatWaited(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.takes = 90 * time.Second
		sch, b := k.hourly()
		k.pass(65 * time.Second) // the second one waits for the end of the first
		k.move(b, BackfillPaused)
		k.pass(5 * time.Minute)
		k.graph.set(func() { k.graph.takes = time.Second })
		k.move(b, BackfillRunning)
		k.pass(2 * time.Minute)
		second, third := k.graph.seen(pawl.SlotKey(sch.ID, at(-120))), k.graph.seen(pawl.SlotKey(sch.ID, at(-60)))
		if second == nil || third == nil {
			t.Fatalf("executed %v", k.graph.executed(sch.ID))
		}
		if gap := third.begun[0].Sub(second.begun[0]); gap < time.Minute || gap > 62*time.Second {
			t.Errorf("they began %s apart", gap)
		}
	})
}
