package sqltool

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// Statements runs the host's own statements, with $N parameters, in one
// transaction. Scripts never get one.
type Statements interface {
	Exec(ctx context.Context, sql string, args ...any) (int64, error)
	Query(ctx context.Context, sql string, args ...any) (store.Rows, error)
}

// Dialect is sqlite or postgres.
func (d *Database) Dialect() string {
	if _, ok := d.engine.(*sqlite); ok {
		return "sqlite"
	}
	return "postgres"
}

// Write runs fn in a transaction of its own and commits it. If the commit has no
// answer, nobody knows whether it happened; whoever writes so must be able to
// write again.
func (d *Database) Write(ctx context.Context, fn func(ctx context.Context, s Statements) error) error {
	if d.readOnly {
		return &pawl.Error{Code: pawl.CodeConflict, Reason: "read_only", Op: "write rows", Msg: d.service + " only reads", Hint: "Remove readOnly from its definition."}
	}
	var err error
	switch e := d.engine.(type) {
	case *sqlite:
		err = e.write(ctx, fn)
	case *postgres:
		err = e.write(ctx, fn)
	default:
		err = fmt.Errorf("%s takes no rows", d.service)
	}
	if err != nil {
		return fmt.Errorf("write to %s: %w", d.service, err)
	}
	return nil
}

func (p *postgres) write(ctx context.Context, fn func(context.Context, Statements) error) error {
	config, err := pgx.ParseConfig("")
	if err != nil {
		return err
	}
	config.Config = *p.config.Copy()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return fn(ctx, pgStatements{tx}) })
}

type pgStatements struct{ tx pgx.Tx }

// Exec implements Statements.
func (s pgStatements) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	tag, err := s.tx.Exec(ctx, text, args...)
	return tag.RowsAffected(), err
}

// Query implements Statements.
func (s pgStatements) Query(ctx context.Context, text string, args ...any) (store.Rows, error) {
	rows, err := s.tx.Query(ctx, text, args...) //nolint:sqlclosecheck // the caller does
	if err != nil {
		return nil, err
	}
	return rows, nil
}

func (l *sqlite) write(ctx context.Context, fn func(context.Context, Statements) error) error {
	db, err := sql.Open("sqlite", l.dsn(ctx, true)+"&_txlock=immediate")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fn(ctx, liteStatements{tx}); err != nil {
		_ = tx.Rollback() // the first error is the one that matters
		return err
	}
	return tx.Commit()
}

type liteStatements struct{ tx *sql.Tx }

// Exec implements Statements.
func (s liteStatements) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	result, err := s.tx.ExecContext(ctx, text, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Query implements Statements.
func (s liteStatements) Query(ctx context.Context, text string, args ...any) (store.Rows, error) {
	rows, err := s.tx.QueryContext(ctx, text, args...) //nolint:rowserrcheck // the caller does
	if err != nil {
		return nil, err
	}
	return liteRows{rows}, nil
}

type liteRows struct{ *sql.Rows }

// Close implements store.Rows.
func (r liteRows) Close() { _ = r.Rows.Close() }
