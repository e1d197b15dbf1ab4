package sqltool

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// What a statement of SQLite may hold, in bytes, so that it cannot fill the
// memory of this process: one value or stored row, and all columns of a result
// together, which the driver copies at once.
const (
	largestLite    = 8 << 20
	largestLiteRow = 32 << 20
)

// sqlite is a file.
type sqlite struct {
	path string // absolute
}

// newSQLite takes the path of a url. The file must be there: a new database
// under a misspelled name would be a riddle.
func newSQLite(s *connector.Settings, path string) (l *sqlite, fault string) {
	path = strings.TrimPrefix(path, "//")
	if path == "" || strings.HasPrefix(path, ":memory:") {
		return nil, "it names no file"
	}
	path, err := filepath.Abs(definition.Within(s.Folder(), path))
	if err != nil {
		return nil, "the file cannot be found"
	}
	l = &sqlite{path: path}
	if s.CheckOnly {
		return l, ""
	}
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "there is no such file; create it (an empty file is an empty database)"
	case err != nil:
		return nil, connector.Reason(err).Error()
	case !info.Mode().IsRegular():
		return nil, "it is not a file"
	}
	return l, ""
}

// sqliteTransaction is a connection of its own.
type sqliteTransaction struct {
	db     *sql.DB
	conn   *sql.Conn
	writes bool
	open   bool // there is a transaction
}

// begin opens the file and a transaction in it. A transaction that writes
// takes the lock at once, so that waiting for others happens here.
func (l *sqlite) begin(ctx context.Context, writes bool) (transaction, error) {
	if _, err := os.Stat(l.path); errors.Is(err, fs.ErrNotExist) {
		return nil, &connector.Error{Class: pawl.ClassPrecondition, Code: "no_database", NotApplied: true, Msg: "the file of the database is missing", Hint: "Put it back, or mount its disk."}
	}
	db, err := sql.Open("sqlite", l.dsn(ctx, writes))
	if err != nil {
		return nil, sqliteFault(ctx, err, writes)
	}
	tx := &sqliteTransaction{db: db, writes: writes}
	if err := tx.start(ctx); err != nil {
		tx.close(ctx)
		return nil, sqliteFault(ctx, err, writes)
	}
	return tx, nil
}

// dsn makes connections that wait for others who hold the file as long as the
// call may take, and whose commits are on the disk before they are answered.
func (l *sqlite) dsn(ctx context.Context, writes bool) string {
	wait := 30 * time.Second // of a call without a deadline of its own
	if deadline, ok := ctx.Deadline(); ok {
		wait = max(time.Until(deadline), time.Millisecond)
	}
	pragmas := []string{fmt.Sprintf("busy_timeout(%d)", wait.Milliseconds()), "foreign_keys(1)", "trusted_schema(0)", "synchronous(FULL)"}
	if !writes {
		pragmas = append(pragmas, "query_only(1)")
	}
	query := url.Values{"mode": {"rw"}, "_defensive": {"1"}, "_pragma": pragmas}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: l.path}).EscapedPath(), RawQuery: query.Encode()}).String()
}

func (t *sqliteTransaction) start(ctx context.Context) error {
	var err error
	if t.conn, err = t.db.Conn(ctx); err != nil {
		return err
	}
	// Without attached databases, no statement reaches another file.
	for id, most := range map[int]int{sqlite3.SQLITE_LIMIT_ATTACHED: 0, sqlite3.SQLITE_LIMIT_LENGTH: largestLite} {
		if _, err := driver.Limit(t.conn, id, most); err != nil {
			return err
		}
	}
	open := "begin"
	if t.writes {
		open = "begin immediate"
	}
	if _, err := t.conn.ExecContext(ctx, open); err != nil {
		return err
	}
	t.open = true
	return nil
}

// run executes one statement. That it is only one was checked.
func (t *sqliteTransaction) run(ctx context.Context, s statement, l limit) (table, error) {
	before, err := t.number(ctx, "select total_changes()")
	if err != nil {
		return table{}, sqliteFault(ctx, err, t.writes)
	}
	found, err := t.read(ctx, s, l)
	if err != nil {
		return table{}, sqliteFault(ctx, err, t.writes)
	}
	after, err := t.number(ctx, "select total_changes()")
	if err == nil && after != before {
		found.affected, err = t.number(ctx, "select changes()")
	}
	if err != nil {
		return table{}, sqliteFault(ctx, err, t.writes)
	}
	return found, nil
}

// read executes a statement and collects its rows. The driver minds the
// context until the first row; from there on it is minded here.
func (t *sqliteTransaction) read(ctx context.Context, s statement, l limit) (found table, err error) {
	release, err := interruptWith(ctx, t.conn)
	if err != nil {
		return table{}, err
	}
	defer release()
	if err := t.limitValues(ctx, s); err != nil {
		return table{}, err
	}
	rows, err := t.conn.QueryContext(ctx, s.sql, sqliteParams(s.params)...)
	if err != nil {
		return table{}, err
	}
	defer func() {
		if closing := rows.Close(); err == nil {
			err = closing
		}
	}()
	types, err := rows.ColumnTypes()
	if err != nil {
		return table{}, err
	}
	columns := make([]string, len(types))
	for i, column := range types {
		columns[i] = column.Name()
	}
	if found, err = newTable(columns, l); err != nil {
		return table{}, err
	}
	values, targets := make([]any, len(types)), make([]any, len(types))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return table{}, err
		}
		if sizeOf(values) > l.bytes { // before it is written as JSON
			return table{}, tooLarge()
		}
		roomy, err := found.add(sqliteRow(types, values))
		if err != nil {
			return table{}, err
		}
		if !roomy && !t.writes {
			break // the rest may be endless
		}
	}
	return found, rows.Err()
}

// limitValues bounds the values of a result by the number of its columns. Only
// a statement that selects can have values of any size in all of them; others
// return stored rows, which are bounded as a whole.
func (t *sqliteTransaction) limitValues(ctx context.Context, s statement) error {
	found, err := scanSQLite(s.sql)
	if err != nil {
		return err
	}
	switch first(found.words) {
	case "select", "with", "values":
	default:
		return nil
	}
	const mostColumns = 2000 // of any result
	columns := mostColumns
	text := strings.TrimRight(s.sql, "; \t\r\n")
	if names, err := columnsOf(ctx, t.conn, "select * from (\n"+text+"\n) limit 0", sqliteParams(s.params)); err == nil {
		columns = max(len(names), 1)
	}
	_, err = driver.Limit(t.conn, sqlite3.SQLITE_LIMIT_LENGTH, min(largestLite, largestLiteRow/columns))
	return err
}

// columnsOf asks for the names of a result's columns.
func columnsOf(ctx context.Context, conn *sql.Conn, text string, params []any) ([]string, error) {
	rows, err := conn.QueryContext(ctx, text, params...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // nothing was read
	names, err := rows.Columns()
	return names, errors.Join(err, rows.Err())
}

// sizeOf is about how many bytes the values of a row have.
func sizeOf(values []any) (size int) {
	for _, value := range values {
		switch v := value.(type) {
		case string:
			size += len(v)
		case []byte:
			size += len(v)
		}
	}
	return size
}

func (t *sqliteTransaction) number(ctx context.Context, query string) (n int64, err error) {
	err = t.conn.QueryRowContext(ctx, query).Scan(&n)
	return n, err
}

// commit ends the transaction. SQLite undoes it if the lock cannot be had;
// after other faults, of the disk, only the file knows.
func (t *sqliteTransaction) commit(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	_, err := t.conn.ExecContext(ctx, "commit")
	if err == nil {
		t.open = false
		return nil
	}
	switch sqliteCode(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_CONSTRAINT:
		return sqliteFault(ctx, err, t.writes) // the transaction is still open, and is undone by close
	}
	fault := unanswered(err)
	fault.Msg = "the commit ended with: " + quote(err.Error())
	return fault
}

// close undoes what was not committed.
func (t *sqliteTransaction) close(ctx context.Context) {
	if t.open {
		_, _ = t.conn.ExecContext(context.WithoutCancel(ctx), "rollback") // closing does the same
	}
	if t.conn != nil {
		_ = t.conn.Close()
	}
	_ = t.db.Close()
}

func (l *sqlite) close() {} // nothing is kept

func (l *sqlite) booksExist() string {
	return `select 1 as found from sqlite_schema where type = 'table' and name = 'pawl_calls'`
}

func (l *sqlite) describe(ctx context.Context, tx transaction) (string, error) {
	const what = `select sqlite_version() as version, (select count(*) from sqlite_schema where type = 'table') as tables`
	found, err := tx.run(ctx, statement{sql: what}, limit{rows: 1, bytes: largestResult})
	if err != nil {
		return "", err
	}
	var row struct {
		Version string
		Tables  int
	}
	if len(found.rows) == 1 {
		_ = json.Unmarshal(found.rows[0], &row) // made a moment ago
	}
	return fmt.Sprintf("SQLite %s reads the file, which has %d tables", row.Version, row.Tables), nil
}
