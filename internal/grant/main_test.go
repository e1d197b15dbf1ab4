package grant

import (
	"context"
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/pgtest/migrated"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

func TestMain(m *testing.M) { migrated.Main(m) }

// kit is a database with two users.
type kit struct {
	t        testing.TB
	db       *store.DB
	ada, bob string
}

func both(t *testing.T, test func(t *testing.T, k *kit)) {
	t.Helper()
	pgtest.Both(t, func(t *testing.T, url string) {
		db, err := store.Open(t.Context(), url, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		k := &kit{t: t, db: db}
		k.write(func(ctx context.Context, tx *store.Tx) error {
			for name, id := range map[string]*string{"ada": &k.ada, "bob": &k.bob} {
				u, err := userstore.In(tx).EnsureUser(ctx, name, userstore.RoleOperator)
				if err != nil {
					return err
				}
				*id = u.ID
			}
			return nil
		})
		test(t, k)
	})
}

func (k *kit) write(fn store.Func) {
	k.t.Helper()
	if err := k.db.Write(k.t.Context(), fn); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kit) create(owner string, spec Spec) (g Grant, err error) {
	k.t.Helper()
	err = k.db.Write(k.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		g, err = Service{}.Create(ctx, tx, owner, spec)
		return err
	})
	return g, err
}
