package store

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
)

func TestOpenTwiceKeepsSchemaAndData(t *testing.T) {
	pgtest.BothEmpty(t, func(t *testing.T, url string) {
		db, err := Open(t.Context(), url, Options{})
		if err != nil {
			t.Fatal(err)
		}
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			_, err := tx.Enqueue(ctx, []JobSpec{{Task: "t"}})
			return err
		})
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		again := open(t, url)
		if n := count(t, again, `select count(*) from jobs`); n != 1 {
			t.Errorf("%d jobs after reopening, want 1", n)
		}
	})
}

func TestNewerSchemaIsRefused(t *testing.T) {
	pgtest.BothEmpty(t, func(t *testing.T, url string) {
		db, err := Open(t.Context(), url, Options{})
		if err != nil {
			t.Fatal(err)
		}
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			_, err := tx.Exec(ctx, `insert into schema_migrations (version, name, applied_at) values (9000, 'future', 0)`)
			return err
		})
		_ = db.Close()
		_, err = Open(t.Context(), url, Options{})
		if !errors.Is(err, pawl.ErrSchema) || !strings.Contains(err.Error(), "9000") {
			t.Errorf("newer schema gave %v", err)
		}
	})
}

func TestDatabaseThatCannotHoldEveryTextIsRefused(t *testing.T) {
	url := pgtest.EmptyURL(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	latin := conn.Config().Database + "_latin"
	if _, err := conn.Exec(t.Context(), `create database `+latin+` encoding 'LATIN1' lc_collate 'C' lc_ctype 'C' template template0`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = conn.Exec(context.Background(), `drop database `+latin) })
	_, err = Open(t.Context(), strings.Replace(url, conn.Config().Database, latin, 1), Options{})
	if !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), "LATIN1") {
		t.Errorf("opened, or refused without a reason: %v", err)
	}
}

func TestSecondProcessOnOneFileIsRefusedByName(t *testing.T) {
	url := sqliteURL(t)
	open(t, url)
	_, err := Open(t.Context(), url, Options{})
	if !errors.Is(err, pawl.ErrConflict) || !strings.Contains(err.Error(), "pawl at 127.0.0.1:7295 (process ") {
		t.Errorf("second open gave %v", err)
	}
}

func TestUnusableURLsAreExplainedWithoutSecrets(t *testing.T) {
	for _, url := range []string{
		"mysql://u:hunter2@h/db", "hunter2", "sqlite:", "sqlite::memory:",
		"postgres://u:hunter2@127.0.0.1:1/db?connect_timeout=1", "postgres://u:hunter2@[::bad/db",
	} {
		_, err := Open(t.Context(), url, Options{})
		e, ok := errors.AsType[*pawl.Error](err)
		if !ok || e.Hint == "" {
			t.Errorf("%s: no hint in %v", url, err)
			continue
		}
		if strings.Contains(e.Msg+e.Hint, "hunter2") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the password: %v", url, err)
		}
	}
}

// Both databases must end with the same tables, columns, nullability and
// indexes: whatever holds on one holds on the other.
func TestBothDatabasesHaveTheSameSchema(t *testing.T) {
	lite := describeSQLite(t, open(t, sqliteURL(t)))
	pg := describePostgres(t, open(t, pgtest.EmptyURL(t)))
	if diff := cmp.Diff(lite, pg); diff != "" {
		t.Errorf("schemas differ (-sqlite +postgres):\n%s", diff)
	}
	if len(lite) < 40 {
		t.Errorf("only %d lines of schema were compared", len(lite))
	}
}

func query(t *testing.T, db *DB, sql string) [][]string {
	t.Helper()
	var out [][]string
	err := db.Read(t.Context(), func(ctx context.Context, tx *Tx) error {
		rows, err := tx.Query(ctx, sql)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var a, b, c string
			if err := rows.Scan(&a, &b, &c); err != nil {
				return err
			}
			out = append(out, []string{a, b, c})
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return out
}

func describeSQLite(t *testing.T, db *DB) []string {
	var lines []string
	for _, r := range query(t, db, `select m.name, c.name, lower(c.type) || case when c."notnull" = 1 or c.pk > 0 then ' not null' else '' end
		from sqlite_master m join pragma_table_info(m.name) c where m.type = 'table' and m.name not like 'sqlite_%'`) {
		lines = append(lines, fmt.Sprintf("column %s.%s %s", r[0], r[1], strings.Replace(r[2], "integer", "bigint", 1)))
	}
	for _, r := range query(t, db, `select name, tbl_name, coalesce(sql, '') from sqlite_master where type = 'index' and sql is not null`) {
		lines = append(lines, normalIndex(r[2]))
	}
	sort.Strings(lines)
	return lines
}

func describePostgres(t *testing.T, db *DB) []string {
	var lines []string
	for _, r := range query(t, db, `select table_name::text, column_name::text, data_type || case when is_nullable = 'NO' then ' not null' else '' end
		from information_schema.columns where table_schema = 'public'`) {
		lines = append(lines, fmt.Sprintf("column %s.%s %s", r[0], r[1], r[2]))
	}
	for _, r := range query(t, db, `select indexname::text, tablename::text, indexdef from pg_indexes where schemaname = 'public'
		and indexname not in (select conname from pg_constraint) and indexname not in ('jobs_uuid', 'job_history_uuid')`) { // those two are of the door for applications
		lines = append(lines, normalIndex(r[2]))
	}
	sort.Strings(lines)
	return lines
}

var (
	noise  = regexp.MustCompile(`(?i)public\.|using btree|[()]|::text`)
	spaces = regexp.MustCompile(`\s+`)
)

func normalIndex(sql string) string {
	return strings.ToLower(strings.TrimSpace(spaces.ReplaceAllString(noise.ReplaceAllString(sql, " "), " ")))
}
