package store

import (
	"context"
	"testing"
	"time"
)

// What became something else since it was picked is left alone.
func TestJobsThatChangedSinceTheyWerePickedAreLeft(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		epochs := own(t, db, "n")
		jobs := enqueue(t, db, JobSpec{Owner: "u", Task: "t", Key: "a"}, JobSpec{Owner: "u", Task: "t", Key: "b"}, JobSpec{Owner: "u", Task: "t", Key: "c"})
		for i := range jobs {
			f := Finished{Job: &jobs[i], Verdict: Fail, Error: "broke", StartedAt: time.Now(), EndedAt: time.Now()}
			if _, _, err := db.Finish(t.Context(), Finishing{Node: "n", Epochs: epochs, Jobs: []Finished{f}}); err != nil {
				t.Fatal(err)
			}
		}
		picked, _, more, err := db.PickJobs(t.Context(), JobPick{JobFilter: JobFilter{State: JobFailed}}, 0, 10)
		if err != nil || len(picked) != 3 || more || picked[0].LastError != "broke" {
			t.Fatalf("picked %+v, %v", picked, err)
		}
		enqueue(t, db, JobSpec{Owner: "u", Task: "other", Key: "a"})
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			if again, err := tx.RetryJobs(ctx, picked[:2]); err != nil || len(again) != 1 || again[0].Key != "b" {
				t.Errorf("retried %+v, %v", again, err)
			}
			return nil
		})
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			gone, err := tx.CancelJobs(ctx, picked)
			if err != nil || len(gone) != 1 || gone[0].Key != "c" {
				t.Errorf("cancelled %+v, %v", gone, err)
			}
			return nil
		})
		if n := count(t, db, `select count(*) from jobs where rev > 0 and state = 0`); n != 2 {
			t.Errorf("%d jobs are left", n)
		}
	})
}
