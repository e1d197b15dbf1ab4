package store

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// What is done to many jobs at once goes in two steps. They are looked for outside
// of the transaction that changes them, so that nothing is locked meanwhile; and they
// are changed by id and revision, so that what became something else meanwhile is
// left alone. Payloads are not read: many of them can be more than there is memory.

// slimColumns are jobColumns without the payload.
const slimColumns = "id, rev, bucket, priority, run_at, attempt, max_attempts, task, owner, lane, key, '' as payload, created_at, started_at, trace"

// JobPick picks jobs of users that are in the table of jobs: that wait, run or
// failed. A job of Pawl's own is never picked, whatever its owner is said to be.
type JobPick struct {
	JobFilter
	Error string    // a part of the last error
	Until time.Time // made before this; zero is whenever
}

// PickJobs reads up to limit jobs behind a place, the oldest first, without their
// payloads. It looks at a bounded number of rows: if there may be more, it says so,
// and next is the place to go on.
func (db *DB) PickJobs(ctx context.Context, p JobPick, after int64, limit int) (found []JobRecord, next int64, more bool, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *Tx) (err error) {
		found, next, more, err = PageThrough(after, limit, func(r JobRecord) int64 { return r.ID }, func(after int64, want int) (Window[JobRecord, int64], error) {
			return tx.lookForPicked(ctx, p, after, want)
		})
		return err
	})
	if err != nil {
		return nil, 0, false, fmt.Errorf("pick jobs: %w", err)
	}
	return found, next, more, nil
}

func (tx *Tx) lookForPicked(ctx context.Context, p JobPick, after int64, want int) (l Window[JobRecord, int64], err error) {
	base, rest := p.where(after, tx.Now)
	if l.Floor, l.Cut, err = WindowEnd(ctx, tx, "j.id", "jobs j", "j.id", base, ScanID); err != nil {
		return l, err
	}
	if l.Cut {
		base.Add("j.id <= ?", l.Floor)
	}
	base.Join(rest)
	l.Rows, err = tx.scanPresent(tx.Query(ctx, `select `+slimColumns+`, state, last_error, node, created_by from jobs j where `+base.String()+` order by j.id limit `+strconv.Itoa(want), base.Args...))
	return l, err
}

// where gives the conditions: base are those of an index that is walked, rest those
// that are looked at on the way.
func (p JobPick) where(after int64, now time.Time) (base, rest *Where) {
	base, rest = &Where{}, &Where{}
	base.Add("j.id > ?", after)
	if !p.Until.IsZero() { // an id begins with the time
		base.Add("j.id < ?", IDAt(p.Until))
	}
	rest.Add("j.owner <> ''")
	walk := func(free bool) *Where { // one index can be walked
		if free {
			return base
		}
		return rest
	}
	if p.Key != "" {
		base.Add("j.key is not null and j.key = ?", p.Key)
	}
	byState := p.Key == "" && (p.State == JobFailed || p.State == JobRunning)
	if p.Owner != nil {
		walk(p.Key == "" && !byState).Add("j.owner <> '' and j.owner = ?", *p.Owner)
	}
	switch p.State {
	case JobFailed:
		walk(byState).Add("j.state = 1")
	case JobRunning:
		walk(byState).Add("j.started_at is not null")
		rest.Add("j.state <> 1")
	case JobScheduled:
		rest.Add("j.state in (0, 2) and j.started_at is null and j.run_at > ?", Millis(now))
	case JobPending:
		rest.Add("j.state in (0, 2) and j.started_at is null and j.run_at <= ?", Millis(now))
	case JobSucceeded, JobCancelled: // are not in the table
		rest.Add("1 = 0")
	}
	if p.Lane != "" {
		rest.Add("j.lane = ?", p.Lane)
	}
	if p.Task != "" {
		rest.Add("j.task = ?", p.Task)
	}
	if p.Error != "" { // LIKE takes case differently in each database
		rest.Add("replace(j.last_error, ?, '') <> j.last_error", p.Error)
	}
	return base, rest
}

// RetryJobs is RetryJob for jobs that PickJobs found, and returns those that wait
// again, without their payloads. What did not fail, or has changed since, is left.
func (tx *Tx) RetryJobs(ctx context.Context, picked []JobRecord) ([]Job, error) {
	if len(picked) == 0 {
		return nil, nil
	}
	tx.GoByIndex()
	table, args := tx.Rowset([]any{Millis(tx.Now)}, "job bigint, seen bigint", asSeen(picked))
	jobs, err := scanJobs(tx.Query(ctx, `update jobs as j set `+stateAgain+`, attempt = 0, run_at = $1, last_error = null, rev = rev + 1
		where (j.id, j.rev) in (select v.job, v.seen from `+table+`) and `+stillFailed+` and `+ofAUser+` returning `+slimColumns, args...))
	if err != nil {
		return nil, fmt.Errorf("retry jobs: %w", err)
	}
	return jobs, nil
}

// CancelJobs is CancelJob for jobs that PickJobs found, and returns those that were
// cancelled. What has ended or changed since is left.
func (tx *Tx) CancelJobs(ctx context.Context, picked []JobRecord) ([]JobRecord, error) {
	if len(picked) == 0 {
		return nil, nil
	}
	tx.GoByIndex()
	table, args := tx.Rowset(nil, "job bigint, seen bigint", asSeen(picked))
	gone, err := tx.scanPresent(tx.Query(ctx, `delete from jobs as j where (j.id, j.rev) in (select v.job, v.seen from `+table+`) and `+ofAUser+`
		returning `+slimColumns+`, state, last_error, node, created_by`, args...))
	if err != nil || len(gone) == 0 {
		return nil, err
	}
	rows := make([][]any, len(gone))
	for i := range gone {
		r := &gone[i]
		r.State, r.FinishedAt = JobCancelled, tx.Now
		rows[i] = []any{r.ID, r.Task, r.Owner, NullText(r.Lane), NullText(r.Key), Millis(r.RunAt), NullMillis(r.StartedAt), int64(r.Attempt), NullText(r.LastError), NullText(r.Node)}
	}
	table, args = tx.Rowset([]any{string(JobCancelled), Millis(tx.Now)}, "job bigint, what text, whose text, name text, mark text, at bigint, begun bigint, tries bigint, why text, place text", rows)
	_, err = tx.Exec(ctx, `insert into job_history (id, task, owner, lane, key, state, run_at, started_at, finished_at, attempt, error, node)
		select v.job, v.what, v.whose, v.name, v.mark, $1, v.at, v.begun, $2, v.tries, v.why, v.place from `+table+` where true`+recordConflict, args...)
	if err != nil {
		return nil, fmt.Errorf("record cancelled jobs: %w", err)
	}
	return gone, nil
}

// Conditions that no index helps with: the rows of a set are found by their ids, and
// not by looking for each among all that failed.
const (
	stillFailed = `j.state + 0 = 1`
	ofAUser     = `length(j.owner) > 0`
)

// asSeen are the ids and revisions of jobs.
func asSeen(picked []JobRecord) [][]any {
	rows := make([][]any, len(picked))
	for i, r := range picked {
		rows[i] = []any{r.ID, r.Rev}
	}
	return rows
}
