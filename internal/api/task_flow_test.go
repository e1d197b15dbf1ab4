package api

import (
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
)

// A rate bounds what is handed out in any period, of the task or of each lane, whoever
// claims; and a claim that waits goes on when the period is over.
func TestRatesOfTasks(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("slow", map[string]any{"rate": map[string]any{"limit": 3, "period": "1h"}})
		r.declare("lanes", map[string]any{"concurrencyPerLane": 10, "rate": map[string]any{"limit": 2, "period": "1h", "per": "lane"}})
		brief := r.declare("brief", map[string]any{"rate": map[string]any{"limit": 2, "period": "800ms"}})
		if brief.Rate == nil || *brief.Rate != (client.TaskRate{Limit: 2, Period: "800ms", Per: "task"}) {
			t.Errorf("declared %+v", brief.Rate)
		}
		for range 10 {
			r.enqueue(map[string]any{"task": "slow"})
		}
		for _, lane := range []string{"a", "b", "a", "b", "a", "b"} {
			r.enqueue(map[string]any{"task": "lanes", "lane": lane})
		}
		claims := func(task string, want ...int) {
			t.Helper()
			for i, n := range want {
				if got := r.claim(r.admin, task, 10); len(got) != n {
					t.Errorf("claim %d of %s got %d, want %d", i, task, len(got), n)
				}
			}
		}
		claims("slow", 3, 0, 0)
		claims("lanes", 4, 0)
		r.exec(`update worker_starts set until_at = 1`)
		claims("slow", 3, 0)
		claims("lanes", 2)
		// In any period: the starts of a waiting worker.
		for range 6 {
			r.enqueue(map[string]any{"task": "brief"})
		}
		var starts []time.Time
		for len(starts) < 6 {
			var c client.Claim
			r.do("POST", "/api/v1/tasks/brief/claim", `{"limit":10,"wait":"20s"}`).want(200).into(&c)
			if len(c.Items) == 0 || len(c.Items) > 2 {
				t.Fatalf("claimed %d", len(c.Items))
			}
			for range c.Items {
				starts = append(starts, time.Now())
			}
		}
		for i := 2; i < len(starts); i++ {
			if apart := starts[i].Sub(starts[i-2]); apart < 700*time.Millisecond || apart > 3*time.Second {
				t.Errorf("three starts within %v", apart)
			}
		}
	})
}

// Jobs of a task with batches wait for each other, but not for too long, and one claim
// gets them together.
func TestBatchesOfTasks(t *testing.T) {
	both(t, func(r *rig) {
		task := r.declare("many", map[string]any{"batch": map[string]any{"size": 3, "wait": "1h"}})
		if task.Batch == nil || *task.Batch != (client.TaskBatch{Size: 3, Wait: "1h"}) {
			t.Errorf("declared %+v", task.Batch)
		}
		claim := func(name, wait string) []client.ClaimedJob {
			var c client.Claim
			r.do("POST", "/api/v1/tasks/"+name+"/claim", map[string]any{"wait": wait}).want(200).into(&c)
			return c.Items
		}
		for i := range 3 {
			if got := claim("many", "0s"); len(got) != 0 {
				t.Errorf("%d jobs did not wait for others: %+v", i, got)
			}
			r.enqueue(map[string]any{"task": "many"})
		}
		r.enqueue(map[string]any{"task": "many"})
		if got := claim("many", "0s"); len(got) != 3 {
			t.Errorf("a batch of %d", len(got))
		}
		r.declare("soon", map[string]any{"batch": map[string]any{"size": 10, "wait": "600ms"}})
		begin := time.Now()
		r.enqueue(map[string]any{"task": "soon"})
		r.enqueue(map[string]any{"task": "soon"})
		if got := claim("soon", "20s"); len(got) != 2 || time.Since(begin) < 600*time.Millisecond || time.Since(begin) > 5*time.Second {
			t.Errorf("%d jobs after %v", len(got), time.Since(begin))
		}
		for body, pointer := range map[string]string{
			`{"rate":{"limit":0,"period":"1s"}}`: "/rate/limit", `{"rate":{"limit":1,"period":"1ms"}}`: "/rate/period", `{"rate":{"limit":1,"period":"1s","per":"user"}}`: "/rate/per",
			`{"batch":{"size":0,"wait":"1s"}}`: "/batch/size", `{"batch":{"size":2,"wait":"2h"}}`: "/batch/wait", `{"batch":{"size":2}}`: "/batch/wait",
			`{"lease":""}`: "/lease", `{"keepResults":""}`: "/keepResults",
		} {
			if p := r.do("PUT", "/api/v1/tasks/bad", body).problem(422, "invalid"); len(p.Errors) != 1 || p.Errors[0].Pointer != pointer {
				t.Errorf("%s: %+v", body, p.Errors)
			}
		}
		if p := r.do("PUT", "/api/v1/tasks/bad", `{"rate":{"limit":10000000,"period":"1s"}}`).problem(422, "invalid"); p.Errors[0].Message != "must be at most 1000000" {
			t.Errorf("a large number is told as %+v", p.Errors)
		}
	})
}
