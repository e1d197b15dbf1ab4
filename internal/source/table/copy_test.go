package table

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/store"
)

// everyType is a definition with a field of each type, kept raw.
func everyType(mode spec.Mode, key ...string) spec.Definition {
	d := spec.Definition{Name: "s", Table: "t", Write: spec.Write{Mode: mode, Key: key}, Response: spec.Response{Raw: true}}
	for _, kind := range []spec.Type{spec.Text, spec.Integer, spec.Number, spec.Boolean, spec.Timestamp, spec.Date, spec.Object} {
		d.Response.Fields = append(d.Response.Fields, spec.Field{Source: "x", Target: "a_" + string(kind), Type: kind})
	}
	return d
}

func rowsOf(rows ...[]any) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// movers are the two sides of a promotion; the file has the definition's table.
func movers(t *testing.T, d spec.Definition, rows ...[]any) (from, to *kit) {
	t.Helper()
	from, to = newKit(t, "sqlite:"+filepath.Join(t.TempDir(), "pawl.db")), newKit(t, pgtest.URL(t))
	from.write(func(ctx context.Context, tx *store.Tx) error {
		plan, err := New(SQLite, d)
		if err != nil {
			return err
		}
		if _, err = plan.Ensure(ctx, tx); err != nil {
			return err
		}
		_, err = plan.WritePage(ctx, tx, PageWrite{Rows: rowsOf(rows...), At: time.Date(2026, 11, 15, 10, 0, 0, 123e6, time.UTC), RunID: "run"})
		return err
	})
	return from, to
}

func promote(t *testing.T, from, to *kit, now, then []spec.Definition) (store.PromoteResult, error) {
	t.Helper()
	return store.Promote(t.Context(), from.db, to.db, store.PromoteOptions{Tables: func(ctx context.Context, f, t *store.Tx) ([]store.CopyTable, error) {
		return Copies(ctx, f, t, now, then)
	}})
}

// What was fetched before the move is known after it: the same page again
// changes nothing.
func TestCopiedRowsAreKnownInPostgres(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)
	rows := [][]any{
		{"it's \u2603", int64(-1 << 62), 0.1, true, at, "2026-02-28", json.RawMessage(`{"b":1.50,"a":[1e2,{"x":null}],"big":1e400}`), json.RawMessage(`{"z": 1, "z":  2}`)},
		{"", int64(0), math.Copysign(0, -1), false, at.Truncate(time.Second), "0001-01-01", json.RawMessage(`"text"`), json.RawMessage(`"\u0000"`)},
		{nil, nil, nil, nil, nil, nil, nil, json.RawMessage(`{}`)},
	}
	for name, d := range map[string]spec.Definition{"append": everyType(spec.Append), "upsert": everyType(spec.Upsert, "a_integer")} {
		t.Run(name, func(t *testing.T) {
			rows := rows
			if name == "upsert" {
				rows = rows[:2] // a key is not NULL
			}
			want := len(rows)
			from, to := movers(t, d, rows...)
			done, err := promote(t, from, to, []spec.Definition{d}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if last := done.Tables[len(done.Tables)-1]; last.Table != "t" || int(last.Rows) != want || len(done.Left) > 0 {
				t.Errorf("%+v, left %v", last, done.Left)
			}
			to.has("it's\u00a0\u2603|-4611686018427387904|0.1|true|2026-01-02 03:04:05.678901|2026-02-28|1.50|run|2026-11-15 10:00:00.123",
				`select replace(a_text, ' ', U&'\00a0') || '|' || a_integer || '|' || a_number || '|' || a_boolean || '|' || (a_timestamp at time zone 'UTC') || '|' || a_date || '|' ||
				(a_json->>'b') || '|' || _run || '|' || (created_at at time zone 'UTC') from t where a_boolean`)
			to.write(func(ctx context.Context, tx *store.Tx) error {
				plan, err := New(Postgres, d)
				if err != nil {
					return err
				}
				change, err := plan.Ensure(ctx, tx)
				if err != nil || change.Created || len(change.Added) > 0 {
					t.Errorf("the table does not fit: %+v, %v", change, err)
				}
				res, err := plan.WritePage(ctx, tx, PageWrite{Rows: rowsOf(rows...), At: time.Now(), RunID: "again"})
				if res.New != 0 || res.Changed != 0 || res.Same != want {
					t.Errorf("the same page again: %+v", res)
				}
				return err
			})
		})
	}
}

// Columns and tables that no definition has any more hold data of users.
func TestColumnsAndTablesOfThePastAreCopied(t *testing.T) {
	old := everyType(spec.Append, "a_text")
	from, to := movers(t, old, []any{"k", int64(7), 1.5, true, time.Unix(0, 0), "2026-01-01", json.RawMessage(`{}`), json.RawMessage(`{}`)})
	from.exec(`alter table t add column "My Note" text`)
	from.exec(`update t set "My Note" = 'n'`)
	now := spec.Definition{Name: "s", Table: "u", Write: spec.Write{Mode: spec.Append}, Response: spec.Response{Fields: []spec.Field{{Source: "x", Target: "a", Type: spec.Text}}}}
	from.write(func(ctx context.Context, tx *store.Tx) error {
		plan, err := New(SQLite, now)
		if err != nil {
			return err
		}
		_, err = plan.Ensure(ctx, tx)
		return err
	})
	if _, err := promote(t, from, to, []spec.Definition{now}, []spec.Definition{now, old}); err != nil {
		t.Fatal(err)
	}
	to.has("k|7|true|1970-01-01|n", `select a_text || '|' || a_integer || '|' || a_boolean || '|' || (a_timestamp at time zone 'UTC')::date || '|' || "My Note" from t`)
	to.has("0", `select count(*)::text from u`)
}

func TestWhatPostgresCannotHoldIsNamed(t *testing.T) {
	d := everyType(spec.Append, "a_text")
	row := []any{"k", int64(7), 1.5, true, time.Unix(0, 0), "2026-01-01", json.RawMessage(`{}`), json.RawMessage(`{}`)}
	for column, value := range map[string]string{"a_timestamp": "'soon'", "a_json": `'"a\u0000b"'`, "a_integer": "'seven'", "a_date": "'2026-02-30'", "_raw": "'{'"} {
		from, to := movers(t, d, row)
		from.exec(`update t set ` + column + ` = ` + value)
		_, err := promote(t, from, to, []spec.Definition{d}, nil)
		if !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), "copy table t") || !strings.Contains(err.Error(), "column "+column) {
			t.Errorf("%s = %s gave %v", column, value, err)
		}
		if left := to.lines(`select count(*)::text from pg_class where relname = 't'`); left[0] != "0" {
			t.Errorf("%s: the table was made", column)
		}
	}
}

func TestTwoSpellingsOfOneTableAreRefused(t *testing.T) {
	a, b := everyType(spec.Append), everyType(spec.Append)
	b.Name, b.Table = "other", "T"
	from, to := movers(t, a)
	if _, err := promote(t, from, to, []spec.Definition{a, b}, nil); !errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), "two tables") {
		t.Errorf("it gave %v", err)
	}
}
