package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
)

const (
	// maxBulkBody is how large a request with many jobs may be, unless one payload
	// may be larger.
	maxBulkBody = 8 << 20

	// maxBulkFaults is how many faults are looked for. Each unknown task is a
	// question to the database.
	maxBulkFaults = 100
)

type createJobsInput struct {
	OnceHeader
	TraceHeader
	Body client.JobsRequest
}

type createJobsOutput struct {
	Replayed replayed `header:"Idempotency-Replayed"`
	Body     client.EnqueuedJobs
}

// createJobs enqueues many jobs in one transaction.
func (a *API) createJobs(ctx context.Context, in *createJobsInput) (*createJobsOutput, error) {
	specs, err := a.checkJobs(ctx, in)
	if err != nil {
		return nil, err
	}
	if callOf(ctx).idempotencyKey == "" {
		jobs, err := a.queue.Enqueue(ctx, specs...)
		if err != nil {
			return nil, err
		}
		return &createJobsOutput{isNew, newJobs(jobs, specs)}, nil
	}
	told, was, err := once(ctx, a, http.StatusCreated, &in.Body, whole, func(ctx context.Context, tx *store.Tx) (client.EnqueuedJobs, error) {
		jobs, err := a.queue.EnqueueTx(ctx, tx, specs...)
		if err != nil {
			return client.EnqueuedJobs{}, err
		}
		return newJobs(jobs, specs), nil
	})
	if err != nil {
		return nil, err
	}
	if was == isReplayed {
		ids := make([]string, len(told.Items))
		for i, j := range told.Items {
			ids[i] = j.ID
		}
		a.remind(ctx, ids...)
	}
	return &createJobsOutput{was, told}, nil
}

// checkJobs finds the faults of all jobs, each by its place.
func (a *API) checkJobs(ctx context.Context, in *createJobsInput) ([]store.JobSpec, error) {
	var f faults
	now := time.Now()
	specs := make([]store.JobSpec, len(in.Body.Jobs))
	for i := range in.Body.Jobs {
		f.at = "/jobs/" + strconv.Itoa(i)
		var err error
		if specs[i], err = a.checkJob(ctx, &f, &in.Body.Jobs[i], in.Traceparent, now); err != nil {
			return nil, err
		}
		if len(f.list) >= maxBulkFaults {
			break
		}
	}
	return specs, f.problem()
}

// newJobs tells jobs that were just enqueued, without their payloads: whoever asked
// knows them.
func newJobs(jobs []store.Job, specs []store.JobSpec) client.EnqueuedJobs {
	out := client.EnqueuedJobs{Items: make([]client.Job, len(jobs))}
	for i, j := range jobs {
		j.Payload = nil
		out.Items[i] = newJob(j, specs[i].CreatedBy)
	}
	return out
}
