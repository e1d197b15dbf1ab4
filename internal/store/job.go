package store

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// Job is a durable wake-up.
type Job struct {
	ID          int64
	Rev         int64 // raised by every change of the row
	Bucket      int
	Priority    int // 1 before 0 before -1
	RunAt       time.Time
	Attempt     int // attempts that have ended
	MaxAttempts int // 0 is unlimited
	Task        string
	Owner       string // the id of the user whose it is; empty is Pawl itself
	Lane        string // of its owner
	Key         string // of its owner
	Payload     json.RawMessage
	CreatedAt   time.Time
	StartedAt   time.Time // zero unless the row carries the mark of a long run
	Trace       string    // the traceparent of whoever asked for it; empty if there is none
}

// Lane names a lane: those of different owners have nothing to do with each
// other, whatever they are called.
type Lane struct {
	Owner string
	Name  string // empty is no lane
}

// LaneName is the lane of the job.
func (j *Job) LaneName() Lane { return Lane{j.Owner, j.Lane} }

// KeyMode says what an enqueue does when a job with its key is there already.
type KeyMode string

// The modes of a key. A job that failed for good counts as absent.
const (
	// Replace puts the new job in the place of the waiting one. If that is
	// running, the new one runs after it.
	Replace KeyMode = "replace"
	// PreserveRunAt is Replace, but the time of the waiting job stays.
	PreserveRunAt KeyMode = "preserve_run_at"
	// Keep leaves a waiting job as it is. If it is running, the new one runs
	// after it. Whether it runs is told by the clock: a transaction that began
	// before the job did and commits later counts as before. So Keep is for
	// "there should be such a job", not for "look again": that is Earliest.
	Keep KeyMode = "keep"
	// Earliest arms the job at the earlier of the two times. If it is running
	// it runs once more: whatever was committed together with the enqueue is
	// seen by a run that starts after the commit.
	Earliest KeyMode = "earliest"
)

// JobSpec asks for a job.
type JobSpec struct {
	Task        string
	Payload     json.RawMessage
	RunAt       time.Time // zero is now
	Owner       string    // the id of the user whose job, key and lane it is; empty is Pawl itself
	Key         string
	KeyMode     KeyMode // empty is Replace
	Lane        string
	Priority    int
	MaxAttempts int
	CreatedBy   string
	Trace       string // the traceparent of whoever asks for it
	Served      bool   // the task is served by programs of users; see ClaimJobs

	// Actor is who the audit log says made the job, in the transaction that
	// makes it; empty writes no line, which is for Pawl's own.
	Actor string
}

// BucketOf tells the bucket of a job: its lane decides, else its key, else
// chance. It is the FNV-1a hash of 32 bits of the name's UTF-8 bytes, modulo the
// number of buckets. The owner has no part in it: what matters is that all jobs
// of a lane are in one bucket, not that two lanes are in different ones.
func (db *DB) BucketOf(lane, key string) int {
	n := db.dialect.buckets()
	if lane == "" {
		lane = key
	}
	if lane == "" {
		return rand.IntN(n)
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(lane))
	return int(h.Sum32() % uint32(n))
}

// Cursor is how far a bucket and priority have been read.
type Cursor struct {
	Bucket   int
	Priority int
	RunAt    time.Time
	ID       int64
}

func scanJobs(rows Rows, err error) ([]Job, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Job
	scan := newJobScan()
	for rows.Next() {
		if out == nil {
			out = make([]Job, 0, 64)
		}
		out = append(out, Job{})
		if err := scan.into(rows, &out[len(out)-1]); err != nil {
			return nil, err
		}
	}
	return out, rows.Err()
}

// jobScan reads jobColumns, and whatever more is asked for. It is made once for
// a query, because this is the hottest read there is.
type jobScan struct {
	runAt, created int64
	started        *int64
	lane, key      *string
	trace          *string
	payload        []byte
	dest           []any
}

func newJobScan(more ...any) *jobScan {
	s := &jobScan{}
	s.dest = append([]any{nil, nil, nil, nil, &s.runAt, nil, nil, nil, nil, &s.lane, &s.key, &s.payload, &s.created, &s.started, &s.trace}, more...)
	return s
}

func (s *jobScan) into(rows Rows, j *Job) error {
	s.dest[0], s.dest[1], s.dest[2], s.dest[3] = &j.ID, &j.Rev, &j.Bucket, &j.Priority
	s.dest[5], s.dest[6], s.dest[7], s.dest[8] = &j.Attempt, &j.MaxAttempts, &j.Task, &j.Owner
	s.payload = nil // the last one belongs to its job
	if err := rows.Scan(s.dest...); err != nil {
		return err
	}
	j.RunAt, j.CreatedAt, j.StartedAt = FromMillis(s.runAt), FromMillis(s.created), FromNullMillis(s.started)
	j.Lane, j.Key, j.Payload, j.Trace = FromNullText(s.lane), FromNullText(s.key), s.payload, FromNullText(s.trace)
	return nil
}

// scanJob reads one job where speed does not matter.
func scanJob(rows Rows, j *Job, more ...any) error { return newJobScan(more...).into(rows, j) }

// FetchDue reads, for every cursor, up to limit jobs beyond it that are due
// by until.
func (db *DB) FetchDue(ctx context.Context, cursors []Cursor, limit int, until time.Time) ([]Job, error) {
	jobs, err := db.dialect.fetchDue(ctx, db, cursors, limit, until)
	return jobs, db.wrap(err)
}

// FetchLanes reads up to limit due jobs of each lane, in the order they must
// run.
func (db *DB) FetchLanes(ctx context.Context, lanes []Lane, limit int, now time.Time) ([]Job, error) {
	jobs, err := db.dialect.fetchLanes(ctx, db, lanes, limit, now)
	return jobs, db.wrap(err)
}

// FetchJobs reads jobs by id; what is gone or failed for good is left out.
func (db *DB) FetchJobs(ctx context.Context, ids []int64) ([]Job, error) {
	jobs, err := db.dialect.fetchIDs(ctx, db, ids)
	return jobs, db.wrap(err)
}

// Revisions reads the present revision of each job; what is gone is left out.
func (db *DB) Revisions(ctx context.Context, ids []int64) (map[int64]int64, error) {
	revs, err := db.dialect.revisions(ctx, db, ids)
	return revs, db.wrap(err)
}

// NextDue is the earliest instant after the given one at which a job of the
// cursors' buckets and priorities is due; zero if there is none.
func (db *DB) NextDue(ctx context.Context, cursors []Cursor, after time.Time) (time.Time, error) {
	t, err := db.dialect.nextDue(ctx, db, cursors, after)
	return t, db.wrap(err)
}

// Marking is a note on the rows of jobs that they run, since when, and where.
type Marking struct {
	Node   string
	Epochs map[int]int64 // of the buckets of the jobs
	Jobs   []*Job
	At     time.Time
}

// MarkStarted notes on the rows of long jobs that they run, and returns how many
// it marked: not those that were changed meanwhile, or whose bucket has another
// owner. A mark on a row that has another one already counts the earlier run as
// an attempt: it was cut off.
func (db *DB) MarkStarted(ctx context.Context, m Marking) (int, error) {
	n, err := db.dialect.mark(ctx, db, m)
	return n, db.wrap(err)
}
