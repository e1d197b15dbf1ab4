package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// putSchedules writes schedules at an instant.
func putSchedules(t testing.TB, db *store.DB, now time.Time, list ...workflowstore.ProducerSchedule) {
	t.Helper()
	store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
		tx.Now = now
		for _, s := range list {
			s.NextRunAt = now
			if err := workflowstore.In(tx).PutProducerSchedule(ctx, s); err != nil {
				return err
			}
		}
		return nil
	})
}

// ran notes a run for the schedule that there is.
func ran(t testing.TB, db *store.DB, now time.Time, workflowID, producer string, next time.Time) {
	t.Helper()
	run := workflowstore.ProducerSchedule{WorkflowID: workflowID, Producer: producer}
	for _, s := range schedules(t, db, workflowID) {
		if s.Producer == producer {
			run = s
		}
	}
	run.NextRunAt = next
	ranFor(t, db, now, run)
}

func ranFor(t testing.TB, db *store.DB, now time.Time, run workflowstore.ProducerSchedule) {
	t.Helper()
	store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
		tx.Now = now
		return workflowstore.In(tx).ProducerRan(ctx, run, now)
	})
}

// a run for a schedule that was replaced meanwhile does not move the new
// one, whatever differs.
func TestARunMovesItsOwnScheduleOnly(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w := deployed(t, db, "mail")
		run := workflowstore.ProducerSchedule{WorkflowID: w.ID, Producer: "p", Type: "cron", Value: "@daily", Timezone: "Europe/Berlin", NextRunAt: store.AtForTest(500)}
		for i, change := range []func(*workflowstore.ProducerSchedule){
			func(s *workflowstore.ProducerSchedule) { s.Value = "@hourly" },
			func(s *workflowstore.ProducerSchedule) { s.Type = "interval" },
			func(s *workflowstore.ProducerSchedule) { s.Timezone = "" },
		} {
			edited := run
			change(&edited)
			putSchedules(t, db, store.AtForTest(i), edited)
			requested(t, db, store.AtForTest(i), w.ID)
			ranFor(t, db, store.AtForTest(100+i), run)
			want := edited
			want.NextRunAt, want.LastRunAt = store.AtForTest(i), store.AtForTest(100+i)
			if diff := cmp.Diff([]workflowstore.ProducerSchedule{want}, schedules(t, db, w.ID)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	})
}

func schedules(t testing.TB, db *store.DB, workflowID string) []workflowstore.ProducerSchedule {
	t.Helper()
	return mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]workflowstore.ProducerSchedule, error) {
		return workflowstore.In(tx).ProducerSchedules(ctx, workflowID)
	})
}

func requested(t testing.TB, db *store.DB, now time.Time, workflowID string) (n int) {
	t.Helper()
	store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
		tx.Now = now
		n, err = workflowstore.In(tx).RequestProducers(ctx, workflowID)
		return err
	})
	return n
}

// a new producer is due now; an unchanged one keeps its time, and
// one whose type, value or zone changed is due now.
func TestSchedulePutAgain(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w := deployed(t, db, "mail")
		base := workflowstore.ProducerSchedule{WorkflowID: w.ID, Producer: "p", Type: "interval", Value: "5m"}
		want := base
		want.NextRunAt = store.AtForTest(0)
		expect := func(step string) {
			t.Helper()
			if diff := cmp.Diff([]workflowstore.ProducerSchedule{want}, schedules(t, db, w.ID)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", step, diff)
			}
		}
		putSchedules(t, db, store.AtForTest(0), base)
		expect("new")
		ran(t, db, store.AtForTest(10), w.ID, "p", store.AtForTest(100))
		want.NextRunAt, want.LastRunAt = store.AtForTest(100), store.AtForTest(10)
		requested(t, db, store.AtForTest(11), w.ID)
		want.RequestedAt = store.AtForTest(11)
		putSchedules(t, db, store.AtForTest(20), base)
		expect("unchanged")
		for i, c := range []struct {
			name   string
			change func(s *workflowstore.ProducerSchedule)
		}{
			{"value", func(s *workflowstore.ProducerSchedule) { s.Value = "1h" }},
			{"type", func(s *workflowstore.ProducerSchedule) { s.Type = "cron" }},
			{"zone added", func(s *workflowstore.ProducerSchedule) { s.Timezone = "Europe/Berlin" }},
			{"zone", func(s *workflowstore.ProducerSchedule) { s.Timezone = "UTC" }},
			{"zone removed", func(s *workflowstore.ProducerSchedule) { s.Timezone = "" }},
		} {
			c.change(&base)
			c.change(&want)
			now := store.AtForTest(30 + i)
			putSchedules(t, db, now, base)
			want.NextRunAt = now
			expect(c.name + " changed")
			putSchedules(t, db, store.AtForTest(90), base)
			expect(c.name + " put again")
		}
	})
}

// schedules are listed by their next time; running one
// moves only its own; a row that is not there is nothing to do.
func TestProducersHaveTheirOwnTimes(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w, other := deployed(t, db, "mail"), deployed(t, db, "other")
		one := func(workflowID, name string) workflowstore.ProducerSchedule {
			return workflowstore.ProducerSchedule{WorkflowID: workflowID, Producer: name, Type: "interval", Value: "5m"}
		}
		putSchedules(t, db, store.AtForTest(5), one(w.ID, "b"), one(w.ID, "a"))
		putSchedules(t, db, store.AtForTest(3), one(w.ID, "early"), one(other.ID, "a"))
		order := func() string {
			var names []string
			for _, s := range schedules(t, db, w.ID) {
				names = append(names, s.Producer)
			}
			return strings.Join(names, " ")
		}
		if got := order(); got != "early a b" {
			t.Errorf("order %s", got)
		}
		elsewhere := schedules(t, db, other.ID)
		ran(t, db, store.AtForTest(6), w.ID, "a", store.AtForTest(60))
		ran(t, db, store.AtForTest(6), w.ID, "nobody", store.AtForTest(60))
		ran(t, db, store.AtForTest(6), "nowhere", "a", store.AtForTest(60))
		if got := order(); got != "early b a" {
			t.Errorf("order %s after a ran", got)
		}
		for _, s := range schedules(t, db, w.ID) {
			want := one(w.ID, s.Producer)
			switch s.Producer {
			case "a":
				want.NextRunAt, want.LastRunAt = store.AtForTest(60), store.AtForTest(6)
			case "b":
				want.NextRunAt = store.AtForTest(5)
			default:
				want.NextRunAt = store.AtForTest(3)
			}
			if diff := cmp.Diff(want, s); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		if diff := cmp.Diff(elsewhere, schedules(t, db, other.ID)); diff != "" {
			t.Errorf("a producer of another workflow was moved:\n%s", diff)
		}
		if n := store.CountForTest(t, db, `select count(*) from producer_schedules where updated_at = $1`, store.Millis(store.AtForTest(6))); n != 1 {
			t.Errorf("%d rows were updated", n)
		}
	})
}

// A request is for every producer of one workflow, moves no time, and is
// fulfilled by a run.
func TestRequestsAreFulfilledByRuns(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w, other := deployed(t, db, "mail"), deployed(t, db, "other")
		for _, s := range []workflowstore.ProducerSchedule{{WorkflowID: w.ID, Producer: "a"}, {WorkflowID: w.ID, Producer: "b"}, {WorkflowID: other.ID, Producer: "a"}} {
			s.Type, s.Value = "interval", "5m"
			putSchedules(t, db, store.AtForTest(50), s)
		}
		if n := requested(t, db, store.AtForTest(7), w.ID); n != 2 {
			t.Errorf("%d producers were asked for", n)
		}
		if n := requested(t, db, store.AtForTest(7), "nowhere"); n != 0 {
			t.Errorf("%d producers of nothing were asked for", n)
		}
		ran(t, db, store.AtForTest(8), w.ID, "b", store.AtForTest(60))
		got := append(schedules(t, db, w.ID), schedules(t, db, other.ID)...)
		want := []workflowstore.ProducerSchedule{
			{WorkflowID: w.ID, Producer: "a", Type: "interval", Value: "5m", NextRunAt: store.AtForTest(50), RequestedAt: store.AtForTest(7)},
			{WorkflowID: w.ID, Producer: "b", Type: "interval", Value: "5m", NextRunAt: store.AtForTest(60), LastRunAt: store.AtForTest(8)},
			{WorkflowID: other.ID, Producer: "a", Type: "interval", Value: "5m", NextRunAt: store.AtForTest(50)},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// the schedule of a producer that disappeared is deleted, and with it a
// request; should it come back it is new.
func TestDeletedScheduleComesBackAsNew(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		w, other := deployed(t, db, "mail"), deployed(t, db, "other")
		s := workflowstore.ProducerSchedule{WorkflowID: w.ID, Producer: "p", Type: "cron", Value: "0 9 * * *", Timezone: "Europe/Berlin"}
		kept, foreign := s, s
		kept.Producer, foreign.WorkflowID = "kept", other.ID
		putSchedules(t, db, store.AtForTest(1), s, kept, foreign)
		requested(t, db, store.AtForTest(2), w.ID)
		ran(t, db, store.AtForTest(3), w.ID, "kept", store.AtForTest(80))
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			if err := workflowstore.In(tx).DeleteProducerSchedule(ctx, w.ID, "nobody"); err != nil {
				return err
			}
			return workflowstore.In(tx).DeleteProducerSchedule(ctx, w.ID, "p")
		})
		ran(t, db, store.AtForTest(4), w.ID, "p", store.AtForTest(90)) // its last run commits after it is gone
		if got := schedules(t, db, w.ID); len(got) != 1 || got[0].Producer != "kept" || len(schedules(t, db, other.ID)) != 1 {
			t.Errorf("left are %+v", got)
		}
		putSchedules(t, db, store.AtForTest(40), s)
		s.NextRunAt = store.AtForTest(40)
		if diff := cmp.Diff(s, schedules(t, db, w.ID)[0]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
