package pgtest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// prepareItems makes a table with a row, and counts how often it was asked to.
func prepareItems(times *int) Prepare {
	return func(ctx context.Context, url string) error {
		*times++
		if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
			return os.WriteFile(path, []byte("prepared"), 0o600)
		}
		return execute(ctx, url, `create table items (id bigint primary key, name text not null); insert into items values (1, 'one');
			create table notes (item bigint not null references items, text text)`)
	}
}

func TestThePoolGivesEveryTestTheSameDatabase(t *testing.T) {
	for what, sql := range map[string]string{
		"rows":      `update items set name = 'two'; insert into items values (3, 'three'); insert into notes values (3, 'a note'); delete from items where id = 1`,
		"a table":   `create table more (id bigserial primary key); insert into more default values`,
		"a column":  `alter table items add column more text`,
		"a default": `alter table items alter column name set default 'x'`,
		"an index":  `create index items_name on items (name)`,
		"a schema":  `create schema more`,
		"a view":    `create view more as select * from items`,
		"planning":  `insert into items select n, 'x' from generate_series(2, 100) n; analyze items`,
	} {
		t.Run(what, func(t *testing.T) {
			times := 0
			p := pool{prepare: prepareItems(&times)}
			t.Cleanup(func() {
				if err := p.close(context.WithoutCancel(t.Context()), shared.url); err != nil {
					t.Errorf("close the pool: %v", err)
				}
			})
			admin := adminURL(t)
			var first string
			t.Run("one test", func(t *testing.T) {
				first = p.lend(t, admin)
				if err := execute(t.Context(), first, sql); err != nil {
					t.Fatal(err)
				}
			})
			t.Run("the next", func(t *testing.T) {
				second := p.lend(t, admin)
				if second == first {
					t.Errorf("two tests have the URL %s", first)
				}
				wantPrepared(t, second)
			})
			if kept := what == "rows" || what == "a table"; kept != (times == 1) {
				t.Errorf("prepared %d databases after a test that changed %s", times, what)
			}
		})
	}
}

// wantPrepared looks at a database as tests can: its tables, and their rows.
func wantPrepared(t *testing.T, url string) {
	t.Helper()
	const want = "items(id,name) notes(item,text) 1 one 0"
	var got string
	if err := withConn(t.Context(), url, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `select string_agg(line, ' ' order by line) || ' ' || (select string_agg(id || ' ' || name, ',') from items) ||
			' ' || (select count(*) from notes)
			from (select table_name || '(' || string_agg(column_name, ',' order by ordinal_position) || ')' as line
				from information_schema.columns where table_schema = 'public' group by table_name) as tables`).Scan(&got)
	}); err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("a test got %q, want %q", got, want)
	}
}

func TestThePoolThrowsOutWhomATestLeftBehind(t *testing.T) {
	times := 0
	p := pool{prepare: prepareItems(&times)}
	admin := adminURL(t)
	var url string
	var left *pgx.Conn
	t.Run("leaves a connection open", func(t *testing.T) {
		url = p.lend(t, admin)
		var err error
		if left, err = pgx.Connect(context.WithoutCancel(t.Context()), url); err != nil {
			t.Fatal(err)
		}
	})
	if err := left.Ping(t.Context()); err == nil {
		t.Error("the connection of a test that ended still works")
	}
	if err := execute(t.Context(), url, `select 1`); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("connect after the test ended: %v, want that the database does not exist", err)
	}
	d := p.take()
	if d == nil {
		t.Fatal("the database was not kept")
	}
	p.free = append(p.free, d)
	if err := p.close(t.Context(), shared.url); err != nil {
		t.Fatal(err)
	}
	if err := execute(t.Context(), addressOf(admin, d.name), `select 1`); err == nil {
		t.Error("a closed pool leaves a database behind")
	}
}

func TestThePoolCopiesOneSQLiteFile(t *testing.T) {
	times := 0
	p := pool{prepare: prepareItems(&times)}
	for _, name := range []string{"one", "two"} {
		path := filepath.Join(t.TempDir(), name)
		if err := p.copyFile(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != "prepared" {
			t.Errorf("copy has %q (%v)", text, err)
		}
	}
	if times != 1 {
		t.Errorf("prepared %d files, want 1", times)
	}
	if err := p.close(t.Context(), shared.url); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(p.file)); err == nil {
		t.Error("a closed pool leaves its file behind")
	}
}
