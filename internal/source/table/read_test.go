package table

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/store"
)

func (k *kit) last(p *Plan, source string) (at time.Time) {
	k.t.Helper()
	err := k.db.Read(k.t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		at, err = p.LastRow(ctx, tx, source)
		return err
	})
	if err != nil {
		k.t.Fatalf("last row: %v", err)
	}
	return at
}

func (k *kit) sample(p *Plan, source string, limit int) (all []map[string]any) {
	k.t.Helper()
	err := k.db.Read(k.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		for cursor, n := "", 0; ; n++ {
			rows, next, err := p.Sample(ctx, tx, source, cursor, limit)
			all = append(all, rows...)
			if err != nil || next == "" {
				return err
			}
			if len(rows) != limit || n > 100 {
				return fmt.Errorf("page %d has %d rows of %d", n, len(rows), limit)
			}
			cursor = next
		}
	})
	if err != nil {
		k.t.Fatalf("sample: %v", err)
	}
	return all
}

// B-20: the newest created_at among the rows of a source.
func TestLastRowIsTheNewestOfItsSource(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		p := k.plan(prices(spec.Upsert, "id"))
		if at := k.last(p, "market"); !at.IsZero() {
			t.Errorf("without a table: %v", at)
		}
		p = k.ready(prices(spec.Upsert, "id"))
		if at := k.last(p, "market"); !at.IsZero() {
			t.Errorf("without rows: %v", at)
		}
		k.page(p, noon.Add(time.Millisecond), false, []any{int64(1), "a"})
		k.page(p, noon, false, []any{int64(2), "a"})
		k.page(p, noon.Add(time.Hour), false, []any{int64(1), "changed"})
		k.page(k.ready(with(prices(spec.Upsert, "id"), func(d *spec.Definition) { d.Name = "other" })), noon.Add(time.Hour), false, []any{int64(1), "a"})
		if at := k.last(p, "market"); !at.Equal(noon.Add(time.Millisecond)) {
			t.Errorf("last row %v", at)
		}
	})
}

func TestDeleteRowsGoesInBatches(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		if n := k.deleted(k.plan(prices(spec.Append, "id")), 3); n != 0 {
			t.Errorf("without a table: %d", n)
		}
		p := k.ready(prices(spec.Replace, "id"))
		other := k.ready(with(prices(spec.Append, "id"), func(d *spec.Definition) { d.Name = "other" }))
		k.page(other, noon, false, []any{int64(1), "kept"})
		var rows [][]any
		for i := range 7 {
			rows = append(rows, []any{int64(i), "x"})
		}
		k.page(p, noon, false, rows...)
		k.finish(p, noon, false)
		k.write(func(ctx context.Context, tx *store.Tx) error { return p.Begin(ctx, tx, "next") })
		var got []int64
		for range 3 {
			got = append(got, k.deleted(p, 3))
		}
		if fmt.Sprint(got) != "[3 3 1]" {
			t.Errorf("deleted %v", got)
		}
		k.has("1=kept", idsAndNames)
		k.noStage()
	})
}

func (k *kit) deleted(p *Plan, limit int) (n int64) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) (err error) {
		n, err = p.DeleteRows(ctx, tx, "market", limit)
		return err
	})
	return n
}

// noStage wants no staging table left.
func (k *kit) noStage() {
	k.t.Helper()
	tables := `select name from sqlite_master where type = 'table' order by name`
	if k.postgres() {
		tables = `select tablename::text from pg_tables`
	}
	if all := strings.Join(k.lines(tables), " "); strings.Contains(all, "_pawl_stage_") {
		k.t.Errorf("a staging table is left: %s", all)
	}
}

func TestSamplePagesNewestFirst(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		if rows := k.sample(k.plan(prices(spec.Append)), "market", 2); rows != nil {
			t.Errorf("without a table: %v", rows)
		}
		p := k.ready(prices(spec.Append, "id"))
		k.page(k.ready(with(prices(spec.Append, "id"), func(d *spec.Definition) { d.Name = "other" })), noon, false, []any{int64(99), "a"})
		for i := range 3 {
			k.page(p, noon.Add(time.Duration(i)*time.Second+time.Millisecond), false, []any{int64(i*3 + 1), "a"}, []any{int64(i*3 + 2), "a"}, []any{int64(i*3 + 3), nil})
		}
		for _, limit := range []int{1, 2, 3, 4, 9, 50} {
			var ids []string
			for _, r := range k.sample(p, "market", limit) {
				ids = append(ids, fmt.Sprint(r["id"]))
			}
			if got := strings.Join(ids, " "); got != "9 8 7 6 5 4 3 2 1" {
				t.Errorf("limit %d: %s", limit, got)
			}
		}
		// A column that the definition has and the table does not yet.
		wider := k.plan(with(prices(spec.Append, "id"), func(d *spec.Definition) {
			d.Response.Fields = append(d.Response.Fields, spec.Field{Target: "later", Type: spec.Text})
		}))
		if rows := k.sample(wider, "market", 9); len(rows) != 9 || rows[0]["name"] != nil {
			t.Errorf("wider: %v", rows)
		}
	})
}

func TestSampleRefusesForeignCursors(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		p := k.ready(prices(spec.Append, "id"))
		for _, cursor := range []string{"x", "x@(1,2)", "5@x", "@"} {
			err := k.db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				_, _, err := p.Sample(ctx, tx, "market", cursor, 5)
				return err
			})
			if err != nil && !errors.Is(err, pawl.ErrInvalid) {
				t.Errorf("%q: %v", cursor, err)
			}
		}
	})
}
