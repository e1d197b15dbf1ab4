package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
)

// Tx is a transaction. Now is its one instant, in whole milliseconds.
type Tx struct {
	Now time.Time

	db     *DB
	conn   conn
	after  []func()
	doubts []func()
	fenced Fence // the one that was found to hold, which it does to the end
}

// Func is the body of a transaction. It may run more than once and must have
// no side effects but its statements.
type Func func(ctx context.Context, tx *Tx) error

// Option changes how a transaction is committed.
type Option int

// Lazy commits without waiting for the disk. It is for steps whose loss only
// repeats work without effects.
const Lazy Option = 1

// Exec runs a statement and returns how many rows it changed.
func (tx *Tx) Exec(ctx context.Context, sql string, args ...any) (int64, error) {
	tx.traced(sql, args)
	return tx.conn.exec(ctx, sql, args)
}

// Post runs a statement of which nobody needs to know at once how it ends: it may
// travel with the next one, and it is that one, or the commit, that fails.
func (tx *Tx) Post(ctx context.Context, sql string, args ...any) error {
	tx.traced(sql, args)
	if t, ok := tx.conn.(*pgTx); ok {
		t.post(posted{command: command{sql, args}})
		return nil
	}
	_, err := tx.conn.exec(ctx, sql, args)
	return err
}

// Expect is Post for a statement that must change, or a select that must find, so
// many rows; else the transaction fails with otherwise.
func (tx *Tx) Expect(ctx context.Context, rows int, otherwise error, sql string, args ...any) error {
	tx.traced(sql, args)
	switch c := tx.conn.(type) {
	case *pgTx:
		c.post(posted{command: command{sql, args}, expects: true, rows: rows, otherwise: otherwise})
		return nil
	default:
		n, err := countRows(ctx, c, sql, args)
		if err == nil && n != int64(rows) {
			err = otherwise
		}
		return err
	}
}

// countRows counts what a statement changes or finds.
func countRows(ctx context.Context, c conn, sql string, args []any) (n int64, err error) {
	if !strings.HasPrefix(sql, "select") {
		return c.exec(ctx, sql, args)
	}
	rows, err := c.query(ctx, sql, args)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		n++
	}
	return n, rows.Err()
}

// Ask is Query for an answer that nobody needs before the transaction is
// committed: scan gets it when it is there.
func (tx *Tx) Ask(ctx context.Context, scan func(Rows, error) error, sql string, args ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if t, ok := tx.conn.(*pgTx); ok {
		tx.traced(sql, args)
		t.post(posted{command: command{sql, args}, scan: func(rows Rows, err error) error { return scan(budgeted(ctx, rows, err)) }})
		return nil
	}
	return scan(tx.Query(ctx, sql, args...))
}

// Flush sends what travels with the next statement now, and waits for the answers.
func (tx *Tx) Flush(ctx context.Context) error {
	if t, ok := tx.conn.(*pgTx); ok {
		return t.flush(ctx)
	}
	return nil
}

// Query runs a query. The rows must be closed before the next statement.
func (tx *Tx) Query(ctx context.Context, sql string, args ...any) (Rows, error) {
	if err := ctx.Err(); err != nil { // nobody wants the answer
		return nil, err
	}
	tx.traced(sql, args)
	rows, err := tx.conn.query(ctx, sql, args)
	return budgeted(ctx, rows, err)
}

// QueryRow runs a query that wants one row.
func (tx *Tx) QueryRow(ctx context.Context, sql string, args ...any) Row {
	if err := ctx.Err(); err != nil {
		return Row{err: err}
	}
	tx.traced(sql, args)
	rows, err := tx.conn.query(ctx, sql, args)
	rows, err = budgeted(ctx, rows, err)
	return Row{rows, err}
}

// traced is that of the database, unless the statement may become one with others,
// which then is what is asked.
func (tx *Tx) traced(sql string, args []any) {
	if c, shared := tx.conn.(*sharedConn); shared && c.p.sets {
		return
	}
	tx.db.traced(sql, args)
}

// traced tells who looks over the shoulder what is asked next.
func (db *DB) traced(sql string, args []any) {
	if db.trace != nil {
		db.trace(sql, args)
	}
}

// AfterCommit registers what happens once the transaction is committed. It
// does not happen when the transaction fails.
func (tx *Tx) AfterCommit(fn func()) { tx.after = append(tx.after, fn) }

// InDoubt registers what happens when nobody can say whether the transaction
// was committed: the connection broke on the way. Such a transaction is never run
// again by itself.
func (tx *Tx) InDoubt(fn func()) { tx.doubts = append(tx.doubts, fn) }

func (tx *Tx) doubted() {
	for _, fn := range tx.doubts {
		fn()
	}
}

// committed does what follows the commit.
func (tx *Tx) committed() {
	for _, fn := range tx.after {
		fn()
	}
}

// maxTries bounds how often a transaction is run again on contention.
const maxTries = 12

// Write runs fn in a read-write transaction and commits it. On contention the
// whole of it runs again.
func (db *DB) Write(ctx context.Context, fn Func, opts ...Option) error {
	lazy := len(opts) > 0 && opts[0] == Lazy
	return db.retryContention(ctx, func() error {
		if db.sqliteFile != nil {
			return db.sqliteFile.write(ctx, db, fn, lazy)
		}
		return db.writePostgres(ctx, fn, lazy)
	})
}

// retryContention runs a transaction until it meets no contention.
func (db *DB) retryContention(ctx context.Context, write func() error) error {
	for try := 1; ; try++ {
		err := write()
		if err == nil || try == maxTries || !db.retryable(err) {
			db.note(err)
			return db.wrap(err)
		}
		if err := pause(ctx, try); err != nil {
			return err
		}
	}
}

// retryable tells whether the next try may succeed. After a collision of ids it
// makes others.
func (db *DB) retryable(err error) bool {
	switch db.dialect.classify(err) {
	case errorContention:
		return true
	case errorSameID:
		db.ids.init()
		return true
	case errorOther, errorUnique, errorUnavailable, errorFull, errorText:
	}
	return false
}

// pause waits a little longer after every try, with jitter so that rivals
// part ways.
func pause(ctx context.Context, try int) error {
	d := time.Duration(rand.Int64N(int64(min(time.Millisecond<<try, 250*time.Millisecond))))
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// Read runs fn in a transaction that sees one state of the database and
// changes nothing. A connection that ended while nobody used it, as all do when the
// server is restarted, is left for a new one, once.
func (db *DB) Read(ctx context.Context, fn Func) error {
	if db.sqliteFile != nil {
		return db.wrap(db.sqliteFile.read(ctx, db, fn))
	}
	dead := false
	read := func(ctx context.Context) error {
		t := &pgTx{}
		defer func() { dead = t.dead && ctx.Err() == nil }()
		t.post(posted{command: command{sql: beginRead}})
		return inPostgres(ctx, db.pool, t, func(ctx context.Context) error { return fn(ctx, &Tx{Now: now(), db: db, conn: t}) })
	}
	err := db.bounded(ctx, read)
	if err != nil && dead {
		db.pool.Reset() // one that ended is seldom alone
		err = db.bounded(ctx, read)
	}
	for try := 0; errors.Is(err, errSetUnknown) && try < maxTries; try++ { // what it was is known now
		err = db.bounded(ctx, read)
	}
	return db.wrap(err)
}

func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// Fence is the right to write on behalf of the lanes of one bucket.
type Fence struct {
	Bucket int
	Node   string
	Epoch  int64
}

// Fence fails with pawl.ErrLeaseLost unless this fence still holds, and keeps
// it holding until the transaction ends. It comes first in a holder's
// transaction. It may be the next statement, or the commit, that fails.
func (tx *Tx) Fence(ctx context.Context, f Fence) error {
	if f == tx.fenced && f.Epoch > 0 {
		return nil
	}
	held, err := tx.db.dialect.fence(ctx, tx, f)
	if err != nil {
		return err
	}
	if !held {
		return errLeaseLost()
	}
	tx.fenced = f
	return nil
}

func errLeaseLost() error {
	return &pawl.Error{Code: pawl.CodeLeaseLost, Op: "write", Msg: "another node owns this lane now"}
}

const selectFence = `select 1 from buckets where id = $1 and node = $2 and epoch = $3`

// ForUpdate ends a select whose rows nobody else may change, share or hold until
// the transaction ends.
func (tx *Tx) ForUpdate() string { return tx.db.dialect.holdLock() }

// SkipLocked ends a select that leaves out the rows that somebody else holds, and
// holds the others as ForUpdate does.
func (tx *Tx) SkipLocked() string { return tx.db.dialect.skipLock() }

// ForShare ends a select whose rows nobody may change until the transaction
// ends.
func (tx *Tx) ForShare() string { return tx.db.dialect.shareLock() }

// IsUnique reports whether a statement failed because a unique index has such a
// row already.
func (tx *Tx) IsUnique(err error) bool { return tx.db.isUnique(err) }

// NextID makes the id of a row that is counted in numbers; it grows with time.
func (tx *Tx) NextID() int64 { return tx.db.ids.next(tx.Now) }
