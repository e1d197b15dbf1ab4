package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

type sqliteDB struct{}

func (sqliteDB) name() string                 { return "sqlite" }
func (sqliteDB) classify(err error) errorKind { return classifySQLite(err) }
func (sqliteDB) shareLock() string            { return "" } // the single writer is the lock
func (sqliteDB) holdLock() string             { return "" }
func (sqliteDB) skipLock() string             { return "" }

func (sqliteDB) rowset(before []any, names, _ []string, rows [][]any) (string, []any) {
	columns := make([]string, len(names))
	for i, name := range names {
		columns[i] = fmt.Sprintf("value->>%d as %s", i, name)
	}
	return fmt.Sprintf("(select %s from json_each($%d)) v", strings.Join(columns, ", "), len(before)+1), append(before, JSONText(rows))
}

// buckets: one process owns the file and so every bucket; one bucket keeps a
// fetch a single index scan.
func (sqliteDB) buckets() int { return 1 }

func (sqliteDB) types() map[string]string {
	return map[string]string{"id": "integer primary key", "hot_options": "", "compact": "without rowid", "postgres": "--"}
}

// The single writer is the lock.
func (sqliteDB) tryLockBuckets(_ context.Context, _ *Tx, all []int) ([]int, error) { return all, nil }
func (sqliteDB) lockMigrations(context.Context, *Tx) error                         { return nil }

func (sqliteDB) fence(ctx context.Context, tx *Tx, f Fence) (bool, error) {
	var one int
	err := tx.QueryRow(ctx, selectFence, f.Bucket, f.Node, f.Epoch).Scan(&one)
	if errors.Is(err, ErrNoRow) {
		return false, nil
	}
	return err == nil, err
}

func (sqliteDB) fetchDue(ctx context.Context, db *DB, cursors []Cursor, limit int, until time.Time) ([]Job, error) {
	var out []Job
	err := db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		for _, c := range cursors {
			jobs, err := scanJobs(tx.Query(ctx, `select `+jobColumns+` from jobs j
				where j.bucket = $1 and j.priority = $2 and j.state = 0 and j.run_at <= $3 and (j.run_at, j.id) > ($4, $5)
				order by j.run_at, j.id limit $6`, c.Bucket, c.Priority, Millis(until), Millis(c.RunAt), c.ID, limit))
			if err != nil {
				return err
			}
			out = append(out, jobs...)
		}
		return nil
	})
	return out, err
}

func (sqliteDB) fetchLanes(ctx context.Context, db *DB, lanes []Lane, limit int, now time.Time) ([]Job, error) {
	var out []Job
	err := db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		for _, lane := range lanes {
			jobs, err := scanJobs(tx.Query(ctx, `select `+jobColumns+` from jobs j
				where j.lane = $1 and j.owner = $4 and j.state = 0 and j.run_at <= $2
				order by j.priority desc, j.run_at, j.id limit $3`, lane.Name, Millis(now), limit, lane.Owner))
			if err != nil {
				return err
			}
			out = append(out, jobs...)
		}
		return nil
	})
	return out, err
}

func (sqliteDB) fetchIDs(ctx context.Context, db *DB, ids []int64) (out []Job, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		out, err = scanJobs(tx.Query(ctx, `select `+jobColumns+` from jobs j where j.id in (select value from json_each($1)) and j.state = 0`, JSONText(ids)))
		return err
	})
	return out, err
}

func (sqliteDB) revisions(ctx context.Context, db *DB, ids []int64) (out map[int64]int64, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		out, err = scanRevisions(tx.Query(ctx, `select id, rev from jobs where id in (select value from json_each($1)) and state = 0`, JSONText(ids)))
		return err
	})
	return out, err
}

func (sqliteDB) nextDue(ctx context.Context, db *DB, cursors []Cursor, after time.Time) (first time.Time, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		for _, c := range cursors {
			var at *int64
			if err := tx.QueryRow(ctx, `select min(run_at) from jobs where bucket = $1 and priority = $2 and state = 0 and run_at > $3`,
				c.Bucket, c.Priority, Millis(after)).Scan(&at); err != nil {
				return err
			}
			if at != nil && (first.IsZero() || FromMillis(*at).Before(first)) {
				first = FromMillis(*at)
			}
		}
		return nil
	})
	return first, err
}

// insertJobs passes many rows as one JSON text: binding each column costs more
// than reading it.
func (sqliteDB) insertJobs(ctx context.Context, c conn, jobs []Job, createdBy []*string) error {
	if len(jobs) < 4 {
		for i, j := range jobs {
			if _, err := c.exec(ctx, insertJob, insertArgs(j, createdBy[i])); err != nil {
				return err
			}
		}
		return nil
	}
	rows := make([][12]any, len(jobs))
	for i, j := range jobs {
		rows[i] = [12]any{j.ID, j.Bucket, j.Priority, Millis(j.RunAt), j.MaxAttempts, j.Task, j.Owner, NullText(j.Lane), string(j.Payload), Millis(j.CreatedAt), createdBy[i], NullText(j.Trace)}
	}
	_, err := c.exec(ctx, `insert into jobs (id, bucket, priority, run_at, max_attempts, task, owner, lane, payload, created_at, created_by, trace, state)
		select value->>0, value->>1, value->>2, value->>3, value->>4, value->>5, value->>6, value->>7, value->>8, value->>9, value->>10, value->>11,
			case when value->>1 < 0 then 2 else 0 end from json_each($1)`, []any{JSONText(rows)})
	return err
}

func (sqliteDB) finish(ctx context.Context, db *DB, node string, epochs map[int]int64, jobs []Finished) (int, error) {
	plain, changed := splitByRev(jobs)
	ran := make([][3]int64, len(changed))
	for i, f := range changed {
		ran[i] = [3]int64{f.Job.ID, f.Job.Rev, Millis(f.StartedAt)}
	}
	var total int64
	err := db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		total = 0
		for bucket, epoch := range epochs {
			held, err := sqliteDB{}.fence(ctx, tx, Fence{bucket, node, epoch})
			if err != nil || !held { // the caller looks at each job and finds the lost fence
				return err
			}
		}
		if len(plain) > 0 {
			n, err := tx.Exec(ctx, `delete from jobs where id in (select value from json_each($1)) and rev = 0 and kept_at is null`, JSONText(plain))
			if err != nil {
				return err
			}
			total += n
		}
		if len(changed) > 0 {
			n, err := tx.Exec(ctx, `delete from jobs where id in (
				select j.id from json_each($1) d cross join jobs j
				where j.id = d.value->>0 and j.rev = d.value->>1 and (j.kept_at is null or j.kept_at < d.value->>2))`, JSONText(ran))
			if err != nil {
				return err
			}
			total += n
		}
		return tx.recordMany(ctx, historyRows(jobs, node))
	})
	return int(total), err
}

func (tx *Tx) recordMany(ctx context.Context, rows []historyRow) error {
	if len(rows) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `insert into job_history (id, task, owner, lane, key, state, run_at, started_at, finished_at, attempt, error, node)
		select value->>'id', value->>'task', value->>'owner', value->>'lane', value->>'key', value->>'state', value->>'runAt',
			value->>'startedAt', value->>'finishedAt', value->>'attempt', value->>'error', value->>'node'
		from json_each($1) where true`+recordConflict, JSONText(rows))
	return err
}

func (sqliteDB) mark(ctx context.Context, db *DB, m Marking) (int, error) {
	var total int64
	err := db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		total = 0
		for _, j := range m.Jobs {
			n, err := tx.Exec(ctx, `update jobs as j set attempt = j.attempt + `+cutOff+`, started_at = $5, node = $6
				where id = $1 and rev = $2 and exists (select 1 from buckets k where k.id = $3 and k.epoch = $4 and k.node = $6)`,
				j.ID, j.Rev, j.Bucket, m.Epochs[j.Bucket], Millis(m.At), m.Node)
			if err != nil {
				return err
			}
			total += n
		}
		return nil
	})
	return int(total), err
}

// beat: nobody else can take a bucket while this process holds the file.
func (sqliteDB) beat(ctx context.Context, db *DB, _ Node, _ time.Time) (View, bool, error) {
	v, err := db.Cluster(ctx)
	return v, true, err
}

func (sqliteDB) dueServed(ctx context.Context, tx *Tx, task string, of []Lane, byLane bool, limit int, now time.Time) (out []dueJob, err error) {
	inLane := ""
	if byLane {
		inLane = ` and coalesce(lane, '') = $6`
	}
	for _, l := range of {
		for level := 1; level >= -1; level-- {
			args := []any{task, l.Owner, level, Millis(now), limit}
			if byLane {
				args = append(args, l.Name)
			}
			rows, err := tx.Query(ctx, `select `+dueColumns+` from jobs j
				where task = $1 and state = 2 and owner = $2`+inLane+` and priority = $3 and run_at <= $4 and `+notInHand+` order by run_at, id limit $5`, args...)
			found, err := ScanAll(rows, err, "find jobs", scanDue)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

func (sqliteDB) nextServed(ctx context.Context, tx *Tx, task string, of []Lane, after time.Time) (first time.Time, err error) {
	for _, l := range of {
		for level := 1; level >= -1; level-- {
			var at *int64
			if err := tx.QueryRow(ctx, `select min(run_at) from jobs where task = $1 and state = 2 and owner = $2 and priority = $3 and run_at > $4`,
				task, l.Owner, level, Millis(after)).Scan(&at); err != nil {
				return first, err
			}
			if next := FromNullMillis(at); at != nil && (first.IsZero() || next.Before(first)) {
				first = next
			}
		}
	}
	return first, nil
}

func (sqliteDB) leaseServed(ctx context.Context, tx *Tx, until time.Time, rows [][]any) ([]Job, error) {
	table, args := tx.Rowset([]any{Millis(tx.Now)}, leaseColumns, rows)
	jobs, err := scanJobs(tx.Query(ctx, leaseJobs+table+leasedRows+jobColumns, args...))
	if err != nil || len(jobs) == 0 {
		return nil, err
	}
	taken := make(map[int64]bool, len(jobs))
	for _, j := range jobs {
		taken[j.ID] = true
	}
	rows = slices.DeleteFunc(slices.Clone(rows), func(row []any) bool { return !taken[row[0].(int64)] })
	table, args = tx.Rowset([]any{Millis(tx.Now), Millis(until)}, leaseColumns, rows)
	_, err = tx.Exec(ctx, putLeases+`select j.id, j.task, j.owner, j.lane, j.rev, v.sign, v.who, $1, $2 from `+table+` join jobs j on j.id = v.job where true`, args...)
	return jobs, err
}

// completeServed leaves it to statements of their own, which cost nothing here.
func (sqliteDB) completeServed(context.Context, *Tx, Ends) ([]held, map[int64]Job, error) {
	return nil, nil, nil
}
