package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	pawl "github.com/pawlrun/pawl"
)

// Enqueue adds jobs in this transaction. It returns them as they are in the
// table, in the order of the specs. This file and its statements in the dialects
// are all that adds jobs.
func (tx *Tx) Enqueue(ctx context.Context, specs []JobSpec) ([]Job, error) {
	out := make([]Job, len(specs))
	for i, s := range specs {
		out[i] = tx.db.newJob(s, tx.Now)
	}
	added, err := tx.addKeyed(ctx, out, specs)
	if err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	var plain []Job
	var makers []*string
	var lines []AuditEntry
	for i, s := range specs {
		j := out[i]
		switch {
		case s.Key == "":
			plain, makers = append(plain, j), append(makers, NullText(s.CreatedBy))
		case !added[j.ID]:
			if out[i], err = tx.enqueueKeyed(ctx, j, s); err != nil {
				return nil, fmt.Errorf("enqueue %s: %w", s.Task, err)
			}
		}
		if s.Actor != "" {
			lines = append(lines, enqueueLine(s, out[i], out[i].ID != j.ID))
		}
	}
	if len(plain) > 0 {
		if err := tx.db.dialect.insertJobs(ctx, tx.conn, plain, makers); err != nil {
			return nil, fmt.Errorf("enqueue: %w", err)
		}
	}
	return out, tx.AuditAll(ctx, lines)
}

// enqueueLine is what the audit log says of a job that somebody made, or that
// was there under its key already.
func enqueueLine(s JobSpec, j Job, known bool) AuditEntry {
	action := "job.create"
	switch {
	case known && s.KeyMode == Keep:
		action = "job.keep"
	case known:
		action = "job.replace"
	}
	detail := JSONText(map[string]string{"task": s.Task, "key": j.Key, "lane": j.Lane, "runAt": pawl.FormatTime(j.RunAt)})
	return AuditEntry{Actor: s.Actor, Action: action, Subject: "job:" + strconv.FormatInt(j.ID, 10), Detail: json.RawMessage(detail)}
}

// EnqueueOwnTx adds jobs that have no keys, in a transaction of their own. On
// PostgreSQL that is one round trip. When the answer to it is lost, the jobs are
// looked for; if that does not tell either, they are returned together with the
// error: they may be there, and must not be added again.
func (db *DB) EnqueueOwnTx(ctx context.Context, specs []JobSpec) (jobs []Job, err error) {
	if db.sqliteFile != nil {
		err = db.Write(ctx, func(ctx context.Context, tx *Tx) error {
			jobs, err = tx.Enqueue(ctx, specs)
			return err
		})
		return jobs, err
	}
	makers := make([]*string, len(specs))
	doubt := false
	err = db.retryContention(ctx, func() error {
		if jobs == nil { // else the same ones as before
			jobs = make([]Job, len(specs))
			now := now()
			for i, s := range specs {
				jobs[i], makers[i] = db.newJob(s, now), NullText(s.CreatedBy)
			}
		}
		err := db.bounded(ctx, func(ctx context.Context) error { return db.insertAlone(ctx, specs, jobs, makers) })
		if err != nil && db.dialect.classify(err) == errorSameID {
			jobs = nil // another process has one of them
		}
		doubt = inDoubt(err) && !neverSent(err)
		return err
	})
	if err == nil {
		return jobs, nil
	}
	if !doubt {
		return nil, err
	}
	if db.anyThere(context.WithoutCancel(ctx), jobs) {
		return jobs, nil
	}
	return jobs, err
}

// insertAlone adds jobs, and what the audit log says of them, in one round trip.
func (db *DB) insertAlone(ctx context.Context, specs []JobSpec, jobs []Job, makers []*string) error {
	var lines []AuditEntry
	for i, s := range specs {
		if s.Actor != "" {
			lines = append(lines, enqueueLine(s, jobs[i], false))
		}
	}
	if len(lines) == 0 {
		return db.dialect.insertJobs(ctx, pgConn{q: db.pool}, jobs, makers)
	}
	var both collected
	if err := errors.Join(db.dialect.insertJobs(ctx, &both, jobs, makers), db.insertAudit(ctx, &both, lines, now())); err != nil {
		return err
	}
	_, err := pgConn{q: db.pool}.execInARow(ctx, both.list...)
	return err
}

// lookTime bounds the look after jobs of which nobody knows whether they are
// there.
const lookTime = 3 * time.Second

// anyThere reports whether one of the jobs, which were added together, is or was
// there. It may have run already.
func (db *DB) anyThere(ctx context.Context, jobs []Job) bool {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	ids := make([]int64, len(jobs))
	for i, j := range jobs {
		ids[i] = j.ID
	}
	found := false
	err := db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		var n int
		err := tx.QueryRow(ctx, `select count(*) from (select id from jobs where id = any($1::bigint[])
			union all select id from job_history where id = any($1::bigint[])) found`, ids).Scan(&n)
		found = n > 0
		return err
	})
	return err == nil && found
}

func (db *DB) newJob(s JobSpec, now time.Time) Job {
	at := s.RunAt
	if at.IsZero() {
		at = now
	}
	payload := s.Payload
	if len(payload) == 0 {
		payload = json.RawMessage("{}")
	}
	bucket := servedBucket
	if !s.Served {
		bucket = db.BucketOf(s.Lane, s.Key)
	}
	return Job{
		ID: db.ids.next(now), Bucket: bucket, Priority: s.Priority,
		RunAt: at.UTC().Truncate(time.Millisecond), MaxAttempts: s.MaxAttempts,
		Task: s.Task, Owner: s.Owner, Lane: s.Lane, Key: s.Key, Payload: payload, CreatedAt: now, Trace: s.Trace,
	}
}

const insertJob = `insert into jobs as j (id, bucket, priority, run_at, max_attempts, task, owner, lane, key, payload, created_at, created_by, trace, state)
	values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, case when cast($2 as bigint) < 0 then 2 else 0 end) `

// A job that failed for good is revived by any mode: it counts as absent.
const onConflictReplace = `on conflict (key, owner) where key is not null do update set
	bucket = excluded.bucket, priority = excluded.priority, max_attempts = excluded.max_attempts, task = excluded.task,
	lane = excluded.lane, payload = excluded.payload, created_by = excluded.created_by, trace = excluded.trace,
	rev = j.rev + 1, attempt = 0, state = excluded.state, started_at = null, node = null, kept_at = null, kept = null, last_error = null, run_at = `

// runAtOf gives the expression for the new time in each mode.
func runAtOf(mode KeyMode) string {
	switch mode {
	case PreserveRunAt:
		return `case when j.state <> 1 then j.run_at else excluded.run_at end`
	case Earliest:
		return `case when j.state <> 1 and j.run_at < excluded.run_at then j.run_at else excluded.run_at end`
	case Replace, Keep:
	}
	return `excluded.run_at`
}

func insertArgs(j Job, createdBy *string) []any {
	return []any{j.ID, j.Bucket, j.Priority, Millis(j.RunAt), j.MaxAttempts, j.Task, j.Owner, NullText(j.Lane), NullText(j.Key), string(j.Payload), Millis(j.CreatedAt), createdBy, NullText(j.Trace)}
}

// addKeyed adds those of several jobs with keys whose keys nobody has, in one
// statement, and tells which these are.
func (tx *Tx) addKeyed(ctx context.Context, jobs []Job, specs []JobSpec) (map[int64]bool, error) {
	var rows [][]any
	for i, j := range jobs {
		if j.Key != "" {
			rows = append(rows, []any{
				j.ID, int64(j.Bucket), int64(j.Priority), Millis(j.RunAt), int64(j.MaxAttempts), j.Task, j.Owner, NullText(j.Lane), j.Key, string(j.Payload), Millis(j.CreatedAt), NullText(specs[i].CreatedBy), NullText(j.Trace),
			})
		}
	}
	added := map[int64]bool{}
	if len(rows) < 2 {
		return added, nil
	}
	table, args := tx.Rowset(nil, "id bigint, bucket bigint, priority bigint, at bigint, tries bigint, task text, owner_ text, lane text, key_ text, payload text, made bigint, maker text, trace_ text", rows)
	found, err := tx.Query(ctx, `insert into jobs (id, bucket, priority, run_at, max_attempts, task, owner, lane, key, payload, created_at, created_by, trace, state)
		select v.id, v.bucket, v.priority, v.at, v.tries, v.task, v.owner_, v.lane, v.key_, v.payload, v.made, v.maker, v.trace_,
			case when v.bucket < 0 then 2 else 0 end from `+table+` where true
		on conflict (key, owner) where key is not null do nothing returning id`, args...)
	ids, err := ScanAll(found, err, "add jobs", ScanID)
	for _, id := range ids {
		added[id] = true
	}
	return added, err
}

func (tx *Tx) enqueueKeyed(ctx context.Context, j Job, s JobSpec) (Job, error) {
	if s.KeyMode == Keep {
		return tx.enqueueKeep(ctx, j, s)
	}
	return tx.oneJob(ctx, insertJob+onConflictReplace+runAtOf(s.KeyMode)+` returning `+jobColumns, insertArgs(j, NullText(s.CreatedBy))...)
}

// kept is what a Keep that met a row wanted; it comes true if the job turns
// out to have been running by then.
type kept struct {
	Task        string          `json:"task"`
	Payload     json.RawMessage `json:"payload"`
	RunAt       int64           `json:"runAt"`
	MaxAttempts int             `json:"maxAttempts"`
	Served      bool            `json:"served,omitempty"`
}

// enqueueKeep inserts if it can, else leaves a note on the row. A row that
// failed for good, or went away between the two statements, is replaced.
func (tx *Tx) enqueueKeep(ctx context.Context, j Job, s JobSpec) (Job, error) {
	got, err := tx.oneJob(ctx, insertJob+`on conflict do nothing returning `+jobColumns, insertArgs(j, NullText(s.CreatedBy))...)
	if !errors.Is(err, ErrNoRow) {
		return got, err
	}
	note, err := json.Marshal(kept{j.Task, j.Payload, Millis(j.RunAt), j.MaxAttempts, j.Served()})
	if err != nil {
		return Job{}, err
	}
	got, err = tx.oneJob(ctx, `update jobs as j set kept_at = $2, kept = $3 where key = $1 and owner = $4 and state <> 1 returning `+jobColumns, j.Key, Millis(now()), string(note), j.Owner)
	if !errors.Is(err, ErrNoRow) {
		return got, err
	}
	return tx.oneJob(ctx, insertJob+onConflictReplace+runAtOf(Replace)+` returning `+jobColumns, insertArgs(j, NullText(s.CreatedBy))...)
}

func (tx *Tx) oneJob(ctx context.Context, sql string, args ...any) (Job, error) {
	jobs, err := scanJobs(tx.Query(ctx, sql, args...))
	if err != nil {
		return Job{}, err
	}
	if len(jobs) == 0 {
		return Job{}, ErrNoRow
	}
	return jobs[0], nil
}
