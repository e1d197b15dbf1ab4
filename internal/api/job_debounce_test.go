package api

import (
	"net/http"
	"testing"
	"time"
)

// A key and a delay start a job so long after the last one that came, once, with what
// the last one brought.
func TestAKeyWithADelayDebounces(t *testing.T) {
	both(t, func(r *rig) {
		last := r.enqueue(map[string]any{"task": "echo", "key": "k", "delay": "2s", "payload": 0})
		for i := 1; i <= 5; i++ {
			j := r.enqueue(map[string]any{"task": "echo", "key": "k", "delay": "2s", "payload": i})
			if j.ID != last.ID || !j.RunAt.After(last.RunAt.Time) {
				t.Errorf("job %s at %v took the place of %s at %v", j.ID, j.RunAt, last.ID, last.RunAt)
			}
			last = j
			for !time.Now().After(last.RunAt.Add(-2*time.Second + 2*time.Millisecond)) { // times are in milliseconds
				r.do("GET", "/api/v1/jobs/"+j.ID, nil).want(http.StatusOK)
			}
		}
		if what := r.waitRun(); what != "echo 5" || time.Now().Before(last.RunAt.Time) {
			t.Errorf("ran %q at %v, want it at %v", what, time.Now(), last.RunAt)
		}
		if done := r.waitState(last.ID, "succeeded"); done.StartedAt.Before(last.RunAt.Time) {
			t.Errorf("started at %v, before %v", done.StartedAt, last.RunAt)
		}
		if n := len(r.ran) + r.count(`select count(*) from jobs where owner <> ''`) + r.count(`select count(*) from job_history where owner <> ''`); n != 1 {
			t.Errorf("%d jobs", n)
		}
	})
}

// One that runs already is not touched: the new one comes after it, in its own time.
func TestDebounceWhileTheJobRuns(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("digest", nil)
		first := r.enqueue(map[string]any{"task": "digest", "key": "k", "payload": 1})
		held := r.claim(r.admin, "digest", 1)
		next := r.enqueue(map[string]any{"task": "digest", "key": "k", "delay": "1h", "payload": 2})
		if len(held) != 1 || string(held[0].Payload) != "1" {
			t.Fatalf("claimed %+v after %s", held, first.ID)
		}
		r.do("POST", "/api/v1/tasks/digest/complete", map[string]any{"items": []any{inHand(held[0])}}).want(http.StatusOK)
		got := r.do("GET", "/api/v1/jobs/"+next.ID, nil).want(http.StatusOK).job()
		if got.State != "scheduled" || string(got.Payload) != "2" || !got.RunAt.Equal(next.RunAt.Time) {
			t.Errorf("the next one is %+v", got)
		}
	})
}

// A result is shown for as long as its task keeps it.
func TestResultsAreShownForTheirTime(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("add", map[string]any{"keepResults": "1m"})
		j := r.enqueue(map[string]any{"task": "add"})
		item := inHand(r.claim(r.admin, "add", 1)[0])
		item["result"] = 7
		r.do("POST", "/api/v1/tasks/add/complete", map[string]any{"items": []any{item}}).want(http.StatusOK)
		until := r.count(`select keep_until from job_results`)
		if d := time.Until(time.UnixMilli(int64(until))); d < 50*time.Second || d > time.Minute {
			t.Errorf("the result is kept for %v", d)
		}
		if got := r.do("GET", "/api/v1/jobs/"+j.ID, nil).want(http.StatusOK).job(); string(got.Result) != "7" {
			t.Errorf("result %s", got.Result)
		}
		r.exec(`update job_results set keep_until = $1`, time.Now().UnixMilli())
		if got := r.do("GET", "/api/v1/jobs/"+j.ID, nil).want(http.StatusOK).job(); got.Result != nil || got.State != "succeeded" {
			t.Errorf("after its time it is %+v", got)
		}
	})
}
