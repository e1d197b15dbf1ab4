package prune

import (
	"testing"

	"github.com/pawlrun/pawl/internal/retention"
)

func (k *kit) lane(kind, lane, id, keep string) {
	k.exec(`insert into lanes (kind, lane, id, name, owner, state, cause, issue, text, keep) values ($1, $2, $3, $2, '', 'Idle', '', '', '', $4)`, kind, lane, id, keep)
}

// What a definition says holds for its own lane alone, for longer and for shorter,
// and what is told beforehand is what is done.
func TestALaneKeepsWhatItsDefinitionSays(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		const id = "0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e"
		k.workflow("short", `{}`)
		k.exec(`update lanes set keep = 'runs=5d,reads=2d,logs=4d' where lane = 'short'`)
		k.lane("source", "long", "id-long", "runs=forever,logs=200d,rejects=5d")
		k.lane("source", "plain", "id-plain", "")
		k.lane("schedule", id, id, "runs=5d,logs=5d,slots=10d")
		for _, days := range []float64{0, 3, 4.5, 6, 100} {
			at := map[float64]string{0: "0", 3: "3", 4.5: "4", 6: "6", 100: "100"}[days]
			k.run(row{id: "w" + at, days: days})
			k.run(row{id: "short" + at, lane: "short", days: days})
			k.run(row{id: "long" + at, kind: "source", lane: "long", days: days, prepared: nothing})
			k.run(row{id: "plain" + at, kind: "source", lane: "plain", days: days, prepared: nothing})
			k.run(row{id: "beside" + at, kind: "schedule", lane: id + ":" + at, days: days, prepared: nothing}) // slots beside each other
			k.exec(`insert into source_runs (run_id, source_id, version, definition, rows_new, started_at, updated_at) values ($1, 's', 'v', '{}', 1, 0, 0), ($2, 's', 'v', '{}', 1, 0, 0)`, "long"+at, "plain"+at)
			for _, lane := range []string{"long", "plain"} {
				k.exec(`insert into _rejects (id, source_name, run_id, page, row_number, reason, raw, created_at) values ($1, $2, $3, 1, 1, '', '', $4)`, k.number(days), lane, lane+at, ago(days))
			}
		}
		dry, err := k.s.Prune(t.Context(), Options{Dry: true, Anew: true})
		if err != nil {
			t.Fatal(err)
		}
		done := k.prune()
		k.left("id", "runs where kind = 'workflow'", "w0", "w3", "w4", "w6", "short0", "short3", "short4")
		k.left("run_id", "run_reads where run_id like 'short%'", "short0")
		k.left("run_id", "run_logs where run_id like 'short%'", "short0", "short3")
		k.left("run_id", "run_reads where run_id like 'w%'", "w0", "w3", "w4", "w6")
		k.left("id", "runs where kind = 'source'", "long0", "long3", "long4", "long6", "long100", "plain0", "plain3", "plain4", "plain6")
		k.left("run_id", "run_logs where run_id like 'long%'", "long0", "long3", "long4", "long6", "long100")
		k.left("run_id", "_rejects", "long0", "long3", "long4", "plain0", "plain3", "plain4", "plain6")
		k.left("id", "runs where kind = 'schedule'", "beside0", "beside3", "beside4")
		if dry.Rows() != done.Rows() || len(dry.Removed) != len(done.Removed) {
			t.Errorf("told beforehand: %+v\ndone: %+v", dry.Removed, done.Removed)
		}
		if again := k.prune(); again.Rows() != 0 {
			t.Errorf("the second time %+v", again)
		}
	})
}

// Answers are kept by content, and go when their own lane keeps them no longer.
func TestAnswersGoByTheAgeOfTheirLane(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for name, keep := range map[string]string{"short": "reads=1d", "long": "reads=forever"} {
			k.workflow(name, `{}`)
			k.exec(`update lanes set keep = $1 where lane = $2`, keep, name)
		}
		for _, name := range []string{"w", "short", "long"} {
			for at, days := range map[string]float64{"0": 0, "2": 2, "9": 9} {
				k.exec(`insert into read_contents (id, workflow_id, at, content) values ($1, $2, $3, 'x')`, name+at, "id-"+name, ago(days))
			}
		}
		k.prune()
		k.left("id", "read_contents", "w0", "w2", "short0", "long0", "long2", "long9")
		k.keeps("reads=forever")
		k.prune()
		k.left("id", "read_contents", "w0", "w2", "short0", "long0", "long2", "long9")
	})
}

// What nobody understands removes nothing, and walks of lanes that are gone are
// forgotten.
func TestWhatALaneKeepsIsReadOrLeftAlone(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.lane("source", "odd", "id-odd", "runs=5d,futures=1d")
		k.lane("source", "gone", "id-gone", "runs=5d")
		for _, lane := range []string{"odd", "gone"} {
			for _, r := range []row{{id: lane + "-new", days: 0}, {id: lane + "-old", days: 500}} {
				r.kind, r.lane, r.prepared = "source", lane, nothing
				k.run(r)
				k.exec(`insert into source_runs (run_id, source_id, version, definition, rows_new, started_at, updated_at) values ($1, 's', 'v', '{}', 1, 0, 0)`, r.id)
			}
		}
		k.s.size["runs of source gone"] = 1 // a step that is not the last notes how far it came
		k.prune()
		k.left("id", "runs", "odd-new", "odd-old", "gone-new")
		floors := func() int { return k.count(`retention_floors where name like '% gone'`) }
		if floors() == 0 {
			t.Error("no walk of the lane was noted")
		}
		k.exec(`delete from lanes where lane = 'gone'`)
		if _, err := k.s.Prune(t.Context(), Options{}); err != nil || floors() != 0 {
			t.Errorf("%v, %d floors of a lane that is gone", err, floors())
		}
		if ages := retention.Untouched(); len(ages) != 8 || ages[retention.Runs] != retention.Forever {
			t.Errorf("%v", ages)
		}
	})
}
