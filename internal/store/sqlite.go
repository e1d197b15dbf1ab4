package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	pawl "github.com/pawlrun/pawl"
)

// lite is an open SQLite file: one writer goroutine that commits in groups,
// and a few readers.
type lite struct {
	path    string
	lock    *os.File
	writeDB *sql.DB // one connection
	readDB  *sql.DB
	writer  *liteConn
	readers chan *liteConn
	opened  int // readers there are

	requests  chan *request
	stop      chan struct{}
	stopped   chan struct{}
	closeOnce sync.Once

	copying atomic.Bool // a backup is being made

	lazyNow bool // the writer's synchronous pragma is NORMAL; used by the writer only

	sim *simulatedLite // that takes the place of the file, in tests; else nil
}

const (
	maxGroup    = 256 // transactions that share one disk wait
	liteReaders = 4
)

func openSQLite(ctx context.Context, path string, o Options) (*DB, error) {
	if path == "" || path == ":memory:" {
		return nil, errNoFile()
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	lock, err := lockFile(path+".lock", o.Holder)
	if err != nil {
		return nil, err
	}
	removeLeftovers(path)
	// SQLite gives its other files the mode of this one.
	if f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err == nil {
		_ = f.Close()
	}
	l := &lite{path: path, lock: lock, requests: make(chan *request, maxGroup), stop: make(chan struct{}), stopped: make(chan struct{})}
	if err := l.open(ctx); err != nil {
		close(l.stopped)
		_ = l.close()
		return nil, (&DB{dialect: sqliteDB{}}).wrap(fmt.Errorf("open database %s: %w", path, err))
	}
	db := &DB{dialect: sqliteDB{}, sqliteFile: l}
	go l.run(db) //nolint:contextcheck // an interrupted statement would undo the whole group
	return db, nil
}

func errNoFile() error {
	return &pawl.Error{Code: pawl.CodeInvalid, Op: "open database", Msg: "a SQLite database needs a file", Hint: "Use sqlite:PATH."}
}

func (l *lite) open(ctx context.Context) error {
	var err error
	// A new file can give back pages that are free; that has to be said before
	// anything else is. One that was made without stays as it is, see Vacuum.
	// WAL with synchronous=FULL waits for the disk at every commit. The size of
	// the log is bounded so that one large transaction does not keep it large.
	if l.writeDB, err = sql.Open("sqlite", liteDSN(l.path, "auto_vacuum(INCREMENTAL)", "cache_size(-8000)", "journal_mode(WAL)", "synchronous(FULL)", "journal_size_limit(67108864)")); err != nil {
		return err
	}
	l.writeDB.SetMaxOpenConns(1)
	c, err := l.writeDB.Conn(ctx)
	if err != nil {
		return err
	}
	l.writer = newLiteConn(c)
	// A reader forgets its pages whenever something was written, so more of them
	// would only take memory; the system has the file in its own cache.
	if l.readDB, err = sql.Open("sqlite", liteDSN(l.path, "cache_size(-2000)", "query_only(1)")); err != nil {
		return err
	}
	l.readers = make(chan *liteConn, liteReaders)
	for range liteReaders {
		c, err := l.readDB.Conn(ctx)
		if err != nil {
			return err
		}
		l.readers <- newLiteConn(c)
		l.opened++
	}
	return nil
}

func liteDSN(path string, pragmas ...string) string {
	q := url.Values{"_pragma": append([]string{"busy_timeout(5000)", "foreign_keys(1)", "temp_store(MEMORY)"}, pragmas...)}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String()
}

// close may be called more than once.
func (l *lite) close() error {
	if l.sim != nil {
		return nil
	}
	var err error
	l.closeOnce.Do(func() { err = l.shut() })
	return err
}

func (l *lite) shut() error {
	close(l.stop)
	<-l.stopped
	if l.writer != nil {
		l.writer.closeStatements()
		_ = l.writer.c.Close()
	}
	for range l.opened { // waits for those that are in use
		c := <-l.readers
		c.closeStatements()
		_ = c.c.Close()
	}
	var errs []error
	for _, db := range []*sql.DB{l.readDB, l.writeDB} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	// Closing the file lets the lock go; the file stays, because removing it
	// could remove the lock of a process that opened it meanwhile.
	return errors.Join(append(errs, l.lock.Close())...)
}

// read borrows a reader; callers wait when all are in use.
func (l *lite) read(ctx context.Context, db *DB, fn Func) error {
	if l.sim != nil {
		return l.sim.read(ctx, db, fn)
	}
	var c *liteConn
	select {
	case <-l.stop:
		return errClosed()
	default:
	}
	select {
	case c = <-l.readers:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.stop:
		return errClosed()
	}
	defer func() { l.readers <- c }()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// A begin that is interrupted tells an error and may have begun all the same,
	// after which nobody could use this reader any more.
	whole := context.WithoutCancel(ctx)
	if _, err := c.exec(whole, `begin`, nil); err != nil {
		return err
	}
	defer func() { _, _ = c.exec(whole, `rollback`, nil) }()
	return fn(ctx, &Tx{Now: now(), db: db, conn: c})
}

// request is one transaction that waits for the writer.
type request struct {
	ctx   context.Context
	fn    Func
	lazy  bool
	tx    *Tx
	state atomic.Int32 // 0 waiting, 1 taken by the writer, 2 abandoned by its caller
	done  chan struct{}
	err   error
	panic any
}

func (l *lite) write(ctx context.Context, db *DB, fn Func, lazy bool) error {
	if l.sim != nil {
		return l.sim.write(ctx, db, fn)
	}
	r := &request{ctx: ctx, fn: fn, lazy: lazy, done: make(chan struct{})}
	select {
	case l.requests <- r:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.stopped:
		return errClosed()
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		if r.state.CompareAndSwap(0, 2) {
			return context.Cause(ctx)
		}
		<-r.done // it runs: its outcome is known in a moment
	case <-l.stopped:
		if r.state.CompareAndSwap(0, 2) {
			return errClosed()
		}
		<-r.done
	}
	if r.panic != nil {
		panic(r.panic)
	}
	if r.err != nil {
		return r.err
	}
	r.tx.committed()
	return nil
}

func errClosed() error {
	return &pawl.Error{Code: pawl.CodeUnavailable, Msg: "the database is closed"}
}
