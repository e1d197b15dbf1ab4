package source

import (
	"context"
	"errors"
	"slices"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/source/table"
	"github.com/pawlrun/pawl/internal/store"
)

// elsewhere is another database.
type elsewhere struct{ *store.DB }

func (e elsewhere) Dialect() string { return e.Name() }

func (e elsewhere) Write(ctx context.Context, fn func(ctx context.Context, db table.DB) error) error {
	return e.DB.Write(ctx, func(ctx context.Context, tx *store.Tx) error { return fn(ctx, tx) })
}

// Rows can go to another database: then a page is written there first and noted
// here afterwards, so that a crash in between writes it again, which its key
// makes harmless.
func TestRowsCanGoToAnotherDatabase(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		k := newKit(t, "sqlite:"+t.TempDir()+"/own.db", "")
		db, err := store.Open(t.Context(), url, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		k.s.cfg.Database = func(name string) (Database, error) {
			if name != "warehouse" {
				return nil, errors.New("no such connection")
			}
			return elsewhere{db}, nil
		}
		text := definition("s", "/pages", byPage)
		src := k.apply(text)
		k.write(func(ctx context.Context, tx *store.Tx) error {
			d := k.define(text)
			d.Write.Connection = "warehouse"
			_, err := k.s.Apply(ctx, tx, d, "tester")
			return err
		})
		left := 3
		k.s.cfg.fault = func(string) error {
			if left--; left == 0 {
				return errFault // after a page was written there
			}
			return nil
		}
		if _, err := k.s.work(t.Context(), k, src.ID); err != nil && !errors.Is(err, errFault) {
			t.Fatal(err)
		}
		database := k.s.cfg.Database
		k.start("n2")
		k.s.cfg.Database = database
		k.work(src)
		k.wantStatus("s", pawl.StatusCommitted)
		there := &kit{t: t, db: db}
		if got := there.items("s"); !slices.Equal(got, k.api.all()) {
			t.Errorf("the other database holds %v, want %v", got, k.api.all())
		}
	})
}
