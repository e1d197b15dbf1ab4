package store

import (
	"context"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	pawl "github.com/pawlrun/pawl"
)

// DB is an open database, safe for concurrent use.
type DB struct {
	dialect dialect
	log     *slog.Logger

	sqliteFile *lite // SQLite, or nil

	pool *pgxpool.Pool // PostgreSQL, or nil
	hot  *pgxpool.Pool // PostgreSQL, planned for the queue's hot path
	dsn  string

	txGroup  txGroup       // PostgreSQL: the transactions that become one
	txGroups txGroups      // PostgreSQL: those of which all change one row
	plans    plans         // PostgreSQL: the plans that go together
	maxTx    time.Duration // PostgreSQL: how long a transaction may take; zero is for ever

	applied Migrated // what Open did to the schema

	reconnected atomic.Pointer[time.Time] // PostgreSQL: when Reconnect last did something

	promoting bool // PostgreSQL: rows are copied as they are, or not at all

	mu     sync.Mutex
	links  map[*Link]struct{} // guarded by mu: that are open
	closed bool               // guarded by mu

	trace func(sql string, args []any) // nil: nobody asks

	refusedSets refusedSets
	setColumns  sync.Map // how many columns statements have, by text

	ids     idSource
	failing atomic.Bool // the last write failed for want of a disk or a connection
}

// Options tune Open. The zero value is right for production.
type Options struct {
	Log *slog.Logger

	// Holder is told to a second process that wants the same SQLite file.
	Holder string

	// MaxConns bounds the PostgreSQL connections of this process (default 16).
	MaxConns int

	// Trace is told every statement of a transaction before it is run, for
	// tests of what statements cost. It is called by many goroutines.
	Trace func(sql string, args []any)

	// UpTo is the schema that this program takes for its own, for tests of
	// upgrades; zero is the newest.
	UpTo int

	// Promoting opens a database that was left for another one, or that has
	// not taken over yet. It is for Promote alone.
	Promoting bool
}

// Open opens the database named by a URL, sqlite:PATH or postgres://..., and
// brings its schema up to date. A SQLite file belongs to one process at a
// time: Open fails with pawl.ErrConflict, naming the holder, while another
// process has it. It fails with the same for a database that another one has
// taken over from; see Promote.
func Open(ctx context.Context, rawURL string, o Options) (*DB, error) {
	db, err := connect(ctx, rawURL, o)
	if err != nil {
		return nil, err
	}
	if err := db.migrate(ctx, o.UpTo); err != nil {
		_ = db.Close()
		return nil, err
	}
	if o.Promoting {
		return db, nil
	}
	if err := db.refuseMoved(ctx); err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}

// connect opens a database and leaves its schema as it is.
func connect(ctx context.Context, rawURL string, o Options) (db *DB, err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxConns == 0 {
		o.MaxConns = 16
	}
	switch scheme, rest, _ := strings.Cut(rawURL, ":"); scheme {
	case "sqlite":
		db, err = openSQLite(ctx, strings.TrimPrefix(rest, "//"), o)
	case "postgres", "postgresql":
		db, err = openPostgres(ctx, rawURL, o)
	default:
		return nil, &pawl.Error{
			Code: pawl.CodeInvalid, Op: "open database", Msg: "unknown database " + redactURL(rawURL),
			Hint: "Use sqlite:PATH or postgres://USER@HOST/DATABASE.",
		}
	}
	if err != nil {
		return nil, err
	}
	db.log, db.trace = o.Log, o.Trace
	db.ids.init()
	return db, nil
}

// Close releases the database. Nothing may use it afterwards.
func (db *DB) Close() error {
	if db.sqliteFile != nil {
		return db.sqliteFile.close()
	}
	db.mu.Lock()
	db.closed = true
	open := slices.Collect(maps.Keys(db.links))
	db.mu.Unlock()
	for _, s := range open {
		s.Close()
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		db.hot.Close()
		db.pool.Close()
	}()
	select {
	case <-closed:
	case <-time.After(closeWait):
	}
	return nil
}

// closeWait is how long transactions may go on while a database is closed. One
// whose connection died without a word would keep the process for minutes.
const closeWait = 5 * time.Second

// Name is "sqlite" or "postgres".
func (db *DB) Name() string { return db.dialect.name() }

// Shared reports whether other processes may use the database too.
func (db *DB) Shared() bool {
	return db.sqliteFile == nil || db.sqliteFile.sim != nil && db.sqliteFile.sim.shared
}

// Buckets is the number of buckets that jobs hash to.
func (db *DB) Buckets() int { return db.dialect.buckets() }

// Ping asks the database for a sign of life. If the last write failed for want
// of a disk or a connection, it also tries to write.
func (db *DB) Ping(ctx context.Context) error {
	err := db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		var one int
		return tx.QueryRow(ctx, `select 1`).Scan(&one)
	})
	if err != nil || !db.failing.Load() {
		return err
	}
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		_, err := tx.Exec(ctx, `insert into write_probe (id, at) values (1, $1) on conflict (id) do update set at = excluded.at`, Millis(tx.Now))
		return err
	})
}

// note remembers whether writing works, and says so when that changes.
func (db *DB) note(err error) {
	failed := false
	if err != nil {
		kind := db.dialect.classify(err)
		if kind != errorUnavailable && kind != errorFull {
			return
		}
		failed = true
	}
	if db.failing.Swap(failed) == failed {
		return
	}
	if failed {
		db.log.Error("the database cannot be written", "err", err)
	} else {
		db.log.Info("the database can be written again")
	}
}

// String names the database for people, without credentials.
func (db *DB) String() string {
	if db.sqliteFile != nil {
		return "sqlite:" + db.sqliteFile.path
	}
	return redactURL(db.dsn)
}

// redactURL shows a URL without what might be secret.
func redactURL(raw string) string {
	u, err := url.Parse(raw)
	if several := serversOf(raw); err != nil && several != "" { // url reads no list of hosts of which some have ports
		return several
	}
	if err != nil || u.Scheme == "" {
		return "(not a URL)"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
