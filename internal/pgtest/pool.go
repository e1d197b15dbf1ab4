package pgtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Prepare brings an empty database to the state in which tests want theirs, for
// instance with the tables of this version. The URL is sqlite: or postgres:.
type Prepare func(ctx context.Context, url string) error

// errChanged means that a test left more than rows and tables behind.
var errChanged = errors.New("the test changed more than rows")

// shapeQuery asks for everything that a test can change except rows: relations, columns,
// types, constraints, functions, triggers, schemas, extensions, sequences,
// settings of the database, and what the planner learned. Objects of tests have
// ids from 16384 on, and keep them as long as they live.
const shapeQuery = `select coalesce(md5(string_agg(line, ' ' order by line)), '') from (
	select concat_ws(' ', 'relation', oid, relname, relnatts, reloptions, relacl) as line from pg_class where oid >= 16384
	union all select concat_ws(' ', 'column', attrelid, attname, atttypid, attnotnull, attisdropped) from pg_attribute where attrelid >= 16384
	union all select concat_ws(' ', 'type', oid, typname) from pg_type where oid >= 16384
	union all select concat_ws(' ', 'constraint', oid, conname, convalidated) from pg_constraint where oid >= 16384
	union all select concat_ws(' ', 'default', oid) from pg_attrdef
	union all select concat_ws(' ', 'function', oid, xmin) from pg_proc where oid >= 16384
	union all select concat_ws(' ', 'trigger', oid, tgenabled) from pg_trigger where oid >= 16384
	union all select concat_ws(' ', 'schema', oid, nspname) from pg_namespace where oid >= 16384
	union all select concat_ws(' ', 'extension', oid, extname) from pg_extension where oid >= 16384
	union all select concat_ws(' ', 'sequence', schemaname, sequencename, last_value) from pg_sequences
	union all select concat_ws(' ', 'setting', setconfig) from pg_db_role_setting
		where setdatabase = (select oid from pg_database where datname = current_database())
	union all select concat_ws(' ', 'statistic', starelid, staattnum) from pg_statistic where starelid >= 16384
) as lines`

// Tables; those that a test added; those with rows, or room that rows left.
const (
	tablesQuery = `select oid::bigint from pg_class where relkind = 'r' and oid >= 16384`
	addedQuery  = `select oid::regclass::text from pg_class where relkind = 'r' and oid >= 16384 and not oid::bigint = any($1)`
	filledQuery = `select oid::regclass::text from pg_class where relkind = 'r' and oid >= 16384 and pg_relation_size(oid) > 0`
)

// pool keeps the prepared databases of a process between its tests. Preparing
// one costs ten times what emptying it does, and most of a small test's time.
type pool struct {
	prepare Prepare // nil: databases are empty, and are not kept

	mu   sync.Mutex
	free []*database // guarded by mu
	file string      // guarded by mu; a prepared SQLite file, to copy
}

// database is one that was prepared: what it is called now, and what it was
// like before any test.
type database struct {
	name   string
	shape  string
	tables []int64
	rows   map[string][]byte // by table, as COPY writes them
}

// lend gives a test a prepared database until it ends. A database goes to the
// next test under another name, so that nobody whom a test left behind finds it.
func (p *pool) lend(t testing.TB, admin string) string {
	t.Helper()
	d := p.take()
	if d == nil {
		d = &database{name: newName()}
		if err := d.create(t.Context(), admin, p.prepare); err != nil {
			t.Fatalf("prepare a database for the test: %v", err)
		}
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), dropTimeout)
		defer cancel()
		if !t.Failed() && d.reset(ctx, admin) == nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.free = append(p.free, d)
			return
		}
		if err := drop(ctx, admin, d.name); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	return addressOf(admin, d.name)
}

func (p *pool) take() *database {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 {
		return nil
	}
	last := len(p.free) - 1
	d := p.free[last]
	p.free = p.free[:last]
	return d
}

// copyFile writes a prepared SQLite database to path.
func (p *pool) copyFile(ctx context.Context, path string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == "" {
		dir, err := os.MkdirTemp("", "pawl-sqlite-")
		if err != nil {
			return err
		}
		p.file = filepath.Join(dir, "prepared.db")
		if err := p.prepare(ctx, "sqlite:"+p.file); err != nil {
			return err
		}
	}
	content, err := os.ReadFile(p.file)
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// close removes what the pool keeps.
func (p *pool) close(ctx context.Context, admin func(context.Context) (string, error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs error
	if p.file != "" {
		errs = os.RemoveAll(filepath.Dir(p.file))
	}
	for _, d := range p.free {
		address, err := admin(ctx)
		if err == nil {
			err = drop(ctx, address, d.name)
		}
		errs = errors.Join(errs, err)
	}
	p.free = nil
	return errs
}

func (d *database) create(ctx context.Context, admin string, prepare Prepare) error {
	// template0, because nobody can be connected to it: a template in use
	// cannot be copied.
	if err := execute(ctx, admin, "CREATE DATABASE "+d.name+" TEMPLATE template0"); err != nil {
		return err
	}
	address := addressOf(admin, d.name)
	err := prepare(ctx, address)
	if err == nil {
		err = withConn(ctx, address, d.remember)
	}
	if err != nil {
		return errors.Join(err, drop(ctx, admin, d.name))
	}
	return nil
}

// remember notes what the database is like.
func (d *database) remember(ctx context.Context, conn *pgx.Conn) error {
	tables, err := list[string](ctx, conn, filledQuery)
	if err != nil {
		return err
	}
	if d.tables, err = list[int64](ctx, conn, tablesQuery); err != nil {
		return err
	}
	d.rows = make(map[string][]byte, len(tables))
	for _, table := range tables {
		var rows bytes.Buffer
		if _, err := conn.PgConn().CopyTo(ctx, &rows, "COPY "+table+" TO STDOUT"); err != nil {
			return fmt.Errorf("copy %s: %w", table, err)
		}
		d.rows[table] = rows.Bytes()
	}
	return conn.QueryRow(ctx, shapeQuery).Scan(&d.shape)
}

// reset throws out whoever is connected, gives the database a new name, and
// brings its rows back to what they were.
func (d *database) reset(ctx context.Context, admin string) error {
	fresh := newName()
	err := withConn(ctx, admin, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = $1`, d.name); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, "ALTER DATABASE "+d.name+" RENAME TO "+fresh)
		return err
	})
	if err != nil {
		return err
	}
	d.name = fresh
	return withConn(ctx, addressOf(admin, fresh), d.restore)
}

func (d *database) restore(ctx context.Context, conn *pgx.Conn) error {
	if err := change(ctx, conn, "DROP TABLE", addedQuery, d.tables); err != nil {
		return err
	}
	var shape string
	if err := conn.QueryRow(ctx, shapeQuery).Scan(&shape); err != nil {
		return err
	}
	if shape != d.shape {
		return errChanged
	}
	if err := change(ctx, conn, "TRUNCATE", filledQuery); err != nil {
		return err
	}
	for table, rows := range d.rows {
		if _, err := conn.PgConn().CopyFrom(ctx, bytes.NewReader(rows), "COPY "+table+" FROM STDIN"); err != nil {
			return fmt.Errorf("copy %s: %w", table, err)
		}
	}
	return nil
}

// change does something to the tables that a query lists.
func change(ctx context.Context, conn *pgx.Conn, what, query string, args ...any) error {
	tables, err := list[string](ctx, conn, query, args...)
	if err != nil || len(tables) == 0 {
		return err
	}
	_, err = conn.Exec(ctx, what+" "+strings.Join(tables, ", ")+" CASCADE")
	return err
}

func list[T any](ctx context.Context, conn *pgx.Conn, query string, args ...any) ([]T, error) {
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[T])
}

func newName() string { return "test_" + strings.ToLower(rand.Text()) }

// addressOf is the URL of another database of the admin URL's server.
func addressOf(admin, name string) string {
	address, err := url.Parse(admin)
	if err != nil {
		return admin // checked before
	}
	address.Path = "/" + name
	return address.String()
}

func drop(ctx context.Context, admin, name string) error {
	return execute(ctx, admin, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
}

// execute runs one statement on a connection of its own.
func execute(ctx context.Context, address, statement string) error {
	return withConn(ctx, address, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, statement)
		return err
	})
}

func withConn(ctx context.Context, address string, do func(context.Context, *pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, conn), conn.Close(ctx))
}
