package store

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
)

// What PostgreSQL refuses is replaced, on both databases alike, whatever way it
// comes: no text keeps a statement from being carried out.
func TestEveryTextCanBeStored(t *testing.T) {
	const hostile, want = "Ung\xfcltig\x00\xed\xa0\x80!", "Ung\uFFFDltig\uFFFD\uFFFD!"
	both(t, func(t *testing.T, db *DB) {
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			_, err := tx.Exec(ctx, `create table texts (id bigint, s text)`)
			return err
		})
		text, kind := hostile, pawl.Kind(hostile)
		for i, arg := range []any{hostile, &text, kind} {
			put := func(ctx context.Context, tx *Tx) error {
				_, err := tx.Exec(ctx, `insert into texts (id, s) values ($1, $2)`, i, arg)
				return err
			}
			mustWrite(t, db, put)
			if err := db.WriteShared(t.Context(), "l", put); err != nil {
				t.Error(err)
			}
		}
		if text != hostile {
			t.Error("the caller's own text was changed")
		}
		if n := count(t, db, `select count(*) from texts where s = $1`, want); n != 6 {
			t.Errorf("%d of 6 texts are as they should be", n)
		}
		if n := count(t, db, `select count(*) from texts where s = $1`, hostile); n != 6 {
			t.Errorf("%d of 6 are found by the text that was written", n)
		}
	})
}

// A hostile text reaches every statement of the queue's hot path.
func TestHostileJobsAreEnqueuedAndFinished(t *testing.T) {
	const hostile = "\xff\x00 \\u0000 \"\x00"
	both(t, func(t *testing.T, db *DB) {
		epochs := own(t, db, "n1")
		spec := JobSpec{Task: "t" + hostile, Lane: hostile, CreatedBy: hostile, Payload: json.RawMessage(`"` + "\xff" + `"`)}
		keyed := spec
		keyed.Key = hostile
		jobs := enqueue(t, db, spec, spec, spec, spec, spec, keyed, spec, spec)
		if alone, err := db.EnqueueOwnTx(t.Context(), []JobSpec{spec, spec}); err != nil {
			t.Fatal(err)
		} else {
			jobs = append(jobs, alone...)
		}
		if due, err := db.FetchLanes(t.Context(), []Lane{{Name: hostile}}, 99, time.Now().Add(time.Minute)); err != nil || len(due) != len(jobs) {
			t.Errorf("%d jobs of the lane, %v", len(due), err)
		}
		var ends []Finished
		for i := range jobs {
			ends = append(ends, Finished{Job: &jobs[i], Verdict: Verdict(i % 5), Error: hostile, RunAt: at(9), StartedAt: at(1), EndedAt: at(2), Record: true})
		}
		if _, lost, err := db.Finish(t.Context(), Finishing{Node: "n1", Epochs: epochs, Jobs: ends}); err != nil || len(lost) != 0 {
			t.Fatalf("finish: %v, lost %v", err, lost)
		}
		const clean = "\uFFFD\uFFFD \\u0000 \"\uFFFD"
		if n := count(t, db, `select count(*) from job_history where error = $1 and task = $2`, clean, "t"+clean); n != 6 {
			t.Errorf("%d lines of history are right, want 6", n)
		}
		if n := count(t, db, `select count(*) from jobs where last_error = $1`, clean); n != 6 {
			t.Errorf("%d rows are right, want 6", n)
		}
	})
}
