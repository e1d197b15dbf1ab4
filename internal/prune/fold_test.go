package prune

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
)

const (
	none   = `{"reservations":[],"data":null}`
	minute = 1.0 / 24 / 60 // of a day
)

// idles makes runs that found nothing to do, one a minute, the first of them so many
// minutes ago.
func (k *kit) idles(name string, minutes, n int, like row) {
	k.t.Helper()
	for i := range n {
		r := like
		r.id, r.days = fmt.Sprintf("%s%03d", name, i), (float64(minutes-i)-0.5)*minute
		if r.kind != "source" {
			r.prepared = none
		}
		k.run(r)
		if r.kind == "source" {
			k.exec(`insert into source_runs (run_id, source_id, version, definition, rows_new, started_at, updated_at) values ($1, 's', 'v', '{}', 0, 0, 0)`, r.id)
		}
	}
}

// folds are the runs that stand for others, with how many, and how many minutes are
// between the first and the last.
func (k *kit) folds() []string {
	return k.texts(`select id || ' ' || run_count || ' ' || ((through_at - created_at + 500) / 60000) from runs where run_count > 1`)
}

func (k *kit) wantFolds(want ...string) {
	k.t.Helper()
	slices.Sort(want)
	if got := k.folds(); !slices.Equal(got, want) {
		k.t.Errorf("folded are\n%q, want\n%q", got, want)
	}
}

// Runs that found nothing to do are one row an hour later, and the next ones are
// added to it.
func TestIdleRunsAreFolded(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.idles("a", 200, 100, row{})
		k.idles("b", 200, 100, row{handler: "other"}) // does not interrupt it
		k.idles("s", 200, 100, row{kind: "source", lane: "s"})
		k.run(row{id: "z", days: 0})
		k.run(row{id: "zs", kind: "source", lane: "s", days: 0})
		done := k.prune()
		k.wantFolds("a000 100 99", "b000 100 99", "s000 100 99")
		k.left("id", "runs", "a000", "b000", "s000", "z", "zs")
		if done.Rows() != 3*99 {
			t.Errorf("%+v", done)
		}
		k.left("run_id", "run_logs", "a000", "b000", "s000", "z", "zs")
		k.left("run_id", "source_runs", "s000")

		k.idles("c", 100, 60, row{}) // the last twenty are not an hour old
		if _, err := k.s.Prune(t.Context(), Options{}); err != nil {
			t.Fatal(err)
		}
		k.wantFolds("a000 140 139", "b000 100 99", "s000 100 99")
		if n := k.count(`runs where id like 'c%'`); n != 20 {
			t.Errorf("%d younger runs are left", n)
		}
	})
}

// What a row stands for is one stretch: it ends where the handler did something, where
// its script or what causes it is another, where nothing ran for long, and after a day.
func TestAStretchEnds(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.keeps("idle-runs=30d")
		k.run(row{id: "z", days: 0})
		k.idles("a", 5000, 10, row{})
		k.run(row{id: "did", days: 4990 * minute})
		k.idles("b", 4989, 10, row{})
		k.run(row{id: "failed", status: "failed:logic", prepared: none, days: 4979 * minute})
		k.run(row{id: "retried", retryOf: "failed", prepared: none, days: 4978 * minute})
		k.idles("c", 4977, 10, row{})
		k.idles("d", 4900, 10, row{}) // a gap of an hour is none
		k.idles("e", 4700, 10, row{})
		k.idles("f", 4690, 10, row{})
		k.exec(`update runs set script_version = 'v2' where id like 'f%'`)
		k.idles("g", 4680, 10, row{})
		k.exec(`update runs set script_version = 'v2', trigger = 'manual' where id like 'g%'`)
		for i := range 31 { // an hourly one; the last is where another day begins
			k.run(row{id: fmt.Sprintf("h%02d", i), handler: "hourly", prepared: none, days: float64(4000-60*i) * minute})
		}
		k.prune()
		k.wantFolds("a000 10 9", "b000 10 9", "c000 20 86", "e000 10 9", "f000 10 9", "g000 10 9", "h00 24 1380", "h24 7 360")
	})
}

// Nothing is folded that somebody may need as it was.
func TestWhatIsNeededIsNotFolded(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.workflow("watched", `{}`)
		k.exec(`update lanes set expect = '{"freshWithin":"2h"}' where lane = 'watched'`)
		k.workflow("whole", `{}`)
		k.exec(`update lanes set keep = 'idle-runs=forever' where lane = 'whole'`)
		k.workflow("strange", `{}`)
		k.exec(`update lanes set keep = 'something=new' where lane = 'strange'`)
		k.idles("e", 200, 9, row{lane: "watched"})
		k.idles("f", 200, 9, row{lane: "whole"})
		k.idles("g", 200, 9, row{lane: "strange"})
		k.idles("h", 200, 9, row{lane: "newest"})        // the last one of which is that of its lane
		k.idles("l", 200, 9, row{handler: "look"})       // the last three of which a proposal is tried with
		k.idles("w", 200, 3, row{handler: "warns"})      // of which one is told to people
		k.idles("m", 200, 3, row{handler: "calls"})      // of which one called
		k.idles("p", 200, 3, row{handler: "publishes"})  // of which one published
		k.idles("q", 200, 3, row{handler: "is asked"})   // of which one waits for somebody
		k.idles("r", 200, 3, row{handler: "is pending"}) // of which one has not ended
		k.run(row{id: "z", days: 0})
		k.exec(`update run_logs set level = 'warn' where run_id = 'w001'`)
		k.exec(`insert into mutations (id, workflow_id, run_id, n, tool, method, arguments, idempotency_key, state, can_reconcile, resolved_at, created_at, updated_at)
			values ('m', 'id-w', 'm001', 1, 't', 'm', '{}', 'k', 'applied', 0, $1, $1, $1)`, ago(0))
		k.event("p", "consumed", "p001", "x", 199*minute, 199*minute)
		k.exec(`insert into approvals (id, workflow_id, run_id, tool, method, arguments, hash, state, phase_at, created_at, expires_at) values ('a1', 'id-w', 'q001', 't', 'm', '{}', 'h', 'pending', 0, 0, 0)`)
		k.exec(`update runs set status = 'paused:transient' where id = 'r001'`)
		before := k.count("runs")
		k.prune()
		k.wantFolds("h000 8 7", "l000 6 5")
		if n := k.count("runs"); n != before-7-5 {
			t.Errorf("%d runs of %d are left", n, before)
		}
	})
}

// What others were folded into goes when the last of them is as old as idle runs may be.
func TestFoldedRunsGoWithTheLastOfThem(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.workflow("long", `{}`)
		k.exec(`update lanes set keep = 'idle-runs=10d' where lane = 'long'`)
		k.run(row{id: "z", days: 0})
		k.run(row{id: "zl", lane: "long", days: 0})
		fold := func(id, lane string, from, through float64) {
			k.run(row{id: id, lane: lane, prepared: none, days: from})
			k.exec(`update runs set folded_at = 1, through_at = $2, run_count = 7 where id = $1`, id, ago(through))
		}
		fold("old", "w", 2.1, 1.2)
		fold("young", "w", 1.8, 0.9)
		fold("kept", "long", 9, 8.5)
		fold("gone", "long", 11.5, 10.9)
		k.prune()
		k.left("id", "runs", "z", "zl", "young", "kept")
	})
}

// A process that dies on either side of a step has counted nothing twice and lost
// nothing.
func TestFoldingThatIsKilledCountsEveryRunOnce(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.idles("a", 400, 150, row{})
		k.idles("b", 400, 150, row{handler: "other"})
		k.run(row{id: "z", days: 0})
		kills := 0
		for range 200 {
			left := 1 + kills%3
			k.s = New(Config{DB: k.db, fault: func(string) error {
				if left--; left == 0 {
					return errKilled
				}
				return nil
			}})
			k.s.size["idle-runs (fold) of workflow"] = fewRows
			_, err := k.s.Prune(t.Context(), Options{})
			if n := k.texts(`select cast(cast(sum(coalesce(run_count, 1)) as bigint) as text) from runs`); n[0] != "301" {
				t.Fatalf("after %d kills there are %s runs", kills, n[0])
			}
			if err == nil {
				break
			}
			if !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			kills++
		}
		if kills < 10 {
			t.Errorf("it was killed %d times only", kills)
		}
		k.wantFolds("a000 150 149", "b000 150 149")
	})
}

// Two passes at a time count every run once, whoever comes first.
func TestTwoWhoFoldCountEveryRunOnce(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.idles("a", 400, 300, row{})
		k.run(row{id: "z", days: 0})
		once := false
		k.s = New(Config{DB: k.db, fault: func(at string) error {
			if at != "before idle-runs" || once {
				return nil
			}
			once = true // another one does all of it between what this one reads and writes
			_, err := New(Config{DB: k.db}).Prune(t.Context(), Options{})
			return err
		}})
		done, err := k.s.Prune(t.Context(), Options{})
		if err != nil || !done.More {
			t.Fatalf("%+v, %v", done, err)
		}
		k.wantFolds("a000 300 299")

		k.idles("b", 100, 30, row{})
		var both sync.WaitGroup
		for range 2 {
			s := New(Config{DB: k.db})
			s.size["idle-runs (fold) of workflow"] = fewRows
			both.Go(func() {
				for more := true; more; {
					done, err := s.Prune(context.WithoutCancel(t.Context()), Options{})
					if err != nil {
						t.Error(err)
						return
					}
					more = done.More
				}
			})
		}
		both.Wait()
		k.wantFolds("a000 330 329")
	})
}

// A dry pass says how many runs would be folded, also over several steps.
func TestADryPassTellsWhatIsFolded(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.idles("a", 2000, 1000, row{}) // of which some are older than a day
		k.run(row{id: "z", days: 0})
		k.s.size["idle-runs (fold) of workflow"] = fewRows
		dry, err := k.s.Prune(t.Context(), Options{Dry: true})
		if err != nil || len(k.folds()) != 0 {
			t.Fatal(k.folds(), err)
		}
		if done := k.prune(); dry.Rows() != done.Rows() || done.Rows() < 900 {
			t.Errorf("%d rows were told, %d done", dry.Rows(), done.Rows())
		}
		if n := k.count(`runs`) - k.count(`runs where run_count > 1`); n != 1 {
			t.Errorf("%d other runs are left", n)
		}
	})
}
