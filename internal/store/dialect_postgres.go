package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

type postgres struct{}

func (postgres) name() string                 { return "postgres" }
func (postgres) buckets() int                 { return 64 }
func (postgres) classify(err error) errorKind { return classifyPostgres(err) }
func (postgres) shareLock() string            { return " for share" }
func (postgres) holdLock() string             { return holdSuffix }
func (postgres) skipLock() string             { return holdSuffix + " skip locked" }

// holdSuffix also tells transactions that become one what their members hold.
const holdSuffix = " for update"

func (postgres) types() map[string]string {
	return map[string]string{
		"id": "bigint primary key",
		// A job row is written once and deleted, so pages may be full; the table
		// turns over completely, so it must be vacuumed often.
		"hot_options": "with (fillfactor=100, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_cost_delay=0)",
		"compact":     "",
		"postgres":    "",
	}
}

func (postgres) rowset(before []any, names, types []string, rows [][]any) (string, []any) {
	args, lists := before, make([]string, len(names))
	for i, t := range types {
		if t == "text" {
			args = append(args, columnOf[string](rows, i))
		} else {
			args = append(args, columnOf[int64](rows, i))
		}
		lists[i] = fmt.Sprintf("$%d::%s[]", len(args), t)
	}
	return "unnest(" + strings.Join(lists, ", ") + ") v (" + strings.Join(names, ", ") + ")", args
}

// The first key of Pawl's advisory locks keeps them apart from other users'
// of the same database.
const (
	lockShared     = `select pg_advisory_xact_lock_shared(7295001, b::int) from (select unnest($1::bigint[]) b order by 1) o`
	tryExclusive   = `select b from unnest($1::bigint[]) b where pg_try_advisory_xact_lock(7295001, b::int)`
	lockMigrations = `select pg_advisory_xact_lock(7295002, 0)`

	// haveSchema asks whether there are tables of ours; all came in one transaction.
	haveSchema = `select to_regclass('schema_migrations') is not null`
	lockName   = `select pg_try_advisory_lock(7295003, hashtext($1))`
)

// fence sends lock and look in one round trip, if they cannot go with the next
// statement; the look is a statement of its own, so that it sees what is there
// after the lock was granted.
func (postgres) fence(ctx context.Context, tx *Tx, f Fence) (bool, error) {
	if t, ok := tx.conn.(*pgTx); ok {
		t.post(posted{command: command{lockShared, []any{[]int{f.Bucket}}}, fence: true})
		t.post(posted{command: command{selectFence, []any{f.Bucket, f.Node, f.Epoch}}, expects: true, rows: 1, otherwise: errLeaseLost(), fence: true})
		return true, nil
	}
	n, err := tx.conn.(*sharedConn).execInARow(ctx, command{lockShared, []any{[]int{f.Bucket}}}, command{selectFence, []any{f.Bucket, f.Node, f.Epoch}})
	return n == 1, err
}

func (postgres) tryLockBuckets(ctx context.Context, tx *Tx, buckets []int) ([]int, error) {
	rows, err := tx.Query(ctx, tryExclusive, buckets)
	return ScanAll(rows, err, "lock buckets", func(row Scanner) (b int, err error) { return b, row.Scan(&b) })
}

func (postgres) lockMigrations(ctx context.Context, tx *Tx) error {
	_, err := tx.Exec(ctx, lockMigrations)
	return err
}

func (postgres) fetchDue(ctx context.Context, db *DB, cursors []Cursor, limit int, until time.Time) ([]Job, error) {
	n := len(cursors)
	b, p, t, i := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	for k, c := range cursors {
		b[k], p[k], t[k], i[k] = int64(c.Bucket), int64(c.Priority), Millis(c.RunAt), c.ID
	}
	return scanJobs(db.hotQuery(ctx, `select `+jobColumns+`
		from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) c(b, p, t, i) cross join lateral (
			select * from jobs where bucket = c.b and priority = c.p and state = 0 and run_at <= $6 and (run_at, id) > (c.t, c.i)
			order by run_at, id limit $5) j`, b, p, t, i, limit, Millis(until)))
}

func (postgres) fetchLanes(ctx context.Context, db *DB, lanes []Lane, limit int, now time.Time) ([]Job, error) {
	owners, names := make([]string, len(lanes)), make([]string, len(lanes))
	for i, l := range lanes {
		owners[i], names[i] = l.Owner, l.Name
	}
	return scanJobs(db.hotQuery(ctx, `select `+jobColumns+`
		from unnest($1::text[], $4::text[]) l(name, whose) cross join lateral (
			select * from jobs where lane = l.name and owner = l.whose and state = 0 and run_at <= $3
			order by priority desc, run_at, id limit $2) j`, names, limit, Millis(now), owners))
}

// The state is hidden from the planner: without statistics it takes it for more
// telling than the ids.
func (postgres) fetchIDs(ctx context.Context, db *DB, ids []int64) ([]Job, error) {
	return scanJobs(db.hotQuery(ctx, `select `+jobColumns+` from jobs j where j.id = any($1::bigint[]) and j.state + 0 = 0`, ids))
}

func (postgres) revisions(ctx context.Context, db *DB, ids []int64) (map[int64]int64, error) {
	return scanRevisions(db.hotQuery(ctx, `select id, rev from jobs where id = any($1::bigint[]) and state + 0 = 0`, ids))
}

func scanRevisions(rows Rows, err error) (map[int64]int64, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[int64]int64{}
	for rows.Next() {
		var id, rev int64
		if err := rows.Scan(&id, &rev); err != nil {
			return nil, err
		}
		out[id] = rev
	}
	return out, rows.Err()
}

func (postgres) nextDue(ctx context.Context, db *DB, cursors []Cursor, after time.Time) (time.Time, error) {
	b, p := make([]int64, len(cursors)), make([]int64, len(cursors))
	for k, c := range cursors {
		b[k], p[k] = int64(c.Bucket), int64(c.Priority)
	}
	var at *int64
	rows, err := db.hotQuery(ctx, `select min(n.run_at) from unnest($1::bigint[], $2::bigint[]) c(b, p) cross join lateral (
		select run_at from jobs where bucket = c.b and priority = c.p and state = 0 and run_at > $3 order by run_at limit 1) n`, b, p, Millis(after))
	err = Row{rows, err}.Scan(&at)
	return FromNullMillis(at), err
}

func (postgres) insertJobs(ctx context.Context, c conn, jobs []Job, createdBy []*string) error {
	if len(jobs) == 1 {
		_, err := c.exec(ctx, insertJob, insertArgs(jobs[0], createdBy[0]))
		return err
	}
	n := len(jobs)
	id, b, p, at, tries, made := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	task, owner, lane, payload, trace := make([]string, n), make([]string, n), make([]*string, n), make([]string, n), make([]*string, n)
	for k, j := range jobs {
		id[k], b[k], p[k], at[k], tries[k], made[k] = j.ID, int64(j.Bucket), int64(j.Priority), Millis(j.RunAt), int64(j.MaxAttempts), Millis(j.CreatedAt)
		task[k], owner[k], lane[k], payload[k], trace[k] = j.Task, j.Owner, NullText(j.Lane), string(j.Payload), NullText(j.Trace)
	}
	_, err := c.exec(ctx, `insert into jobs (id, bucket, priority, run_at, max_attempts, task, owner, lane, payload, created_at, created_by, trace, state)
		select v.*, case when v.bucket < 0 then 2 else 0 end
		from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::text[], $9::text[], $10::bigint[], $11::text[], $12::text[]) v(id, bucket)`,
		[]any{id, b, p, at, tries, task, owner, lane, payload, made, createdBy, trace})
	return err
}

const pgFence = `(select count(*) from unnest($1::bigint[], $2::bigint[]) f(b, e) join buckets k on k.id = f.b and k.epoch = f.e and k.node = $3) = $4`

// finish sends lock, deletes and history in one round trip. Without an explicit
// BEGIN they are one implicit transaction, and the deletes see what is there
// after the lock was granted.
func (postgres) finish(ctx context.Context, db *DB, node string, epochs map[int]int64, jobs []Finished) (int, error) {
	bs, es := fencesOf(epochs, jobs)
	batch := &pgx.Batch{}
	queue := func(sql string, args ...any) { command{sql, args}.queueInto(batch) }
	queue(lockShared, bs)
	deletes := 0
	plain, changed := splitByRev(jobs)
	if len(plain) > 0 { // three times as fast as joining with the list
		deletes++
		queue(`delete from jobs where id = any($5::bigint[]) and rev = 0 and kept_at is null and `+pgFence, bs, es, node, len(bs), plain)
	}
	if len(changed) > 0 {
		deletes++
		id, rev, started := make([]int64, len(changed)), make([]int64, len(changed)), make([]int64, len(changed))
		for k, f := range changed {
			id[k], rev[k], started[k] = f.Job.ID, f.Job.Rev, Millis(f.StartedAt)
		}
		queue(`delete from jobs j using unnest($5::bigint[], $6::bigint[], $7::bigint[]) d(id, rev, started)
			where j.id = d.id and j.rev = d.rev and (j.kept_at is null or j.kept_at < d.started) and `+pgFence,
			bs, es, node, len(bs), id, rev, started)
	}
	if rows := historyRows(jobs, node); rows != nil {
		queue(`insert into job_history (id, task, owner, lane, key, state, run_at, started_at, finished_at, attempt, error, node)
			select (v->>'id')::bigint, v->>'task', v->>'owner', v->>'lane', v->>'key', v->>'state', (v->>'runAt')::bigint, (v->>'startedAt')::bigint,
				(v->>'finishedAt')::bigint, (v->>'attempt')::bigint, v->>'error', v->>'node'
			from json_array_elements($5::json) v where `+pgFence+recordConflict, bs, es, node, len(bs), JSONText(rows))
	}
	br := db.hot.SendBatch(ctx, batch)
	defer br.Close() //nolint:errcheck // read below
	if _, err := br.Exec(); err != nil {
		return 0, err
	}
	n := 0
	for range deletes {
		tag, err := br.Exec()
		if err != nil {
			return 0, err
		}
		n += int(tag.RowsAffected())
	}
	return n, br.Close()
}

// fencesOf lists the buckets of some jobs with the epochs they are held at.
func fencesOf(epochs map[int]int64, jobs []Finished) (buckets, held []int64) {
	seen := map[int]bool{}
	for _, f := range jobs {
		if b := f.Job.Bucket; !seen[b] {
			seen[b] = true
			buckets, held = append(buckets, int64(b)), append(held, epochs[b])
		}
	}
	return buckets, held
}

// mark sends the lock and the marks in one round trip, as finish does.
func (postgres) mark(ctx context.Context, db *DB, m Marking) (int, error) {
	id, rev := make([]int64, len(m.Jobs)), make([]int64, len(m.Jobs))
	bucket, epoch := make([]int64, len(m.Jobs)), make([]int64, len(m.Jobs))
	for k, j := range m.Jobs {
		id[k], rev[k], bucket[k], epoch[k] = j.ID, j.Rev, int64(j.Bucket), m.Epochs[j.Bucket]
	}
	batch := &pgx.Batch{}
	command{lockShared, []any{slices.Compact(slices.Sorted(slices.Values(bucket)))}}.queueInto(batch)
	command{`update jobs j set attempt = j.attempt + ` + cutOff + `, started_at = $5, node = $6
		from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) d(id, rev, bucket, epoch)
		join buckets k on k.id = d.bucket and k.epoch = d.epoch and k.node = $6
		where j.id = d.id and j.rev = d.rev`, []any{id, rev, bucket, epoch, Millis(m.At), m.Node}}.queueInto(batch)
	br := db.hot.SendBatch(ctx, batch)
	defer br.Close() //nolint:errcheck // read below
	if _, err := br.Exec(); err != nil {
		return 0, err
	}
	tag, err := br.Exec()
	if err != nil {
		return 0, err
	}
	return int(tag.RowsAffected()), br.Close()
}

// beat is one statement, because it is all that an idle node sends.
func (postgres) beat(ctx context.Context, db *DB, n Node, now time.Time) (v View, alive bool, err error) {
	rows, err := db.hotQuery(ctx, `with me as (update nodes set beat = beat + 1, seen_at = $2 where id = $1 and incarnation = $3 returning 1)
		select 0, id, beat, share from nodes
		union all select 1, coalesce(node, ''), epoch, id from buckets
		union all select 2, '', 0, 0 from me
		union all select 3, '', id, coalesce(lifted_at, 0) from (select id, lifted_at from halts order by id desc limit 1) h`, n.ID, Millis(now), n.Incarnation)
	if err != nil {
		return v, false, err
	}
	defer rows.Close()
	for rows.Next() {
		var what, n, m int64
		var text string
		if err := rows.Scan(&what, &text, &n, &m); err != nil {
			return v, false, err
		}
		switch what {
		case 0:
			v.Nodes = append(v.Nodes, Node{ID: text, Beat: n, Share: m == 1})
		case 1:
			v.Buckets = append(v.Buckets, Bucket{ID: int(m), Node: text, Epoch: n})
		case 2:
			alive = true
		default:
			v.Halt = HaltMark{ID: n}
			if m > 0 {
				v.Halt.Lifted = FromMillis(m)
			}
		}
	}
	return v, alive, rows.Err()
}

func (postgres) dueServed(ctx context.Context, tx *Tx, task string, of []Lane, byLane bool, limit int, now time.Time) ([]dueJob, error) {
	owners, names := make([]string, len(of)), make([]string, len(of))
	for i, l := range of {
		owners[i], names[i] = l.Owner, l.Name
	}
	inLane := ""
	if byLane {
		inLane = ` and coalesce(lane, '') = l.name`
	}
	rows, err := tx.Query(ctx, `select `+dueColumns+`
		from unnest($2::text[], $3::text[]) l(whose, name) cross join (values (1), (0), (-1)) p(level) cross join lateral (
			select * from jobs where task = $1 and state = 2 and owner = l.whose`+inLane+` and priority = p.level and run_at <= $4 and `+notInHand+`
			order by run_at, id limit $5) j`, task, owners, names, Millis(now), limit)
	return ScanAll(rows, err, "find jobs", scanDue)
}

func (postgres) nextServed(ctx context.Context, tx *Tx, task string, of []Lane, after time.Time) (time.Time, error) {
	owners := make([]string, len(of))
	for i, l := range of {
		owners[i] = l.Owner
	}
	var at *int64
	err := tx.QueryRow(ctx, `select min(n.run_at) from unnest($2::text[]) o(whose) cross join (values (1), (0), (-1)) p(level) cross join lateral (
		select run_at from jobs where task = $1 and state = 2 and owner = o.whose and priority = p.level and run_at > $3 order by run_at limit 1) n`, task, owners, Millis(after)).Scan(&at)
	return FromNullMillis(at), err
}

// leaseServed is one statement, because claims of a task come one after the other.
func (postgres) leaseServed(ctx context.Context, tx *Tx, until time.Time, rows [][]any) ([]Job, error) {
	table, args := tx.Rowset([]any{Millis(tx.Now), Millis(until)}, leaseColumns, rows)
	return scanJobs(tx.Query(ctx, `with u as (`+leaseJobs+table+leasedRows+`j.*, v.who, v.sign),
		i as (`+putLeases+`select id, task, owner, lane, rev, sign, who, $1, $2 from u)
		select `+jobColumns+` from u`, args...))
}

// completeServed is one statement: that saves reading and locking the jobs before they
// are deleted, and sending them back as what is to be kept of them.
func (postgres) completeServed(ctx context.Context, tx *Tx, e Ends) ([]held, map[int64]Job, error) {
	rows := make([][]any, len(e.List))
	for i, end := range e.List {
		rows[i] = []any{end.ID, end.Token, end.resultOf()}
	}
	table, args := tx.Rowset([]any{e.Task, e.Owner, Millis(tx.Now), Millis(tx.Now.Add(e.Keep))}, "job bigint, sign text, what text", rows)
	found, err := tx.Query(ctx, `with l as (
			delete from job_leases l using `+table+` where l.job_id = v.job and l.token = v.sign and `+leaseOf+`
			returning l.job_id, l.rev, l.started_at, l.worker, v.sign, v.what),
		j as (delete from jobs j using l where j.id = l.job_id and j.rev = l.rev and (j.kept_at is null or j.kept_at < l.started_at)
			returning j.*, l.started_at as began, l.worker, l.sign, l.what),
		h as (insert into job_history (id, task, owner, lane, key, state, run_at, started_at, finished_at, attempt, error, node)
			select id, task, owner, lane, key, 'succeeded', run_at, began, $3, attempt + 1, null, worker from j`+recordConflict+`),
		r as (insert into job_results (job_id, token, result, keep_until) select id, sign, what, $4 from j`+resultConflict+`)
		select `+slimColumns+`, began, worker, true from j
		union all select job_id, rev, 0, 0, 0, 0, 0, '', '', null, null, '', 0, null, null, started_at, worker, false from l`, args...)
	if err != nil {
		return nil, nil, fmt.Errorf("complete jobs: %w", err)
	}
	defer found.Close()
	leases, gone := []held{}, map[int64]Job{}
	var h held
	var done bool
	scan := newJobScan(&h.started, &h.worker, &done)
	for found.Next() {
		var j Job
		if err := scan.into(found, &j); err != nil {
			return nil, nil, fmt.Errorf("complete jobs: %w", err)
		}
		if done {
			gone[j.ID] = j
			continue
		}
		h.id, h.rev = j.ID, j.Rev
		leases = append(leases, h)
	}
	return leases, gone, found.Err()
}
