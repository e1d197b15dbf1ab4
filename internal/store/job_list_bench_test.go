package store

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// benchJobs is how many jobs wait, and how many outcomes are remembered.
const benchJobs = 200_000

// fill adds waiting jobs of one task in 1,000 lanes, below them one of a rare
// task, and as many outcomes.
func fill(b *testing.B, db *DB, n int) {
	b.Helper()
	payload := json.RawMessage(`{"url":"https://example.com/hook","method":"POST","body":{"order":12345,"customer":"somebody","note":"some text of usual length"}}`)
	later := time.Now().Add(24 * time.Hour)
	for done := 0; done < n; done += 1000 {
		specs := make([]JobSpec, 1000)
		for i := range specs {
			specs[i] = JobSpec{Task: "common", Lane: fmt.Sprintf("lane-%d", i), Payload: payload, RunAt: later}
		}
		if done == 0 { // the rare ones are the oldest, which is the worst for a list from the newest
			specs[0] = JobSpec{Task: "rare", Lane: "rare-lane", Payload: payload}
		}
		if err := db.Write(b.Context(), func(ctx context.Context, tx *Tx) error {
			jobs, err := tx.Enqueue(ctx, specs)
			if err != nil {
				return err
			}
			for i := range jobs {
				j := jobs[i]
				j.ID -= 1 << 40 // older than all that wait
				f := Finished{Job: &j, StartedAt: tx.Now, EndedAt: tx.Now, Verdict: Done}
				if done == 0 && i == 0 {
					f.Verdict = Cancel
				}
				if err := tx.recordJob(ctx, f, "node"); err != nil {
					return err
				}
			}
			return nil
		}, Lazy); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkJobList(b *testing.B) {
	for _, url := range []string{sqliteURL(b), pgtest.URL(b)} {
		db := open(b, url)
		fill(b, db, benchJobs)
		if db.Name() == "postgres" {
			mustWrite(b, db, func(ctx context.Context, tx *Tx) error { _, err := tx.Exec(ctx, "analyze"); return err })
		}
		for _, f := range []JobFilter{
			{}, {Task: "common"}, {Task: "rare"}, {Lane: "lane-7"}, {Lane: "rare-lane"}, {Key: "none"}, {State: JobScheduled}, {State: JobPending}, {State: JobRunning},
			{State: JobFailed}, {State: JobSucceeded}, {State: JobCancelled}, {Task: "rare", State: JobPending},
		} {
			b.Run(fmt.Sprintf("%s/%+v", db.Name(), f), func(b *testing.B) {
				for b.Loop() {
					if _, _, err := db.ListJobs(b.Context(), f, 0, 50); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
