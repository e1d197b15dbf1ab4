package store

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	pawl "github.com/pawlrun/pawl"
)

// hotConns is how many connections the queue's hot path may use: one reads
// ahead, one finishes, and one each for hints and leases.
const hotConns = 4

func openPostgres(ctx context.Context, dsn string, o Options) (*DB, error) {
	cfg, err := poolConfig(dsn, o.MaxConns)
	if err != nil {
		return nil, err
	}
	hot, err := poolConfig(dsn, hotConns)
	if err != nil {
		return nil, err
	}
	// The tables of the queue turn over faster than their statistics, so the
	// planner must not be tempted: every statement here has its index.
	for _, k := range []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin", "enable_material", "enable_bitmapscan", "jit"} {
		hot.ConnConfig.RuntimeParams[k] = "off"
	}
	// The heartbeat is all that an idle node sends; it needs no ping before it.
	hot.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool { return p.IdleDuration > 15*time.Second }
	db := &DB{dialect: postgres{}, dsn: dsn}
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
	return db, nil
}

func poolConfig(dsn string, maxConns int) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil { // the cause may quote the URL with its password
		return nil, &pawl.Error{Code: pawl.CodeInvalid, Op: "open database", Msg: "the PostgreSQL URL cannot be read: " + redactURL(dsn), Hint: "Use postgres://USER:PASSWORD@HOST:PORT/DATABASE."}
	}
	if !strings.Contains(dsn, "pool_max_conns") {
		cfg.MaxConns = int32(maxConns)
	}
	p := cfg.ConnConfig.RuntimeParams
	p["application_name"] = "pawl"
	// A transaction whose client vanished must not hold its locks for ever.
	p["idle_in_transaction_session_timeout"] = "15000"
	p["lock_timeout"] = "10000"
	return cfg, nil
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
	tx := &Tx{Now: now(), db: db}
	return tx, pgx.BeginTxFunc(ctx, db.pool, pgx.TxOptions{}, func(ptx pgx.Tx) error {
		tx.conn = pgConn{ptx}
		if lazy {
			if _, err := ptx.Exec(ctx, `set local synchronous_commit = off`); err != nil {
				return err
			}
		}
		return fn(ctx, tx)
	})
}

// isClosedConn reports errors of a connection that ended under us.
func isClosedConn(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		strings.HasSuffix(err.Error(), "conn closed") // pgconn has no exported error for it
}
