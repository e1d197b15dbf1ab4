package store

import (
	"context"
	"fmt"
	"strconv"

	pawl "github.com/pawlrun/pawl"
)

// CancelJob removes a job that waits, runs or failed, and records that it was
// cancelled. It fails with pawl.ErrConflict if the job has ended and with
// pawl.ErrNotFound if there is none. A run that is under way is not stopped by
// this: see queue.Revoke.
func (tx *Tx) CancelJob(ctx context.Context, id int64) (JobRecord, error) {
	gone, err := tx.scanPresent(tx.Query(ctx, `delete from jobs as j where j.id = $1 returning `+presentColumns, id))
	if err != nil {
		return JobRecord{}, fmt.Errorf("cancel job: %w", err)
	}
	if len(gone) == 0 {
		past, err := tx.findJob(ctx, id)
		if err != nil {
			return past, err
		}
		return past, &pawl.Error{
			Code: pawl.CodeConflict, Op: "cancel job", Msg: fmt.Sprintf("the job has %s already", past.State.ended()),
			Hint: "Only jobs that wait, run or failed can be cancelled.",
		}
	}
	r := gone[0]
	_, err = tx.Exec(ctx, `insert into job_history (id, task, lane, key, state, run_at, started_at, finished_at, attempt, error, node)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`+recordConflict,
		r.ID, r.Task, orNull(r.Lane), orNull(r.Key), string(JobCancelled), ms(r.RunAt), msOrNull(r.StartedAt), ms(tx.Now), r.Attempt, orNull(r.LastError), orNull(r.Node))
	if err != nil {
		return r, fmt.Errorf("record cancelled job: %w", err)
	}
	r.State, r.FinishedAt = JobCancelled, tx.Now
	return r, nil
}

// ended says it as part of a sentence: the job has ...
func (s JobState) ended() string {
	if s == JobCancelled {
		return "been cancelled"
	}
	return string(s)
}

// HoldFailedJob locks a job that failed, so that this transaction may enqueue
// it again under the key that it returns. It fails with pawl.ErrConflict if the
// job has not failed and with pawl.ErrNotFound if there is none. A job without
// a key is given one that no user can have; FreeFailedJob takes it back.
func (tx *Tx) HoldFailedJob(ctx context.Context, id int64) (r JobRecord, key string, err error) {
	held, err := tx.scanPresent(tx.Query(ctx, `update jobs as j set key = coalesce(j.key, $2) where j.id = $1 and j.state = 1 returning `+presentColumns, id, standInKey(id)))
	if err != nil {
		return r, "", fmt.Errorf("hold failed job: %w", err)
	}
	if len(held) == 0 {
		if r, err = tx.findJob(ctx, id); err != nil {
			return r, "", err
		}
		return r, "", &pawl.Error{
			Code: pawl.CodeConflict, Op: "retry job", Msg: fmt.Sprintf("the job is %s; only a failed job can be retried", r.State),
		}
	}
	r = held[0]
	key = r.Key
	if key == standInKey(id) {
		r.Key = ""
	}
	return r, key, nil
}

// FreeFailedJob takes the stand-in for a key back.
func (tx *Tx) FreeFailedJob(ctx context.Context, id int64) error {
	_, err := tx.Exec(ctx, `update jobs set key = null where id = $1 and key = $2`, id, standInKey(id))
	if err != nil {
		return fmt.Errorf("free failed job: %w", err)
	}
	return nil
}

// standInKey has a control character, which keys of users cannot have.
func standInKey(id int64) string { return "\x01retry:" + strconv.FormatInt(id, 10) }
