package store

import (
	"context"
	"errors"
	"fmt"

	pawl "github.com/pawlrun/pawl"
)

// CancelJob removes a job of an owner (nil: of any user) that waits, runs or
// failed, and records that it was cancelled. It fails with pawl.ErrConflict if
// the job has ended, with pawl.ErrNotFound if there is none, and with
// internal_job if it is Pawl's own. A run that is under way is not stopped by
// this: see queue.Revoke.
func (tx *Tx) CancelJob(ctx context.Context, owner *string, id int64) (JobRecord, error) {
	r, err := tx.touchJob(ctx, "cancel job", owner, id)
	if err != nil {
		return r, err
	}
	gone, err := tx.scanPresent(tx.Query(ctx, `delete from jobs as j where j.id = $1 returning `+presentColumns, id))
	if err != nil {
		return JobRecord{}, fmt.Errorf("cancel job: %w", err)
	}
	if len(gone) == 0 {
		if r, err = tx.findJob(ctx, owner, id); err != nil { // it may have ended meanwhile
			return r, err
		}
		return r, &pawl.Error{
			Code: pawl.CodeConflict, Op: "cancel job", Msg: fmt.Sprintf("the job has %s already", r.State.ended()),
			Hint: "Only jobs that wait, run or failed can be cancelled.",
		}
	}
	r = gone[0]
	_, err = tx.Exec(ctx, `insert into job_history (id, task, owner, lane, key, state, run_at, started_at, finished_at, attempt, error, node)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`+recordConflict,
		r.ID, r.Task, r.Owner, NullText(r.Lane), NullText(r.Key), string(JobCancelled), Millis(r.RunAt), NullMillis(r.StartedAt), Millis(tx.Now), r.Attempt, NullText(r.LastError), NullText(r.Node))
	if err != nil {
		return r, fmt.Errorf("record cancelled job: %w", err)
	}
	r.State, r.FinishedAt = JobCancelled, tx.Now
	return r, nil
}

// touchJob finds a job that somebody from outside wants to change. Pawl's own
// are seen by those who see everybody's, and touched by nobody.
func (tx *Tx) touchJob(ctx context.Context, op string, owner *string, id int64) (JobRecord, error) {
	r, err := tx.findJob(ctx, owner, id)
	if err == nil && r.Owner == "" {
		err = &pawl.Error{
			Code: pawl.CodeForbidden, Reason: "internal_job", Op: op, Msg: fmt.Sprintf("job %d is internal to Pawl and cannot be changed", id),
			Hint: "Pause, resume, run or delete the workflow, source or schedule that it is for.",
		}
	}
	return r, err
}

// ended says it as part of a sentence: the job has ...
func (s JobState) ended() string {
	if s == JobCancelled {
		return "been cancelled"
	}
	return string(s)
}

// RetryJob makes a job of an owner (nil: of any user) that failed for good wait
// again, due now and with all its attempts. It returns the job as it was. It
// fails with pawl.ErrConflict if the job has not failed, with pawl.ErrNotFound
// if there is none, and with internal_job if it is Pawl's own.
func (tx *Tx) RetryJob(ctx context.Context, owner *string, id int64) (was JobRecord, now Job, err error) {
	if was, err = tx.touchJob(ctx, "retry job", owner, id); err != nil {
		return was, now, err
	}
	now, err = tx.oneJob(ctx, `update jobs set `+stateAgain+`, attempt = 0, run_at = $2, last_error = null, rev = rev + 1
		where id = $1 and state = 1 returning `+jobColumns, id, Millis(tx.Now))
	if errors.Is(err, ErrNoRow) {
		return was, now, &pawl.Error{
			Code: pawl.CodeConflict, Op: "retry job", Msg: fmt.Sprintf("the job is %s; only a failed job can be retried", was.State),
		}
	}
	if err != nil {
		return was, now, fmt.Errorf("retry job: %w", err)
	}
	return was, now, nil
}

// KnownJobKeys tells which of Pawl's own keys have a job of the task that will
// run.
func (tx *Tx) KnownJobKeys(ctx context.Context, task string, keys []string) (map[string]bool, error) {
	known := map[string]bool{}
	for batch := range Batches(keys) {
		text, args := In([]any{task}, batch)
		rows, err := tx.Query(ctx, `select key from jobs where state = 0 and owner = '' and task = $1 and key in `+text, args...)
		found, err := ScanAll(rows, err, "find jobs", func(row Scanner) (key string, err error) { return key, row.Scan(&key) })
		if err != nil {
			return nil, err
		}
		for _, key := range found {
			known[key] = true
		}
	}
	return known, nil
}
