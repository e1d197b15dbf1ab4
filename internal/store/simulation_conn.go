package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// directLite speaks to SQLite below database/sql, for simulations: there, the names
// and types of columns that the driver asks for with every statement, and the locks
// of database/sql and of SQLite, take as long as the statements. It is used by one
// goroutine at a time, and reads a whole answer at once.
type directLite struct {
	tls    *libc.TLS
	db     uintptr
	stmts  map[string]*directStmt
	values uintptr        // memory of SQLite, for texts of parameters
	room   int            // how much of it there is
	plain  []driver.Value // the parameters of the statement that runs
	texts  []byte         // of the answer that is read
}

// directStmt is a statement that is prepared.
type directStmt struct {
	handle uintptr
	places []int // which argument each parameter is
	n      int   // how many columns an answer has
	usual  int   // how many values the last answer had
}

// liteFault is an error of SQLite, as that of the driver.
type liteFault struct {
	code int
	text string
}

func (e *liteFault) Error() string { return fmt.Sprintf("%s (%d)", e.text, e.code) }

// openDirectLite opens an empty database in memory.
func openDirectLite(ctx context.Context) (*directLite, error) {
	c := &directLite{tls: libc.NewTLS(), stmts: map[string]*directStmt{}}
	const word = 8
	place := c.tls.Alloc(2 * word)
	defer c.tls.Free(2 * word)
	// Memory is not counted, which takes a lock. It cannot be said any more when SQLite
	// is in use, and then it is.
	sqlite3.Xsqlite3_config(c.tls, sqlite3.SQLITE_CONFIG_MEMSTATUS, libc.VaList(place+word, int32(0)))
	name, err := libc.CString(":memory:")
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.tls, name)
	rc := sqlite3.Xsqlite3_open_v2(c.tls, name, place, sqlite3.SQLITE_OPEN_READWRITE|sqlite3.SQLITE_OPEN_CREATE|sqlite3.SQLITE_OPEN_MEMORY|sqlite3.SQLITE_OPEN_NOMUTEX, 0)
	if rc != sqlite3.SQLITE_OK {
		return nil, fmt.Errorf("open a database in memory: SQLite answers %d", rc)
	}
	c.db = libc.AtomicLoadPUintptr(place)
	sqlite3.Xsqlite3_extended_result_codes(c.tls, c.db, 1)
	list := c.tls.Alloc(3 * word)
	defer c.tls.Free(3 * word)
	const small, many = 1200, 10_000 // bytes, of memory that is at hand: a statement that is prepared keeps what it has
	sqlite3.Xsqlite3_db_config(c.tls, c.db, sqlite3.SQLITE_DBCONFIG_LOOKASIDE, libc.VaList(list, uintptr(0), int32(small), int32(many)))
	const keepPlans = 1 // whatever values a statement is given
	sqlite3.Xsqlite3_db_config(c.tls, c.db, sqlite3.SQLITE_DBCONFIG_ENABLE_QPSG, libc.VaList(list, int32(keepPlans), uintptr(0)))
	for _, pragma := range []string{`pragma foreign_keys = 1`, `pragma temp_store = memory`} {
		if _, err := c.exec(ctx, pragma, nil); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *directLite) close() {
	c.forget()
	libc.Xfree(c.tls, c.values)
	sqlite3.Xsqlite3_close_v2(c.tls, c.db)
	c.tls.Close()
}

// forget ends the statements that are prepared.
func (c *directLite) forget() {
	for _, s := range c.stmts {
		sqlite3.Xsqlite3_finalize(c.tls, s.handle)
	}
	clear(c.stmts)
}

func (c *directLite) fault() error {
	return &liteFault{int(sqlite3.Xsqlite3_extended_errcode(c.tls, c.db)), libc.GoString(sqlite3.Xsqlite3_errmsg(c.tls, c.db))}
}

var errMoreThanOne = errors.New("a text of several statements")

// prepare finds a statement or makes it.
func (c *directLite) prepare(text string) (*directStmt, error) {
	if s, ok := c.stmts[text]; ok {
		return s, nil
	}
	s, rest, err := c.compile(planOnce(text))
	if err != nil {
		return nil, err
	}
	if rest != "" {
		sqlite3.Xsqlite3_finalize(c.tls, s.handle)
		return nil, errMoreThanOne
	}
	if len(c.stmts) >= 8*maxStatements { // what all kinds and an observer ask is more than one process does
		c.forget()
	}
	c.stmts[text] = s
	return s, nil
}

// compile prepares the first statement of a text.
func (c *directLite) compile(text string) (s *directStmt, rest string, err error) {
	p, err := libc.CString(text)
	if err != nil {
		return nil, "", err
	}
	defer libc.Xfree(c.tls, p)
	const word = 8
	place := c.tls.Alloc(2 * word)
	defer c.tls.Free(2 * word)
	if rc := sqlite3.Xsqlite3_prepare_v2(c.tls, c.db, p, -1, place, place+word); rc != sqlite3.SQLITE_OK {
		return nil, "", c.fault()
	}
	s = &directStmt{handle: libc.AtomicLoadPUintptr(place)}
	for i := range sqlite3.Xsqlite3_bind_parameter_count(c.tls, s.handle) {
		name := libc.GoString(sqlite3.Xsqlite3_bind_parameter_name(c.tls, s.handle, i+1))
		n, err := int(i+1), error(nil)
		if name != "" && name != "?" {
			n, err = strconv.Atoi(name[1:])
		}
		if err != nil {
			return nil, "", fmt.Errorf("a parameter is called %q: %w", name, err)
		}
		s.places = append(s.places, n-1)
	}
	s.n = int(sqlite3.Xsqlite3_column_count(c.tls, s.handle))
	return s, strings.TrimSpace(libc.GoString(libc.AtomicLoadPUintptr(place + word))), nil
}

// script runs the statements of a text one after the other.
func (c *directLite) script(text string) error {
	for text != "" {
		s, rest, err := c.compile(text)
		if err != nil {
			return err
		}
		if s.handle != 0 { // else it was a comment
			_, err = c.run(s, nil)
			sqlite3.Xsqlite3_finalize(c.tls, s.handle)
		}
		if err != nil {
			return err
		}
		text = rest
	}
	return nil
}

func (c *directLite) exec(_ context.Context, text string, args []any) (int64, error) {
	if _, err := c.answer(text, args); errors.Is(err, errMoreThanOne) {
		return 0, c.script(text)
	} else if err != nil {
		return 0, err
	}
	return int64(sqlite3.Xsqlite3_changes(c.tls, c.db)), nil
}

func (c *directLite) query(_ context.Context, text string, args []any) (Rows, error) {
	return c.answer(text, args)
}

func (c *directLite) answer(text string, args []any) (*directRows, error) {
	s, err := c.prepare(text)
	if err != nil {
		return nil, err
	}
	return c.run(s, cleanArgs(args))
}

// run gives a statement its values and reads all of its rows.
func (c *directLite) run(s *directStmt, args []any) (*directRows, error) {
	defer func() {
		sqlite3.Xsqlite3_reset(c.tls, s.handle)
		if len(s.places) > 0 {
			sqlite3.Xsqlite3_clear_bindings(c.tls, s.handle)
		}
	}()
	if err := c.bind(s, args); err != nil {
		return nil, err
	}
	rows := &directRows{n: s.n, at: -1}
	c.texts = c.texts[:0]
	for {
		switch rc := sqlite3.Xsqlite3_step(c.tls, s.handle); rc {
		case sqlite3.SQLITE_ROW:
			if rows.values == nil {
				rows.values = make([]directValue, 0, max(s.n, s.usual))
			}
			for i := range s.n {
				rows.values = append(rows.values, c.column(s.handle, int32(i))) //nolint:gosec // a statement has a few columns
			}
		case sqlite3.SQLITE_DONE:
			s.usual = len(rows.values)
			rows.share(string(c.texts))
			return rows, nil
		default:
			return nil, c.fault()
		}
	}
}

// bind gives the parameters their values. Texts stay where they are put until the
// next statement.
func (c *directLite) bind(s *directStmt, args []any) error {
	if len(s.places) == 0 {
		return nil
	}
	c.plain = c.plain[:0]
	need := 0
	for _, arg := range args {
		v, err := plainValue(arg)
		if err != nil {
			return err
		}
		switch v := v.(type) {
		case string:
			need += len(v) + 1
		case []byte:
			need += len(v) + 1
		}
		c.plain = append(c.plain, v)
	}
	if need > c.room {
		libc.Xfree(c.tls, c.values)
		c.room = 2 * need
		c.values = libc.Xmalloc(c.tls, libc.Tsize_t(c.room))
	}
	at := c.values
	for i, place := range s.places {
		if place >= len(c.plain) {
			return fmt.Errorf("missing argument with index %d", place+1)
		}
		n := int32(i + 1) //nolint:gosec // a statement has a few parameters
		var rc int32
		switch v := c.plain[place].(type) {
		case nil:
			rc = sqlite3.Xsqlite3_bind_null(c.tls, s.handle, n)
		case int64:
			rc = sqlite3.Xsqlite3_bind_int64(c.tls, s.handle, n, v)
		case bool:
			rc = sqlite3.Xsqlite3_bind_int64(c.tls, s.handle, n, int64(*(*byte)(unsafe.Pointer(&v))))
		case float64:
			rc = sqlite3.Xsqlite3_bind_double(c.tls, s.handle, n, v)
		case string:
			rc = sqlite3.Xsqlite3_bind_text(c.tls, s.handle, n, c.put(&at, v), int32(len(v)), 0) //nolint:gosec // what is longer does not fit into memory
		case []byte:
			if v == nil {
				rc = sqlite3.Xsqlite3_bind_null(c.tls, s.handle, n)
				break
			}
			rc = sqlite3.Xsqlite3_bind_blob(c.tls, s.handle, n, c.put(&at, unsafe.String(unsafe.SliceData(v), len(v))), int32(len(v)), 0) //nolint:gosec // as above
		default:
			return fmt.Errorf("argument %d is a %T", place+1, v)
		}
		if rc != sqlite3.SQLITE_OK {
			return c.fault()
		}
	}
	return nil
}

// put copies a text to the memory of SQLite.
func (c *directLite) put(at *uintptr, text string) uintptr {
	p := *at
	copy(foreign(p, len(text)), text)
	*at += uintptr(len(text) + 1)
	return p
}

// foreign is memory of SQLite.
func foreign(p uintptr, n int) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&p))), n)
}

// plainValue is an argument as database/sql gives it to a driver.
func plainValue(arg any) (driver.Value, error) {
	switch v := arg.(type) {
	case nil, int64, string, bool, []byte, float64:
		return v, nil
	case int:
		return int64(v), nil
	case *int64:
		if v == nil {
			return nil, nil //nolint:nilnil // NULL
		}
		return *v, nil
	case *string:
		if v == nil {
			return nil, nil //nolint:nilnil // NULL
		}
		return *v, nil
	}
	return driver.DefaultParameterConverter.ConvertValue(arg)
}

// directValue is one column of a row.
type directValue struct {
	kind int32 // as SQLite numbers them
	n    int64 // or the bits of a float, or, until texts are shared out, which part of them it is
	text string
}

func (c *directLite) column(stmt uintptr, i int32) (v directValue) {
	v.kind = sqlite3.Xsqlite3_column_type(c.tls, stmt, i)
	switch v.kind {
	case sqlite3.SQLITE_INTEGER:
		v.n = sqlite3.Xsqlite3_column_int64(c.tls, stmt, i)
	case sqlite3.SQLITE_FLOAT:
		v.n = int64(math.Float64bits(sqlite3.Xsqlite3_column_double(c.tls, stmt, i))) //nolint:gosec // bits
	case sqlite3.SQLITE_TEXT, sqlite3.SQLITE_BLOB:
		p := sqlite3.Xsqlite3_column_blob(c.tls, stmt, i) // of a text it is the text
		if n := int(sqlite3.Xsqlite3_column_bytes(c.tls, stmt, i)); n > 0 {
			v.n = int64(len(c.texts))<<32 | int64(n)
			c.texts = append(c.texts, foreign(p, n)...)
		}
	}
	return v
}

// share gives the values their parts of the texts of an answer.
func (r *directRows) share(texts string) {
	for i := range r.values {
		if v := &r.values[i]; v.kind == sqlite3.SQLITE_TEXT || v.kind == sqlite3.SQLITE_BLOB {
			v.text = texts[v.n>>32:][:v.n&math.MaxUint32]
		}
	}
}

// any is the value as the driver has it.
func (v directValue) any() any {
	switch v.kind {
	case sqlite3.SQLITE_INTEGER:
		return v.n
	case sqlite3.SQLITE_FLOAT:
		return math.Float64frombits(uint64(v.n)) //nolint:gosec // bits
	case sqlite3.SQLITE_TEXT:
		return v.text
	case sqlite3.SQLITE_BLOB:
		return []byte(v.text)
	default:
		return nil
	}
}

// into copies a value to where a scan wants it, by the rules of database/sql.
func (v directValue) into(dest any) error {
	number, text := v.kind == sqlite3.SQLITE_INTEGER, v.kind == sqlite3.SQLITE_TEXT
	switch d := dest.(type) {
	case *string:
		if text {
			*d = v.text
			return nil
		}
	case *int64:
		if number {
			*d = v.n
			return nil
		}
	case *int:
		if number {
			*d = int(v.n)
			return nil
		}
	case **string:
		if *d = nil; text {
			one := v.text
			*d = &one
			return nil
		}
	case **int64:
		if *d = nil; number {
			one := v.n
			*d = &one
			return nil
		}
	}
	return assign(dest, v.any())
}

// directRows is a whole answer.
type directRows struct {
	values []directValue
	n, at  int
}

func (r *directRows) Next() bool {
	r.at++
	return r.n > 0 && r.at*r.n < len(r.values)
}

func (r *directRows) Scan(dest ...any) error {
	if len(dest) != r.n {
		return fmt.Errorf("%d columns are read as %d", r.n, len(dest))
	}
	for i, d := range dest {
		if err := r.values[r.at*r.n+i].into(d); err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return nil
}

func (r *directRows) Err() error { return nil }

func (r *directRows) Close() {}
