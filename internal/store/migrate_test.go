package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
)

func planned(t *testing.T, url string) Migrated {
	t.Helper()
	p, err := PlanMigration(t.Context(), url)
	if err != nil {
		t.Fatalf("plan: %v", err)
	}
	return p
}

// older makes a database of an earlier schema.
func older(t *testing.T, url string, schema int) {
	t.Helper()
	db, err := Open(t.Context(), url, Options{UpTo: schema})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func versions(m Migrated) (list []int) {
	for _, g := range m.Migrations {
		list = append(list, g.Version)
	}
	return list
}

func TestMigrationsArePlannedWithoutAChange(t *testing.T) {
	pgtest.BothEmpty(t, func(t *testing.T, url string) {
		_, newest := Schema()
		if p := planned(t, url); p.Have != 0 || p.Want != newest || len(p.Migrations) != newest || len(p.Migrations[0].Statements) == 0 {
			t.Errorf("an empty database: %+v", p)
		}
		if path, ok := SQLitePath(url); ok {
			if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 0 {
				t.Errorf("looking made %v", entries)
			}
		}
		older(t, url, newest-2)
		for range 2 {
			if p := planned(t, url); p.Have != newest-2 || !slices.Equal(versions(p), []int{newest - 1, newest}) {
				t.Errorf("an older database: %+v", p)
			}
		}
		done, err := Migrate(t.Context(), url, Options{})
		if err != nil || done.Have != newest-2 || !slices.Equal(versions(done), []int{newest - 1, newest}) || done.Database == "" {
			t.Errorf("migrated %+v, %v", done, err)
		}
		again, err := Migrate(t.Context(), url, Options{})
		if err != nil || again.Have != newest || len(again.Migrations) != 0 {
			t.Errorf("migrated again %+v, %v", again, err)
		}
		open(t, url) // somebody has it
		if p := planned(t, url); p.Have != newest || len(p.Migrations) != 0 {
			t.Errorf("beside a server: %+v", p)
		}
	})
}

func TestPlansOfWhatIsNoDatabase(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{"sqlite:", "sqlite::memory:", "sqlite:" + dir, "sqlite:" + text, "mysql://u:hunter2@h/x", "postgres://u:hunter2@127.0.0.1:1/x?connect_timeout=1", ""} {
		if p, err := PlanMigration(t.Context(), url); err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(p.Database, "hunter2") {
			t.Errorf("%s: %+v, %v", url, p, err)
		}
	}
}

// A newer schema is served if it says so, and refused if it does not, or if it
// needs a newer program.
func TestNewerSchemaSaysWhoCanServeIt(t *testing.T) {
	pgtest.BothEmpty(t, func(t *testing.T, url string) {
		_, newest := Schema()
		older(t, url, newest)
		for _, tt := range []struct {
			oldest any
			served bool
		}{{nil, false}, {0, false}, {-1, false}, {newest + 1, false}, {newest, true}, {newest - 1, true}} {
			db := open(t, url)
			mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
				_, err := tx.Exec(ctx, `insert into schema_migrations (version, name, applied_at, oldest) values ($1, 'later', 0, $2)`, newest+1, tt.oldest)
				return err
			})
			_ = db.Close()
			db, err := Open(t.Context(), url, Options{})
			_, dry := PlanMigration(t.Context(), url)
			if tt.served {
				if err != nil || dry != nil {
					t.Fatalf("oldest %v: %v, %v", tt.oldest, err, dry)
				}
			} else if !errors.Is(err, pawl.ErrSchema) || !errors.Is(dry, pawl.ErrSchema) {
				t.Fatalf("oldest %v: %v, %v", tt.oldest, err, dry)
			}
			if db == nil { // as the program that wrote it
				if db, err = connect(t.Context(), url, Options{}); err != nil {
					t.Fatal(err)
				}
			}
			mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
				_, err := tx.Exec(ctx, `delete from schema_migrations where version > $1`, newest)
				return err
			})
			_ = db.Close()
		}
	})
}

// A database says which programs can serve it.
func TestTheOldestProgramIsWritten(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		least, newest := Schema()
		if least < firstServed || least > newest {
			t.Fatalf("schemas %d to %d", least, newest)
		}
		if n := count(t, db, `select oldest from schema_migrations where version = $1`, newest); n != least {
			t.Errorf("schema %d says %d, want %d", newest, n, least)
		}
	})
}

func TestBreakingMigrationsAreMarked(t *testing.T) {
	all, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.version > firstServed && !m.breaking {
			for _, s := range m.statements(postgres{}) {
				if why := breaks(s); why != "" && !ofItsOwn(m, s) {
					t.Errorf("%04d_%s %s. Programs of the schema before cannot stand that: add only, or write the line %q.\n%s", m.version, m.name, why, breakingMark, s)
				}
			}
		}
	}
	for sql, want := range map[string]bool{
		"create table x (id bigint not null)": false, "alter table x add column y bigint": false, "alter table x add column y bigint not null default 0": false,
		"create index i on x (y)": false, "update x set y = 1": false, "drop index i": false, "create table x (y text not null unique)": false,
		"alter table x add column y bigint not null": true, "drop table x": true, "ALTER TABLE x\n  DROP COLUMN y": true, "alter table x rename to z": true,
		"alter table x alter column y set not null": true, "create unique index i on x (y)": true, "alter table x add constraint c check (y > 0)": true,
		"delete from x": true,
	} {
		if got := breaks(sql) != ""; got != want {
			t.Errorf("%q breaks: %v, want %v", sql, got, want)
		}
	}
	if !isBreaking("-- It drops.\n-- breaking\ndrop table x;") || isBreaking("-- it is not -- breaking\n-- breaking news\n") {
		t.Error("the mark is read wrong")
	}
}

// ofItsOwn reports whether a statement makes an index of a table that its migration
// makes, too.
func ofItsOwn(m migration, statement string) bool {
	_, on, found := strings.Cut(statement, " on ")
	table, _, _ := strings.Cut(on, " ")
	return found && strings.HasPrefix(statement, "create unique index") && strings.Contains(m.sql, "create table "+table+" (")
}

// breaks tells what a statement does that programs of before may not stand; empty
// if it only adds.
func breaks(sql string) string {
	text := " " + strings.Join(strings.Fields(strings.ToLower(sql)), " ") + " "
	for part, why := range map[string]string{
		" drop table ": "drops a table", " drop column ": "drops a column", " rename ": "renames", " alter column ": "changes a column",
		" create unique index ": "makes rows unique", " add constraint ": "adds a constraint", " delete from ": "deletes rows",
	} {
		if strings.Contains(text, part) {
			return why
		}
	}
	if strings.Contains(text, " add column ") && strings.Contains(text, " not null ") && !strings.Contains(text, " default ") {
		return "adds a column that must be filled"
	}
	return ""
}

// A schema that breaks programs of before is not brought in while they are at
// work. Dead ones do not count.
func TestBreakingSchemaWaitsForTheNodes(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	older(t, url, firstServed-1)
	db, err := connect(t.Context(), url, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // a test
	mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
		_, err := tx.Exec(ctx, `insert into nodes (id, incarnation, name, addr, roles, version, started_at, seen_at, beat, share)
			values ('dead', 'i', 'dead', 'x', '', '', 0, 9000000000000, 0, 1), ('old', 'i', 'old', 'y', '', '', 0, 0, 0, 1)`)
		return err
	})
	ctx, stop := context.WithCancel(t.Context())
	beats := make(chan struct{})
	go func() {
		defer close(beats)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(2 * time.Second):
				err := db.Write(ctx, func(ctx context.Context, tx *Tx) error { // as programs of then did
					_, err := tx.Exec(ctx, `update nodes set beat = beat + 1 where id = 'old'`)
					return err
				})
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		}
	}()
	_, err = Open(t.Context(), url, Options{})
	stop()
	<-beats
	if e, ok := errors.AsType[*pawl.Error](err); !ok || e.Reason != "nodes_running" || !strings.Contains(e.Msg, "old at y") || strings.Contains(e.Msg, "dead") {
		t.Fatalf("beside a node at work: %v", err)
	}
	if p := planned(t, url); p.Have != firstServed-1 {
		t.Errorf("the schema is %d", p.Have)
	}
	if err := db.refuseUnderNodes(t.Context(), mustMigrations(t), time.Millisecond); err != nil {
		t.Errorf("beside dead ones: %v", err)
	}
	mustWrite(t, db, func(ctx context.Context, tx *Tx) error { _, err := tx.Exec(ctx, `delete from nodes`); return err })
	begin := time.Now()
	open(t, url)
	if took := time.Since(begin); took > nodesWatched {
		t.Errorf("without nodes it waited %v", took)
	}
}

// What only adds waits for nobody.
func TestAddingSchemaWaitsForNobody(t *testing.T) {
	url := pgtest.EmptyURL(t)
	older(t, url, firstServed)
	db, err := connect(t.Context(), url, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // a test
	mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
		_, err := tx.Exec(ctx, `insert into nodes (id, incarnation, name, addr, roles, version, started_at, seen_at, beat, share) values ('old', 'i', 'old', 'y', '', '', 0, 0, 0, 1)`)
		return err
	})
	list := mustMigrations(t)
	if oldestServed(list) > firstServed { // some migration breaks: what follows the last one does not
		return
	}
	if found, err := db.nodesBelow(t.Context(), list); err != nil || len(found) > 0 {
		t.Errorf("nodes that cannot stand it: %v, %v", found, err)
	}
}

func mustMigrations(t *testing.T) []migration {
	t.Helper()
	all, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	return all
}
