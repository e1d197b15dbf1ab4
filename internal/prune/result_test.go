package prune

import (
	"testing"
	"time"
)

// Results of jobs are removed when the time is over that their task keeps them.
func TestResultsAreKeptForTheirTime(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.exec(`insert into job_results (job_id, token, result, keep_until) values (1, 't', '1', $1), (2, 't', '2', $2), (3, 't', null, $1)`,
			time.Now().Add(-time.Hour).UnixMilli(), time.Now().Add(time.Hour).UnixMilli())
		k.prune() // notes the time
		if _, err := k.s.forgetRest(t.Context()); err != nil {
			t.Fatal(err)
		}
		k.left("cast(job_id as text)", "job_results", "2")
	})
}
