package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
)

// A worker in Go claims, does, and says how jobs ended; when it stops it gives back
// what it could not end.
func TestAWorkerInGo(t *testing.T) {
	both(t, func(r *rig) {
		r.declare("go", map[string]any{"lease": "1s", "maxAttempts": 2, "concurrencyPerLane": 12})
		c, err := client.New(client.Config{URL: r.server.URL, Token: r.admin})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		var mu sync.Mutex
		runs := map[string]int{}
		cancelled := make(chan error, 1)
		do := func(ctx context.Context, job client.ClaimedJob) (any, error) {
			mu.Lock()
			runs[job.ID]++
			mu.Unlock()
			var what string
			_ = json.Unmarshal(job.Payload, &what)
			switch what {
			case "permanent":
				return nil, client.Permanent(errors.New("never"))
			case "again":
				if job.Attempt == 1 {
					return nil, client.RetryAfter(0, errors.New("once more"))
				}
			case "panic":
				panic("oh")
			case "huge":
				return strings.Repeat("x", testMaxPayload), nil
			case "odd":
				return make(chan int), nil
			case "vast": // more than any request may have
				return strings.Repeat("x", maxEndBody), nil
			case "slow": // for longer than its lease
				select {
				case <-ctx.Done():
				case <-time.After(2500 * time.Millisecond):
				}
			case "cancelled":
				<-ctx.Done()
				cancelled <- context.Cause(ctx)
				return nil, ctx.Err()
			case "stuck":
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return map[string]string{"did": what}, nil
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- client.Worker{Client: c, Task: "go", Concurrency: 12, Drain: time.Second, Do: do}.Run(ctx)
		}()
		ids := map[string]string{}
		for _, what := range []string{"plain", "permanent", "again", "panic", "huge", "odd", "vast", "slow", "cancelled", "stuck"} {
			ids[what] = r.enqueue(map[string]any{"task": "go", "payload": what, "lane": "l"}).ID
		}
		show := func(what string) client.Job { return r.do("GET", "/api/v1/jobs/"+ids[what], nil).want(200).job() }
		for what, state := range map[string]string{"plain": "succeeded", "permanent": "failed", "again": "succeeded", "huge": "failed", "odd": "failed", "vast": "failed", "slow": "succeeded"} {
			r.eventually(what+" is "+state, func() bool { return show(what).State == state })
		}
		if j := show("plain"); string(j.Result) != `{"did":"plain"}` {
			t.Errorf("%s", j.Result)
		}
		if j := show("huge"); !strings.Contains(string(j.LastError), fmt.Sprint(testMaxPayload)) {
			t.Errorf("%+v", j)
		}
		if j := show("slow"); j.Attempt != 1 {
			t.Errorf("its lease ended: %+v", j)
		}
		r.eventually("it panicked", func() bool { return show("panic").LastError == "panic: oh" })
		r.do("DELETE", "/api/v1/jobs/"+ids["cancelled"], nil).want(204)
		if cause := <-cancelled; !errors.Is(cause, client.ErrCancelled) {
			t.Errorf("cancelled with %v", cause)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if j := show("stuck"); j.State != "pending" || j.Attempt != 0 {
			t.Errorf("given back as %+v", j)
		}
		for _, what := range []string{"huge", "odd", "vast"} { // what was done is not done again because its result is not taken
			if j := show(what); runs[ids[what]] != 1 || j.Attempt != 1 {
				t.Errorf("%s ran %d times: %+v", what, runs[ids[what]], j)
			}
		}
		if runs[ids["again"]] != 2 || runs[ids["plain"]] != 1 || runs[ids["slow"]] != 1 {
			t.Errorf("runs %v of %v", runs, ids)
		}
		if err := (client.Worker{Client: c, Task: "none", Do: do}).Run(t.Context()); err == nil {
			t.Error("a task that is not there is served")
		}
	})
}
