package store

import (
	"slices"
	"testing"
)

// The plan of what ends jobs is made once for a connection and kept, whether one job
// ends or a hundred: to make it takes several times as long as to end one.
func TestWhatEndsJobsIsPlannedOnce(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		if db.sqliteFile != nil {
			return // it prepares a statement once
		}
		epochs := own(t, db, "n1")
		for n := range 20 {
			var ended []Finished
			for _, j := range enqueue(t, db, slices.Repeat([]JobSpec{{Task: "t"}}, 1+n/10*99)...) { // at first one by one
				ended = append(ended, Finished{Job: &j, Verdict: Done, StartedAt: now(), EndedAt: now()})
			}
			finish(t, db, epochs, ended...)
		}
		kept, anew := 0, 0
		for _, c := range db.hot.AcquireAllIdle(t.Context()) {
			var k, a int
			err := c.QueryRow(t.Context(), `select coalesce(sum(generic_plans), 0), coalesce(sum(custom_plans), 0) from pg_prepared_statements where statement like 'delete from jobs%'`).Scan(&k, &a)
			c.Release()
			if err != nil {
				t.Fatal(err)
			}
			kept, anew = kept+k, anew+a
		}
		if kept == 0 || anew > 0 {
			t.Errorf("it was planned %d times, and %d times it was not", anew, kept)
		}
	})
}
