package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/executionstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// graphSchedule adds a schedule with an owner and a grant of its own.
func graphSchedule(t testing.TB, db *store.DB, name string) (s schedulestore.Schedule) {
	t.Helper()
	user := ensureUser(t, db, "ada", userstore.RoleOperator)
	g := grantOf(t, db, user, nil)
	store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
		s, err = schedulestore.In(tx).InsertSchedule(ctx, schedulestore.Schedule{
			Name: name, OwnerUserID: user.ID, GrantID: g.ID, GraphID: "x:poet", Input: json.RawMessage(`{"n":1}`), Cron: "* * * * *", Timezone: "UTC",
			Policy: "Queue", Enabled: true, Labels: map[string]string{"a": "b"}, NextRunAt: store.AtForTest(60),
		}, "ada")
		return err
	})
	return s
}

// C-46, C-49, X-64: a schedule keeps what it is given, a change raises its
// revision and leaves what it was, and a name is taken once for each owner.
func TestScheduleKeepsWhatItWas(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		s := graphSchedule(t, db, "s")
		got := mustRead(t, db, func(ctx context.Context, tx *store.Tx) (schedulestore.Schedule, error) {
			return schedulestore.In(tx).GetSchedule(ctx, s.ID)
		})
		if diff := cmp.Diff(s, got); diff != "" || !got.Enabled || !got.NextRunAt.Equal(store.AtForTest(60)) || got.Labels["a"] != "b" {
			t.Errorf("it is %+v (-want +got):\n%s", got, diff)
		}
		s.Cron, s.Input, s.NextRunAt = "0 * * * *", json.RawMessage(`{"n":2}`), time.Time{}
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
			if s, err = schedulestore.In(tx).UpdateSchedule(ctx, s, true, "eve"); err != nil {
				return err
			}
			s.Labels = nil
			s, err = schedulestore.In(tx).UpdateSchedule(ctx, s, false, "eve")
			return err
		})
		versions := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]schedulestore.ScheduleVersion, error) {
			return schedulestore.In(tx).ScheduleVersions(ctx, s.ID, 10)
		})
		if len(versions) != 2 || versions[0].Cron != "* * * * *" || string(versions[1].Input) != `{"n":2}` || versions[1].CreatedBy != "eve" || s.Revision != versions[1].Revision || !s.NextRunAt.IsZero() {
			t.Errorf("revision %d, versions %+v", s.Revision, versions)
		}
		err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := schedulestore.In(tx).InsertSchedule(ctx, s, "ada")
			return err
		})
		if e, ok := errors.AsType[*pawl.Error](err); !ok || e.Reason != "name_taken" {
			t.Errorf("the same name: %v", err)
		}
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error { return schedulestore.In(tx).DeleteSchedule(ctx, s.ID) })
		if again := graphSchedule(t, db, "s"); again.ID == s.ID {
			t.Error("a deleted one came back")
		}
		for name, read := range map[string]store.Func{
			"hold": func(ctx context.Context, tx *store.Tx) error {
				_, err := schedulestore.In(tx).HoldSchedule(ctx, s.ID)
				return err
			},
			"change": func(ctx context.Context, tx *store.Tx) error {
				_, err := schedulestore.In(tx).UpdateSchedule(ctx, s, true, "")
				return err
			},
		} {
			if err := db.Write(t.Context(), read); !errors.Is(err, pawl.ErrNotFound) {
				t.Errorf("%s of a deleted one: %v", name, err)
			}
		}
	})
}

// C-14, X-59: stale are the enabled schedules whose next instant is unknown or
// past, and no others.
func TestStaleSchedules(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		var want []string
		for name, c := range map[string]struct {
			next  any
			other string
			stale bool
		}{
			"null": {nil, "", true}, "past": {store.Millis(store.AtForTest(9)), "", true}, "now": {store.Millis(store.AtForTest(10)), "", true}, "future": {store.Millis(store.AtForTest(11)), "", false},
			"off": {nil, ", enabled = 0", false}, "gone": {nil, ", deleted_at = 1", false},
		} {
			s := graphSchedule(t, db, name)
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Exec(ctx, `update schedules set next_run_at = $2`+c.other+` where id = $1`, s.ID, c.next)
				return err
			})
			if c.stale {
				want = append(want, s.ID)
			}
		}
		slices.Sort(want)
		var got []string
		for after := (schedulestore.Schedule{}); ; {
			var page []schedulestore.Schedule
			err := db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
				tx.Now = store.AtForTest(10)
				page, err = schedulestore.In(tx).StaleSchedules(ctx, after, 2)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range page {
				got = append(got, s.ID)
				after = s
			}
			if len(page) < 2 {
				break
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("stale are %v, want %v", got, want)
		}
	})
}

// the clock of workers never goes back.
func TestTheClockOfWorkersNeverGoesBack(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		alive := func(ctx context.Context, tx *store.Tx) (time.Time, error) { return schedulestore.In(tx).AliveAt(ctx) }
		if got := mustRead(t, db, alive); !got.IsZero() {
			t.Errorf("before anybody was there it says %s", got)
		}
		for _, now := range []int{5, 9, 7} {
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				tx.Now = store.AtForTest(now)
				return schedulestore.In(tx).SetAlive(ctx)
			})
		}
		if got := mustRead(t, db, alive); !got.Equal(store.AtForTest(9)) {
			t.Errorf("it says %s, want %s", got, store.AtForTest(9))
		}
	})
}

// C-50, C-52, X-36, X-52, X-56: an instant has one slot, which starts and closes
// once; attempts count inside it, and run and grant stay those of the start.
func TestASlotStartsAndClosesOnce(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		s := graphSchedule(t, db, "s")
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			for i, want := range []int64{2, 1} {
				n, err := schedulestore.In(tx).InsertSlots(ctx, schedulestore.NewSlot{ScheduleID: s.ID, ScheduledFor: store.AtForTest(1), Trigger: "schedule"}, schedulestore.NewSlot{ScheduleID: s.ID, ScheduledFor: store.AtForTest(2 + i), Trigger: "schedule"})
				if err != nil || n != want {
					return fmt.Errorf("%d new, want %d: %w", n, want, err)
				}
			}
			return nil
		})
		var slot schedulestore.Slot
		for i, c := range []struct {
			start    schedulestore.SlotStart
			attempts int
		}{{schedulestore.SlotStart{RunID: "r1", GrantID: "g1", Again: false}, 1}, {schedulestore.SlotStart{RunID: "r2", GrantID: "g2", Again: true}, 1}, {schedulestore.SlotStart{RunID: "r3", GrantID: "g3", Again: false}, 2}} {
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
				tx.Now = store.AtForTest(10 + i)
				if slot, err = schedulestore.In(tx).GetSlot(ctx, s.ID, store.AtForTest(1)); err != nil {
					return err
				}
				slot, err = schedulestore.In(tx).StartSlot(ctx, slot.ID, c.start)
				return err
			})
			if slot.Attempts != c.attempts || slot.RunID != "r1" || slot.GrantID != "g1" || slot.Status != "running" || !slot.StartedAt.Equal(store.AtForTest(10)) {
				t.Errorf("start %d: %+v", i, slot)
			}
		}
		end := schedulestore.SlotEnd{Status: "error", Disposition: "fired", TraceID: "t", ErrorCode: "internal", ErrorMessage: "no\x00", Cost: 7}
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
			slot, err = schedulestore.In(tx).CloseSlot(ctx, slot.ID, end)
			return err
		})
		if slot.Status != "error" || slot.TraceID != "t" || slot.ErrorMessage != "no\uFFFD" || slot.Cost != 7 || slot.CompletedAt.IsZero() {
			t.Errorf("closed: %+v", slot)
		}
		for name, again := range map[string]store.Func{
			"start": func(ctx context.Context, tx *store.Tx) error {
				_, err := schedulestore.In(tx).StartSlot(ctx, slot.ID, schedulestore.SlotStart{})
				return err
			},
			"close": func(ctx context.Context, tx *store.Tx) error {
				_, err := schedulestore.In(tx).CloseSlot(ctx, slot.ID, end)
				return err
			},
			"reopen": func(ctx context.Context, tx *store.Tx) error {
				reopened, err := schedulestore.In(tx).ReopenSlot(ctx, s.ID, store.AtForTest(1), "b", 0)
				if err == nil && !reopened {
					err = pawl.ErrConflict
				}
				return err
			},
			"plan": func(ctx context.Context, tx *store.Tx) error {
				waits, err := schedulestore.In(tx).PlanSlot(ctx, s.ID, store.AtForTest(1), 1)
				if err == nil && !waits {
					err = pawl.ErrConflict
				}
				return err
			},
		} {
			if err := db.Write(t.Context(), again); !errors.Is(err, pawl.ErrConflict) {
				t.Errorf("%s of a closed slot: %v", name, err)
			}
		}
	})
}

// planning an instant makes its slot wait, also one that was taken
// back before it began, and never one of which something else became.
func TestPlanSlot(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		s := graphSchedule(t, db, "s")
		for i, c := range []struct {
			disposition string
			want        bool
		}{{"", true}, {"superseded", true}, {"skipped_disabled", true}, {"skipped_missed", false}, {"coalesced", false}, {"skipped_grant", false}} {
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				if waits, err := schedulestore.In(tx).PlanSlot(ctx, s.ID, store.AtForTest(i), 1); err != nil || !waits {
					return fmt.Errorf("a new one waits: %v, %w", waits, err)
				}
				slot, err := schedulestore.In(tx).GetSlot(ctx, s.ID, store.AtForTest(i))
				if err != nil {
					return err
				}
				if c.disposition != "" {
					if _, err := schedulestore.In(tx).CloseSlot(ctx, slot.ID, schedulestore.SlotEnd{Status: "skipped", Disposition: c.disposition, ErrorMessage: "why"}); err != nil {
						return err
					}
				}
				waits, err := schedulestore.In(tx).PlanSlot(ctx, s.ID, store.AtForTest(i), 2)
				if err != nil {
					return err
				}
				slot, err = schedulestore.In(tx).GetSlot(ctx, s.ID, store.AtForTest(i))
				if waits != c.want || c.want != (slot.Status == "pending" && slot.Disposition == "" && slot.Revision == 2 && slot.ErrorMessage == "" && slot.CompletedAt.IsZero()) {
					t.Errorf("%q: %v, %+v", c.disposition, waits, slot)
				}
				return err
			})
		}
		latest := mustRead(t, db, func(ctx context.Context, tx *store.Tx) (schedulestore.Slot, error) {
			return schedulestore.In(tx).LatestSlot(ctx, s.ID, 2)
		})
		if !latest.ScheduledFor.Equal(store.AtForTest(2)) {
			t.Errorf("the latest of revision 2 is %s", latest.ScheduledFor)
		}
		err := db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := schedulestore.In(tx).LatestSlot(ctx, s.ID, 7)
			return err
		})
		if !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("of a revision without slots: %v", err)
		}
	})
}

// C-81: slots are listed page by page, the latest first, and those that are open
// or run are found among many.
func TestSlotsAreListed(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		s := graphSchedule(t, db, "s")
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			for i := range 30 {
				if _, err := schedulestore.In(tx).InsertSlots(ctx, schedulestore.NewSlot{ScheduleID: s.ID, ScheduledFor: store.AtForTest(i), Trigger: "backfill", BackfillID: "b"}); err != nil {
					return err
				}
			}
			slot, err := schedulestore.In(tx).GetSlot(ctx, s.ID, store.AtForTest(25))
			if err != nil {
				return err
			}
			_, err = schedulestore.In(tx).StartSlot(ctx, slot.ID, schedulestore.SlotStart{RunID: "r"})
			return err
		})
		var seen []time.Time
		var last schedulestore.Slot
		for {
			page := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]schedulestore.Slot, error) {
				return schedulestore.In(tx).ListSlots(ctx, schedulestore.SlotFilter{ScheduleID: s.ID, Open: true}, last.ScheduledFor, last.ID, 7)
			})
			for _, slot := range page {
				seen, last = append(seen, slot.ScheduledFor), slot
			}
			if len(page) == 0 {
				break
			}
		}
		if len(seen) != 30 || !seen[0].Equal(store.AtForTest(29)) || !seen[29].Equal(store.AtForTest(0)) {
			t.Errorf("listed %v", seen)
		}
		running := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]schedulestore.Slot, error) {
			return schedulestore.In(tx).RunningSlots(ctx, s.ID, 5)
		})
		between := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]schedulestore.Slot, error) {
			return schedulestore.In(tx).SlotsBetween(ctx, s.ID, store.AtForTest(3), store.AtForTest(6), 100)
		})
		counts := mustRead(t, db, func(ctx context.Context, tx *store.Tx) (map[string]int, error) {
			return schedulestore.In(tx).BackfillProgress(ctx, "b")
		})
		if len(running) != 1 || !running[0].ScheduledFor.Equal(store.AtForTest(25)) || len(between) != 3 || counts["pending"] != 29 || counts["running"] != 1 {
			t.Errorf("running %v, between %d, counts %v", running, len(between), counts)
		}
	})
}

// A question is answered once; the graph may ask anew.
func TestAQuestionIsAnsweredOnce(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		answer := func(text string) (open bool) {
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
				open, err = executionstore.In(tx).AnswerQuestion(ctx, "r", json.RawMessage(text), "ada")
				return err
			})
			return open
		}
		for i, question := range []string{`"may I?"`, `"and now?"`} {
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				return executionstore.In(tx).StoreQuestion(ctx, "r", "s", fmt.Sprint("q", i), json.RawMessage(question))
			})
			q := mustRead(t, db, func(ctx context.Context, tx *store.Tx) (executionstore.GraphQuestion, error) {
				return executionstore.In(tx).GetQuestion(ctx, "r")
			})
			if string(q.Question) != question || q.Answer != nil || q.ID != fmt.Sprint("q", i) {
				t.Errorf("it asks %+v", q)
			}
			if !answer(fmt.Sprint(i)) || answer(`"other"`) {
				t.Error("it was not answered once")
			}
			q = mustRead(t, db, func(ctx context.Context, tx *store.Tx) (executionstore.GraphQuestion, error) {
				return executionstore.In(tx).GetQuestion(ctx, "r")
			})
			if string(q.Answer) != fmt.Sprint(i) || q.AnsweredBy != "ada" || q.AnsweredAt.IsZero() {
				t.Errorf("the answer is %+v", q)
			}
		}
	})
}

// A backfill moves through its states and remembers who confirmed it; what it
// may cost is the average of what ran.
func TestBackfillRemembersWhoConfirmedIt(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		s := graphSchedule(t, db, "s")
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			if _, known, err := schedulestore.In(tx).AverageSlotCost(ctx, s.ID, 20); err != nil || known {
				return fmt.Errorf("a cost is known: %w", err)
			}
			for i, cost := range []int64{3, 4} {
				if _, err := schedulestore.In(tx).InsertSlots(ctx, schedulestore.NewSlot{ScheduleID: s.ID, ScheduledFor: store.AtForTest(i), Trigger: "schedule"}); err != nil {
					return err
				}
				slot, err := schedulestore.In(tx).GetSlot(ctx, s.ID, store.AtForTest(i))
				if err != nil {
					return err
				}
				if _, err := schedulestore.In(tx).CloseSlot(ctx, slot.ID, schedulestore.SlotEnd{Status: "success", Disposition: "fired", Cost: cost}); err != nil {
					return err
				}
			}
			cost, known, err := schedulestore.In(tx).AverageSlotCost(ctx, s.ID, 20)
			if cost != 4 || !known {
				t.Errorf("the average is %d (%v), want 3.5 rounded up", cost, known)
			}
			return err
		})
		var b schedulestore.Backfill
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
			b, err = schedulestore.In(tx).InsertBackfill(ctx, schedulestore.Backfill{ScheduleID: s.ID, From: store.AtForTest(0), To: store.AtForTest(9), Plan: json.RawMessage(`{}`), Hash: "h", State: "planned", PerMinute: 10, Total: 9, CreatedBy: "ada"})
			if err != nil {
				return err
			}
			for _, move := range [][2]string{{"running", "eve"}, {"paused", ""}, {"running", ""}} {
				if b, err = schedulestore.In(tx).MoveBackfill(ctx, b.ID, move[0], move[1]); err != nil {
					return err
				}
			}
			if err := schedulestore.In(tx).SetBackfillBegun(ctx, b.ID, 3); err != nil {
				return err
			}
			b, err = schedulestore.In(tx).HoldBackfill(ctx, b.ID)
			return err
		})
		if b.State != "running" || b.ConfirmedBy != "eve" || b.ConfirmedAt.IsZero() || b.Begun != 3 || b.Estimate != nil || !b.To.Equal(store.AtForTest(9)) {
			t.Errorf("it is %+v", b)
		}
		err := db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := schedulestore.In(tx).GetBackfill(ctx, "none")
			return err
		})
		if !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("of no backfill: %v", err)
		}
	})
}
