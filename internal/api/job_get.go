package api

import (
	"context"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
)

// maxJobWait is how long a request can wait for the end of a job.
const maxJobWait = time.Minute

type getJobInput struct {
	JobPath
	Wait string `query:"wait" maxLength:"64" example:"20s" doc:"Answer when the job has ended, or after this time with its state by then: up to 1m. Absent does not wait."`
}

func (a *API) getJob(ctx context.Context, in *getJobInput) (*output[client.Job], error) {
	id, err := in.number()
	if err != nil {
		return nil, err
	}
	var f faults
	wait := f.interval("/wait", in.Wait, 0)
	if wait > maxJobWait {
		f.add("/wait", "must be at most 1m", "Ask again when it has not ended.")
	}
	if err := f.problem(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, wait+handlerTimeout)
	defer cancel()
	look := func() (store.JobRecord, error) { return a.db.FindJob(ctx, jobsOf(callOf(ctx).token), id) }
	var r store.JobRecord
	if wait == 0 {
		r, err = look()
	} else {
		r, err = a.awaitJob(ctx, id, wait, look)
	}
	if err != nil {
		return nil, err
	}
	return &output[client.Job]{a.presentJob(&r)}, nil
}

// awaitJob looks at a job until it has ended, the time is over, or the process stops.
// It looks when it is told that there is something to see.
func (a *API) awaitJob(ctx context.Context, id int64, wait time.Duration, look func() (store.JobRecord, error)) (store.JobRecord, error) {
	w, err := a.feed.await(a.db, callOf(ctx).token.User.ID, id) //nolint:contextcheck // what looks for all outlives any one request
	if err != nil {
		return store.JobRecord{}, err
	}
	defer a.feed.waits.left(w)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for over := false; ; {
		r, err := look()
		if err != nil || over || r.State.Ended() {
			return r, err
		}
		select {
		case <-w.wake:
		case <-timer.C:
			over = true
		case <-a.feed.end:
			over = true
		case <-ctx.Done():
			return r, context.Cause(ctx)
		}
	}
}
