package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
)

// JobState is what people call the condition of a job.
type JobState string

// The closed set of job states.
const (
	JobScheduled JobState = "scheduled" // its time has not come
	JobPending   JobState = "pending"   // due, and waits for its lane or a worker
	JobRunning   JobState = "running"   // runs, by what the row says: a run of less than a second is still pending there
	JobFailed    JobState = "failed"    // for good, and kept for people
	JobSucceeded JobState = "succeeded"
	JobCancelled JobState = "cancelled"
)

// JobStates returns the closed set of job states.
func JobStates() []JobState {
	return []JobState{JobScheduled, JobPending, JobRunning, JobFailed, JobSucceeded, JobCancelled}
}

// JobRecord is a job as people see it: from the table of jobs, or from the
// history once its row is gone.
type JobRecord struct {
	Job
	State      JobState
	FinishedAt time.Time // zero unless it ended
	LastError  string
	Node       string
	CreatedBy  string // empty if nobody in particular
	// Past: from the history, which keeps neither payload, priority, limit of
	// attempts nor who asked for it.
	Past bool
}

// JobFilter picks jobs; empty fields pick all.
type JobFilter struct {
	Owner *string // nil picks everybody's; see Job.Owner
	Task  string
	Lane  string
	Key   string
	State JobState
}

// ListJobs reads up to limit jobs, the newest first, and the id with which to
// go on, zero at the end. before is that of the page before, or zero.
//
// Waiting, running and failed jobs come from the table of jobs, ended ones from
// the history, merged by id. A job that is in both (it failed, or was enqueued
// again under its key) is told by the table of jobs.
//
// Every part has its index and reads little more than a page: jobs_lane,
// jobs_key, jobs_failed, jobs_running and those of job_history; what has no
// filter goes down the primary key. Two filters can read more: a task that is
// rare among waiting jobs, and a state that is rare among them (pending ones
// are found by jobs_due unless they are many). They cost one pass over the
// table of jobs, some 0.4 s for a million; an index for them would be paid for
// by every enqueue.
func (db *DB) ListJobs(ctx context.Context, f JobFilter, before int64, limit int) (page []JobRecord, next int64, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		page = nil
		for _, part := range []func(context.Context, JobFilter, int64, int) ([]JobRecord, error){tx.listLive, tx.listFailed, tx.listPast} {
			jobs, err := part(ctx, f, idBefore(before), limit+1)
			if err != nil {
				return err
			}
			page = append(page, jobs...)
		}
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("list jobs: %w", err)
	}
	slices.SortFunc(page, func(a, b JobRecord) int { return cmp.Compare(b.ID, a.ID) })
	if len(page) > limit {
		page = page[:limit]
		next = page[limit-1].ID
	}
	return page, next, nil
}

// conditions gathers what a WHERE asks for, with the arguments.
type conditions struct {
	texts []string
	args  []any
}

// add appends a condition; each ? in it takes the next argument.
func (c *conditions) add(text string, args ...any) {
	for _, a := range args {
		c.args = append(c.args, a)
		text = strings.Replace(text, "?", "$"+strconv.Itoa(len(c.args)), 1)
	}
	c.texts = append(c.texts, text)
}

func (c *conditions) String() string { return strings.Join(c.texts, " and ") }

func (f JobFilter) names(c *conditions, table string) {
	if f.Owner != nil {
		if *f.Owner != "" { // spelled like the condition of the index
			c.add(table + ".owner <> ''")
		}
		c.add(table+".owner = ?", *f.Owner)
	}
	if f.Task == "" { // what keeps the house is shown to those who ask for it
		c.add(table + ".task not like 'pawl.%'")
	}
	for _, column := range []struct{ name, value string }{{"task", f.Task}, {"lane", f.Lane}, {"key", f.Key}} {
		if column.value != "" {
			c.add(table+"."+column.name+" = ?", column.value)
		}
	}
}

const presentColumns = jobColumns + `, state, last_error, node, created_by`

// manyDue is how many jobs must be due for a list of them to go down the
// primary key instead.
const manyDue = 2000

// listLive reads jobs that wait or run.
func (tx *Tx) listLive(ctx context.Context, f JobFilter, before int64, limit int) ([]JobRecord, error) {
	var c conditions
	from := "jobs j"
	c.add("j.id < ? and j.state = 0", before)
	switch f.State {
	case "":
	case JobScheduled:
		c.add("j.started_at is null and j.run_at > ?", ms(tx.Now))
	case JobPending:
		c.add("j.started_at is null and j.run_at <= ?", ms(tx.Now))
		if n, err := tx.countDue(ctx, manyDue); err != nil {
			return nil, err
		} else if n < manyDue && f.Lane == "" && f.Key == "" {
			from = "(select j.* from " + dueJobs + ") j"
		}
	case JobRunning:
		c.add("j.started_at is not null")
	case JobFailed, JobSucceeded, JobCancelled:
		return nil, nil
	}
	f.names(&c, "j")
	return tx.listFrom(ctx, from, &c, limit)
}

// listFailed reads jobs that failed for good.
func (tx *Tx) listFailed(ctx context.Context, f JobFilter, before int64, limit int) ([]JobRecord, error) {
	if f.State != "" && f.State != JobFailed {
		return nil, nil
	}
	var c conditions
	c.add("j.id < ? and j.state = 1", before)
	f.names(&c, "j")
	return tx.listFrom(ctx, "jobs j", &c, limit)
}

func (tx *Tx) listFrom(ctx context.Context, from string, c *conditions, limit int) ([]JobRecord, error) {
	return tx.scanPresent(tx.Query(ctx, `select `+presentColumns+` from `+from+` where `+c.String()+` order by j.id desc limit `+strconv.Itoa(limit), c.args...))
}

func (tx *Tx) scanPresent(rows Rows, err error) ([]JobRecord, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []JobRecord
	for rows.Next() {
		var r JobRecord
		var failed int
		var lastError, node, createdBy *string
		if err := scanJob(rows, &r.Job, &failed, &lastError, &node, &createdBy); err != nil {
			return nil, err
		}
		r.LastError, r.Node, r.CreatedBy = fromNull(lastError), fromNull(node), fromNull(createdBy)
		r.State = presentState(&r.Job, failed == 1, tx.Now)
		out = append(out, r)
	}
	return out, rows.Err()
}

func presentState(j *Job, failed bool, now time.Time) JobState {
	switch {
	case failed:
		return JobFailed
	case !j.StartedAt.IsZero():
		return JobRunning
	case j.RunAt.After(now):
		return JobScheduled
	}
	return JobPending
}

const selectPast = `select h.id, h.task, h.owner, h.lane, h.key, h.state, h.run_at, h.started_at, h.finished_at, h.attempt, h.error, h.node
	from job_history h where `

// listPast reads jobs that ended and whose row is gone.
func (tx *Tx) listPast(ctx context.Context, f JobFilter, before int64, limit int) ([]JobRecord, error) {
	var c conditions
	c.add("h.id < ?", before)
	switch f.State {
	case "":
	case JobScheduled, JobPending, JobRunning:
		return nil, nil
	case JobSucceeded:
		c.add("h.state = 'succeeded'")
	case JobFailed, JobCancelled: // spelled like the condition of the index
		c.add("h.state <> 'succeeded' and h.state = ?", string(f.State))
	}
	f.names(&c, "h")
	// A scalar subquery, because PostgreSQL would answer NOT EXISTS by reading
	// both tables whole before it sorts and cuts.
	c.add("(select 1 from jobs j where j.id = h.id) is null")
	return scanPast(tx.Query(ctx, selectPast+c.String()+` order by h.id desc limit `+strconv.Itoa(limit), c.args...))
}

func scanPast(rows Rows, err error) ([]JobRecord, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []JobRecord
	for rows.Next() {
		r := JobRecord{Past: true}
		var runAt, finished int64
		var started *int64
		var state string
		var lane, key, lastError, node *string
		if err := rows.Scan(&r.ID, &r.Task, &r.Owner, &lane, &key, &state, &runAt, &started, &finished, &r.Attempt, &lastError, &node); err != nil {
			return nil, err
		}
		r.Lane, r.Key, r.LastError, r.Node = fromNull(lane), fromNull(key), fromNull(lastError), fromNull(node)
		r.State, r.RunAt, r.StartedAt, r.FinishedAt = JobState(state), fromMS(runAt), fromNullMS(started), fromMS(finished)
		r.CreatedAt = timeOfID(r.ID)
		out = append(out, r)
	}
	return out, rows.Err()
}

// timeOfID is when a job's id was made.
func timeOfID(id int64) time.Time { return fromMS(id>>22 + idEpoch) }

// FindJob returns a job of an owner (nil: of anybody, Pawl included), present or
// past, or pawl.ErrNotFound.
func (db *DB) FindJob(ctx context.Context, owner *string, id int64) (r JobRecord, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		r, err = tx.findJob(ctx, owner, id)
		return err
	})
	return r, err
}

func (tx *Tx) findJob(ctx context.Context, owner *string, id int64) (JobRecord, error) {
	found, err := tx.scanPresent(tx.Query(ctx, `select `+presentColumns+` from jobs j where j.id = $1`, id))
	if err == nil && len(found) == 0 {
		found, err = scanPast(tx.Query(ctx, selectPast+`h.id = $1`, id))
	}
	switch {
	case err != nil:
		return JobRecord{}, fmt.Errorf("find job: %w", err)
	case len(found) == 0 || owner != nil && found[0].Owner != *owner:
		return JobRecord{}, &pawl.Error{Code: pawl.CodeNotFound, Op: "find job", Msg: fmt.Sprintf("there is no job %d", id),
			Hint: "Jobs that ended are forgotten after a while, and some tasks keep no record."}
	}
	return found[0], nil
}
