package store

import (
	"context"
	"encoding/json"
	"strings"
	"time"
)

// dialect is what statements and errors of the two databases differ in. Its
// implementations are in dialect_sqlite.go and dialect_postgres.go. How a
// transaction is run differs too: sqlite*.go group them for the one writer of a
// file, postgres*.go and sharedtx*.go have a pool.
type dialect interface {
	name() string

	// storage measures the database, and sample is a source of rows for some of
	// a large table, called t.
	storage(ctx context.Context, tx *Tx) (Storage, error)
	sample(table string, size TableSize) string

	// buckets is how many buckets jobs hash to.
	buckets() int

	// types gives the words that replace {{word}} in a migration.
	types() map[string]string

	// classify turns a driver's error into a kind, by its code.
	classify(err error) errorKind

	// fence takes the bucket's shared lock until the transaction ends and
	// tells whether the fence holds.
	fence(ctx context.Context, tx *Tx, f Fence) (held bool, err error)

	// shareLock ends a select whose rows nobody may change until the
	// transaction ends.
	shareLock() string
	// holdLock ends a select whose rows nobody else may change, share or hold
	// until the transaction ends.
	holdLock() string

	// skipLock ends a select that leaves out rows that somebody else holds, and
	// holds the others.
	skipLock() string

	// rowset makes a table v of rows; see Tx.Rowset.
	rowset(before []any, names, types []string, rows [][]any) (table string, args []any)

	// tryLockBuckets takes exclusive locks until the transaction ends, and
	// tells which it got: others are held by transactions that are under way.
	tryLockBuckets(ctx context.Context, tx *Tx, buckets []int) ([]int, error)

	// lockMigrations makes migrating processes wait for each other.
	lockMigrations(ctx context.Context, tx *Tx) error

	prepareDoor()
	// buildDoor brings the functions up to date that applications call.
	buildDoor(ctx context.Context, tx *Tx) error

	// The statements of the queue's hot path, which pass many values at once:
	// PostgreSQL unnests arrays, SQLite reads JSON.
	fetchDue(ctx context.Context, db *DB, cursors []Cursor, limit int, until time.Time) ([]Job, error)
	fetchLanes(ctx context.Context, db *DB, lanes []Lane, limit int, now time.Time) ([]Job, error)
	fetchIDs(ctx context.Context, db *DB, ids []int64) ([]Job, error)
	revisions(ctx context.Context, db *DB, ids []int64) (map[int64]int64, error)
	nextDue(ctx context.Context, db *DB, cursors []Cursor, after time.Time) (time.Time, error)
	insertJobs(ctx context.Context, c conn, jobs []Job, createdBy []*string) error
	finish(ctx context.Context, db *DB, node string, epochs map[int]int64, jobs []Finished) (int, error)
	mark(ctx context.Context, db *DB, m Marking) (int, error)

	// dueServed reads, for each owner or for each lane, up to limit jobs of a task
	// that wait for a worker and are due; nextServed is when the next one is.
	dueServed(ctx context.Context, tx *Tx, task string, of []Lane, byLane bool, limit int, now time.Time) ([]dueJob, error)
	nextServed(ctx context.Context, tx *Tx, task string, owners []Lane, after time.Time) (time.Time, error)

	// leaseServed puts jobs into the hands of workers: rows are leaseColumns. It
	// returns those that it found as they were seen.
	leaseServed(ctx context.Context, tx *Tx, until time.Time, rows [][]any) ([]Job, error)
	// completeServed ends leases of jobs that were done, and returns them, with the
	// jobs that it removed: all but those that became something else meanwhile.
	// There are no leases, not even none, if it does nothing of that at once.
	completeServed(ctx context.Context, tx *Tx, e Ends) (leases []held, gone map[int64]Job, err error)

	// beat raises a node's heartbeat and reads the view of the cluster.
	beat(ctx context.Context, db *DB, n Node, now time.Time) (v View, alive bool, err error)
}

func render(d dialect, migration string) string {
	for word, sql := range d.types() {
		migration = strings.ReplaceAll(migration, "{{"+word+"}}", sql)
	}
	return migration
}

// splitByRev tells jobs whose rows were never changed, which can be deleted by
// their ids alone, from the others.
func splitByRev(jobs []Finished) (plain []int64, changed []Finished) {
	for _, f := range jobs {
		if f.Job.Rev == 0 {
			plain = append(plain, f.Job.ID)
		} else {
			changed = append(changed, f)
		}
	}
	return plain, changed
}

// JSONText encodes slices of numbers and strings, which cannot fail, as text that
// can be stored.
func JSONText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return cleanJSON(string(b))
}

const jobColumns = "id, rev, bucket, priority, run_at, attempt, max_attempts, task, owner, lane, key, payload, created_at, started_at, trace"

// cutOff is 1 for a row that carries the mark of another run, which so was cut
// off. A mark whose answer was lost is written again and is the same one.
const cutOff = `case when j.started_at is null or (j.started_at = $5 and j.node = $6) then 0 else 1 end`

const recordConflict = ` on conflict (id) do update set state = excluded.state, started_at = excluded.started_at,
	finished_at = excluded.finished_at, attempt = excluded.attempt, error = excluded.error, node = excluded.node`
