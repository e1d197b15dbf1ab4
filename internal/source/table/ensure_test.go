package table

import (
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/source/spec"
)

func TestEnsureCreatesOnceAndAddsColumns(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		d := prices(spec.Append, "id")
		for _, want := range []Change{{Created: true}, {}} {
			if c, err := k.ensure(k.plan(d)); err != nil || !reflect.DeepEqual(c, want) {
				t.Fatalf("ensure: %+v, %v; want %+v", c, err, want)
			}
		}
		k.page(k.ready(d), noon, false, []any{int64(1), "a"})
		d.Write.Mode = spec.Upsert
		d.Response.Fields = append(d.Response.Fields, spec.Field{Target: "open", Type: spec.Timestamp})
		d.Response.Raw = true
		want := Change{Added: []string{"updated_at", "open", "_raw"}}
		if c, err := k.ensure(k.plan(d)); err != nil || !reflect.DeepEqual(c, want) {
			t.Fatalf("ensure: %+v, %v; want %+v", c, err, want)
		}
		counts(t, k.page(k.ready(d), noon, false, []any{int64(1), "a", noon, nil}, []any{int64(2), "b", nil, nil}), 1, 1, 0)
		k.has("1=a 2=b", idsAndNames)
	})
}

// Names are identifiers, whatever they spell.
func TestNamesThatAreSQL(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		d := prices(spec.Upsert, "select")
		d.Name, d.Table = `o'brien"; drop table x; --`, "order"
		d.Response.Fields = []spec.Field{{Target: "select", Type: spec.Integer}, {Target: "Group", Type: spec.Text}, {Target: "c0", Type: spec.Text}, {Target: "excluded", Type: spec.Text}, {Target: "rowid_", Type: spec.Text}}
		p := k.ready(d)
		row := []any{int64(1), "g", "c", "e", "r"}
		counts(t, k.page(p, noon, false, row), 1)
		row[1] = "h"
		told(t, k.page(p, noon, true, row), `~[1] {"select":1,"Group":"h","c0":"c","excluded":"e","rowid_":"r"}`)
		if rows := k.sample(p, d.Name, 5); len(rows) != 1 || rows[0]["Group"] != "h" {
			t.Errorf("rows: %v", rows)
		}
		d.Write.Mode, d.Table = spec.Replace, `a"b`
		p = k.ready(d)
		k.page(p, noon, false, row)
		counts(t, k.finish(p, noon, false), 1)
	})
}

func TestExistingTableThatFits(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		ddl := `create table everything (id integer primary key, source_name varchar(200) not null, created_at datetime not null default current_timestamp,
			a_text varchar(20), a_integer int, a_number decimal(10,2), a_boolean boolean, a_timestamp timestamp, a_date date, a_json json, more text default 'x' not null, unique (a_text, source_name))`
		if k.postgres() {
			ddl = `create table everything (id bigserial primary key, source_name varchar(200) not null, created_at timestamp not null default now(),
			a_text varchar(20), a_integer integer, a_number numeric(10,2), a_boolean boolean, a_timestamp timestamp(3), a_date date, a_json json, more text default 'x' not null, unique (a_text, source_name))`
		}
		k.exec(ddl)
		for _, mode := range []spec.Mode{spec.Append, spec.Upsert, spec.Replace} {
			d := everything(mode, "a_text")
			d.Name = string(mode)
			p := k.ready(d)
			row := rich()
			row[1], row[2] = int64(1<<31-1), 12.25
			k.page(p, noon, false, row)
			k.finish(p, noon, false)
			p = k.ready(d)
			same := k.page(p, noon, false, row)
			if mode == spec.Replace {
				same = k.finish(p, noon, true)
			}
			counts(t, same, 0, 0, 1)
			rows := k.sample(p, d.Name, 5)
			if len(rows) != 1 || rows[0]["a_boolean"] != true || rows[0]["a_date"] != "2026-02-03" || rows[0]["created_at"] != noon {
				t.Errorf("%s: rows %v", mode, rows)
			}
			if last := k.last(p, d.Name); !last.Equal(noon) {
				t.Errorf("%s: last row %v", mode, last)
			}
		}
		k.has("x x x", `select more from everything`)
	})
}

// Without a key a unique rule of the table's owner tells the rows apart.
func TestExistingUniqueRuleStandsInForAKey(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.exec(`create table prices (id bigint not null, name text, source_name text not null, created_at ` + k.instant() + ` not null, primary key (id, source_name))`)
		p := k.ready(prices(spec.Append))
		counts(t, k.page(p, noon, false, []any{int64(1), "a"}, []any{int64(1), "b"}), 1, 0, 1)
		k.has("1=a", idsAndNames)
		if got := k.page(p, noon, false, []any{nil, "a"}); len(got.Rejected) != 1 {
			t.Errorf("a row without key: %+v", got)
		}
	})
}

// A unique rule without source_name is taken, but rows of others stay theirs.
func TestExistingKeyWithoutSource(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.exec(`create table prices (id bigint primary key, name text, source_name text not null, created_at ` + k.instant() + ` not null)`)
		k.page(k.ready(with(prices(spec.Upsert, "id"), func(d *spec.Definition) { d.Name = "other" })), noon, false, []any{int64(1), "theirs"})
		for _, mode := range []spec.Mode{spec.Upsert, spec.Replace} {
			p := k.ready(prices(mode, "id"))
			k.page(p, noon, false, []any{int64(1), "mine"}, []any{int64(2), "b"})
			k.finish(p, noon, false)
			k.has("2=b 1=theirs", idsAndNames)
		}
	})
}

func TestExistingTableThatDoesNotFit(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		d := prices(spec.Upsert, "id")
		for _, c := range []struct {
			ddl  string
			says []string
		}{
			{`create table prices (id text, name bigint, source_name text, created_at TS, unique (source_name, id))`, []string{"column id: wanted ", ", found TEXT", "column name: wanted "}},
			{`create table prices (id bigint, name text, unique (id))`, []string{"column source_name is missing", "column created_at is missing"}},
			{`create table prices (id bigint, name text, source_name text, created_at TS)`, []string{"no unique index", "(source_name, id)"}},
			{`create table prices (id bigint, name text, source_name text, created_at TS, unique (source_name, id, name))`, []string{"no unique index"}},
			{`create table prices (id bigint, name text, source_name text, created_at TS, must text not null, unique (source_name, id))`, []string{"column must needs a value"}},
			{`create view prices as select 1 as id`, []string{"it is a view"}},
		} {
			k.exec(strings.ReplaceAll(c.ddl, "TS", k.instant()))
			for i, s := range c.says {
				if k.postgres() {
					c.says[i] = strings.ReplaceAll(s, "TEXT", "text")
				} else {
					c.says[i] = strings.ReplaceAll(s, "found TEXT", "found TEXT")
				}
			}
			k.mismatch(d, c.says...)
			k.exec(map[bool]string{true: `drop view prices`, false: `drop table prices`}[strings.HasPrefix(c.ddl, "create view")])
		}
	})
}

// A table of Pawl's own gets another unique index when the key changes, unless
// the rows break it.
func TestKeyOfAPawlTableMayChange(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.page(k.ready(prices(spec.Append)), noon, false, []any{int64(1), "a"}, []any{int64(2), "a"})
		counts(t, k.page(k.ready(prices(spec.Upsert, "id")), noon, false, []any{int64(1), "b"}), 0, 1, 0)
		k.mismatch(with(prices(spec.Upsert, "name"), func(d *spec.Definition) {
			k.page(k.ready(prices(spec.Upsert, "id")), noon, false, []any{int64(2), "b"})
		}), "not unique by source_name, name")
	})
}

func TestEnsureByTwoAtOnce(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		var wg sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			p := k.plan(prices(spec.Append, "id"))
			wg.Go(func() { _, errs[i] = k.ensure(p) })
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Errorf("ensure: %v", err)
		}
	})
}

func TestPlansThatCannotBe(t *testing.T) {
	bad := map[string]spec.Definition{
		"upsert needs a key": prices(spec.Upsert),
		"not the target":     prices(spec.Append, "nothing"),
		"kept for Pawl":      with(prices(spec.Append), func(d *spec.Definition) { d.Table = "_PAWL_stage_x" }),
	}
	for says, d := range bad {
		if _, err := New(SQLite, d); err == nil || !strings.Contains(err.Error(), says) || pawl.ErrorCode(err) != pawl.CodeInvalid {
			t.Errorf("%s: %v", says, err)
		}
	}
	if _, err := New("oracle", prices(spec.Append)); err == nil {
		t.Error("a database that is not known is accepted")
	}
}

func (k *kit) instant() string {
	if k.postgres() {
		return "timestamptz"
	}
	return "text"
}
