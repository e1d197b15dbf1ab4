package e2e

import (
	"net/http"
	"testing"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/pgtest"
)

// Who waits for a job at one node is told of its end on another, with the result that
// its worker gave there.
func TestTheEndOfAJobIsAwaitedOnAnotherNode(t *testing.T) {
	t.Parallel()
	database := pgtest.URL(t)
	a, b := serve(t, database), serve(t, database)
	a.declare("add", map[string]any{})
	c, err := client.New(client.Config{URL: a.url, Token: a.token()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	jobs, err := c.EnqueueAll(t.Context(), client.JobRequest{Task: "add", Payload: []byte(`1`)}, client.JobRequest{Task: "add", Payload: []byte(`2`)})
	if err != nil || len(jobs) != 2 {
		t.Fatalf("%+v, %v", jobs, err)
	}
	type end struct {
		job client.Job
		err error
	}
	ends := make(chan end, len(jobs))
	for _, j := range jobs {
		go func() {
			job, err := c.AwaitJob(t.Context(), j.ID)
			ends <- end{job, err}
		}()
	}
	for range jobs {
		var claim client.Claim
		b.call("POST", "/api/v1/tasks/add/claim", map[string]any{"wait": "20s"}, &claim)
		if len(claim.Items) != 1 {
			t.Fatalf("claimed %+v", claim)
		}
		done := map[string]any{"items": []any{map[string]any{"id": claim.Items[0].ID, "leaseToken": claim.Items[0].LeaseToken, "result": claim.Items[0].Payload}}}
		if status := b.call("POST", "/api/v1/tasks/add/complete", done, nil); status != http.StatusOK {
			t.Fatalf("complete: %d", status)
		}
	}
	for range jobs {
		e := <-ends
		want := map[string]string{jobs[0].ID: "1", jobs[1].ID: "2"}[e.job.ID]
		if e.err != nil || e.job.State != client.JobSucceeded || string(e.job.Result) != want {
			t.Errorf("ended as %+v, %v", e.job, e.err)
		}
	}
}
