package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
)

// Verdict is how one run of a job ended.
type Verdict int

// The verdicts.
const (
	Done   Verdict = iota // the row goes
	Retry                 // again at RunAt; an attempt is spent
	Snooze                // again at RunAt; no attempt is spent
	Fail                  // the row stays as failed, for people
	Cancel                // the row goes, recorded as cancelled
)

// Finished is one run of a job that ended.
type Finished struct {
	Job       *Job
	Verdict   Verdict
	RunAt     time.Time // for Retry and Snooze
	Error     string
	StartedAt time.Time
	EndedAt   time.Time
	Record    bool // keep the outcome in job_history
	NoHistory bool // whatever Record and the verdict say
}

// Finishing is a batch of ends, written by one node.
type Finishing struct {
	Node   string
	Epochs map[int]int64 // of the buckets in the batch
	Jobs   []Finished
}

// Finish writes how jobs ended. It returns the jobs whose rows remain and so
// will run again: retried, snoozed, or changed while they ran. The buckets in
// lost have another owner by now; nothing was written for their jobs.
func (db *DB) Finish(ctx context.Context, b Finishing) (again []Job, lost []int, err error) {
	fast, slow := b.Jobs, []Finished(nil)
	if slices.ContainsFunc(b.Jobs, func(f Finished) bool { return f.Verdict != Done }) {
		fast = nil
		for _, f := range b.Jobs {
			if f.Verdict == Done {
				fast = append(fast, f)
			} else {
				slow = append(slow, f)
			}
		}
	}
	if len(fast) > 0 {
		n, err := db.dialect.finish(ctx, db, b.Node, b.Epochs, fast)
		if err != nil {
			return nil, nil, db.wrap(fmt.Errorf("finish jobs: %w", err))
		}
		if n < len(fast) { // some were changed, kept or cancelled, or the fence is lost
			left, err := db.survivors(ctx, fast)
			if err != nil {
				return nil, nil, err
			}
			slow = append(slow, left...)
		}
	}
	for bucket, jobs := range byBucket(slow) {
		left, err := db.finishOneByOne(ctx, Fence{bucket, b.Node, b.Epochs[bucket]}, jobs)
		switch {
		case pawl.ErrorCode(err) == pawl.CodeLeaseLost:
			lost = append(lost, bucket)
		case err != nil:
			return again, lost, err
		}
		again = append(again, left...)
	}
	return again, lost, nil
}

// survivors are those whose rows are still there; they need a closer look.
func (db *DB) survivors(ctx context.Context, jobs []Finished) ([]Finished, error) {
	ids := make([]int64, len(jobs))
	for i, f := range jobs {
		ids[i] = f.Job.ID
	}
	revs, err := db.Revisions(ctx, ids)
	if err != nil {
		return nil, err
	}
	var out []Finished
	for _, f := range jobs {
		if _, there := revs[f.Job.ID]; there {
			out = append(out, f)
		}
	}
	return out, nil
}

func byBucket(jobs []Finished) map[int][]Finished {
	out := map[int][]Finished{}
	for _, f := range jobs {
		out[f.Job.Bucket] = append(out[f.Job.Bucket], f)
	}
	return out
}

func (db *DB) finishOneByOne(ctx context.Context, fence Fence, jobs []Finished) ([]Job, error) {
	var left []Job
	err := db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		if err := tx.Fence(ctx, fence); err != nil {
			return err
		}
		ids := make([]int64, 0, len(jobs))
		for _, f := range jobs {
			if err := tx.finishOne(ctx, f, fence.Node); err != nil {
				return fmt.Errorf("finish job %d: %w", f.Job.ID, err)
			}
			ids = append(ids, f.Job.ID)
		}
		var err error
		left, err = tx.jobsByID(ctx, ids)
		return err
	})
	return left, err
}

// stateAgain is the state of a job that runs again.
const stateAgain = `state = case when bucket < 0 then 2 else 0 end`

func (tx *Tx) finishOne(ctx context.Context, f Finished, node string) error {
	j := f.Job
	var err error
	switch f.Verdict {
	case Done, Cancel:
		err = tx.deleteRan(ctx, f)
	case Retry:
		_, err = tx.Exec(ctx, `update jobs set `+stateAgain+`, run_at = $3, attempt = $4, last_error = $5, rev = rev + 1, started_at = null, node = null
			where id = $1 and rev = $2`, j.ID, j.Rev, Millis(f.RunAt), j.Attempt+1, NullText(f.Error))
	case Snooze:
		_, err = tx.Exec(ctx, `update jobs set `+stateAgain+`, run_at = $3, last_error = $4, rev = rev + 1, started_at = null, node = null
			where id = $1 and rev = $2`, j.ID, j.Rev, Millis(f.RunAt), NullText(f.Error))
	case Fail:
		_, err = tx.Exec(ctx, `update jobs set state = 1, attempt = $3, last_error = $4, rev = rev + 1, started_at = null, node = null
			where id = $1 and rev = $2`, j.ID, j.Rev, j.Attempt+1, NullText(f.Error))
	}
	if err != nil || f.NoHistory || (!f.Record && f.Verdict != Fail) || f.Verdict == Retry || f.Verdict == Snooze {
		return err
	}
	return tx.recordJob(ctx, f, node)
}

// deleteRan removes the revision that ran. If a Keep met the row while it ran,
// the row becomes what that Keep wanted.
func (tx *Tx) deleteRan(ctx context.Context, f Finished) error {
	j := f.Job
	n, err := tx.Exec(ctx, `delete from jobs where id = $1 and rev = $2 and (kept_at is null or kept_at < $3)`, j.ID, j.Rev, Millis(f.StartedAt))
	if err != nil || n == 1 {
		return err
	}
	var note *string
	err = tx.QueryRow(ctx, `select kept from jobs where id = $1 and rev = $2`, j.ID, j.Rev).Scan(&note)
	if errors.Is(err, ErrNoRow) || (err == nil && note == nil) {
		return nil
	}
	if err != nil {
		return err
	}
	var k kept
	if err := json.Unmarshal([]byte(*note), &k); err != nil {
		return fmt.Errorf("read kept job: %w", err)
	}
	bucket, state := j.Bucket, jobWaiting
	switch {
	case k.Served:
		bucket, state = servedBucket, jobServed
	case j.Served():
		bucket = tx.db.BucketOf(j.Lane, j.Key)
	}
	_, err = tx.Exec(ctx, `update jobs set task = $3, payload = $4, run_at = $5, max_attempts = $6, bucket = $7, state = $8, attempt = 0, rev = rev + 1,
		started_at = null, node = null, kept_at = null, kept = null, last_error = null where id = $1 and rev = $2`,
		j.ID, j.Rev, k.Task, string(k.Payload), k.RunAt, k.MaxAttempts, bucket, state)
	return err
}

// state is the word for a verdict in the history.
func (v Verdict) state() string {
	switch v {
	case Done:
		return "succeeded"
	case Fail:
		return "failed"
	case Cancel:
		return "cancelled"
	case Retry, Snooze:
	}
	return ""
}

func (tx *Tx) recordJob(ctx context.Context, f Finished, node string) error {
	j := f.Job
	_, err := tx.Exec(ctx, `insert into job_history (id, task, owner, lane, key, state, run_at, started_at, finished_at, attempt, error, node)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`+recordConflict,
		j.ID, j.Task, j.Owner, NullText(j.Lane), NullText(j.Key), f.Verdict.state(), Millis(j.RunAt), NullMillis(f.StartedAt), Millis(f.EndedAt), j.Attempt+1, NullText(f.Error), node)
	return err
}

func (tx *Tx) jobsByID(ctx context.Context, ids []int64) ([]Job, error) {
	var out []Job
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		jobs, err := scanJobs(tx.Query(ctx, `select `+jobColumns+` from jobs j where j.id = $1 and j.state = 0`, id))
		if err != nil {
			return nil, err
		}
		out = append(out, jobs...)
	}
	return out, nil
}

// CompleteJob ends a job inside its handler's own transaction, so that its
// effects and its end are one. It reports whether the row is gone; a row that
// was changed meanwhile stays and runs again.
func (tx *Tx) CompleteJob(ctx context.Context, j *Job, startedAt time.Time) (gone bool, err error) {
	if err := tx.deleteRan(ctx, Finished{Job: j, StartedAt: startedAt}); err != nil {
		return false, fmt.Errorf("complete job: %w", err)
	}
	left, err := tx.jobsByID(ctx, []int64{j.ID})
	return len(left) == 0, err
}
