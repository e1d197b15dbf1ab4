package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/grantstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// Lists whose filter no index answers end pages early and leave nothing out,
// wherever in a large table it is what they look for.
func TestRunsThatAreRareAreAllFound(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		const runs = 3*store.WindowRows*store.PageWindows + 77
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `insert into runs (id, kind, lane, handler, handler_type, trigger, phase, status, attempt, created_at, updated_at)
				with recursive n (i) as (select cast(1 as bigint) union all select i + 1 from n where i < $1)
				select 'r' || (1000000 + i), case when i % 7 = 0 then 'source' when i % 1000 = 5 then 'schedule' else 'workflow' end, 'l', 'h', 'consumer', 'x', 'committed',
				case when i in (3, 4, 7, 20000, 29990) then 'cancelled' else 'committed' end, 1, i, i from n`, runs)
			return err
		})
		rare := []string{"r1029990", "r1020000", "r1000007", "r1000004", "r1000003"}
		for name, c := range map[string]struct {
			filter runstore.RunFilter
			want   []string
		}{
			"status":                 {runstore.RunFilter{Status: pawl.StatusCancelled}, rare},
			"lane and status":        {runstore.RunFilter{Lane: "l", Status: pawl.StatusCancelled}, rare},
			"kind, lane and status":  {runstore.RunFilter{Kind: pawl.KindWorkflow, Lane: "l", Status: pawl.StatusCancelled}, []string{"r1029990", "r1020000", "r1000004", "r1000003"}},
			"another lane":           {runstore.RunFilter{Lane: "m"}, nil},
			"a viewer's own":         {runstore.RunFilter{Kind: pawl.KindSchedule, Viewer: "nobody"}, nil},
			"what a viewer sees too": {runstore.RunFilter{Viewer: "nobody", Status: pawl.StatusCancelled}, rare},
			"a time":                 {runstore.RunFilter{Lane: "l", Status: pawl.StatusCancelled, From: store.FromMillis(5), To: store.FromMillis(20001)}, []string{"r1020000", "r1000007"}},
		} {
			for _, limit := range []int{1, 2, 50} {
				t.Run(fmt.Sprint(name, limit), func(t *testing.T) {
					down := everyRun(t, limit, func(ctx context.Context, tx *store.Tx, at store.Place) ([]runstore.Run, store.Place, error) {
						return runstore.In(tx).ListRuns(ctx, c.filter, at, limit)
					}, db)
					if !slices.Equal(down, c.want) {
						t.Errorf("newest first: %v, want %v", down, c.want)
					}
					up := everyRun(t, limit, func(ctx context.Context, tx *store.Tx, at store.Place) ([]runstore.Run, store.Place, error) {
						return runstore.In(tx).RunsInOrder(ctx, c.filter, at, limit)
					}, db)
					if slices.Reverse(up); !slices.Equal(up, c.want) {
						t.Errorf("oldest first: %v, want %v", up, c.want)
					}
				})
			}
		}
		// What is common is in order, whichever kinds it is of.
		page, next, err := runstore.On(db).ListRuns(t.Context(), runstore.RunFilter{}, store.Place{}, 20)
		if err != nil || len(page) != 20 || next.ID != page[19].ID || !slices.IsSortedFunc(page, func(a, b runstore.Run) int {
			return -(store.Place{a.CreatedAt, a.ID}).Compare(store.Place{b.CreatedAt, b.ID})
		}) {
			t.Errorf("%v %v %v", page, next, err)
		}
	})
}

// everyRun reads a list to its end, and no page of it is too long.
func everyRun(t *testing.T, limit int, list func(context.Context, *store.Tx, store.Place) ([]runstore.Run, store.Place, error), db *store.DB) (ids []string) {
	t.Helper()
	for cursor, pages := (store.Place{}), 0; ; pages++ {
		var page []runstore.Run
		err := db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
			page, cursor, err = list(ctx, tx, cursor)
			return err
		})
		if err != nil || len(page) > limit || pages > 20 {
			t.Fatalf("%d runs on page %d: %v", len(page), pages, err)
		}
		for _, r := range page {
			ids = append(ids, r.ID)
		}
		if cursor.ID == "" {
			return ids
		}
	}
}

// The same for jobs, events and inputs.
func TestOtherThingsThatAreRareAreAllFound(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		const things = 2*store.WindowRows*store.PageWindows + 99
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			for _, sql := range []string{
				`insert into job_history (id, task, state, run_at, finished_at, attempt) {n} select i, case when i in (2, 15000) then 'rare' else 'http' end,
					case when i in (2, 9) then 'cancelled' else 'succeeded' end, i, i, 1 from n`,
				`insert into jobs (id, bucket, run_at, max_attempts, task, payload, created_at) {n} select 100000 + i, 0, 99999999999999, 3, case when i in (5, 12000) then 'rare' else 'http' end, '{}', i from n`,
				`insert into events (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, created_by, caused_by, created_at, updated_at) {n}
					select i, 'w', case when i in (1, 10000) then 'rare' else 'common' end, i, i, 'm' || i, '{}', case when i in (4, 9000) then 'skipped' when i in (7, 8) then 'pending' else 'consumed' end, 'x', '[]', i, i from n`,
				`insert into inputs (id, workflow_id, source, type, external_id, title, created_by, created_at, skipped_at) {n}
					select 'i' || (100000 + i), 'w', 's', 't', 'e' || i, 't', 'x', i, case when i in (2, 6000) then 1 else null end from n`,
				`insert into event_causes (input_id, event_id) {n} select 'i' || (100000 + i), i from n where i not in (3, 7000)`,
			} {
				const n = `with recursive n (i) as (select cast(1 as bigint) union all select i + 1 from n where i < %d) `
				if _, err := tx.Exec(ctx, strings.ReplaceAll(sql, "{n}", fmt.Sprintf(n, things))); err != nil {
					return err
				}
			}
			_, err := tx.Exec(ctx, `analyze`) // a table that has grown has been looked at
			return err
		})
		for _, c := range []struct {
			filter store.JobFilter
			want   string
		}{
			{store.JobFilter{Task: "rare"}, "[112000 100005 15000 2]"}, {store.JobFilter{State: store.JobCancelled}, "[9 2]"}, {store.JobFilter{State: store.JobCancelled, Task: "rare"}, "[2]"},
			{store.JobFilter{State: store.JobSucceeded, Task: "rare"}, "[15000]"}, {store.JobFilter{State: store.JobScheduled, Task: "rare"}, "[112000 100005]"}, {store.JobFilter{Lane: "nowhere"}, "[]"},
		} {
			for _, limit := range []int{1, 50} {
				got := drain(t, func(before int64) ([]store.JobRecord, int64, error) {
					return db.ListJobs(t.Context(), c.filter, before, limit)
				}, func(r store.JobRecord) int64 { return r.ID })
				if fmt.Sprint(got) != c.want {
					t.Errorf("%+v: %v, want %s", c.filter, got, c.want)
				}
			}
		}
		for _, c := range []struct {
			filter eventstore.EventFilter
			want   string
		}{
			{eventstore.EventFilter{Topic: "rare"}, "[10000 1]"}, {eventstore.EventFilter{Status: eventstore.EventSkipped}, "[9000 4]"}, {eventstore.EventFilter{Status: eventstore.EventSkipped, Topic: "rare"}, "[]"},
			{eventstore.EventFilter{InputID: "i100009"}, "[9]"},
		} {
			got := drain(t, func(before int64) (page []eventstore.Event, next int64, err error) {
				err = db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
					page, next, err = eventstore.In(tx).EventPage(ctx, "w", c.filter, before, 1)
					return err
				})
				return page, next, err
			}, func(e eventstore.Event) int64 { return e.ID })
			if fmt.Sprint(got) != c.want {
				t.Errorf("%+v: %v, want %s", c.filter, got, c.want)
			}
		}
		for status, want := range map[eventstore.InputStatus]string{eventstore.InputSkipped: "[6000 2]", eventstore.InputOrphaned: "[7000 3]"} {
			got := drain(t, func(before int64) (page []eventstore.Input, next int64, err error) {
				var cursor eventstore.InputCursor
				err = db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
					if before > 0 {
						cursor = eventstore.InputCursor{CreatedAt: store.FromMillis(before), ID: fmt.Sprint("i", 100000+before)}
					}
					page, cursor, err = eventstore.In(tx).InputPage(ctx, "w", status, cursor, 1)
					return err
				})
				if cursor.ID == "" {
					return page, 0, err
				}
				return page, store.Millis(cursor.CreatedAt), err
			}, func(i eventstore.Input) int64 { return store.Millis(i.CreatedAt) })
			if fmt.Sprint(got) != want {
				t.Errorf("%s: %v, want %s", status, got, want)
			}
		}
	})
}

// drain reads a list to its end.
func drain[T any](t *testing.T, list func(before int64) ([]T, int64, error), id func(T) int64) (ids []int64) {
	t.Helper()
	for before, pages := int64(0), 0; pages < 30; pages++ {
		page, next, err := list(before)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range page {
			ids = append(ids, id(v))
		}
		if next == 0 {
			return ids
		}
		before = next
	}
	t.Fatal("the list has no end")
	return nil
}

// A receipt that comes again is not added to its day again.
func TestDaysCountAReceiptOnce(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		g := grantOf(t, db, ensureUser(t, db, "ada", userstore.RoleOperator), nil)
		for range 3 {
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				_, err := grantstore.In(tx).InsertReceipt(ctx, receipt(g, "r", 1, "u", 7))
				return err
			})
		}
		days := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]grantstore.DaySpend, error) {
			return grantstore.In(tx).SpendByDay(ctx, g.AccountID, time.Now().AddDate(0, 0, -1))
		})
		if len(days) != 1 || days[0].Amount != 7 || days[0].Receipts != 1 {
			t.Errorf("%+v", days)
		}
	})
}
