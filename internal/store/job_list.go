package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
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

// Ended reports whether a job in this state does not run any more, unless somebody
// wants it to.
func (s JobState) Ended() bool { return s == JobFailed || s == JobSucceeded || s == JobCancelled }

// UnendedJobs tells which of these jobs wait or run.
func (db *DB) UnendedJobs(ctx context.Context, ids []int64) (map[int64]bool, error) {
	out := make(map[int64]bool, len(ids))
	err := db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		clear(out)
		for batch := range Batches(ids) {
			text, args := In(nil, batch)
			rows, err := tx.Query(ctx, `select j.id from jobs j where j.id in `+text+` and j.state + 0 <> 1`, args...)
			found, err := ScanAll(rows, err, "look at jobs", ScanID)
			if err != nil {
				return err
			}
			for _, id := range found {
				out[id] = true
			}
		}
		return nil
	})
	return out, err
}

// JobRecord is a job as people see it: from the table of jobs, or from the
// history once its row is gone.
type JobRecord struct {
	Job
	State      JobState
	FinishedAt time.Time // zero unless it ended
	LastError  string
	Node       string
	CreatedBy  string          // empty if nobody in particular
	Result     json.RawMessage // what its worker said, while it is kept; of FindJob only
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
// Every part has its index: jobs_lane, jobs_key, jobs_failed, jobs_running and
// those of job_history; what has no filter goes down the primary key. What an
// index does not answer, such as a task that is rare among waiting jobs, is
// looked for in windows (see PageThrough): an index for it would be paid for by
// every enqueue.
func (db *DB) ListJobs(ctx context.Context, f JobFilter, before int64, limit int) (page []JobRecord, next int64, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *Tx) (err error) {
		var more bool
		page, next, more, err = PageThrough(IDBefore(before), limit, func(r JobRecord) int64 { return r.ID }, func(before int64, want int) (Window[JobRecord, int64], error) {
			return tx.lookAtJobs(ctx, f, before, want)
		})
		if !more {
			next = 0
		}
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("list jobs: %w", err)
	}
	return page, next, nil
}

// lookAtJobs reads a window of every part and puts them together, down to where
// the first of the windows ends.
func (tx *Tx) lookAtJobs(ctx context.Context, f JobFilter, before int64, want int) (all Window[JobRecord, int64], err error) {
	for _, part := range []func(context.Context, JobFilter, int64, int) (Window[JobRecord, int64], error){tx.listLive, tx.listServed, tx.listFailed, tx.listPast} {
		l, err := part(ctx, f, before, want)
		if err != nil {
			return all, err
		}
		all.Rows = append(all.Rows, l.Rows...)
		if l.Cut {
			all.Cut, all.Floor = true, max(all.Floor, l.Floor)
		}
	}
	slices.SortFunc(all.Rows, func(a, b JobRecord) int { return cmp.Compare(b.ID, a.ID) })
	all.Rows = slices.DeleteFunc(all.Rows, func(r JobRecord) bool { return r.ID < all.Floor })
	if len(all.Rows) > want {
		all.Rows = all.Rows[:want]
	}
	return all, nil
}

// names adds the names that are asked for: the first one that a table has an
// index of to base, the others to rest.
func (f JobFilter) names(base, rest *Where, table string, indexed ...string) {
	switch {
	case f.Owner == nil:
	case *f.Owner == "" || f.Key != "" || f.Lane != "":
		rest.Add(table+".owner = ?", *f.Owner)
	default: // spelled like the condition of the index
		base.Add(table+".owner <> '' and "+table+".owner = ?", *f.Owner)
		indexed = nil
	}
	if f.Task == "" { // what keeps the house is shown to those who ask for it
		rest.Add(table + ".task not like 'pawl.%'")
	}
	for _, column := range []struct{ name, value string }{{"key", f.Key}, {"lane", f.Lane}, {"task", f.Task}} {
		switch {
		case column.value == "":
		case slices.Contains(indexed, column.name):
			base.Add(table+"."+column.name+" = ?", column.value)
			indexed = nil
		default:
			rest.Add(table+"."+column.name+" = ?", column.value)
		}
	}
}

const presentColumns = jobColumns + `, state, last_error, node, created_by`

// manyDue is how many jobs must be due for a list of them to go down the
// primary key instead.
const manyDue = 2000

// listLive reads jobs that wait or run.
func (tx *Tx) listLive(ctx context.Context, f JobFilter, before int64, want int) (l Window[JobRecord, int64], err error) {
	var c, rest Where
	from := "jobs j"
	c.Add("j.id < ? and j.state = 0", before)
	switch f.State {
	case "":
	case JobScheduled:
		rest.Add("j.started_at is null and j.run_at > ?", Millis(tx.Now))
	case JobPending:
		rest.Add("j.started_at is null and j.run_at <= ?", Millis(tx.Now))
		if n, err := tx.countDue(ctx, manyDue); err != nil {
			return l, err
		} else if n < manyDue && f.Lane == "" && f.Key == "" {
			from = "(select j.* from " + dueJobs + ") j"
		}
	case JobRunning:
		c.Add("j.started_at is not null")
	case JobFailed, JobSucceeded, JobCancelled:
		return l, nil
	}
	f.names(&c, &rest, "j", "key")
	few, err := tx.fewInLane(ctx, f.Lane)
	if err != nil {
		return l, err
	}
	if few || from != "jobs j" || f.State == JobRunning || f.Key != "" {
		c.Join(&rest)
		l.Rows, err = tx.listFrom(ctx, from, &c, want)
		return l, err
	}
	return tx.listWindow(ctx, &c, &rest, want)
}

// fewInLane reports whether so few jobs wait in a lane that all can be looked at.
func (tx *Tx) fewInLane(ctx context.Context, lane string) (bool, error) {
	if lane == "" {
		return false, nil
	}
	var n int
	err := tx.QueryRow(ctx, `select count(*) from (select 1 from jobs where lane = $1 and state = 0 limit $2) l`, lane, WindowRows).Scan(&n)
	return n < WindowRows, err
}

// listWindow reads a window of waiting jobs.
func (tx *Tx) listWindow(ctx context.Context, c, rest *Where, want int) (l Window[JobRecord, int64], err error) {
	if l.Floor, l.Cut, err = WindowEnd(ctx, tx, "j.id", "jobs j", "j.id desc", c, ScanID); err != nil {
		return l, err
	}
	c.Join(rest)
	c.Add("j.id >= ?", l.Floor)
	l.Rows, err = tx.listFrom(ctx, "jobs j", c, want)
	return l, err
}

// listServed reads jobs that wait for a worker of a user or are in the hands of
// one.
func (tx *Tx) listServed(ctx context.Context, f JobFilter, before int64, want int) (l Window[JobRecord, int64], err error) {
	var c, rest Where
	c.Add("j.id < ? and j.state >= 2", before)
	switch f.State {
	case "":
	case JobScheduled:
		rest.Add("j.state = 2 and j.run_at > ?", Millis(tx.Now))
	case JobPending:
		rest.Add("j.state = 2 and j.run_at <= ?", Millis(tx.Now))
	case JobRunning:
		rest.Add("j.state = 3")
	case JobFailed, JobSucceeded, JobCancelled:
		return l, nil
	}
	f.names(&rest, &rest, "j")
	return tx.listWindow(ctx, &c, &rest, want)
}

// listFailed reads jobs that failed for good.
func (tx *Tx) listFailed(ctx context.Context, f JobFilter, before int64, want int) (l Window[JobRecord, int64], err error) {
	if f.State != "" && f.State != JobFailed {
		return l, nil
	}
	var c, rest Where
	c.Add("j.id < ? and j.state = 1", before)
	f.names(&rest, &rest, "j") // those that failed are looked through
	return tx.listWindow(ctx, &c, &rest, want)
}

func (tx *Tx) listFrom(ctx context.Context, from string, c *Where, limit int) ([]JobRecord, error) {
	return tx.scanPresent(tx.Query(ctx, `select `+presentColumns+` from `+from+` where `+c.String()+` order by j.id desc limit `+strconv.Itoa(limit), c.Args...))
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
		r.LastError, r.Node, r.CreatedBy = FromNullText(lastError), FromNullText(node), FromNullText(createdBy)
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
func (tx *Tx) listPast(ctx context.Context, f JobFilter, before int64, want int) (l Window[JobRecord, int64], err error) {
	var c, rest Where
	c.Add("h.id < ?", before)
	indexed := []string{"key", "lane", "task"}
	switch f.State {
	case "":
	case JobScheduled, JobPending, JobRunning:
		return l, nil
	case JobSucceeded:
		rest.Add("h.state = 'succeeded'")
	case JobFailed, JobCancelled: // spelled like the condition of the index
		if f.Key == "" && f.Lane == "" && (f.Owner == nil || *f.Owner == "") {
			c.Add("h.state <> 'succeeded' and h.state = ?", string(f.State))
			indexed = nil
		} else {
			rest.Add("h.state = ?", string(f.State))
		}
	}
	f.names(&c, &rest, "h", indexed...)
	// A scalar subquery, because PostgreSQL would answer NOT EXISTS by reading
	// both tables whole before it sorts and cuts.
	rest.Add("(select 1 from jobs j where j.id = h.id) is null")
	if l.Floor, l.Cut, err = WindowEnd(ctx, tx, "h.id", "job_history h", "h.id desc", &c, ScanID); err != nil {
		return l, err
	}
	c.Join(&rest)
	c.Add("h.id >= ?", l.Floor)
	l.Rows, err = scanPast(tx.Query(ctx, selectPast+c.String()+` order by h.id desc limit `+strconv.Itoa(want), c.Args...))
	return l, err
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
		r.Lane, r.Key, r.LastError, r.Node = FromNullText(lane), FromNullText(key), FromNullText(lastError), FromNullText(node)
		r.State, r.RunAt, r.StartedAt, r.FinishedAt = JobState(state), FromMillis(runAt), FromNullMillis(started), FromMillis(finished)
		r.CreatedAt = timeOfID(r.ID)
		out = append(out, r)
	}
	return out, rows.Err()
}

// timeOfID is when a job's id was made.
func timeOfID(id int64) time.Time { return FromMillis(id>>22 + idEpoch) }

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
		if err == nil && len(found) > 0 {
			found[0].Result, err = tx.jobResult(ctx, id)
		}
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

func (tx *Tx) jobResult(ctx context.Context, id int64) (json.RawMessage, error) {
	var result *string
	err := tx.QueryRow(ctx, `select result from job_results where job_id = $1 and keep_until > $2`, id, Millis(tx.Now)).Scan(&result)
	if errors.Is(err, ErrNoRow) {
		err = nil
	}
	return FromNullJSON(result), err
}
