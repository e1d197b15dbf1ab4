package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/bulk"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
	"github.com/pawlrun/pawl/internal/terms"
)

// What is expected of a schedule is noted with its lane, changes without closing the
// slot that waits, and goes when the definition says it no longer.
func TestWhatIsExpectedOfAScheduleIsNoted(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		in := ask("s", "")
		in.Expect = &client.Expect{FreshWithin: "2h", DoneBy: "07:00"}
		sch := k.create(in)
		expect := func() string { return strings.Join(k.column(`select expect from lanes where lane = $1`, sch.ID), " ") }
		if expect() != `{"freshWithin":"2h","doneBy":"07:00"}` {
			t.Errorf("%s, %s", expect(), sch.Rules)
		}
		apply := func(want string) {
			t.Helper()
			k.write(func(ctx context.Context, tx *store.Tx) error {
				what, _, now, err := k.s.Apply(ctx, tx, k.owner, in, "t")
				if what != want || now.Revision != sch.Revision {
					t.Errorf("it was %s, revision %d", what, now.Revision)
				}
				return err
			})
		}
		apply(Unchanged)
		in.Expect = &client.Expect{FreshWithin: "3h"}
		apply(Updated)
		if expect() != `{"freshWithin":"3h"}` {
			t.Error(expect())
		}
		k.wantStory(sch, "00:01 pending")
		in.Expect = nil
		apply(Updated)
		if expect() != "" || k.schedule(sch.ID).Rules != nil {
			t.Errorf("%q, %s", expect(), k.schedule(sch.ID).Rules)
		}
		k.update(sch, client.SchedulePatch{Expect: &client.Expect{FreshWithin: "1h"}})
		k.update(sch, client.SchedulePatch{Labels: &map[string]string{"a": "b"}})
		if expect() != `{"freshWithin":"1h"}` {
			t.Error(expect())
		}
		k.update(sch, client.SchedulePatch{Expect: &client.Expect{}})
		if expect() != "" {
			t.Error(expect())
		}
		e := k.try(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.Update(ctx, tx, k.owner, sch.ID, client.SchedulePatch{Expect: &client.Expect{Rows: "-5"}}, "t")
			return err
		})
		if e == nil || len(e.Fields) != 1 || e.Fields[0].Pointer != "/expect/rows" || e.Fields[0].Message != `"-5" is not a number of rows; Write rows: usual, or the least number of rows, such as rows: 100.` {
			t.Errorf("%+v", e)
		}
	})
}

func (k *kit) subject(id string) (l runstore.Lane, s lane.Subject) {
	k.t.Helper()
	k.read(func(ctx context.Context, tx *store.Tx) (err error) {
		if l, err = runstore.In(tx).GetLane(ctx, pawl.KindSchedule, id); err != nil {
			return err
		}
		s, err = k.s.Subject(ctx, tx, l)
		return err
	})
	return l, s
}

// A schedule is judged by its slots: those that succeeded, those of a day, and those
// that began late.
func TestAScheduleIsJudgedByItsSlots(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		in := ask("s", "")
		in.Missed, in.Timezone = &client.Missed{Policy: "all"}, "Europe/Berlin"
		sch := k.create(in)
		began := time.Now()
		l, s := k.subject(sch.ID)
		if !s.Success.IsZero() || s.Rests || s.Zone.String() != "Europe/Berlin" || s.Ref != refOf(sch.ID, "s") || s.Ended(time.Now()) {
			t.Errorf("%+v", s)
		}
		k.pass(3*time.Minute + time.Second)
		k.restart(5*time.Minute - time.Second) // 3 slots are more than a minute late
		k.pass(10 * time.Second)
		_, s = k.subject(sch.ID)
		if time.Since(s.Success) > 11*time.Second {
			t.Errorf("%+v", s)
		}
		k.read(func(ctx context.Context, tx *store.Tx) error {
			starts, late, err := k.s.CountStarts(ctx, tx, s, l, began, 100)
			if err != nil || starts != 8 || late != 3 {
				t.Errorf("%d starts, %d late, %v: %v", starts, late, err, k.story(sch))
			}
			for from, want := range map[time.Time]bool{began: true, began.Add(-time.Hour): false, began.Add(time.Hour): false} {
				if ok, err := k.s.StoodWell(ctx, tx, s, l, from, from.Add(time.Hour)); ok != want || err != nil {
					t.Errorf("%s: %v, %v", from, ok, err)
				}
			}
			return nil
		})
		off := false
		k.update(sch, client.SchedulePatch{Enabled: &off})
		if _, s = k.subject(sch.ID); !s.Rests {
			t.Errorf("%+v", s)
		}
	})
}

// A schedule is judged by the rows that its slots tell of, whether they end alone or
// with others.
func TestSlotsTellOfRows(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		output := `{"rows":120,"poem":"leaf"}`
		k.graph.answer = func(string, int) contract.RunAnswerV1 {
			return contract.RunAnswerV1{OK: true, Output: json.RawMessage(output)}
		}
		sch := k.create(ask("s", ""))
		l, _ := k.subject(sch.ID)
		told := func(want ...lane.Fetch) {
			t.Helper()
			k.read(func(ctx context.Context, tx *store.Tx) error {
				list, err := k.s.Fetches(ctx, tx, l, "", tx.Now.Add(time.Minute), 10)
				for i := range list {
					if list[i].EndedAt.IsZero() {
						t.Errorf("%+v", list[i])
					}
					list[i].EndedAt = time.Time{}
				}
				if !slices.Equal(list, want) {
					t.Errorf("%+v, want %+v: %v", list, want, k.story(sch))
				}
				return err
			})
		}
		k.pass(time.Minute + time.Second)
		told(lane.Fetch{Rows: 120})
		k.graph.set(func() { output = `{"poem":"leaf"}` })
		k.pass(time.Minute)
		told(lane.Fetch{Untold: true}, lane.Fetch{Rows: 120})
		k.graph.set(func() { output = `{"rows":7}` })
		k.pass(time.Minute)
		told(lane.Fetch{Rows: 7}, lane.Fetch{Untold: true}, lane.Fetch{Rows: 120})
	})
}

// The rows are those that an execution tells of in what it returns; nothing else is a
// number of rows.
func TestWhatTellsOfRows(t *testing.T) {
	plain := func(o client.PlainOutput) string {
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	const graph, command = "http:poet", work.Command
	for _, c := range []struct {
		graph, output string
		want          int64 // -1: none
	}{
		{graph, `{"rows":3}`, 3},
		{graph, `{"rows":0}`, 0},
		{graph, `{"rows":-1}`, -1},
		{graph, `{"rows":"3"}`, -1},
		{graph, `{"rows":1.5}`, -1},
		{graph, `{"rows":1e99}`, -1},
		{graph, `{"rows":null}`, -1},
		{graph, `{"other":{"rows":3}}`, -1},
		{graph, `["rows"]`, -1},
		{graph, ``, -1},
		{command, plain(client.PlainOutput{Stdout: "copying\n{\"rows\": 12}\n"}), 12},
		{command, plain(client.PlainOutput{Stdout: "{\"rows\": 12}\ndone\n"}), -1},
		{command, plain(client.PlainOutput{Stderr: `{"rows":12}`}), -1},
		{command, plain(client.PlainOutput{Status: 200, Body: " {\"rows\":7}\n"}), 7},
		{command, plain(client.PlainOutput{JobID: "1", Result: json.RawMessage(`{"rows":9}`)}), 9},
		{command, `{"rows":3}`, -1},
	} {
		got := rowsOf(schedulestore.Schedule{GraphID: c.graph}, contract.RunAnswerV1{OK: true, Output: json.RawMessage(c.output)})
		if n := int64(-1); got == nil && c.want != n || got != nil && *got != c.want {
			t.Errorf("%s of %s: %v, want %d", c.output, c.graph, got, c.want)
		}
	}
	if n := rowsOf(schedulestore.Schedule{GraphID: graph}, contract.RunAnswerV1{Output: json.RawMessage(`{"rows":3}`)}); n != nil {
		t.Errorf("what failed brought %d", *n)
	}
}

// Judging a schedule reads no more because it has run often.
func TestJudgingAScheduleDoesNotReadItsPast(t *testing.T) {
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
			k.pastOf(pawl.PolicyQueue)
			if db.Name() == "postgres" {
				k.change(`analyze`)
			}
			id := k.column(`select id from schedules`)[0]
			l, s := k.subject(id)
			h.During(func() {
				k.subject(id)
				k.read(func(ctx context.Context, tx *store.Tx) error {
					_, _, err := k.s.CountStarts(ctx, tx, s, l, time.Now().Add(-terms.StartsWithin), terms.StartsLooked)
					_, wrong := k.s.StoodWell(ctx, tx, s, l, time.Now().Add(time.Hour), time.Now().Add(25*time.Hour))
					_, bad := k.s.Fetches(ctx, tx, l, "", time.Now().Add(time.Minute), terms.UsualOf+1)
					return errors.Join(err, wrong, bad)
				})
			})
			faults, measured, err := h.Dear(t.Context(), url, 20*bulk.MostOfAStep(db.Name()))
			if err != nil || measured < 5 {
				t.Fatalf("%d statements were measured: %v", measured, err)
			}
			for _, fault := range faults {
				t.Error(fault)
			}
		})
	})
}

// What is not met is what an idle schedule needs attention for, whoever asks.
func TestAScheduleShowsWhatIsNotMet(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		in := ask("s", "")
		in.Expect = &client.Expect{FreshWithin: "2h"}
		sch := k.create(in)
		k.write(func(ctx context.Context, tx *store.Tx) error {
			row, err := runstore.In(tx).GetLane(ctx, pawl.KindSchedule, sch.ID)
			if err != nil {
				return err
			}
			return runstore.In(tx).SetExpected(ctx, lane.Restate(row, terms.Standing{Of: row.Expect, Verdicts: []terms.Verdict{{Name: terms.FreshWithin, Sentence: "It is stale."}}}))
		})
		k.wantState(sch, run.NeedsAttention, "It is stale.")
		k.checkRows()
		k.pass(2*time.Minute + time.Second) // slots that end well do not change it, and neither does their kind
		k.wantState(sch, run.NeedsAttention, "It is stale.")
		d, err := k.s.Describe(t.Context(), k.owner, sch.ID)
		if err != nil || d.Issue != run.IssueExpectation || d.Do != "pawl run schedule s" || len(d.Expectations) != 1 {
			t.Errorf("%+v, %v", d.Lane, err)
		}
		off := false
		k.update(sch, client.SchedulePatch{Enabled: &off})
		k.wantState(sch, run.Stopped, "It is paused")
		k.checkRows()
	})
}
