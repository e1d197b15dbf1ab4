package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// door is a database with applications beside Pawl.
type doorKit struct {
	*testing.T
	db    *DB
	url   string
	admin *pgx.Conn // may do everything
	app   *pgx.Conn // an application: a role that is a member of pawl_app
	role  string    // of the application
	owner string    // the user in whose name it acts
}

func newDoor(t *testing.T) *doorKit {
	t.Helper()
	k := &doorKit{T: t, url: pgtest.URL(t)}
	k.db = open(t, k.url)
	k.admin = k.connect(k.url)
	k.owner = "user-of-admin"
	k.exec(k.admin, `insert into users (id, name, role, created_at) values ('user-of-admin', 'admin', 'admin', 0)`)
	mustWrite(t, k.db, func(ctx context.Context, tx *Tx) error { return tx.ServeTasks(ctx, []string{"http", "log"}, 1000) })
	k.role = fmt.Sprintf("app_%x", rand.Uint64())
	k.exec(k.admin, `create role `+k.role+` login in role pawl_app`)
	t.Cleanup(func() {
		for _, sql := range []string{"drop owned by " + k.role, "drop role " + k.role} {
			if _, err := k.admin.Exec(context.Background(), sql); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
		}
	})
	k.app = k.connectAs(k.role)
	return k
}

func (k *doorKit) connect(at string) *pgx.Conn {
	k.Helper()
	c, err := pgx.Connect(k.Context(), at)
	if err != nil {
		k.Fatalf("connect: %v", err)
	}
	k.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func (k *doorKit) connectAs(role string) *pgx.Conn {
	k.Helper()
	at, err := url.Parse(k.url)
	if err != nil {
		k.Fatal(err)
	}
	at.User = url.User(role)
	return k.connect(at.String())
}

func (k *doorKit) exec(c interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}, sql string, args ...any,
) {
	k.Helper()
	if _, err := c.Exec(k.Context(), sql, args...); err != nil {
		k.Fatalf("%s: %v", sql, err)
	}
}

type rower interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// one reads one value.
func one[T any](k *doorKit, c rower, sql string, args ...any) (v T) {
	k.Helper()
	if err := c.QueryRow(k.Context(), sql, args...).Scan(&v); err != nil {
		k.Fatalf("%s: %v", sql, err)
	}
	return v
}

// add adds a job as the application.
func (k *doorKit) add(args string, values ...any) int64 {
	k.Helper()
	id, ok := ParseJobID(one[string](k, k.app, `select pawl.add_job(`+args+`)::text`, values...))
	if !ok {
		k.Fatalf("add_job(%s) gave no id of a job", args)
	}
	return id
}

// refused runs a statement that must fail, and returns the fault.
func (k *doorKit) refused(c *pgx.Conn, sql string) *pgconn.PgError {
	k.Helper()
	_, err := c.Exec(k.Context(), sql)
	fault, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		k.Errorf("%s: %v, want it refused", sql, err)
		return &pgconn.PgError{}
	}
	return fault
}

// jobRow is a row of jobs but for what differs from one to the next.
func (k *doorKit) jobRow(id int64) string {
	k.Helper()
	return one[string](k, k.admin, `select (to_jsonb(j) - 'id' - 'created_at' - 'created_by' - 'payload' - 'kept_at' - 'kept')::text || coalesce((j.kept::jsonb)::text, '') || (j.payload::jsonb)::text || (j.kept_at is null) from jobs j where id = $1`, id)
}

// notices gathers what the server says to a connection.
func (k *doorKit) notices(role string) (*pgx.Conn, *strings.Builder) {
	k.Helper()
	at, err := url.Parse(k.url)
	if err != nil {
		k.Fatal(err)
	}
	at.User = url.User(role)
	cfg, err := pgx.ParseConfig(at.String())
	if err != nil {
		k.Fatal(err)
	}
	said := &strings.Builder{}
	cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { said.WriteString(n.Message + "\n") }
	c, err := pgx.ConnectConfig(k.Context(), cfg)
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() { _ = c.Close(context.Background()) })
	return c, said
}
