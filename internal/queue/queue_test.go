package queue

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

func TestJobRunsOnTimeAndIsGone(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		rec := newRecorder()
		q, _ := startQueue(t, db, Config{Tasks: map[string]Task{"t": rec.task()}})
		at := time.Now().Add(1500 * time.Millisecond)
		if _, err := q.Enqueue(t.Context(), store.JobSpec{Task: "t", Payload: json.RawMessage(`{"a":1}`), RunAt: at}); err != nil {
			t.Fatal(err)
		}
		j := rec.wait(t)
		if late := j.StartedAt.Sub(at); late < -time.Millisecond || late > 500*time.Millisecond {
			t.Errorf("started %v after its time", late)
		}
		if string(j.Payload) != `{"a":1}` {
			t.Errorf("payload %s", j.Payload)
		}
		eventually(t, "the row is deleted", func() bool { return countJobs(t, db) == 0 })
	})
}
