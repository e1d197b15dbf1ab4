package schedule

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/bulk"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

// past is how many slots there were: enough for a planner to see that it is much,
// and for a step that reads them to be seen.
const past = 20_000

// No statement of a slot, from its claim to the making of the next one, reads more
// rows because a schedule has run often.
func TestNoStepOfASlotReadsThePast(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		synctest.Test(t, func(t *testing.T) {
			h := &bulk.Heard{}
			db, err := store.Open(t.Context(), url, store.Options{Trace: h.Note})
			if err != nil {
				t.Fatal(err)
			}
			k := &kit{t: t, db: db, graph: newFakeGraph()}
			k.start()
			t.Cleanup(func() { k.kill(); _ = db.Close() })
			k.owner = k.user("ada")
			for _, policy := range policies() {
				k.pastOf(policy)
			}
			if db.Name() == "postgres" {
				k.change(`analyze`)
			}
			slot := time.Now().Truncate(time.Minute).Add(time.Minute)
			time.Sleep(time.Until(slot))
			jobs := k.due()
			h.During(func() {
				for _, j := range jobs {
					k.runJob(j, k.process, k.fence)
				}
			})
			if ended := k.column(`select id from schedule_runs where scheduled_for = $1 and status = 'success'`, slot.UnixMilli()); len(ended) != len(policies()) {
				t.Errorf("%d slots ran", len(ended))
			}
			faults, measured, err := h.Dear(t.Context(), url, bulk.MostOfAStep(db.Name()))
			if err != nil || measured < 15 {
				t.Fatalf("%d statements were measured: %v", measured, err)
			}
			for _, fault := range faults {
				t.Error(fault)
			}
		})
	})
}

// pastOf makes a schedule that ran once and gives it a past. Every second run is of
// another lane, and newer.
func (k *kit) pastOf(policy pawl.ConcurrencyPolicy) {
	k.t.Helper()
	sch := k.create(ask("old-"+string(policy), policy))
	k.pass(70 * time.Second)
	id := func(kind string) string { return fmt.Sprintf(`'%s-%s-' || i`, kind, policy) }
	const count = `with recursive n(i) as (select 1 union all select i + 1 from n where i < $2) `
	k.change(`insert into runs (id, kind, lane, handler, handler_type, trigger, phase, status, attempt, created_at, updated_at, started_at, ended_at) `+count+`
		select `+id("r")+`, kind, case when i % 2 = 0 then lane else 'other' end, handler, handler_type, trigger, phase, status, 1, created_at - 60000 * i * (1 - i % 2 * 2), updated_at - 60000 * i * (1 - i % 2 * 2), created_at - 60000 * i * (1 - i % 2 * 2), updated_at - 60000 * i * (1 - i % 2 * 2)
		from n cross join (select * from runs where id = (select min(run_id) from schedule_runs where schedule_id = $1 and run_id <> '')) t`, sch.ID, past)
	k.change(`insert into schedule_runs (id, schedule_id, run_id, scheduled_for, started_at, completed_at, status, disposition, attempt_count, trigger, grant_id, revision, created_at, updated_at) `+count+`
		select `+id("s")+`, schedule_id, `+id("r")+`, scheduled_for - 60000 * i, started_at - 60000 * i, completed_at - 60000 * i, status, disposition, 1, trigger, grant_id, revision, created_at - 60000 * i, updated_at - 60000 * i
		from n cross join (select * from schedule_runs where schedule_id = $1 and run_id <> '' order by scheduled_for limit 1) t`, sch.ID, past)
	if n := k.column(`select count(*) || '' from schedule_runs where schedule_id = $1`, sch.ID); len(n) != 1 || len(n[0]) != len(fmt.Sprint(past)) {
		k.t.Fatalf("the past of %s has %v slots", policy, n)
	}
}
