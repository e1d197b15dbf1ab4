package table

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/store"
)

// numbered are rows with these ids and one name.
func numbered(from, to int, name string) (rows [][]any) {
	for i := from; i < to; i++ {
		rows = append(rows, []any{int64(i), name})
	}
	return rows
}

// wantCopied compares how many chunks were copied so far; SQLite copies none.
func (k *kit) wantCopied(want int) {
	k.t.Helper()
	if !k.postgres() {
		want = 0
	}
	if k.copied != want {
		k.t.Errorf("rows were copied %d times, want %d", k.copied, want)
	}
}

// After rows that were all new, more are copied; a copy that meets a row which is
// there becomes an insert, and is the last one of the run.
func TestNewRowsAreCopiedUntilOneIsThere(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for mode, there := range map[spec.Mode][]int{spec.Append: {50, 0, 250}, spec.Upsert: {50, 250, 0}} {
			k.copied = 0
			p := k.ready(with(prices(mode, "id"), func(d *spec.Definition) { d.Table = "t_" + string(mode) }))
			counts(t, k.page(p, noon, false, numbered(0, 300, "a")...), 300, 0, 0)
			k.wantCopied(0)
			counts(t, k.page(p, noon, false, numbered(300, 600, "a")...), 300, 0, 0)
			counts(t, k.page(p, noon, mode == spec.Upsert, numbered(600, 900, "a")...), 300, 0, 0)
			counts(t, k.page(p, noon, false, numbered(900, 920, "a")...), 20, 0, 0) // too few
			k.wantCopied(2)
			counts(t, k.page(p, noon.Add(time.Hour), false, numbered(670, 970, "b")...), there...)
			k.wantCopied(3)
			counts(t, k.page(p, noon, false, numbered(970, 1270, "c")...), 300, 0, 0)
			counts(t, k.page(p, noon, false, numbered(1270, 1570, "c")...), 300, 0, 0)
			k.wantCopied(3)
			changed := 50 + there[1]
			k.has(fmt.Sprintf("1570 1570 %d 600", changed), fmt.Sprintf(`select v from (
				select 1 n, cast(count(*) as text) v from t_%[1]s union all select 2, cast(count(distinct id) as text) from t_%[1]s
				union all select 3, cast(count(*) as text) from t_%[1]s where name = 'b' and _run = 'run-13'
				union all select 4, cast(count(*) as text) from t_%[1]s where name = 'c' and source_name = 'market') x order by n`, mode))
		}
	})
}

// Rows of one page that are the same row are one, copied or not.
func TestCopiedPagesHaveEveryRowOnce(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for i, d := range []spec.Definition{prices(spec.Append, "id"), prices(spec.Append), prices(spec.Upsert, "id")} {
			k.copied = 0
			d.Table = fmt.Sprint("t", i)
			p := k.ready(d)
			counts(t, k.page(p, noon, false, numbered(0, 300, "a")...), 300, 0, 0)
			twice := append(numbered(300, 600, "a"), numbered(300, 500, "a")...)
			counts(t, k.page(p, noon, false, twice...), 300, 0, 200)
			k.wantCopied(1)
			k.has("600", `select cast(count(*) as text) from `+d.Table)
		}
	})
}

// A value is stored the same, copied or inserted.
func TestCopiedValuesAreThoseOfAnInsert(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		d := spec.Definition{Name: "all", Table: "kinds", Write: spec.Write{Mode: spec.Append, Key: []string{"id"}}, Response: spec.Response{Raw: true}}
		for _, kind := range []spec.Type{spec.Text, spec.Integer, spec.Number, spec.Boolean, spec.Timestamp, spec.Date, spec.Object} {
			d.Response.Fields = append(d.Response.Fields, spec.Field{Target: "c_" + string(kind), Type: kind})
		}
		d.Response.Fields = append([]spec.Field{{Target: "id", Type: spec.Integer}}, d.Response.Fields...)
		values := [][]any{
			{"é\t\\N\n", int64(-1 << 63), -0.1, true, noon.Add(123456789), noon, json.RawMessage(`{"a":[1,null,"\n"]}`), json.RawMessage(`{"z":1, "a":2}`)},
			{"", int64(1<<63 - 1), 1e300, false, time.Unix(-1e9, 0), "1700-02-28", json.RawMessage(`[]`), json.RawMessage(`[1.0]`)},
			{nil, nil, nil, nil, nil, nil, nil, json.RawMessage(`null`)},
		}
		p := k.ready(d)
		for page := range 2 { // the second one is copied
			var rows [][]any
			for i := range 300 {
				rows = append(rows, append([]any{int64(page*300 + i)}, values[i%3]...))
			}
			counts(t, k.page(p, noon, false, rows...), 300, 0, 0)
		}
		k.wantCopied(1)
		columns := "source_name, created_at, _run, c_text, c_integer, c_number, c_boolean, c_timestamp, c_date, c_" + string(spec.Object) + ", _raw"
		if k.postgres() {
			columns += "::text"
		}
		kinds := fmt.Sprintf(`select cast(count(*) as text) from (select distinct %s from kinds where id %%s) x`, columns)
		k.has("3", fmt.Sprintf(kinds, "< 300"))
		k.has("3", fmt.Sprintf(kinds, ">= 300"))
		k.has("3", fmt.Sprintf(kinds, ">= 0"))
	})
}

// The pages of a replace are copied to where they gather.
func TestReplaceCopiesItsPages(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		p := k.ready(prices(spec.Replace, "id"))
		for i := range 3 {
			k.page(p, noon, false, numbered(300*i, 300*i+300, "a")...)
		}
		k.wantCopied(2)
		counts(t, k.finish(p, noon, false), 900, 0, 0, 0)
	})
}

// What the insert would cast is not copied, and what the table refuses is refused
// in the words of the insert.
func TestTablesOfOthersAreNotCopiedTo(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		if !k.postgres() {
			return
		}
		k.exec(`create table prices (source_name text, created_at timestamptz, _run text, id integer, name varchar(3), unique (source_name, id))`)
		p := k.ready(prices(spec.Append, "id"))
		for i := range 3 {
			counts(t, k.page(p, noon, false, numbered(300*i, 300*i+300, "a")...), 300, 0, 0)
		}
		k.wantCopied(0)

		p = k.ready(with(prices(spec.Append, "id"), func(d *spec.Definition) { d.Table = "strict" }))
		k.exec(`alter table strict add check (name <> 'bad')`)
		counts(t, k.page(p, noon, false, numbered(0, 300, "a")...), 300, 0, 0)
		err := k.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := p.WritePage(ctx, tx, PageWrite{Rows: seq(append(numbered(300, 600, "a"), []any{int64(600), "bad"})), At: noon, RunID: "run"})
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "23514") {
			t.Errorf("a row that the table refuses: %v", err)
		}
		k.wantCopied(1)
		k.has("300", `select cast(count(*) as text) from strict`)
	})
}
