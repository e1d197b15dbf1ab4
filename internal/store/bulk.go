package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// CopyRows adds many rows at once, all of them or none: it reports false, and
// leaves the transaction as it was, if there is no faster way here than inserts,
// or if the database refuses one of the rows, which may be there already. The
// values must be of the types of the columns.
func (tx *Tx) CopyRows(ctx context.Context, table string, columns []string, n int, row func(i int) ([]any, error)) (bool, error) {
	t, ok := tx.conn.(*pgTx)
	if !ok {
		return false, nil
	}
	tx.traced("copy "+table, nil)
	t.post(posted{command: command{sql: `savepoint copy_rows`}})
	if err := t.flush(ctx); err != nil { // of a statement before, perhaps
		return false, err
	}
	_, err := t.copyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromSlice(n, row))
	if err == nil {
		t.post(posted{command: command{sql: `release savepoint copy_rows`}})
		return true, nil
	}
	if !refusesCopy(err) {
		return false, fmt.Errorf("copy rows: %w", err)
	}
	if _, err := t.conn.Exec(ctx, `rollback to savepoint copy_rows`); err != nil {
		return false, fmt.Errorf("take back copied rows: %w", err)
	}
	t.post(posted{command: command{sql: `release savepoint copy_rows`}})
	return false, nil
}

// refusesCopy reports whether a server cannot take rows that an insert may take,
// or refuse with better words: a row that is there or does not fit, or a table
// that has no COPY.
func refusesCopy(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || len(e.Code) != 5 {
		return false
	}
	switch e.Code[:2] {
	case "0A", "22", "23", "42":
		return true
	}
	return false
}
