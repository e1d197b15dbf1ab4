package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/executor/plain"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// slotJobs are the jobs that schedules enqueue.
type slotJobs struct{ *server }

var _ plain.Jobs = slotJobs{}

// Enqueue adds the job of an attempt as one of the owner of its schedule. The
// attempt is claimed in the same transaction, so that asking again finds the job.
func (s slotJobs) Enqueue(ctx context.Context, of plain.JobOf, job client.PlainJob) (id int64, err error) {
	const holder = "schedule job"
	spec := store.JobSpec{Task: job.Task, Lane: job.Lane}
	if err := s.checkJob(ctx, job, &spec); err != nil {
		return 0, err
	}
	payload := job.Payload
	if len(payload) == 0 {
		payload = json.RawMessage("{}")
	}
	key := fmt.Sprintf("%s/%d", of.RunID, of.Attempt)
	err = s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		given, first, err := userstore.In(tx).ClaimIdempotencyKey(ctx, holder, key, job.Task)
		if err != nil {
			return err
		}
		if !first {
			id, err = strconv.ParseInt(given.Body, 10, 64)
			return err
		}
		sch, err := s.schedules.Kept(ctx, tx, "", of.ScheduleID)
		if err != nil {
			return err
		}
		by := "schedule " + sch.Name
		spec.Payload, spec.Owner, spec.CreatedBy, spec.Actor = payload, sch.OwnerUserID, by, by
		jobs, err := s.queue.EnqueueTx(ctx, tx, spec)
		if err != nil {
			return err
		}
		id = jobs[0].ID
		return userstore.In(tx).SaveAnswer(ctx, holder, key, 201, strconv.FormatInt(id, 10))
	})
	return id, err
}

// checkJob refuses what no user could enqueue.
func (s slotJobs) checkJob(ctx context.Context, job client.PlainJob, spec *store.JobSpec) error {
	task, known := s.queue.Tasks()[job.Task]
	if !known {
		served, err := s.workers.Fill(ctx, spec)
		if err != nil {
			return err
		}
		known = served
	}
	if !known || task.Internal {
		return &pawl.Error{Code: pawl.CodeInvalid, Op: "enqueue job", Msg: fmt.Sprintf("%q is not a task of this server", job.Task)}
	}
	if int64(len(job.Payload)) > s.cfg.MaxPayload {
		return &pawl.Error{Code: pawl.CodeTooLarge, Op: "enqueue job", Msg: fmt.Sprintf("the payload has more than %d bytes", s.cfg.MaxPayload)}
	}
	if task.Check == nil || len(job.Payload) == 0 {
		return nil
	}
	if err := task.Check(job.Payload); err != nil {
		return &pawl.Error{Code: pawl.CodeInvalid, Op: "enqueue job", Msg: "the payload is not one of the task " + job.Task + ": " + err.Error(), Err: err}
	}
	return nil
}

// Outcome tells how a job ended.
func (s slotJobs) Outcome(ctx context.Context, id int64) (out plain.JobOutcome, done bool, err error) {
	r, err := s.db.FindJob(ctx, nil, id)
	switch {
	case errors.Is(err, pawl.ErrNotFound):
		return plain.JobOutcome{Lost: true}, true, nil
	case err != nil:
		return out, false, err
	}
	switch r.State {
	case store.JobSucceeded:
		return plain.JobOutcome{OK: true}, true, nil
	case store.JobFailed:
		return plain.JobOutcome{Message: r.LastError}, true, nil
	case store.JobCancelled:
		return plain.JobOutcome{Message: "it was cancelled"}, true, nil
	case store.JobScheduled, store.JobPending, store.JobRunning:
	}
	return out, false, nil
}

// Cancel takes a job back, and stops it if it runs.
func (s slotJobs) Cancel(ctx context.Context, id int64) error {
	return s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.CancelJob(ctx, nil, id); err != nil {
			return err
		}
		tx.AfterCommit(func() { s.queue.Revoke(id) })
		return nil
	})
}
