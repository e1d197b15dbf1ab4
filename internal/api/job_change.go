package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// cancelJob removes a job that has not ended, and stops it if it runs. Whether
// it runs may be known to another node only, so the rule is: first the row,
// then whoever holds it.
func (a *API) cancelJob(ctx context.Context, in *JobPath) (*struct{}, error) {
	id, err := in.number()
	if err != nil {
		return nil, err
	}
	caller := callOf(ctx).token
	err = a.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		r, err := tx.CancelJob(ctx, jobsOf(caller), id)
		if err != nil {
			return err
		}
		if err := tx.Audit(ctx, actor(caller), "job.cancel", "job:"+strconv.FormatInt(id, 10), map[string]string{"task": r.Task, "key": r.Key, "lane": r.Lane}); err != nil {
			return err
		}
		tx.AfterCommit(func() { a.cancelled(&r) })
		return nil
	})
	return nil, err
}

// cancelled tells of a job whose row is gone, and stops it if it runs.
func (a *API) cancelled(r *store.JobRecord) {
	if !a.queue.IsRunning(r.ID) { // else the queue tells when it has stopped
		a.feed.jobEnded(&r.Job)
		a.feed.jobChanged("cancelled", r, r.FinishedAt, "")
	}
	a.queue.Revoke(r.ID)
}

type retryJobInput struct {
	JobPath
	OnceHeader
}

type retryJobOutput struct {
	Replayed replayed `header:"Idempotency-Replayed"`
	Body     client.Job
}

// retryJob makes a failed job due now, as if it were new.
func (a *API) retryJob(ctx context.Context, in *retryJobInput) (*retryJobOutput, error) {
	id, err := in.number()
	if err != nil {
		return nil, err
	}
	caller := callOf(ctx).token
	job, was, err := once(ctx, a, http.StatusOK, struct{}{}, whole, func(ctx context.Context, tx *store.Tx) (client.Job, error) {
		return a.rearm(ctx, tx, id, caller)
	})
	if err != nil {
		return nil, err
	}
	return &retryJobOutput{was, job}, nil
}

// rearm makes a failed job wait again and tells its owner once that is
// committed.
func (a *API) rearm(ctx context.Context, tx *store.Tx, id int64, caller *userstore.Token) (client.Job, error) {
	r, job, err := tx.RetryJob(ctx, jobsOf(caller), id)
	if err != nil {
		return client.Job{}, err
	}
	a.queue.HandOver(tx, job)
	if err := tx.Audit(ctx, actor(caller), "job.retry", "job:"+strconv.FormatInt(id, 10), map[string]any{"task": r.Task, "attempts": r.Attempt, "lastError": r.LastError}); err != nil {
		return client.Job{}, err
	}
	return newJob(job, r.CreatedBy), nil
}
