package queue

import (
	"context"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

// BenchmarkDrain measures a backlog of jobs that do nothing, on each database
// and with jobs spread over lanes. See bench/ for peers.
func BenchmarkDrain(b *testing.B) {
	for _, dbName := range []string{"sqlite", "postgres"} {
		for _, lanes := range []int{0, 2000} {
			b.Run(dbName+"/lanes="+strconv.Itoa(lanes), func(b *testing.B) {
				url := "sqlite:" + filepath.Join(b.TempDir(), "pawl.db")
				if dbName == "postgres" {
					url = pgtest.URL(b)
				}
				db := openDB(b, url)
				for b.Loop() {
					drain(b, db, 100_000-40*lanes, lanes)
				}
			})
		}
	}
}

func drain(b *testing.B, db *store.DB, n, lanes int) {
	b.StopTimer()
	specs := make([]store.JobSpec, n)
	for i := range specs {
		specs[i] = store.JobSpec{Task: "t"}
		if lanes > 0 {
			specs[i].Lane = "lane-" + strconv.Itoa(i%lanes)
		}
	}
	for i := 0; i < n; i += 5000 {
		err := db.Write(b.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Enqueue(ctx, specs[i:i+5000])
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	var left atomic.Int64
	left.Store(int64(n))
	done := make(chan struct{})
	task := Task{Run: func(context.Context, *Job) error {
		if left.Add(-1) == 0 {
			close(done)
		}
		return nil
	}}
	b.StartTimer()
	start := time.Now()
	_, stop := startQueue(b, db, Config{Tasks: map[string]Task{"t": task}})
	<-done
	stop()
	b.ReportMetric(float64(n)/time.Since(start).Seconds(), "jobs/s")
}
