package bulk

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// liteMeter speaks to SQLite below database/sql, which does not tell how many
// instructions a statement took.
type liteMeter struct {
	tls *libc.TLS
	db  uintptr
}

func newLiteMeter(path string) (Meter, error) {
	m := &liteMeter{tls: libc.NewTLS()}
	name, err := libc.CString(path)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(m.tls, name)
	place := m.tls.Alloc(int(unsafe.Sizeof(m.db)))
	defer m.tls.Free(int(unsafe.Sizeof(m.db)))
	if rc := sqlite3.Xsqlite3_open_v2(m.tls, name, place, sqlite3.SQLITE_OPEN_READWRITE, 0); rc != sqlite3.SQLITE_OK {
		return nil, fmt.Errorf("open %s: SQLite answers %d", path, rc)
	}
	m.db = libc.AtomicLoadPUintptr(place)
	sqlite3.Xsqlite3_busy_timeout(m.tls, m.db, 10_000) // ms; the server writes beside it
	return m, nil
}

func (m *liteMeter) Close() {
	sqlite3.Xsqlite3_close_v2(m.tls, m.db)
	m.tls.Close()
}

// read matches a table that is read without an index; views and lists of
// values have other words.
var read = regexp.MustCompile(`(?m)^SCAN (\w+)$`)

// Cost runs the statement to its end.
func (m *liteMeter) Cost(_ context.Context, sql string, args []any) (c Cost, err error) {
	if _, _, err := m.run("begin", nil); err != nil {
		return c, err
	}
	defer func() {
		if _, _, undone := m.run("rollback", nil); err == nil {
			err = undone
		}
	}()
	_, lines, err := m.run("explain query plan "+sql, args)
	if err != nil {
		return c, err
	}
	for _, line := range lines {
		c.Plan += line + "\n"
	}
	for _, found := range read.FindAllStringSubmatch(c.Plan, -1) {
		c.Scans = append(c.Scans, tableOf(sql, found[1]))
	}
	before := m.pages()
	c.Steps, _, err = m.run(sql, args)
	c.Pages = m.pages() - before
	return c, err
}

// pages is how many pages this connection has looked at.
func (m *liteMeter) pages() (n int64) {
	const size = 8 // two numbers of 32 bits
	place := m.tls.Alloc(size)
	defer m.tls.Free(size)
	for _, what := range []int32{sqlite3.SQLITE_DBSTATUS_CACHE_HIT, sqlite3.SQLITE_DBSTATUS_CACHE_MISS} {
		sqlite3.Xsqlite3_db_status(m.tls, m.db, what, place, place+size/2, 0)
		n += int64(libc.AtomicLoadPInt32(place))
	}
	return n
}

// tableOf is the table that a statement calls by another name.
func tableOf(sql, alias string) string {
	found := regexp.MustCompile(`(?i)\b(?:from|join|into|update)\s+(\w+)\s+(?:as\s+)?` + alias + `\b`).FindStringSubmatch(sql)
	if found == nil {
		return alias
	}
	return found[1]
}

// run runs a statement and returns how many instructions it took, and the
// fourth column of its rows, which is that of a plan.
func (m *liteMeter) run(sql string, args []any) (steps int64, lines []string, err error) {
	text, err := libc.CString(sql)
	if err != nil {
		return 0, nil, err
	}
	defer libc.Xfree(m.tls, text)
	place := m.tls.Alloc(int(unsafe.Sizeof(m.db)))
	defer m.tls.Free(int(unsafe.Sizeof(m.db)))
	if rc := sqlite3.Xsqlite3_prepare_v2(m.tls, m.db, text, -1, place, 0); rc != sqlite3.SQLITE_OK {
		return 0, nil, m.fault(sql)
	}
	stmt := libc.AtomicLoadPUintptr(place)
	defer sqlite3.Xsqlite3_finalize(m.tls, stmt)
	for i, arg := range args {
		if err := m.bind(stmt, i+1, arg); err != nil {
			return 0, nil, err
		}
	}
	for {
		switch rc := sqlite3.Xsqlite3_step(m.tls, stmt); rc {
		case sqlite3.SQLITE_ROW:
			if sqlite3.Xsqlite3_column_count(m.tls, stmt) == 4 {
				lines = append(lines, libc.GoString(sqlite3.Xsqlite3_column_text(m.tls, stmt, 3)))
			}
		case sqlite3.SQLITE_DONE:
			return int64(sqlite3.Xsqlite3_stmt_status(m.tls, stmt, sqlite3.SQLITE_STMTSTATUS_VM_STEP, 0)), lines, nil
		default:
			return 0, nil, m.fault(sql)
		}
	}
}

// bind gives the parameter $n its value. SQLite numbers parameters as they come
// in the text, whatever their names.
func (m *liteMeter) bind(stmt uintptr, n int, arg any) error {
	v, err := plain(arg)
	if err != nil {
		return err
	}
	name, err := libc.CString("$" + strconv.Itoa(n))
	if err != nil {
		return err
	}
	defer libc.Xfree(m.tls, name)
	at := sqlite3.Xsqlite3_bind_parameter_index(m.tls, stmt, name)
	switch v := v.(type) {
	case nil:
		sqlite3.Xsqlite3_bind_null(m.tls, stmt, at)
	case int64:
		sqlite3.Xsqlite3_bind_int64(m.tls, stmt, at, v)
	case string:
		text, err := libc.CString(v)
		if err != nil {
			return err
		}
		defer libc.Xfree(m.tls, text)
		sqlite3.Xsqlite3_bind_text(m.tls, stmt, at, text, int32(len(v)), sqlite3.SQLITE_TRANSIENT)
	}
	return nil
}

func (m *liteMeter) fault(sql string) error {
	return fmt.Errorf("%s: %.200s", libc.GoString(sqlite3.Xsqlite3_errmsg(m.tls, m.db)), sql)
}
