package pawltx_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx of database/sql

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client/pawltx"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/pgtest/migrated"
	"github.com/pawlrun/pawl/internal/store"
)

func TestMain(m *testing.M) { migrated.Main(m) }

// shop is an application with a table of its own and a role that may call Pawl's
// functions, and nothing else of Pawl's.
type shop struct {
	*testing.T
	admin *pgx.Conn
	begin func() transaction
}

// transaction is one of the application, by whichever driver.
type transaction struct {
	pawltx.Tx
	exec             func(sql string, args ...any) error
	commit, rollback func() error
}

func with(t *testing.T, test func(s *shop)) {
	t.Helper()
	for _, driver := range []string{"pgx", "database/sql"} {
		t.Run(driver, func(t *testing.T) {
			s := newShop(t, driver == "pgx")
			test(s)
		})
	}
}

func newShop(t *testing.T, native bool) *shop {
	t.Helper()
	database := pgtest.URL(t)
	db, err := store.Open(t.Context(), database, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s := &shop{T: t, admin: connect(t, database)}
	role := fmt.Sprintf("shop_%x", rand.Uint64())
	for _, sql := range []string{
		`insert into users (id, name, role, created_at) values ('u', 'admin', 'admin', 0)`,
		`create role ` + role + ` login in role pawl_app`, `create schema shop authorization ` + role,
		`insert into workflows (id, name, lane, desired, version, created_at, updated_at, deployed_at) values ('w', 'mails', 'mails', 'active', 'v', 0, 0, 0)`,
		`insert into topics (workflow_id, name, created_at) values ('w', 'order.placed', 0)`,
	} {
		s.sql(sql)
	}
	t.Cleanup(func() {
		for _, sql := range []string{`drop owned by ` + role + ` cascade`, `drop role ` + role} {
			if _, err := s.admin.Exec(context.Background(), sql); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
		}
	})
	if err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error { return tx.ServeTasks(ctx, []string{"log"}, 1000) }); err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.User(role)
	if native {
		s.usePgx(connect(t, at.String()))
	} else {
		s.useSQL(at.String())
	}
	tx := s.begin()
	s.must(tx.exec(`create table shop.orders (id int primary key)`))
	s.must(tx.commit())
	return s
}

func connect(t *testing.T, database string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func (s *shop) usePgx(c *pgx.Conn) {
	s.begin = func() transaction {
		tx, err := c.Begin(s.Context())
		s.must(err)
		return transaction{
			pawltx.Pgx(tx), func(sql string, args ...any) error { _, err := tx.Exec(s.Context(), sql, args...); return err },
			func() error { return tx.Commit(s.Context()) }, func() error { return tx.Rollback(s.Context()) },
		}
	}
}

func (s *shop) useSQL(database string) {
	db, err := sql.Open("pgx", database)
	s.must(err)
	s.Cleanup(func() { _ = db.Close() })
	s.begin = func() transaction {
		tx, err := db.BeginTx(s.Context(), nil)
		s.must(err)
		return transaction{
			pawltx.SQL(tx), func(sql string, args ...any) error { _, err := tx.ExecContext(s.Context(), sql, args...); return err },
			tx.Commit, tx.Rollback,
		}
	}
}

func (s *shop) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *shop) sql(sql string, args ...any) {
	s.Helper()
	if _, err := s.admin.Exec(s.Context(), sql, args...); err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
}

// counts are the orders, jobs and events that are committed.
func (s *shop) counts() (text string) {
	s.Helper()
	s.must(s.admin.QueryRow(s.Context(), `select (select count(*) from shop.orders) || ' ' || (select count(*) from jobs where owner = 'u') || ' ' || (select count(*) from events)`).Scan(&text))
	return text
}

// An order, its jobs and its event are there together, or none of them is.
func TestJobsAndEventsAreCommittedWithTheTransaction(t *testing.T) {
	with(t, func(s *shop) {
		for i, commit := range []bool{false, true} {
			tx := s.begin()
			s.must(tx.exec(`insert into shop.orders values ($1)`, i))
			one, err := tx.AddJob(s.Context(), pawltx.Job{Task: "log", Payload: map[string]int{"order": i}})
			s.must(err)
			many, err := tx.AddJobs(s.Context(), pawltx.Job{Task: "log"}, pawltx.Job{Task: "log", Lane: "l"})
			s.must(err)
			added, err := tx.Publish(s.Context(), pawltx.Event{Workflow: "mails", Topic: "order.placed", MessageID: "1", Payload: i, Input: &pawltx.Input{Source: "shop", Type: "order", ID: "1"}})
			s.must(err)
			if state, err := tx.JobState(s.Context(), one); err != nil || state.State != "pending" || state.Task != "log" || len(many) != 2 || !added {
				s.Errorf("in the transaction: %+v, %v, %v, %v", state, err, many, added)
			}
			if got := s.counts(); got != "0 0 0" {
				s.Errorf("before it is committed there are %s", got)
			}
			if !commit {
				s.must(tx.rollback())
				continue
			}
			s.must(tx.commit())
			if got := s.counts(); got != "1 3 1" {
				s.Errorf("committed are %s", got)
			}
			again := s.begin()
			if added, err := again.Publish(s.Context(), pawltx.Event{Workflow: "mails", Topic: "order.placed", MessageID: "1", Payload: i}); err != nil || added {
				s.Errorf("published again: %v, %v", added, err)
			}
			if gone, err := again.CancelJob(s.Context(), one); err != nil || !gone {
				s.Errorf("cancelled: %v, %v", gone, err)
			}
			s.must(again.rollback())
			if got := s.counts(); got != "1 3 1" {
				s.Errorf("after a cancel that was rolled back there are %s", got)
			}
		}
	})
}

// Every field of a job arrives, one by one and in a list.
func TestFieldsOfJobsArrive(t *testing.T) {
	with(t, func(s *shop) {
		at := time.Date(2031, 1, 31, 9, 0, 0, 0, time.FixedZone("", 3600))
		job := pawltx.Job{Task: "log", Payload: json.RawMessage(`{"n": [1, "ä\"'"]}`), RunAt: at, Lane: "l'a", Key: "k1", KeyMode: "keep", Priority: -1, MaxAttempts: 3}
		tx := s.begin()
		_, err := tx.AddJob(s.Context(), job)
		s.must(err)
		job.Key = "k2"
		plain := pawltx.Job{Task: "log"}
		_, err = tx.AddJobs(s.Context(), job, plain)
		s.must(err)
		_, err = tx.AddJob(s.Context(), plain)
		s.must(err)
		none, err := tx.AddJobs(s.Context())
		s.must(err)
		s.must(tx.commit())
		var full, bare int
		s.must(s.admin.QueryRow(s.Context(), `select count(*) filter (where key in ('k1', 'k2') and payload::jsonb = '{"n": [1, "ä\"''"]}' and run_at = $1 and lane = 'l''a' and priority = -1 and max_attempts = 3),
			count(*) filter (where key is null and payload = '{}' and lane is null and priority = 0 and max_attempts = 10 and run_at <= extract(epoch from now()) * 1000 + 60000) from jobs where owner = 'u'`, at.UnixMilli()).Scan(&full, &bare))
		if full != 2 || bare != 2 || len(none) != 0 {
			s.Errorf("%d full and %d bare jobs, %v", full, bare, none)
		}
	})
}

// What Pawl refuses ends the transaction and says why; and the application reaches
// nothing else of Pawl's.
func TestWhatIsRefusedEndsTheTransaction(t *testing.T) {
	with(t, func(s *shop) {
		for name, do := range map[string]func(tx transaction) error{
			"unknown task": func(tx transaction) error { _, err := tx.AddJob(s.Context(), pawltx.Job{Task: "nope"}); return err },
			"Pawl's own task": func(tx transaction) error {
				_, err := tx.AddJob(s.Context(), pawltx.Job{Task: "pawl.prune"})
				return err
			},
			"one of many": func(tx transaction) error {
				_, err := tx.AddJobs(s.Context(), pawltx.Job{Task: "log"}, pawltx.Job{})
				return err
			},
			"large payload": func(tx transaction) error {
				_, err := tx.AddJob(s.Context(), pawltx.Job{Task: "log", Payload: strings.Repeat("x", 2000)})
				return err
			},
			"unknown workflow": func(tx transaction) error {
				_, err := tx.Publish(s.Context(), pawltx.Event{Workflow: "nope"})
				return err
			},
			"a table of Pawl": func(tx transaction) error { return tx.exec(`delete from public.jobs`) },
		} {
			tx := s.begin()
			s.must(tx.exec(`insert into shop.orders values (7)`))
			err := do(tx)
			if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code == "" {
				s.Errorf("%s: %v", name, err)
			}
			if err := tx.commit(); err == nil {
				s.Errorf("%s: it could be committed", name)
			}
			if got := s.counts(); got != "0 0 0" {
				s.Errorf("%s: there are %s", name, got)
			}
		}
		tx := s.begin()
		if _, err := tx.AddJob(s.Context(), pawltx.Job{Task: "log", Payload: func() {}}); err == nil {
			s.Error("a function became JSON")
		}
		if _, err := tx.JobState(s.Context(), "00000000-0000-7000-8000-000000000001"); !errors.Is(err, pawl.ErrNotFound) {
			s.Errorf("unknown job: %v", err)
		}
		s.must(tx.rollback())
	})
}
