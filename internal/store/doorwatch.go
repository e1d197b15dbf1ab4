package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// DoorLook is what a look at the door shows: jobs that applications added, and how
// far their transactions are.
type DoorLook struct {
	At   int64 // the database's clock in milliseconds, read before the look
	Xmin int64 // every transaction with a lower number has ended, and the look shows what it did
	Xid  int64 // every transaction with a higher number began to write after that clock was read
	Jobs []Job // some fields only: ID, Bucket, Priority, RunAt, Task
	Full bool  // there are more
}

const (
	// doorLookMost bounds one look.
	doorLookMost = 20_000
	// doorProcess is what ids made by the door have in the place of a process.
	doorProcess = 1023
)

// LookAtDoor reads the jobs that applications added by SQL from an instant on, and
// until another; both are of the database's clock, as the ids are. It takes a number
// as a transaction that writes does: the end of a snapshot does not tell which numbers
// are taken, only which have ended.
func (db *DB) LookAtDoor(ctx context.Context, from, until int64) (l DoorLook, err error) {
	rows, err := db.hotQuery(ctx, `select floor(extract(epoch from statement_timestamp()) * 1000)::bigint, pg_snapshot_xmin(s.now)::text::bigint, pg_current_xact_id()::text::bigint,
			j.id, j.bucket, j.priority, j.run_at, j.task
		from (select pg_current_snapshot() as now) s left join (
			select id, bucket, priority, run_at, task from jobs where id >= $1 and id < $2 and (id >> 12) & $3 = $3 order by id limit $4) j on true`,
		doorID(from), doorID(until), doorProcess, doorLookMost)
	if err != nil {
		return l, db.wrap(fmt.Errorf("look at the door: %w", err))
	}
	defer rows.Close()
	for rows.Next() {
		var id, bucket, priority, runAt *int64
		var task *string
		if err := rows.Scan(&l.At, &l.Xmin, &l.Xid, &id, &bucket, &priority, &runAt, &task); err != nil {
			return l, db.wrap(fmt.Errorf("look at the door: %w", err))
		}
		if id != nil {
			l.Jobs = append(l.Jobs, Job{ID: *id, Bucket: int(*bucket), Priority: int(*priority), RunAt: time.UnixMilli(*runAt), Task: *task})
		}
	}
	l.Full = len(l.Jobs) == doorLookMost
	return l, db.wrap(rows.Err())
}

// doorID is the lowest id of an instant.
func doorID(at int64) int64 { return max(0, at-idEpoch) << 22 }

// DoorTime is the instant of an id, by the database's clock.
func DoorTime(id int64) int64 { return id>>22 + idEpoch }

// PromiseDoor promises that a node looks at the door by itself for a while, so that
// applications need not wake it. It reports until when, or false if another one
// answers for the door.
func (db *DB) PromiseDoor(ctx context.Context, node string, length time.Duration) (until int64, ok bool, err error) {
	err = db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		err := tx.QueryRow(ctx, `insert into door_watch as w (id, node, until_at) values (1, $1, floor(extract(epoch from clock_timestamp()) * 1000)::bigint + $2)
			on conflict (id) do update set node = excluded.node, until_at = excluded.until_at where w.node is null or w.node = excluded.node
			returning until_at`, node, length.Milliseconds()).Scan(&until)
		ok = err == nil
		if errors.Is(err, ErrNoRow) {
			return nil
		}
		return err
	}, Lazy)
	return until, ok && err == nil, err
}

// WithdrawDoor ends the promise of a node, which still answers for what was added
// under it.
func (db *DB) WithdrawDoor(ctx context.Context, node string) error {
	return db.changeDoor(ctx, `update door_watch set until_at = 0 where id = 1 and node = $1`, node)
}

// LeaveDoor tells that nothing is left for which a node answers.
func (db *DB) LeaveDoor(ctx context.Context, node string) error {
	return db.changeDoor(ctx, `update door_watch set node = null, until_at = 0 where id = 1 and node = $1`, node)
}

func (db *DB) changeDoor(ctx context.Context, sql, node string) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		_, err := tx.Exec(ctx, sql, node)
		return err
	}, Lazy)
}

// InheritDoor makes a node answer for the door in the place of one that is gone, or
// of an earlier process under the same name, and ends its promise. It reports
// whether there was one.
func (db *DB) InheritDoor(ctx context.Context, node string) (inherited bool, err error) {
	err = db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		n, err := tx.Exec(ctx, `update door_watch set node = $1, until_at = 0 where id = 1 and node is not null
			and (node = $1 or not exists (select 1 from nodes n where n.id = door_watch.node))`, node)
		inherited = n > 0
		return err
	}, Lazy)
	return inherited && err == nil, err
}

// HasDoor reports whether applications can add jobs in their own transactions.
func (db *DB) HasDoor() bool { return db.sqliteFile == nil }
