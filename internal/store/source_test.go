package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
)

// Rows that did not fit are kept with their place and reason, the newest first,
// and go with their source.
func TestRejectsAreKeptUntilTheirSourceGoes(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		db := store.OpenForTest(t, url)
		var src sourcestore.Source
		err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
			if src, err = sourcestore.In(tx).InsertSource(ctx, sourcestore.Source{Name: "s", Definition: []byte(`{}`), Version: "v", Status: "active"}, "me"); err != nil {
				return err
			}
			var list []sourcestore.Reject
			for i := range 100 {
				list = append(list, sourcestore.Reject{SourceName: "s", RunID: "r", Page: 2, Row: i + 1, Reason: "no number", Raw: fmt.Sprintf("{\x00%d}", i)})
			}
			return sourcestore.In(tx).AddRejects(ctx, list)
		})
		if err != nil {
			t.Fatal(err)
		}
		var first, second []sourcestore.Reject
		err = db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
			if first, err = sourcestore.In(tx).ListRejects(ctx, "s", 0, 60); err != nil {
				return err
			}
			second, err = sourcestore.In(tx).ListRejects(ctx, "s", first[59].ID, 60)
			return err
		})
		if err != nil || len(first) != 60 || len(second) != 40 || first[0].Row != 100 || second[39].Row != 1 || first[0].Page != 2 {
			t.Fatalf("%d and %d rejects, %v", len(first), len(second), err)
		}
		err = db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error { return sourcestore.In(tx).DeleteSource(ctx, src) })
		if err != nil {
			t.Fatal(err)
		}
		err = db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
			first, err = sourcestore.In(tx).ListRejects(ctx, "s", 0, 60)
			return err
		})
		if err != nil || len(first) != 0 {
			t.Errorf("%d rejects are left, %v", len(first), err)
		}
	})
}
