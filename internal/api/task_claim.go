package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/visible"
	"github.com/pawlrun/pawl/internal/worker"
)

// Workers reach the jobs of their token's user, and with jobs:admin everybody's, as
// lists of jobs do. What is in the hands of a worker is told by the token of its
// lease.

const (
	// maxEndBody is how large a request with results may be, unless one payload may
	// be larger.
	maxEndBody = 8 << 20

	// maxWorkerError bounds what is stored of an error, in bytes.
	maxWorkerError = 4096
)

type claimInput struct {
	TaskPath
	OnceHeader
	Body client.ClaimRequest
}

func (a *API) claimJobs(ctx context.Context, in *claimInput) (*output[client.Claim], error) {
	caller := callOf(ctx).token
	var f faults
	r := worker.Request{Task: in.Name, Owner: jobsOf(caller), Worker: in.Body.WorkerID, Limit: in.Body.Limit, Wait: f.interval("/wait", in.Body.Wait, 0)}
	if r.Worker == "" {
		r.Worker = caller.Name
	} else {
		f.add("/workerId", textFault(r.Worker, maxName), "")
	}
	if r.Wait > worker.MaxWait {
		f.add("/wait", "must be at most 1m", "Claim again when nothing came.")
	}
	if err := f.problem(); err != nil {
		return nil, err
	}
	if err := a.check(ctx, &in.Body); err != nil {
		return nil, err
	}
	// Not longer than the claim may wait and a transaction may take.
	ctx, cancel := context.WithTimeout(ctx, r.Wait+handlerTimeout)
	defer cancel()
	jobs, err := a.workers.Claim(ctx, r)
	if err != nil {
		return nil, err
	}
	out := &output[client.Claim]{client.Claim{Items: make([]client.ClaimedJob, len(jobs))}}
	for i, j := range jobs {
		out.Body.Items[i] = client.ClaimedJob{
			ID: strconv.FormatInt(j.ID, 10), Task: j.Task, Payload: j.Payload, Lane: client.NullString(j.Lane), Key: client.NullString(j.Key), Priority: j.Priority,
			RunAt: client.At(j.RunAt), Attempt: j.Attempt + 1, MaxAttempts: j.MaxAttempts, Traceparent: client.NullString(j.Trace),
			LeaseToken: j.Token, LeaseUntil: client.At(j.Until),
		}
	}
	return out, nil
}

type completeInput struct {
	TaskPath
	OnceHeader
	Body client.CompleteRequest
}

type leasesOutput struct {
	Replayed replayed `header:"Idempotency-Replayed"`
	Body     client.Leases
}

func (a *API) completeJobs(ctx context.Context, in *completeInput) (*leasesOutput, error) {
	var f faults
	list, at := []store.Ending{}, []int{}
	answer := client.Leases{Items: make([]client.Lease, len(in.Body.Items))}
	ids := f.ids(len(in.Body.Items), func(i int) string { return in.Body.Items[i].ID })
	for i, item := range in.Body.Items {
		answer.Items[i].ID = item.ID
		if n := int64(len(item.Result)); n > a.cfg.MaxPayload {
			answer.Items[i].Code = client.LeaseTooLarge
			answer.Items[i].Message = client.NullString(fmt.Sprintf("the result has %d bytes, more than the %d that are allowed; keep the data elsewhere and send where it is", n, a.cfg.MaxPayload))
			continue
		}
		result := item.Result
		if string(result) == "null" {
			result = nil
		}
		list, at = append(list, store.Ending{ID: ids[i], Token: item.LeaseToken, Verdict: store.Done, Result: result}), append(at, i)
	}
	if err := f.problem(); err != nil {
		return nil, err
	}
	return a.endJobs(ctx, in.Name, &in.Body, list, at, answer)
}

type failInput struct {
	TaskPath
	OnceHeader
	Body client.FailRequest
}

func (a *API) failJobs(ctx context.Context, in *failInput) (*leasesOutput, error) {
	var f faults
	now := time.Now()
	list, at := make([]store.Ending, len(in.Body.Items)), make([]int, len(in.Body.Items))
	answer := client.Leases{Items: make([]client.Lease, len(in.Body.Items))}
	ids := f.ids(len(list), func(i int) string { return in.Body.Items[i].ID })
	for i, item := range in.Body.Items {
		at[i], answer.Items[i].ID = i, item.ID
		list[i] = store.Ending{ID: ids[i], Token: item.LeaseToken, Verdict: store.Retry, Error: errorText(item.Error)}
		switch item.Error.Class {
		case client.ErrorPermanent:
			list[i].Verdict = store.Fail
		case client.ErrorSnooze:
			list[i].Verdict, list[i].Error = store.Snooze, visible.Truncate(item.Error.Message, maxWorkerError)
		}
		pointer := "/items/" + strconv.Itoa(i) + "/retryAfter"
		switch after := f.interval(pointer, item.RetryAfter, -1); {
		case after > store.MaxAhead:
			f.add(pointer, "is more than ten years", "Use a shorter one.")
		case after == 0 && list[i].Verdict == store.Snooze: // it keeps its place in its lane
		case after >= 0:
			list[i].RunAt = now.Add(after)
		}
	}
	if err := f.problem(); err != nil {
		return nil, err
	}
	return a.endJobs(ctx, in.Name, &in.Body, list, at, answer)
}

// errorText is what is shown of an error: a class that Pawl knows says what becomes
// of the job, and any other one is part of what people read.
func errorText(e client.WorkerErrorRequest) string {
	text := e.Message
	switch {
	case e.Class == client.ErrorPermanent || e.Class == "":
	case text == "":
		text = e.Class
	default:
		text = e.Class + ": " + text
	}
	if text == "" {
		text = "the worker did not say why"
	}
	return visible.Truncate(text, maxWorkerError)
}

// endJobs writes how jobs ended. at tells where the answer to each belongs.
func (a *API) endJobs(ctx context.Context, task string, body any, list []store.Ending, at []int, answer client.Leases) (*leasesOutput, error) {
	caller := callOf(ctx).token
	told, was, err := once(ctx, a, http.StatusOK, body, whole, func(ctx context.Context, tx *store.Tx) (client.Leases, error) {
		ended, err := a.workers.End(ctx, tx, task, jobsOf(caller), list)
		for i, e := range ended {
			answer.Items[at[i]] = leaseOf(answer.Items[at[i]].ID, e)
		}
		return answer, err
	})
	if err != nil {
		return nil, err
	}
	return &leasesOutput{was, told}, nil
}

func leaseOf(id string, e store.Ended) client.Lease {
	out := client.Lease{ID: id, OK: e.Code == "", Code: client.NullString(e.Code)}
	switch e.Code {
	case store.LeaseLost:
		out.Message = "the job is not in the hands of this worker any more; nothing was written"
	case store.LeaseCancelled:
		out.Message = "the job was cancelled"
	}
	return out
}

type extendInput struct {
	TaskPath
	OnceHeader
	Body client.ExtendRequest
}

func (a *API) extendLeases(ctx context.Context, in *extendInput) (*leasesOutput, error) {
	var f faults
	ids := f.ids(len(in.Body.Items), func(i int) string { return in.Body.Items[i].ID })
	if err := f.problem(); err != nil {
		return nil, err
	}
	list := make([]store.Signed, len(ids))
	for i, item := range in.Body.Items {
		list[i] = store.Signed{ID: ids[i], Token: item.LeaseToken}
	}
	caller := callOf(ctx).token
	told, was, err := once(ctx, a, http.StatusOK, &in.Body, whole, func(ctx context.Context, tx *store.Tx) (client.Leases, error) {
		ended, until, err := a.workers.Extend(ctx, tx, in.Name, jobsOf(caller), list)
		answer := client.Leases{Items: make([]client.Lease, len(ended))}
		for i, e := range ended {
			answer.Items[i] = leaseOf(in.Body.Items[i].ID, e)
			if e.Code == "" {
				answer.Items[i].LeaseUntil = client.At(until)
			}
		}
		return answer, err
	})
	if err != nil {
		return nil, err
	}
	return &leasesOutput{was, told}, nil
}

// ids reads the ids of a request, each of which is named once.
func (f *faults) ids(n int, of func(i int) string) []int64 {
	out := make([]int64, n)
	seen := make(map[int64]bool, n)
	for i := range out {
		pointer := "/items/" + strconv.Itoa(i) + "/id"
		id, err := JobPath{of(i)}.number()
		switch {
		case err != nil:
			f.add(pointer, "is not the id of a job", "The id of a job is a number.")
		case seen[id]:
			f.add(pointer, "is there twice", "Name each job once.")
		}
		out[i], seen[id] = id, true
	}
	return out
}
