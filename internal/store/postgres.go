package store

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	pawl "github.com/pawlrun/pawl"
)

// hotConns is how many connections the queue's hot path may use: one reads
// ahead, one finishes, and one each for hints and leases. And as many again,
// because one that died without a word keeps its place until the server was told
// to forget its statement, or five seconds have passed.
const hotConns = 8

func openPostgres(ctx context.Context, dsn string, o Options) (*DB, error) {
	cfg, err := poolConfig(dsn, o)
	if err != nil {
		return nil, err
	}
	hot := cfg.Copy()
	hot.MaxConns, hot.MinConns, hot.MinIdleConns = hotConns, 0, 0 // whatever the URL says: it is about the others
	// The tables of the queue turn over faster than their statistics, so the
	// planner must not be tempted: every statement here has its index.
	for _, k := range []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin", "enable_material", "enable_bitmapscan", "jit"} {
		hot.ConnConfig.RuntimeParams[k] = "off"
	}
	// What ends jobs looks cheaper to plan anew for the one or two of a quiet moment than
	// to keep for as many as there can be, which is the same plan: making it takes
	// several times as long as ending them.
	hot.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	// The heartbeat is all that an idle node sends; it needs no ping before it.
	hot.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool { return p.IdleDuration > 15*time.Second }
	db := &DB{dialect: postgres{}, dsn: dsn, links: map[*Link]struct{}{}, maxTx: maxTx, promoting: o.Promoting}
	if o.Promoting {
		db.maxTx = 0
	}
	if db.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, err
	}
	if db.hot, err = pgxpool.NewWithConfig(ctx, hot); err != nil {
		db.pool.Close()
		return nil, err
	}
	if err := db.pool.Ping(ctx); err != nil {
		_ = db.Close()
		return nil, &pawl.Error{
			Code: pawl.CodeUnavailable, Op: "open database", Msg: "PostgreSQL does not answer at " + redactURL(dsn),
			Hint: "Check the address, the user and that the server runs.", Err: err,
		}
	}
	if err := db.checkEncoding(ctx); err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}

// checkEncoding refuses a database that cannot hold every text, before anything is
// written to it.
func (db *DB) checkEncoding(ctx context.Context) error {
	return db.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		if encoding := c.Conn().PgConn().ParameterStatus("server_encoding"); encoding != "UTF8" {
			return &pawl.Error{
				Code: pawl.CodeInvalid, Op: "open database", Msg: "the database has the encoding " + encoding + ", and Pawl needs UTF8",
				Hint: "Make another one: create database pawl encoding 'UTF8' template template0.",
			}
		}
		return nil
	})
}

// The bounds of a connection. Whoever holds a lock and is not heard of any more
// must lose it before the lease of its node is over (4.5 s).
const (
	idleInTransaction = 4 * time.Second         // a transaction that says nothing is ended
	lockTimeout       = 5 * time.Second         // a statement that waits for a lock is given up
	connectTimeout    = 5 * time.Second         // for connection, TLS and password together
	nextServerAfter   = 1500 * time.Millisecond // the same, where there is another server to try: sooner than a heartbeat gives up
	ackTimeout        = 10 * time.Second        // data that nobody acknowledges ends the connection
	aliveIdle         = 5 * time.Second         // a silent connection is asked whether it lives
	aliveEvery        = 2 * time.Second
	aliveTries        = 3

	// maxTx bounds a transaction as a whole, from here: a server that accepts
	// and never answers is given up.
	maxTx = 2 * time.Minute
)

func poolConfig(dsn string, o Options) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil { // the cause may quote the URL with its password
		return nil, &pawl.Error{Code: pawl.CodeInvalid, Op: "open database", Msg: "the PostgreSQL URL cannot be read: " + redactURL(dsn), Hint: "Use postgres://USER:PASSWORD@HOST:PORT/DATABASE."}
	}
	if !strings.Contains(dsn, "pool_max_conns") {
		cfg.MaxConns = int32(o.MaxConns)
	}
	idle := idleInTransaction
	if o.Promoting { // reads and compares tables meanwhile
		idle = 0
	}
	p := cfg.ConnConfig.RuntimeParams
	p["application_name"] = "pawl"
	p["idle_in_transaction_session_timeout"] = milliseconds(idle)
	p["lock_timeout"] = milliseconds(lockTimeout)
	// The server's end of the same connection.
	p["tcp_keepalives_idle"] = strconv.Itoa(int(aliveIdle.Seconds()))
	p["tcp_keepalives_interval"] = strconv.Itoa(int(aliveEvery.Seconds()))
	p["tcp_keepalives_count"] = strconv.Itoa(aliveTries)
	p["tcp_user_timeout"] = milliseconds(ackTimeout)
	if cfg.ConnConfig.ConnectTimeout == 0 || cfg.ConnConfig.ConnectTimeout > connectTimeout {
		cfg.ConnConfig.ConnectTimeout = connectTimeout
	}
	cfg.ConnConfig.DialFunc = dial
	if namesSeveralServers(cfg.ConnConfig) {
		cfg.ConnConfig.ConnectTimeout = min(cfg.ConnConfig.ConnectTimeout, nextServerAfter)
		if cfg.ConnConfig.ValidateConnect == nil {
			cfg.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
		}
	}
	return cfg, nil
}

// namesSeveralServers: one of them is the primary and the others follow it, and
// who is which changes. A node needs the one that it can write to, whatever the
// URL asks for, or forgets to.
func namesSeveralServers(c *pgx.ConnConfig) bool {
	return slices.ContainsFunc(c.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.Host != c.Host || f.Port != c.Port })
}

// serversOf shows the servers and the database of a PostgreSQL URL, or is empty.
func serversOf(dsn string) string {
	c, err := pgconn.ParseConfig(dsn)
	if err != nil || !strings.HasPrefix(dsn, "postgres") {
		return ""
	}
	hosts := []string{net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))}
	for _, f := range c.Fallbacks {
		if host := net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port))); !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return "postgres://" + strings.Join(hosts, ",") + "/" + c.Database
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// dial connects so that a dead connection is noticed.
func dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: aliveIdle, Interval: aliveEvery, Count: aliveTries}}
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if t, ok := c.(*net.TCPConn); ok {
		raw, err := t.SyscallConn()
		if err == nil {
			err = setUserTimeout(raw, ackTimeout)
		}
		if err != nil {
			_ = c.Close()
			return nil, err
		}
	}
	return c, nil
}

// Reconnect makes later statements use new connections: one that does not
// answer is seldom alone. Those in use end as they are. It does nothing as long
// as the connections that an earlier call led to are still being made: away from
// a server that says nothing they take longer than who waits for them.
func (db *DB) Reconnect() {
	if db.sqliteFile != nil {
		return
	}
	now, last := time.Now(), db.reconnected.Load()
	recent := last != nil && now.Sub(*last) < connectTimeout
	if recent || !db.reconnected.CompareAndSwap(last, &now) {
		return
	}
	db.hot.Reset()
	db.pool.Reset()
}

func (db *DB) writePostgres(ctx context.Context, fn Func, lazy bool) error {
	tx, err := db.commitPostgres(ctx, fn, lazy)
	if err == nil {
		tx.committed()
	}
	return err
}

// commitPostgres leaves it to the caller to tell the transaction that it was
// committed.
func (db *DB) commitPostgres(ctx context.Context, fn Func, lazy bool) (*Tx, error) {
	t := &pgTx{asIs: db.promoting}
	t.post(posted{command: command{sql: beginWrite}})
	if lazy {
		t.post(posted{command: command{sql: lazyCommit}})
	}
	tx := &Tx{Now: now(), db: db, conn: t}
	err := db.bounded(ctx, func(ctx context.Context) error {
		return inPostgres(ctx, db.pool, t, func(ctx context.Context) error { return fn(ctx, tx) })
	})
	if t.inDoubt(err) {
		tx.doubted()
	}
	return tx, err
}

// bounded gives a transaction no more than its time.
func (db *DB) bounded(ctx context.Context, fn func(context.Context) error) error {
	if db.maxTx == 0 {
		return fn(ctx)
	}
	bound, cancel := context.WithTimeout(ctx, db.maxTx)
	defer cancel()
	err := fn(bound)
	if err != nil && ctx.Err() == nil && bound.Err() != nil {
		db.Reconnect()
		return errors.Join(ErrNoAnswer, err)
	}
	return err
}

// neverSent reports whether nothing of a statement by itself reached the server.
// (Of a transaction it cannot be told: its error may be that of the rollback
// after a commit which was not answered.)
func neverSent(err error) bool {
	_, unconnected := errors.AsType[*pgconn.ConnectError](err)
	return unconnected || pgconn.SafeToRetry(err)
}

// inDoubt reports whether a commit that failed like this may have happened all
// the same. What the server refused did not.
func inDoubt(err error) bool {
	if err == nil || errors.Is(err, pgx.ErrTxCommitRollback) {
		return false
	}
	if _, ok := errors.AsType[*pgconn.PgError](err); ok {
		return classifyPostgres(err) == errorUnavailable
	}
	return true
}

// isClosedConn reports errors of a connection that ended under us.
func isClosedConn(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		strings.HasSuffix(err.Error(), "conn closed") // pgconn has no exported error for it
}
