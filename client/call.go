package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// Enqueue asks for a job.
func (c *Client) Enqueue(ctx context.Context, job JobRequest) (Job, error) {
	return decode[Job](c, "a job")(c.Post(ctx, JobsPath, job))
}

// EnqueueAll asks for many jobs, up to MaxBulkJobs: all of them are enqueued, or
// none. They are returned in the same order, without their payloads.
func (c *Client) EnqueueAll(ctx context.Context, jobs ...JobRequest) ([]Job, error) {
	out, err := decode[EnqueuedJobs](c, "jobs")(c.Post(ctx, JobsBulkPath, JobsRequest{Jobs: jobs}))
	return out.Items, err
}

// RetryJobs makes failed jobs that a filter picks run again, some at a time: while
// the answer has a NextCursor there may be more behind it.
func (c *Client) RetryJobs(ctx context.Context, which JobsChangeRequest) (ChangedJobs, error) {
	return decode[ChangedJobs](c, "jobs")(c.Post(ctx, JobsRetryPath, which))
}

// CancelJobs cancels jobs that a filter picks, some at a time: while the answer has a
// NextCursor there may be more behind it.
func (c *Client) CancelJobs(ctx context.Context, which JobsChangeRequest) (ChangedJobs, error) {
	return decode[ChangedJobs](c, "jobs")(c.Post(ctx, JobsCancelPath, which))
}

// Job reads a job, waiting or ended.
func (c *Client) Job(ctx context.Context, id string) (Job, error) {
	return decode[Job](c, "a job")(c.Get(ctx, JobPath(id)))
}

const (
	// waitOnce is how long one request waits for the end of a job.
	waitOnce = 20 * time.Second
	// waitAgain is the least time between two such requests: a server that stops
	// answers at once.
	waitAgain = 500 * time.Millisecond
)

// AwaitJob waits until a job has ended, or ctx does, and reads it: its state says
// whether it succeeded, and its result is what its worker answered.
func (c *Client) AwaitJob(ctx context.Context, id string) (Job, error) {
	for {
		begin := time.Now()
		job, err := decode[Job](c, "a job")(c.GetWith(ctx, JobPath(id), url.Values{"wait": {waitOnce.String()}}))
		if err != nil || job.Ended() {
			return job, err
		}
		select {
		case <-ctx.Done():
			return job, ctx.Err()
		case <-time.After(waitAgain - time.Since(begin)):
		}
	}
}

// Lanes lists up to limit lanes, or all if limit is 0. The kind is that of
// pawl.Kind; empty is every kind.
func (c *Client) Lanes(ctx context.Context, kind string, limit int) ([]Lane, error) {
	return list[Lane](ctx, c, LanesPath, url.Values{"kind": {kind}}, limit)
}

// Why reads why a lane runs, does not run, or waits.
func (c *Client) Why(ctx context.Context, kind, name string) (LaneWhy, error) {
	return decode[LaneWhy](c, "a lane")(c.Get(ctx, WhyPath(kind, name)))
}

// Runs lists the newest runs of a lane, up to limit, or all if limit is 0. An
// empty name is every lane.
func (c *Client) Runs(ctx context.Context, lane string, limit int) ([]Run, error) {
	return list[Run](ctx, c, RunsPath, url.Values{"lane": {lane}}, limit)
}

// Run reads everything about a run.
func (c *Client) Run(ctx context.Context, id string) (RunDetail, error) {
	return decode[RunDetail](c, "a run")(c.Get(ctx, RunPath(id)))
}

// Approve lets a run go on that waits for a person.
func (c *Client) Approve(ctx context.Context, run string, what ApproveRequest) (AnsweredRun, error) {
	return decode[AnsweredRun](c, "a run")(c.Post(ctx, RunPath(run, "approve"), what))
}

// Publish adds an event to a topic of a workflow. An event with a messageId that
// is known is not added twice.
func (c *Client) Publish(ctx context.Context, workflow string, event EventRequest) (PublishedEvent, error) {
	return decode[PublishedEvent](c, "an event")(c.Post(ctx, WorkflowPath(workflow, "events"), event))
}

// Deploy puts the script of a workflow in force.
func (c *Client) Deploy(ctx context.Context, workflow string, script ScriptRequest) (Deployment, error) {
	return decode[Deployment](c, "an answer to a deploy")(c.Put(ctx, WorkflowPath(workflow), script))
}

// decode reads an answer as T; what is how it is called if it cannot be read.
func decode[T any](c *Client, what string) func(raw json.RawMessage, err error) (T, error) {
	return func(raw json.RawMessage, err error) (out T, _ error) {
		if err != nil {
			return out, err
		}
		if err := json.Unmarshal(raw, &out); err != nil {
			return out, c.strange(what+" that cannot be read", err)
		}
		return out, nil
	}
}

// list reads up to limit things of a list; parameters that are empty are left
// out.
func list[T any](ctx context.Context, c *Client, path string, query url.Values, limit int) ([]T, error) {
	for name := range query {
		if query.Get(name) == "" {
			query.Del(name)
		}
	}
	raw, _, err := c.List(ctx, path, query, limit)
	if err != nil {
		return nil, err
	}
	out := make([]T, len(raw))
	for i := range raw {
		if out[i], err = decode[T](c, "a list")(raw[i], nil); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Ready asks whether the server can do its work, and what it looked at.
func (c *Client) Ready(ctx context.Context) (Readiness, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	resp, raw, err := c.answer(ctx, Request{Method: http.MethodGet, Path: "/readyz"}) //nolint:bodyclose // answer does
	if err != nil {
		return Readiness{}, err
	}
	var out Readiness
	if json.Unmarshal(raw, &out) != nil || out.Checks == nil { // a server that is not ready says so with 503
		return Readiness{}, c.problem(resp, raw)
	}
	return out, nil
}
