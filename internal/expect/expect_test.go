package expect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/bulk"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/terms"
)

// Simulated time begins on Saturday, 2000-01-01.

// A breach is told once, stands for as long as it lasts, and ends by itself; the next
// one is told again.
func TestABreachIsToldOnce(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.expects(`{"freshWithin":"2h"}`)
		k.stands(run.Idle)
		pass(2 * time.Hour)
		k.stands(run.Idle)
		pass(time.Second)
		k.stands(run.NeedsAttention, terms.FreshWithin)
		const never = "needs_attention: It has not succeeded since 2000-01-01T00:00:00.000Z; a success is expected every 2h."
		k.told(never)
		v := terms.ParseStanding(k.row().Expected).Find(terms.FreshWithin)
		if !v.Since.Equal(time.Date(2000, 1, 1, 2, 0, 0, 0, time.UTC)) {
			t.Errorf("since %s", v.Since)
		}
		for range 3 {
			pass(time.Minute)
			k.process(nil) // another node, or this one after a restart
			k.stands(run.NeedsAttention, terms.FreshWithin)
		}
		k.told()
		k.subject.Success = time.Now()
		k.stands(run.Idle)
		k.told("recovered: It does again what is expected of it.")
		pass(3 * time.Hour)
		k.stands(run.NeedsAttention, terms.FreshWithin)
		k.told("needs_attention: It last succeeded at 2000-01-01T02:03:01.000Z; a success is expected every 2h.")
	})
}

// a crash on either side of the commit neither loses nor repeats the notice.
func TestACrashNeitherLosesNorRepeatsANotice(t *testing.T) {
	for _, at := range []string{"before", "after"} {
		inTime(t, func(t *testing.T, k *kit) {
			k.expects(`{"freshWithin":"2h"}`)
			k.look()
			pass(3 * time.Hour)
			k.process(func(place string) error {
				if place == at {
					return errCrash
				}
				return nil
			})
			if err := k.s.look(t.Context()); !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			k.process(nil)
			k.stands(run.NeedsAttention, terms.FreshWithin)
			if len(k.notices) != 1 {
				t.Errorf("%s: %d notices", at, len(k.notices))
			}
			k.notices = nil
			k.subject.Success = time.Now()
			k.process(func(place string) error {
				if place == at {
					return errCrash
				}
				return nil
			})
			if err := k.s.look(t.Context()); !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			k.process(nil)
			k.stands(run.Idle)
			k.told("recovered: It does again what is expected of it.")
		})
	}
}

// Two that judge at once write and tell once.
func TestTwoNodesTellOnce(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.expects(`{"freshWithin":"2h"}`)
		k.look()
		pass(3 * time.Hour)
		seen := k.row() // by both, before either wrote
		for range 2 {
			if err := k.s.change(t.Context(), seen, true); err != nil {
				t.Fatal(err)
			}
		}
		if len(k.notices) != 1 {
			t.Errorf("%+v", k.notices)
		}
	})
}

// A paused lane expects nothing, says nothing, and begins anew when it is resumed.
func TestAPausedLaneExpectsNothing(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.expects(`{"freshWithin":"2h","doneBy":"07:00","rows":5,"onTime":100}`)
		k.fetches = []lane.Fetch{{EndedAt: time.Now(), Rows: 1}}
		k.starts, k.late = 2, 1
		k.look()
		pass(3 * 24 * time.Hour)
		k.stands(run.NeedsAttention, terms.FreshWithin, terms.DoneBy, terms.Rows, terms.OnTime)
		k.notices = nil
		k.subject.Rests = true
		k.write(func(ctx context.Context, tx *store.Tx) error { // as its kind does
			_, err := lane.Host{}.WithDefaults().Settle(ctx, tx, k.subject.Ref, mustLane(ctx, t, tx), lane.Rest{State: run.Stopped})
			return err
		})
		pass(time.Minute)
		k.stands(run.Stopped)
		pass(100 * time.Hour)
		k.stands(run.Stopped)
		k.told()
		for _, v := range terms.VerdictsOf(k.row().Expect, k.row().Expected) {
			if v.Sentence != "Nothing is expected while it does not run by itself." {
				t.Errorf("%+v", v)
			}
		}
		k.subject.Rests, k.late = false, 0
		k.write(func(ctx context.Context, tx *store.Tx) error {
			_, err := lane.Host{}.WithDefaults().Settle(ctx, tx, k.subject.Ref, mustLane(ctx, t, tx), lane.Rest{State: run.Idle})
			return err
		})
		k.stands(run.Idle)
		pass(2*time.Hour + time.Second)
		k.stands(run.NeedsAttention, terms.FreshWithin)
	})
}

func mustLane(ctx context.Context, t *testing.T, tx *store.Tx) runstore.Lane {
	l, err := runstore.In(tx).GetLane(ctx, pawl.KindSource, "prices")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// What its kind says of a lane is said before what is expected of it, and what is
// expected is still there when that is over.
func TestWhatTheKindSaysComesFirst(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		settle := func(r lane.Rest) {
			k.write(func(ctx context.Context, tx *store.Tx) error {
				_, err := lane.Host{}.WithDefaults().Settle(ctx, tx, k.subject.Ref, mustLane(ctx, t, tx), r)
				return err
			})
		}
		k.expects(`{"freshWithin":"2h"}`)
		k.look()
		failed := lane.RestOf(run.NeedsAttention, run.IssueFailed, "failed:1", "It failed.", "")
		settle(failed)
		pass(3 * time.Hour)
		k.stands(run.NeedsAttention, terms.FreshWithin)
		k.told("needs_attention: It has not succeeded since 2000-01-01T00:00:00.000Z; a success is expected every 2h.")
		if row := k.row(); row.Issue != string(run.IssueFailed) || !failed.SaidBy(row) {
			t.Errorf("%+v", row)
		}
		idle := lane.RestOf(run.Idle, run.IssueNone, "", "", "")
		settle(idle)
		k.said(run.NeedsAttention, terms.FreshWithin)
		if row := k.row(); row.Cause != "" || !idle.SaidBy(row) {
			t.Errorf("%+v", row)
		}
		settle(lane.RestOf(run.Running, run.IssueBackingOff, "", "", ""))
		k.stands(run.Running, terms.FreshWithin)
		settle(idle)
		k.subject.Success = time.Now()
		k.stands(run.Idle)
		// A node of an earlier release does not know of it.
		k.subject.Success = time.Time{}
		pass(5 * time.Hour)
		k.stands(run.NeedsAttention, terms.FreshWithin)
		row := k.row()
		row.State = string(run.Idle)
		k.write(func(ctx context.Context, tx *store.Tx) error { return runstore.In(tx).SetLane(ctx, row) })
		k.stands(run.NeedsAttention, terms.FreshWithin)
	})
}

// People see what the row says, and are told whatever it is.
func TestAnIdleLaneShowsWhatIsNotMet(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.expects(`{"freshWithin":"2h"}`)
		l := lane.Lane{State: run.Idle}
		l.Expecting(k.row())
		if len(l.Expectations) != 1 || !l.Expectations[0].Met || l.Expectations[0].Sentence != "It has not been judged yet." || l.State != run.Idle {
			t.Errorf("%+v", l)
		}
		k.look()
		pass(3 * time.Hour)
		k.look()
		l = lane.Lane{State: run.Idle}
		l.Expecting(k.row())
		if l.State != run.NeedsAttention || l.Issue != run.IssueExpectation || !strings.HasPrefix(l.Sentence, "It has not succeeded since") {
			t.Errorf("%+v", l)
		}
		for _, state := range []run.State{run.Running, run.Stopped} {
			l = lane.Lane{State: state}
			l.Expecting(k.row())
			if l.State != state || l.Issue != "" || l.Expectations[0].Met {
				t.Errorf("%+v", l)
			}
		}
	})
}

// A change of what is expected is judged at once; without it everything ends.
func TestAChangeIsJudgedAtOnce(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.subject.Success = time.Now()
		k.expects(`{"freshWithin":"2h"}`)
		k.look()
		pass(3 * time.Hour)
		k.stands(run.NeedsAttention, terms.FreshWithin)
		k.notices = nil
		k.expects(`{"freshWithin":"6h"}`)
		k.stands(run.Idle)
		k.told("recovered: It does again what is expected of it.")
		k.expects(`{"freshWithin":"1h"}`)
		k.stands(run.NeedsAttention, terms.FreshWithin) // what succeeded before counts
		k.notices = nil
		k.expects(``)
		k.stands(run.Idle)
		k.told()
		if row := k.row(); row.Expected != "" {
			t.Errorf("%q", row.Expected)
		}
		var left []runstore.Lane
		k.write(func(ctx context.Context, tx *store.Tx) (err error) {
			left, err = runstore.In(tx).ExpectingLanes(ctx, "", "", 10)
			return err
		})
		if len(left) != 0 {
			t.Errorf("%+v", left)
		}
	})
}

// A schedule that has ended expects nothing.
func TestWhatHasEndedExpectsNothing(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.expects(`{"freshWithin":"2h"}`)
		k.look()
		k.subject.Repeats[0].Schedule = k.subject.Repeats[0].Schedule.Before(time.Now().Add(time.Hour))
		pass(3 * time.Hour)
		k.stands(run.Idle)
		k.told()
	})
}

// A day without a success by the time of day is told; one on which nothing is due is
// not, and a success that is pruned before the deadline was one.
func TestADayIsDoneInTime(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.expects(`{"doneBy":"07:00"}`)
		for range 55 { // Saturday and Sunday
			k.stands(run.Idle)
			pass(time.Hour)
		}
		k.stands(run.NeedsAttention, terms.DoneBy) // Monday, 07:00
		k.told("needs_attention: No run that stands for 2000-01-03 has succeeded; it should have been done by 07:00 (UTC).")
		pass(time.Hour)
		k.days["2000-01-03"] = true // late, but done
		k.stands(run.Idle)
		k.told("recovered: It does again what is expected of it.")
		pass(20 * time.Hour) // Tuesday, 04:00
		k.days["2000-01-04"] = true
		k.stands(run.Idle)
		k.days["2000-01-04"] = false
		pass(4 * time.Hour)
		k.stands(run.Idle)
		pass(24 * time.Hour) // Wednesday, 08:00
		k.stands(run.NeedsAttention, terms.DoneBy)
		pass(24 * time.Hour)
		k.stands(run.NeedsAttention, terms.DoneBy)
		if v := terms.ParseStanding(k.row().Expected).Find(terms.DoneBy); !v.Since.Equal(time.Date(2000, 1, 5, 7, 0, 0, 0, time.UTC)) || !strings.Contains(v.Sentence, "2000-01-06") {
			t.Errorf("%+v", v)
		}
		if len(k.notices) != 1 {
			t.Errorf("%+v", k.notices)
		}
	})
}

// An empty answer is told, and stays so for as long as answers are: what is empty for
// long does not become usual.
func TestFarFewerRowsThanUsual(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		fetch := func(rows int64) {
			pass(time.Hour)
			k.fetches = append([]lane.Fetch{{EndedAt: time.Now(), Rows: rows}}, k.fetches...)
			k.look()
		}
		k.expects(`{"rows":"usual"}`)
		k.look()
		for range 6 {
			fetch(100)
		}
		k.said(run.Idle)
		fetch(0)
		k.said(run.NeedsAttention, terms.Rows)
		k.told("needs_attention: The fetch that ended at 2000-01-01T07:00:00.000Z brought 0 rows; usually it brings about 100.")
		for range 30 {
			fetch(0)
		}
		k.said(run.NeedsAttention, terms.Rows)
		k.told()
		k.fetches = nil // pruned: nothing says otherwise
		k.stands(run.NeedsAttention, terms.Rows)
		fetch(90)
		k.said(run.Idle)
		k.told("recovered: It does again what is expected of it.")
	})
}

// Each handler that brings rows is judged by what it usually brings itself, and the
// first that falls short is told.
func TestEachHandlerBringsItsRows(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.subject.Bring, k.brought = []string{"many", "few"}, map[string][]lane.Fetch{}
		ran := func(handler string, f lane.Fetch) {
			pass(time.Hour)
			f.EndedAt = time.Now()
			k.brought[handler] = append([]lane.Fetch{f}, k.brought[handler]...)
			k.look()
		}
		k.expects(`{"rows":"usual"}`)
		k.stands(run.Idle)
		for range 6 {
			ran("many", lane.Fetch{Rows: 100})
			ran("few", lane.Fetch{Rows: 3})
		}
		k.said(run.Idle)
		ran("few", lane.Fetch{})
		k.said(run.NeedsAttention, terms.Rows)
		k.told("needs_attention: The fetch of few that ended at 2000-01-01T13:00:00.000Z brought 0 rows; usually it brings about 3.")
		ran("many", lane.Fetch{Rows: 90})
		k.said(run.NeedsAttention, terms.Rows)
		ran("few", lane.Fetch{Rows: 2})
		k.said(run.Idle)
		k.told("recovered: It does again what is expected of it.")
	})
}

// What told of no rows is short of them, if it was asked to tell when it ended.
func TestWhatTellsOfNoRowsIsShort(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.fetches = []lane.Fetch{{EndedAt: time.Now(), Untold: true}}
		pass(time.Hour)
		k.expects(`{"rows":5}`)
		k.stands(run.Idle)
		pass(time.Hour)
		k.fetches = append([]lane.Fetch{{EndedAt: time.Now(), Untold: true}}, k.fetches...)
		k.stands(run.NeedsAttention, terms.Rows)
		k.told("needs_attention: The fetch that ended at 2000-01-01T02:00:00.000Z told of no number of rows; at least 5 are expected.")
		pass(time.Hour)
		k.fetches = append([]lane.Fetch{{EndedAt: time.Now(), Rows: 5}}, k.fetches...)
		k.stands(run.Idle)
	})
}

// Starts are counted once a minute, and late ones are told.
func TestLateStartsAreTold(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.expects(`{"onTime":99}`)
		k.starts, k.late = 100, 1
		k.stands(run.Idle)
		k.late = 2
		k.stands(run.Idle) // not before the minute is over
		pass(time.Minute)
		k.stands(run.NeedsAttention, terms.OnTime)
		k.told("needs_attention: 2 of its last 100 starts were more than a minute late; 99% are expected on time.")
		k.late = 0
		pass(time.Minute)
		k.stands(run.Idle)
		k.told("recovered: It does again what is expected of it.")
	})
}

// A second breach beside the first is told with both; what goes first ends quietly.
func TestTwoBreaches(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.expects(`{"freshWithin":"2h","onTime":100}`)
		k.look()
		k.starts, k.late = 1, 1
		pass(time.Minute)
		k.stands(run.NeedsAttention, terms.OnTime)
		pass(2 * time.Hour)
		k.stands(run.NeedsAttention, terms.FreshWithin, terms.OnTime)
		late := "1 of its last 1 starts were more than a minute late; 100% are expected on time."
		k.told("needs_attention: "+late, "needs_attention: It has not succeeded since 2000-01-01T00:00:00.000Z; a success is expected every 2h. "+late)
		k.subject.Success = time.Now()
		k.stands(run.NeedsAttention, terms.OnTime)
		k.told()
	})
}

// A look at few lanes with expectations costs nothing for the many without.
func TestALookReadsOnlyLanesWithExpectations(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		h := &bulk.Heard{}
		db, err := store.Open(t.Context(), url, store.Options{Trace: h.Note})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		write := func(sql string) {
			t.Helper()
			err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error { _, err := tx.Exec(ctx, sql); return err })
			if err != nil {
				t.Fatal(err)
			}
		}
		write(`insert into lanes (kind, lane, id, name, owner, state, cause, issue, text, expect) with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
			select 'source', 'l' || i, 'l' || i, 'l' || i, '', 'Idle', '', '', '', case when i % 5000 = 0 then '{"freshWithin":"2h"}' else '' end from n`)
		if db.Name() == "postgres" {
			write(`analyze`)
		}
		k := &kit{t: t, db: db}
		k.process(nil)
		k.failure = errors.New("only the page is looked at")
		h.During(k.look)
		faults, measured, err := h.Dear(t.Context(), url, bulk.MostOfAStep(db.Name()))
		if err != nil || measured != 1 {
			t.Fatalf("%d statements were measured: %v", measured, err)
		}
		for _, fault := range faults {
			t.Error(fault)
		}
	})
}

// One lane that cannot be judged keeps no other from it, many are judged in pages, and
// nothing is written while nothing changes.
func TestManyLanesAreJudgedInPages(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		k.write(func(ctx context.Context, tx *store.Tx) error {
			for i := range 2*batch + 10 {
				name := fmt.Sprintf("lane-%04d", i)
				if err := runstore.In(tx).InsertLane(ctx, runstore.Lane{Kind: pawl.KindSource, Lane: name, ID: name, Name: name, State: string(run.Idle)}); err != nil {
					return err
				}
				if err := runstore.In(tx).SetExpect(ctx, pawl.KindSource, name, `{"freshWithin":"2h"}`); err != nil {
					return err
				}
			}
			return runstore.In(tx).InsertLane(ctx, runstore.Lane{Kind: "timer", Lane: "egg", ID: "egg", Name: "egg", State: string(run.Idle)})
		})
		k.failure = errors.New("its definition cannot be read")
		k.look()
		k.failure = nil
		k.look()
		pass(3 * time.Hour)
		k.look()
		if len(k.notices) != 2*batch+10 {
			t.Errorf("%d notices", len(k.notices))
		}
		k.process(func(string) error { t.Error("something is written"); return nil })
		k.look()
	})
}
