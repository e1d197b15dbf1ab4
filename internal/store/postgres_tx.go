package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// pgTx is a transaction on PostgreSQL in which no statement travels alone that
// need not: what nobody waits for, such as its begin, goes with the next one that
// somebody does.
type pgTx struct {
	conn    *pgx.Conn
	asIs    bool // text that cannot be stored is an error
	waiting []posted
	sent    bool // the server knows of the transaction
	dead    bool // the connection ended before the first answer
	asked   bool // it was asked to commit
	refused bool // and did not, because of a statement before the commit
	failed  *plan

	// plan says that there is no connection yet: see WritePlan. unplanned is a
	// plan of which somebody wanted an answer.
	plan, unplanned bool
}

// posted is a statement that nobody waits for.
type posted struct {
	command
	scan func(Rows, error) error // gets the answer; nil if nobody wants it

	expects   bool // it fails with otherwise unless it changes or finds so many rows
	rows      int
	otherwise error

	fence bool  // a plan that goes with another one of the same bucket needs it once
	from  *plan // whose it is; nil if it belongs to no plan
}

// guarded is the statement with its expectation checked by the server, so that
// the commit can travel with it: the division fails, and with it everything
// behind it.
func (p posted) guarded() string {
	if !p.expects {
		return p.sql
	}
	changed := p.sql
	if !strings.HasPrefix(changed, "select") {
		changed += " returning 1"
	}
	return fmt.Sprintf(`with changed as (%s) select 1 / (case when count(*) = %d then 1 else 0 end) from changed`, changed, p.rows)
}

// result reads the answer.
func (p posted) result(results pgx.BatchResults, guarded bool) error {
	if p.scan != nil {
		rows, err := results.Query() //nolint:sqlclosecheck // whoever scans closes them
		return p.scan(rows, err)
	}
	tag, err := results.Exec()
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && p.expects && e.Code == divisionByZero {
		return p.otherwise
	}
	if err == nil && p.expects && !guarded && tag.RowsAffected() != int64(p.rows) {
		return p.otherwise
	}
	return err
}

const divisionByZero = "22012"

const (
	beginWrite = `begin`
	beginRead  = `begin isolation level repeatable read read only`
	lazyCommit = `set local synchronous_commit = off`
	commitNow  = `commit`
	rollback   = `rollback`

	// rollbackTime is how long a transaction that failed may take to end.
	rollbackTime = 5 * time.Second
)

// inPostgres runs fn in a transaction and commits it.
func inPostgres(ctx context.Context, pool *pgxpool.Pool, t *pgTx, fn func(ctx context.Context) error) error {
	c, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release()
	t.conn = c.Conn()
	committed := false
	defer func() { // also if fn panics
		if !committed && t.sent && !t.conn.IsClosed() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTime)
			defer cancel()
			_, _ = t.conn.Exec(ctx, rollback) // a connection that is still in a transaction is not used again
		}
	}()
	if err := fn(ctx); err != nil {
		return err
	}
	err = t.commit(ctx)
	committed = err == nil
	return err
}

// inDoubt reports whether the transaction may have been committed although it
// failed like this.
func (t *pgTx) inDoubt(err error) bool { return t.asked && !t.refused && inDoubt(err) }

func (t *pgTx) commit(ctx context.Context) error {
	if !t.sent && len(t.waiting) == 1 { // nothing was asked for
		return nil
	}
	t.asked = true
	tag, _, err := t.send(ctx, command{sql: commitNow}, false)
	if err == nil && tag.String() == "ROLLBACK" {
		return pgx.ErrTxCommitRollback
	}
	return err
}

// post runs a statement with the next one that somebody waits for.
func (t *pgTx) post(p posted) {
	if !t.asIs {
		p.args = cleanArgs(p.args)
	}
	t.waiting = append(t.waiting, p)
}

func (t *pgTx) exec(ctx context.Context, sql string, args []any) (int64, error) {
	tag, _, err := t.send(ctx, command{sql, args}, false)
	return tag.RowsAffected(), err
}

func (t *pgTx) query(ctx context.Context, sql string, args []any) (Rows, error) {
	_, rows, err := t.send(ctx, command{sql, args}, true)
	return rows, err
}

// flush sends what waits.
func (t *pgTx) flush(ctx context.Context) error {
	if len(t.waiting) == 0 {
		return nil
	}
	if t.plan {
		t.unplanned = true
		return errUnplanned
	}
	results, err := t.sendWaiting(ctx, nil)
	if err != nil {
		return err
	}
	return results.Close()
}

// send runs a statement behind those that wait.
func (t *pgTx) send(ctx context.Context, c command, wantsRows bool) (tag pgconn.CommandTag, rows Rows, err error) {
	if t.plan {
		t.unplanned = true
		return tag, nil, errUnplanned
	}
	if !t.asIs {
		c.args = cleanArgs(c.args)
	}
	if len(c.args) == 0 && !wantsRows && c.sql != commitNow { // may be several, which cannot go with others
		if err := t.flush(ctx); err != nil {
			return tag, nil, err
		}
	}
	if len(t.waiting) == 0 {
		t.sent = true
		if wantsRows {
			rows, err := t.conn.Query(ctx, c.sql, c.args...) //nolint:sqlclosecheck // whoever asked closes them
			return tag, rows, err
		}
		tag, err = t.conn.Exec(ctx, c.sql, c.args...)
		return tag, nil, err
	}
	results, err := t.sendWaiting(ctx, &c)
	if err != nil {
		return tag, nil, err
	}
	if wantsRows {
		rows, err := results.Query()
		return tag, batchRows{rows, results}, err
	}
	if tag, err = results.Exec(); err != nil {
		_ = results.Close() // it says the same
		return tag, nil, err
	}
	return tag, nil, results.Close()
}

// sendWaiting sends what waits and a statement behind it, whose result is the
// next one; after an error there is none.
func (t *pgTx) sendWaiting(ctx context.Context, last *command) (pgx.BatchResults, error) {
	batch, waiting, guarded := &pgx.Batch{}, t.waiting, last != nil && last.sql == commitNow
	for _, p := range waiting {
		text := p.sql
		if guarded {
			text = p.guarded()
		}
		batch.Queue(text, p.args...)
	}
	if last != nil {
		batch.Queue(last.sql, last.args...)
	}
	first := !t.sent
	t.waiting, t.sent = nil, true
	results := t.conn.SendBatch(ctx, batch)
	for _, p := range waiting {
		if err := p.result(results, guarded); err != nil {
			_ = results.Close() // what comes of the others does not matter any more
			if t.conn.IsClosed() {
				t.dead = first
			} else {
				t.refused, t.failed = true, p.from
			}
			return nil, err
		}
	}
	return results, nil
}

// copyFrom writes many rows at once.
func (t *pgTx) copyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	if err := t.flush(ctx); err != nil {
		return 0, err
	}
	return t.conn.CopyFrom(ctx, table, columns, rows)
}

// batchRows are rows with statements before them.
type batchRows struct {
	pgx.Rows
	results pgx.BatchResults
}

func (r batchRows) Close() {
	r.Rows.Close()
	_ = r.results.Close() // there is nothing behind the rows
}
