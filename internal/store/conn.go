package store

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Rows is the answer of a query; it must be closed.
type Rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close()
}

// conn runs statements. Both drivers are wrapped to this shape, so that one
// code path serves both and PostgreSQL is spoken to natively.
type conn interface {
	exec(ctx context.Context, sql string, args []any) (int64, error)
	query(ctx context.Context, sql string, args []any) (Rows, error)
}

// Row is the answer of a query that wants one row. Scan returns ErrNoRow when
// there is none.
type Row struct {
	rows Rows
	err  error
}

// ErrNoRow does not leave the stores: accessors turn it into a not-found error
// that names what was looked for.
var ErrNoRow = errors.New("no row")

// Scan copies the first row.
func (r Row) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return ErrNoRow
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	r.rows.Close()
	return r.rows.Err()
}

// pgQuerier is what pool, connection and transaction of pgx have in common.
type pgQuerier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// pgConn is a pool of connections, for statements that are transactions of
// their own.
type pgConn struct{ q pgQuerier }

func (c pgConn) exec(ctx context.Context, sql string, args []any) (int64, error) {
	tag, err := c.q.Exec(ctx, sql, cleanArgs(args)...)
	return tag.RowsAffected(), err
}

func (c pgConn) query(ctx context.Context, sql string, args []any) (Rows, error) {
	return c.q.Query(ctx, sql, cleanArgs(args)...)
}

// hotQuery and hotExec run a statement of the queue's hot path.
func (db *DB) hotQuery(ctx context.Context, sql string, args ...any) (Rows, error) {
	return pgConn{q: db.hot}.query(ctx, sql, args)
}

func (db *DB) hotExec(ctx context.Context, sql string, args ...any) error {
	_, err := pgConn{q: db.hot}.exec(ctx, sql, args)
	return err
}

// queueInto adds a statement to those that are sent at once.
func (c command) queueInto(batch *pgx.Batch) { batch.Queue(c.sql, cleanArgs(c.args)...) }

// command is a statement with its values.
type command struct {
	sql  string
	args []any
}

// batchSender is a transaction or a pool of connections; without an explicit
// BEGIN the statements of a batch are one transaction.
type batchSender interface {
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// collected is a connection that notes statements instead of sending them.
type collected struct{ list []command }

func (c *collected) exec(_ context.Context, sql string, args []any) (int64, error) {
	c.list = append(c.list, command{sql, args})
	return 0, nil
}

func (c *collected) query(context.Context, string, []any) (Rows, error) {
	return nil, errors.ErrUnsupported
}

// execInARow sends several statements at once. It returns how many rows the last
// one changed or found.
func (c pgConn) execInARow(ctx context.Context, list ...command) (n int64, err error) {
	batch := &pgx.Batch{}
	for _, s := range list {
		s.queueInto(batch)
	}
	results := c.q.(batchSender).SendBatch(ctx, batch)
	defer results.Close() //nolint:errcheck // read below
	for range list {
		tag, err := results.Exec()
		if err != nil {
			return 0, err
		}
		n = tag.RowsAffected()
	}
	return n, results.Close()
}

// liteConn is one SQLite connection with its prepared statements. It is used
// by one goroutine at a time.
type liteConn struct {
	c     *sql.Conn
	stmts map[string]*sql.Stmt
}

func newLiteConn(c *sql.Conn) *liteConn { return &liteConn{c: c, stmts: map[string]*sql.Stmt{}} }

// maxStatements bounds the cache; texts are written by hand, so it is only
// reached by data tables of users.
const maxStatements = 512

func (c *liteConn) prepare(ctx context.Context, text string) (*sql.Stmt, error) {
	if s, ok := c.stmts[text]; ok {
		return s, nil
	}
	s, err := c.c.PrepareContext(ctx, planOnce(text))
	if err != nil {
		return nil, err
	}
	if len(c.stmts) >= maxStatements {
		c.closeStatements()
	}
	c.stmts[text] = s
	return s, nil
}

// peeked are the parameters whose values SQLite looks at when it plans: a limit,
// and the kind of a run, which is the condition of a partial index.
var peeked = regexp.MustCompile(`\b(limit|kind =) (\$\d+)`)

// planOnce hides the values of parameters from the planner of SQLite. It would
// make the plan of such a statement anew whenever it is given another value, which
// costs more than the statement.
func planOnce(text string) string {
	return peeked.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, "limit") {
			return found + " + 0"
		}
		return found + " || ''"
	})
}

func (c *liteConn) closeStatements() {
	for _, s := range c.stmts {
		_ = s.Close()
	}
	clear(c.stmts)
}

func (c *liteConn) exec(ctx context.Context, text string, args []any) (int64, error) {
	s, err := c.prepare(ctx, text)
	if err != nil {
		return 0, err
	}
	res, err := s.ExecContext(ctx, cleanArgs(args)...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (c *liteConn) query(ctx context.Context, text string, args []any) (Rows, error) {
	s, err := c.prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(ctx, cleanArgs(args)...)
	if err != nil {
		return nil, err
	}
	return liteRows{rows}, nil
}

type liteRows struct{ *sql.Rows }

func (r liteRows) Close() { _ = r.Rows.Close() }
