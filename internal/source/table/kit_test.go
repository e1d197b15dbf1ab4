package table

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/pgtest/migrated"
	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/store"
)

func TestMain(m *testing.M) { migrated.Main(m) }

// both runs a test on each database, with a kit of its own.
func both(t *testing.T, test func(t *testing.T, k *kit)) {
	t.Helper()
	pgtest.Both(t, func(t *testing.T, url string) { test(t, newKit(t, url)) })
}

type kit struct {
	t      testing.TB
	db     *store.DB
	copied int // how many times rows were copied to PostgreSQL
}

func newKit(t testing.TB, url string) *kit {
	t.Helper()
	k := &kit{t: t}
	db, err := store.Open(t.Context(), url, store.Options{Holder: "test", Trace: func(sql string, _ []any) {
		if strings.HasPrefix(sql, "copy ") {
			k.copied++
		}
	}})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	k.db = db
	return k
}

func (k *kit) postgres() bool { return k.db.Name() == Postgres }

// write runs fn in a transaction that has to succeed.
func (k *kit) write(fn store.Func) {
	k.t.Helper()
	if err := k.db.Write(k.t.Context(), fn); err != nil {
		k.t.Fatalf("write: %v", err)
	}
}

func (k *kit) exec(sql string) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, sql)
		return err
	})
}

// lines answers a query of one text column.
func (k *kit) lines(sql string) (out []string) {
	k.t.Helper()
	err := k.db.Read(k.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return each(ctx, tx, statement{sql: sql}, func(scan func(...any) error) error {
			var s *string
			err := scan(&s)
			if s == nil {
				out = append(out, "NULL")
			} else {
				out = append(out, *s)
			}
			return err
		})
	})
	if err != nil {
		k.t.Fatalf("%s: %v", sql, err)
	}
	return out
}

// has compares the answer of a query of one text column.
func (k *kit) has(want, sql string) {
	k.t.Helper()
	if got := strings.Join(k.lines(sql), " "); got != want {
		k.t.Errorf("%s\n got %s\nwant %s", sql, got, want)
	}
}

func (k *kit) plan(d spec.Definition) *Plan {
	k.t.Helper()
	p, err := New(k.db.Name(), d)
	if err != nil {
		k.t.Fatalf("plan: %v", err)
	}
	return p
}

// ready makes a plan whose table is there and whose staging is empty.
func (k *kit) ready(d spec.Definition) *Plan {
	k.t.Helper()
	p := k.plan(d)
	k.write(func(ctx context.Context, tx *store.Tx) error {
		if _, err := p.Ensure(ctx, tx); err != nil {
			return err
		}
		return p.Begin(ctx, tx, "run")
	})
	return p
}

func (k *kit) ensure(p *Plan) (c Change, err error) {
	err = k.db.Write(k.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		c, err = p.Ensure(ctx, tx)
		return err
	})
	return c, err
}

// mismatch wants Ensure to refuse the table and to say each of these.
func (k *kit) mismatch(d spec.Definition, says ...string) {
	k.t.Helper()
	_, err := k.ensure(k.plan(d))
	e, ok := errors.AsType[*pawl.Error](err)
	if !ok || e.Reason != ReasonMismatch || e.Code != pawl.CodeInvalid {
		k.t.Fatalf("ensure: %v, want a mismatch", err)
	}
	for _, s := range says {
		if !strings.Contains(e.Msg, s) {
			k.t.Errorf("mismatch says %q, want %q in it", e.Msg, s)
		}
	}
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func (k *kit) page(p *Plan, at time.Time, want bool, rows ...[]any) (res Result) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) (err error) {
		res, err = p.WritePage(ctx, tx, PageWrite{Rows: seq(rows), At: at, RunID: "run-" + at.Format("15"), WantChanged: want})
		return err
	})
	return res
}

func (k *kit) finish(p *Plan, at time.Time, want bool) (res Result) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) (err error) {
		res, err = p.Finish(ctx, tx, Finish{At: at, RunID: "run-" + at.Format("15"), WantChanged: want})
		return err
	})
	return res
}

func seq(rows [][]any) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		reused := []any{}
		for _, r := range rows {
			reused = append(reused[:0], r...) // a source may use the memory of a row again
			if !yield(reused, nil) {
				return
			}
		}
	}
}

// counts compares new, changed, same and removed.
func counts(t testing.TB, got Result, want ...int) {
	t.Helper()
	if n := []int{got.New, got.Changed, got.Same, got.Removed}; !reflect.DeepEqual(n[:len(want)], want) {
		t.Errorf("new, changed, same, removed: got %v, want %v", n, want)
	}
}

// told compares the rows of a result, each as + or ~, key and object.
func told(t testing.TB, got Result, want ...string) {
	t.Helper()
	var have []string
	for _, c := range got.Rows {
		sign := "~"
		if c.New {
			sign = "+"
		}
		if !json.Valid(c.Row) {
			t.Errorf("row %s is no JSON", c.Row)
		}
		have = append(have, fmt.Sprintf("%s%s %s", sign, c.Key, c.Row))
	}
	if !reflect.DeepEqual(have, want) {
		t.Errorf("rows:\n got %q\nwant %q", have, want)
	}
}

// prices is a definition with two columns.
func prices(mode spec.Mode, key ...string) spec.Definition {
	return spec.Definition{
		Name: "market", Table: "prices", Write: spec.Write{Mode: mode, Key: key},
		Response: spec.Response{Fields: []spec.Field{{Target: "id", Type: spec.Integer}, {Target: "name", Type: spec.Text}}},
	}
}

func with(d spec.Definition, change func(d *spec.Definition)) spec.Definition {
	change(&d)
	return d
}
