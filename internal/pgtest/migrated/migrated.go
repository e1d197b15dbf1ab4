// Package migrated gives the tests of a package databases that have Pawl's
// tables already.
package migrated

import (
	"context"
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

// Main is pgtest.Main, with databases that store.Open has nothing to do on.
func Main(m *testing.M) { pgtest.MainPrepared(m, migrate) }

func migrate(ctx context.Context, url string) error {
	db, err := store.Open(ctx, url, store.Options{})
	if err != nil {
		return err
	}
	return db.Close()
}
