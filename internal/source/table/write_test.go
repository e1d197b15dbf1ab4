package table

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/store"
)

const idsAndNames = `select cast(id as text) || '=' || name from prices order by source_name, id`

// A row that is there stays, in the page and across pages (3.15).
func TestAppendKeepsTheRowThatIsThere(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		p := k.ready(prices(spec.Append, "id"))
		counts(t, k.page(p, noon, false, []any{int64(1), "a"}, []any{int64(2), "b"}, []any{int64(1), "again"}), 2, 0, 1)
		counts(t, k.page(p, noon.Add(time.Hour), false, []any{int64(2), "later"}, []any{int64(3), "c"}), 1, 0, 1)
		k.has("1=a 2=b 3=c", idsAndNames)
		k.has("run-12 run-12 run-13", `select _run from prices order by id`)
	})
}

func TestAppendWithoutKeyStoresEqualRowsOnce(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		p := k.ready(prices(spec.Append))
		first := [][]any{{int64(1), "a"}, {int64(1), "b"}, {int64(1), "a"}, {nil, "a"}, {int64(1), nil}}
		counts(t, k.page(p, noon, false, first...), 4, 0, 1)
		counts(t, k.page(p, noon, false, first...), 0, 0, 5)
		res := k.page(p, noon, true, []any{int64(9), "z"}, []any{int64(9), "z"}, []any{int64(1), "b"})
		counts(t, res, 1, 0, 2)
		if len(res.Rows) != 1 || string(res.Rows[0].Row) != `{"id":9,"name":"z"}` || len(res.Rows[0].Key) != 16 {
			t.Errorf("rows: %+v", res.Rows)
		}
	})
}

// A column that is added to the definition and has no values makes no row new.
func TestDigestIgnoresColumnsWithoutValues(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		counts(t, k.page(k.ready(prices(spec.Append)), noon, false, []any{int64(1), "a"}), 1)
		wider := with(prices(spec.Append), func(d *spec.Definition) {
			d.Response.Fields = append([]spec.Field{{Target: "extra", Type: spec.Number}}, d.Response.Fields...)
		})
		counts(t, k.page(k.ready(wider), noon, false, []any{nil, int64(1), "a"}, []any{2.5, int64(1), "a"}), 1, 0, 1)
	})
}

// The last of several rows of one key wins, also within one page, where
// PostgreSQL would refuse to touch a row twice.
func TestUpsertBringsRowsUpToDate(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		p := k.ready(prices(spec.Upsert, "id"))
		counts(t, k.page(p, noon, false, []any{int64(1), "a"}, []any{int64(2), "b"}, []any{int64(1), "c"}), 2, 0, 1)
		k.has("1=c 2=b", idsAndNames)
		later := noon.Add(time.Hour)
		counts(t, k.page(p, later, false, []any{int64(1), "d"}, []any{int64(2), "b"}, []any{int64(3), nil}, []any{int64(1), "e"}), 1, 1, 2)
		k.has("1 2 3", `select cast(id as text) from prices order by id`)
		k.has("e b NULL", `select name from prices order by id`)
		k.has("run-13 run-12 run-13", `select _run from prices order by id`)
		k.has("1", `select cast(id as text) from prices where updated_at > created_at`)
		counts(t, k.page(p, later, false, []any{int64(3), "x"}, []any{int64(1), nil}), 0, 2, 0)
		k.has("NULL b x", `select name from prices order by id`)
	})
}

func TestUpsertOfNothingButKeysOnlyInserts(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		p := k.ready(prices(spec.Upsert, "id", "name"))
		counts(t, k.page(p, noon, false, []any{int64(1), "a"}), 1)
		counts(t, k.page(p, noon, true, []any{int64(1), "a"}, []any{int64(1), "b"}), 1, 0, 1)
	})
}

func TestWantChangedTellsNewAndChangedRows(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		p := k.ready(prices(spec.Upsert, "id"))
		told(t, k.page(p, noon, true, []any{int64(1), "a"}, []any{int64(2), `<"é>`}, []any{int64(1), "b"}),
			`+[1] {"id":1,"name":"b"}`, `+[2] {"id":2,"name":"\u003c\"é\u003e"}`)
		res := k.page(p, noon, true, []any{int64(3), nil}, []any{int64(2), `<"é>`}, []any{int64(1), "c"})
		told(t, res, `+[3] {"id":3,"name":null}`, `~[1] {"id":1,"name":"c"}`)
		counts(t, res, 1, 1, 1)
		told(t, k.page(p, noon, true, []any{int64(1), "c"}))
		k.has("1=c 2=<\"é>", `select cast(id as text) || '=' || name from prices where id < 3 order by id`)

		a := k.ready(with(prices(spec.Append, "id"), func(d *spec.Definition) { d.Table = "log" }))
		told(t, k.page(a, noon, true, []any{int64(1), "a"}, []any{int64(1), "b"}), `+[1] {"id":1,"name":"a"}`)
		told(t, k.page(a, noon, true, []any{int64(1), "b"}))
	})
}

// A page is larger than a chunk, and chunks than statements.
func TestLargePagesAreWrittenWhole(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		p := k.ready(prices(spec.Upsert, "id"))
		var rows [][]any
		for i := range 2345 {
			rows = append(rows, []any{int64(i), "n"})
		}
		rows = append(rows, []any{int64(7), "last"})
		res := k.page(p, noon, true, rows...)
		counts(t, res, 2345, 1, 0) // the last row comes in another chunk than the one it changes
		if len(res.Rows) != 2346 {
			t.Errorf("%d rows told", len(res.Rows))
		}
		counts(t, k.page(p, noon, false, rows[:2345]...), 0, 1, 2344)
		k.has("2345", `select cast(count(*) as text) from prices where name = 'n'`)
	})
}

// Two sources share a table and never touch each other's rows.
func TestSharedTableKeepsSourcesApart(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for _, mode := range []spec.Mode{spec.Append, spec.Upsert, spec.Replace} {
			table := "shared_" + string(mode)
			one := k.ready(with(prices(mode, "id"), func(d *spec.Definition) { d.Name, d.Table = "one", table }))
			two := k.ready(with(prices(mode, "id"), func(d *spec.Definition) { d.Name, d.Table = "two", table }))
			k.page(one, noon, false, []any{int64(1), "one"}, []any{int64(2), "one"})
			k.page(two, noon, false, []any{int64(1), "two"})
			k.finish(one, noon, false)
			k.finish(two, noon, false)
			k.has("1=one 2=one 1=two", strings.ReplaceAll(idsAndNames, "prices", table))
		}
	})
}

func TestRowsThatCannotBeStoredAreRejected(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		p := k.ready(prices(spec.Upsert, "id"))
		res := k.page(p, noon, false, []any{nil, "no key"}, []any{int64(1), "fine"}, []any{int64(2), "nul\x00"}, []any{int64(3), "\xff"}, []any{"4", "text"})
		counts(t, res, 1, 0, 0)
		var got []string
		for _, r := range res.Rejected {
			got = append(got, fmt.Sprintf("%d %s", r.Row, r.Reason))
		}
		want := "1 has no value for the key column id|3 name has a NUL character or is not UTF-8|4 name has a NUL character or is not UTF-8|5 id string is not of type integer"
		if strings.Join(got, "|") != want {
			t.Errorf("rejected:\n got %s\nwant %s", strings.Join(got, "|"), want)
		}
	})
}

// An error of the rows, or another transaction that fails, leaves nothing of
// the page (B-37).
func TestPageIsWrittenWholeOrNotAtAll(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		p := k.ready(prices(spec.Append, "id"))
		cut := errors.New("cut off")
		rows := func(yield func([]any, error) bool) {
			for i := range 1500 {
				if !yield([]any{int64(i), "x"}, nil) {
					return
				}
			}
			yield(nil, cut)
		}
		err := k.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := p.WritePage(ctx, tx, PageWrite{Rows: rows, At: noon})
			return err
		})
		if !errors.Is(err, cut) {
			t.Fatalf("write: %v", err)
		}
		k.has("0", `select cast(count(*) as text) from prices`)
	})
}

// everything is a definition with a column of each kind.
func everything(mode spec.Mode, key ...string) spec.Definition {
	d := prices(mode, key...)
	d.Table = "everything"
	d.Response.Raw = true
	d.Response.Fields = nil
	for _, kind := range []spec.Type{spec.Text, spec.Integer, spec.Number, spec.Boolean, spec.Timestamp, spec.Date, spec.Object} {
		d.Response.Fields = append(d.Response.Fields, spec.Field{Target: "a_" + string(kind), Type: kind})
	}
	return d
}

func rich() []any {
	return []any{"naïve ☃ 𝄞", int64(math.MaxInt64), 0.1, true, time.Date(2026, 2, 3, 4, 5, 6, 789012345, time.UTC),
		time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC), json.RawMessage(`{"b":[1,null],"a":"é"}`), json.RawMessage(`{ "as": "it came\u0000" }`)}
}

const richJSON = `{"a_text":"naïve ☃ 𝄞","a_integer":9223372036854775807,"a_number":0.1,"a_boolean":true,"a_timestamp":"2026-02-03T04:05:06.789012Z","a_date":"2026-02-03","a_json":{"b":[1,null],"a":"é"}}`

// Every kind of value, and NULL in every column, comes back as it was and is
// the same when it is written again.
func TestValuesOfEveryKind(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		p := k.ready(everything(spec.Upsert, "a_text"))
		empty := make([]any, 8)
		empty[0] = "none"
		small := []any{"small", int64(math.MinInt64), -1e308, false, time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC), time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC), json.RawMessage(`null`), json.RawMessage(`1`)}
		told(t, k.page(p, noon, true, rich()), `+["naïve ☃ 𝄞"] `+richJSON)
		counts(t, k.page(p, noon, false, empty, small), 2, 0, 0)
		counts(t, k.page(p, noon, false, empty, rich(), small), 0, 0, 3)
		counts(t, k.page(p, noon, true, empty, rich(), small), 0, 0, 3)
		for i, other := range []any{nil, int64(5), 0.2, false, noon, noon, json.RawMessage(`[]`), json.RawMessage(`{}`)} {
			if i == 0 {
				continue
			}
			row := rich()
			row[i] = other
			counts(t, k.page(p, noon, false, row), 0, 1, 0)
			row[i] = nil
			counts(t, k.page(p, noon, i%2 == 0, row), 0, 1, 0)
			counts(t, k.page(p, noon, false, rich()), 0, 1, 0)
		}
		rows := k.sample(p, "market", 10)
		if len(rows) != 3 {
			t.Fatalf("%d rows", len(rows))
		}
		for _, r := range rows {
			if r["a_text"] == "naïve ☃ 𝄞" {
				checkRich(t, r)
			}
		}
	})
}

func checkRich(t *testing.T, r map[string]any) {
	t.Helper()
	want := map[string]any{
		"a_integer": int64(math.MaxInt64), "a_number": 0.1, "a_boolean": true, "a_date": "2026-02-03",
		"a_timestamp": time.Date(2026, 2, 3, 4, 5, 6, 789012000, time.UTC), "created_at": noon, "updated_at": noon, "_run": "run-12",
	}
	for name, v := range want {
		if r[name] != v {
			t.Errorf("%s is %v (%T), want %v", name, r[name], r[name], v)
		}
	}
	if raw := string(r["_raw"].(json.RawMessage)); raw != `{ "as": "it came\u0000" }` {
		t.Errorf("_raw is %s", raw)
	}
	var j struct{ A string }
	if err := json.Unmarshal(r["a_json"].(json.RawMessage), &j); err != nil || j.A != "é" {
		t.Errorf("a_json is %s", r["a_json"])
	}
}

// jsonb has no NUL: the row is rejected, and a backslash before u0000 is none.
func TestEscapedNUL(t *testing.T) {
	for text, want := range map[string]bool{`"\u0000"`: true, `"\\u0000"`: false, `"\\\u0000"`: true, `"\\u0000 \u0000"`: true, `"u0000"`: false} {
		if hasEscapedNUL(text) != want {
			t.Errorf("%s: want %v", text, want)
		}
	}
}
