package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/billing"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// told are the changes of a schedule that were made known, as "created".
func (k *kit) told(sch schedulestore.Schedule) (list []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.changes {
		if c.Ref.Key == sch.ID && slices.Contains([]string{"created", "updated", "requested", "deleted"}, c.What) {
			list = append(list, c.What)
		}
	}
	return list
}

func (k *kit) delete(sch schedulestore.Schedule) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) error {
		_, err := k.s.Delete(ctx, tx, k.owner, sch.ID, "tester")
		return err
	})
}

// toldOf is what was made known of the slot of a minute.
func (k *kit) toldOf(sch schedulestore.Schedule, minute int) (list []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.changes {
		if d, ok := c.Detail.(SlotDetail); ok && c.Ref.Key == sch.ID && d.Slot.Equal(at(minute)) {
			list = append(list, strings.TrimSpace(d.Status+" "+d.Disposition))
		}
	}
	return list
}

// Whoever watches is told every step of a slot: that it waits, begins, begins again
// and ends, and whether that was a miss.
func TestEveryStepOfASlotIsTold(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.fakeSources()
		waits := k.create(k.needing(""))
		fails := k.create(ask("f", ""))
		k.graph.answer = func(key string, attempt int) contract.RunAnswerV1 {
			return contract.RunAnswerV1{OK: attempt > 1 || !strings.HasPrefix(key, fails.ID), Retry: true, ErrorCode: contract.Internal, ErrorMessage: "no"}
		}
		k.pass(11 * time.Minute)
		k.fetch("prices")
		k.pass(30 * time.Second)
		k.restart(5 * time.Minute) // 00:16:30
		held, paused := k.create(ask("c", "")), k.create(ask("p", ""))
		k.graph.set(func() {
			k.graph.refuse = func(key string, _ contract.RunRequestV1) error {
				if strings.HasPrefix(key, held.ID) {
					return &billing.CapError{Which: billing.CapUSDPerDay, Msg: "the daily cap of 2 USD is reached", Until: at(18)}
				}
				return nil
			}
		})
		k.pauseFor(paused, time.Minute, "")
		before := len(k.told(paused))
		k.pauseFor(paused, 2*time.Minute, "another note")
		if n := len(k.told(paused)) - before; n != 1 {
			t.Errorf("another note is told %d times", n)
		}
		k.pass(time.Minute)
		before = len(k.told(held))
		k.pass(time.Minute)
		if n := len(k.told(held)) - before; n != 1 {
			t.Errorf("the end of a hold is told %d times", n)
		}
		for _, c := range []struct {
			sch    schedulestore.Schedule
			minute int
			want   []string
		}{
			{waits, 10, []string{"pending waiting_fresh", "running", "success fired"}},
			{fails, 1, []string{"running", "running", "success fired"}},
			{fails, 12, []string{"skipped skipped_missed"}},
			{held, 17, []string{"running", "skipped skipped_budget"}},
		} {
			if got := k.toldOf(c.sch, c.minute); !slices.Equal(got, c.want) {
				t.Errorf("of minute %d of %s: %q", c.minute, c.sch.Name, got)
			}
		}
	})
}

// C-26, C-27: what a definition leaves out has a default, and every fault of it
// is told at once, with its place.
func TestADefinitionIsCompletedAndChecked(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		made := k.create(client.ScheduleRequest{Name: "s", GraphID: "x:poet", Cron: "* * * * *"})
		if string(made.Input) != "{}" || made.Timezone != "UTC" || made.Policy != string(pawl.PolicyQueue) || !made.Enabled {
			t.Errorf("it is %+v", made)
		}
		labels := map[string]string{}
		for i := range 65 {
			labels[fmt.Sprint(i)] = ""
		}
		e := k.try(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.Create(ctx, tx, k.owner, client.ScheduleRequest{Name: "-", GraphID: "*", Cron: "* * *", Timezone: "Mars/North", Input: json.RawMessage("{"), ConcurrencyPolicy: "Never", Labels: labels}, "t")
			return err
		})
		var places []string
		for _, f := range e.Fields {
			places = append(places, f.Pointer)
		}
		slices.Sort(places)
		if !slices.Equal(places, []string{"/concurrencyPolicy", "/cron", "/graphId", "/input", "/labels", "/name", "/timezone"}) {
			t.Errorf("faults were found at %v", places)
		}
	})
}

// C-54, X-64: everything that a definition says can be changed, by itself, by an
// update as by apply. A change is told and audited; the same again changes
// nothing and is neither.
func TestEverythingCanBeChanged(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		graph, cron, zone, off, policy, labels := "x:other", "*/5 * * * *", "Europe/Berlin", false, pawl.PolicyForbid, map[string]string{"team": "a"}
		own := k.grantFor(k.owner, "x:poet", "x:other")
		get := func(s schedulestore.Schedule) map[string]string {
			return map[string]string{
				"graph": s.GraphID, "cron": s.Cron, "zone": s.Timezone, "grant": s.GrantID, "input": string(s.Input), "policy": s.Policy, "enabled": fmt.Sprint(s.Enabled), "labels": fmt.Sprint(s.Labels),
			}
		}
		for field, c := range map[string]struct {
			patch client.SchedulePatch
			apply func(*client.ScheduleRequest)
		}{
			"graph":   {client.SchedulePatch{GraphID: &graph}, func(r *client.ScheduleRequest) { r.GraphID = graph }},
			"cron":    {client.SchedulePatch{Cron: new(client.Cron(cron))}, func(r *client.ScheduleRequest) { r.Cron = client.Cron(cron) }},
			"zone":    {client.SchedulePatch{Timezone: &zone}, func(r *client.ScheduleRequest) { r.Timezone = zone }},
			"grant":   {client.SchedulePatch{ExecutionGrantID: &own}, func(r *client.ScheduleRequest) { r.ExecutionGrantID = own }},
			"input":   {client.SchedulePatch{Input: json.RawMessage(`{}`)}, func(r *client.ScheduleRequest) { r.Input = nil }},
			"policy":  {client.SchedulePatch{ConcurrencyPolicy: &policy}, func(r *client.ScheduleRequest) { r.ConcurrencyPolicy = policy }},
			"enabled": {client.SchedulePatch{Enabled: &off}, func(r *client.ScheduleRequest) { r.Enabled = &off }},
			"labels":  {client.SchedulePatch{Labels: &labels}, func(r *client.ScheduleRequest) { r.Labels = labels }},
		} {
			for _, way := range []string{"update", "apply"} {
				was := k.create(ask(field+way, ""))
				var now schedulestore.Schedule
				for range 2 {
					if way == "update" {
						now = k.update(was, c.patch)
						continue
					}
					in := ask(field+way, "")
					c.apply(&in)
					k.write(func(ctx context.Context, tx *store.Tx) (err error) {
						_, _, now, err = k.s.Apply(ctx, tx, k.owner, in, "tester")
						return err
					})
				}
				before, after := get(was), get(k.schedule(now.ID))
				if before[field] == after[field] {
					t.Errorf("%s by %s: it is still %s", field, way, after[field])
				}
				delete(before, field)
				delete(after, field)
				if field == "graph" { // a grant for one graph alone is replaced with it
					delete(before, "grant")
					delete(after, "grant")
				}
				if !maps.Equal(before, after) {
					t.Errorf("%s by %s: it was %v, and is %v", field, way, before, after)
				}
				audited := k.column(`select action from audit_log where subject = $1 order by id`, "schedule:"+was.ID)
				if told := k.told(was); !slices.Equal(told, []string{"created", "updated"}) || !slices.Equal(audited, []string{"schedule.create", "schedule.update"}) {
					t.Errorf("%s by %s: told %v, audited %v", field, way, told, audited)
				}
			}
		}
	})
}

// what is asked of a schedule, and that it is deleted, is told; one
// that was deleted can be read by who asks what it did, and by nobody else.
func TestADeletedScheduleIsToldAndGone(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch := k.create(ask("s", ""))
		k.runNow(sch)
		k.delete(sch)
		if got := k.told(sch); !slices.Equal(got, []string{"created", "requested", "deleted"}) {
			t.Errorf("told were %v", got)
		}
		if e := k.try(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.Owned(ctx, tx, k.owner, sch.ID)
			return err
		}); e.Code != pawl.CodeNotFound {
			t.Errorf("it is read: %v", e)
		}
		k.read(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.Kept(ctx, tx, k.owner, sch.ID)
			return err
		})
	})
}

// what waits for a person ends at its executor too, when its schedule is
// deleted.
func TestDeleteCancelsElsewhere(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.asksPeople()
		sch := k.create(ask("s", ""))
		k.pass(70 * time.Second)
		k.delete(sch)
		synctest.Wait()
		if got := k.graph.cancelled(); !slices.Equal(got, []string{pawl.SlotKey(sch.ID, at(1))}) {
			t.Errorf("cancelled were %v", got)
		}
	})
}

// an edit also closes the instants that came due while a slot ran: they
// were those of the schedule as it was. Those of one that was off say so.
func TestAnEditSupersedesWhatCameDueDuringARun(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.takes = 3*time.Minute + 30*time.Second
		sch := k.create(ask("s", ""))
		k.pass(4*time.Minute + 10*time.Second)
		cron, on, off := client.Cron("0 * * * *"), true, false
		k.update(sch, client.SchedulePatch{Cron: &cron})
		k.wantStory(sch, "00:01 running", "00:02 skipped superseded", "00:03 skipped superseded", "00:04 skipped superseded", "01:00 pending")
		k.update(sch, client.SchedulePatch{Enabled: &off})
		k.nobody(2 * time.Hour)
		k.update(sch, client.SchedulePatch{Enabled: &on})
		k.wantStory(sch, "00:01 success", "00:02 skipped superseded", "00:03 skipped superseded", "00:04 skipped superseded", "01:00 skipped skipped_disabled", "02:00 skipped skipped_disabled", "03:00 pending")
	})
}

// what a person asked for runs, also if the schedule is disabled before a
// worker comes to it; disabling is about what comes due by itself.
func TestARequestedRunOutlivesDisabling(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch, off := k.create(ask("s", "")), false
		k.runNow(sch)
		k.update(sch, client.SchedulePatch{Enabled: &off})
		k.pass(2 * time.Minute)
		k.wantStory(sch, "00:00 success", "00:01 skipped skipped_disabled")
	})
}

// a job whose slot is not there makes it, and then it is checked like any
// other; that of a deleted schedule makes none.
func TestAJobMakesItsSlot(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch, gone := k.create(ask("s", "")), k.create(ask("gone", ""))
		k.delete(gone)
		k.change(`delete from schedule_runs`)
		k.pass(61 * time.Second)
		k.wantStory(sch, "00:01 success", "00:02 pending")
		k.wantStory(gone)
	})
}

// an attempt that was given back without an answer goes on at its
// executor, also after its schedule is deleted.
func TestARunThatWasGivenBackOutlivesItsSchedule(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.graph.takes = 30 * time.Second
		sch := k.create(ask("s", ""))
		k.pass(70 * time.Second)
		k.stop()
		k.start()
		k.delete(sch)
		k.pass(time.Minute)
		k.wantStory(sch, "00:01 success")
	})
}
