package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/grantstore"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

func grantOf(t testing.TB, db *store.DB, user userstore.User, change func(*grantstore.Grant)) (g grantstore.Grant) {
	t.Helper()
	store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
		account, err := grantstore.In(tx).EnsureAccount(ctx, user.ID)
		if err != nil {
			return err
		}
		g = grantstore.Grant{UserID: user.ID, AccountID: account.ID, Scopes: []string{"a", "b"}}
		if change != nil {
			change(&g)
		}
		g, err = grantstore.In(tx).InsertGrant(ctx, g)
		return err
	})
	return g
}

func TestGrantKeepsEverything(t *testing.T) { // C-43
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		day, run, runs := int64(7), int64(0), int64(3)
		want := grantOf(t, db, ensureUser(t, db, "ada", userstore.RoleOperator), func(g *grantstore.Grant) {
			g.USDPerDay, g.USDPerRun, g.RunsPerDay = &day, &run, &runs
			g.WildcardConsentAt, g.ExpiresAt, g.Automatic = store.AtForTest(1), store.AtForTest(2), true
		})
		got := mustRead(t, db, func(ctx context.Context, tx *store.Tx) (grantstore.Grant, error) {
			return grantstore.In(tx).GrantByID(ctx, want.ID)
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if !got.ExpiresAt.Equal(store.AtForTest(2)) || !got.Automatic || *got.USDPerRun != 0 || len(got.Scopes) != 2 || !got.RevokedAt.IsZero() {
			t.Errorf("%+v", got)
		}
	})
}

func TestRevokeGrantKeepsTheFirstInstant(t *testing.T) { // C-45
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		g := grantOf(t, db, ensureUser(t, db, "ada", userstore.RoleOperator), nil)
		for i, want := range []bool{true, false} {
			store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
				tx.Now = store.AtForTest(i)
				changed, err := grantstore.In(tx).RevokeGrant(ctx, g.ID)
				if changed != want {
					t.Errorf("time %d: %v", i, changed)
				}
				return err
			})
		}
		got := mustRead(t, db, func(ctx context.Context, tx *store.Tx) (grantstore.Grant, error) {
			return grantstore.In(tx).GrantByID(ctx, g.ID)
		})
		if !got.RevokedAt.Equal(store.AtForTest(0)) {
			t.Errorf("revoked at %v", got.RevokedAt)
		}
	})
}

func TestListGrantsOfOneUserNewestFirst(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		ada, bob := ensureUser(t, db, "ada", userstore.RoleOperator), ensureUser(t, db, "bob", userstore.RoleOperator)
		first, second := grantOf(t, db, ada, nil), grantOf(t, db, ada, nil)
		grantOf(t, db, bob, nil)
		list := func(before string, limit int) []grantstore.Grant {
			return mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]grantstore.Grant, error) {
				return grantstore.In(tx).ListGrants(ctx, ada.ID, before, limit)
			})
		}
		if got := list("", 9); len(got) != 2 || got[0].ID != second.ID || got[1].ID != first.ID {
			t.Errorf("%+v", got)
		}
		if got := list(second.ID, 1); len(got) != 1 || got[0].ID != first.ID {
			t.Errorf("second page %+v", got)
		}
	})
}

func TestDeleteGrantSparesOneInUse(t *testing.T) { // C-62
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		ada := ensureUser(t, db, "ada", userstore.RoleOperator)
		free, used := grantOf(t, db, ada, nil), grantOf(t, db, ada, nil)
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `insert into schedules (id, name, owner_user_id, execution_grant_id, graph_id, input, cron, timezone, concurrency_policy, labels, created_at, updated_at)
				values ('s', 's', $1, $2, 'a:b', 'null', '* * * * *', 'UTC', 'Queue', '{}', 0, 0)`, ada.ID, used.ID)
			return err
		})
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			for id, want := range map[string]bool{free.ID: true, used.ID: false, "nobody's": false} {
				if deleted, err := grantstore.In(tx).DeleteGrant(ctx, id); err != nil || deleted != want {
					t.Errorf("%s: %v %v", id, deleted, err)
				}
			}
			_, err := grantstore.In(tx).GrantByID(ctx, free.ID)
			if !errors.Is(err, pawl.ErrNotFound) {
				t.Errorf("deleted, and found: %v", err)
			}
			return nil
		})
	})
}

// Two that count for a cap wait for each other: the second sees what the first
// wrote.
func TestHoldGrantMakesRivalsWait(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		g := grantOf(t, db, ensureUser(t, db, "ada", userstore.RoleOperator), nil)
		held, second := make(chan struct{}), make(chan int64, 1)
		go func() {
			<-held
			_ = db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				if _, err := grantstore.In(tx).HoldGrant(ctx, g.ID); err != nil {
					return err
				}
				n, err := grantstore.In(tx).ReservedByGrant(ctx, g.ID)
				second <- n
				return err
			})
			close(second)
		}()
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			if _, err := grantstore.In(tx).HoldGrant(ctx, g.ID); err != nil {
				return err
			}
			close(held)
			select { // give the rival the time to be wrong
			case <-second:
				t.Error("the rival did not wait")
			case <-time.After(50 * time.Millisecond):
			}
			return grantstore.In(tx).InsertReservation(ctx, grantstore.ChargeReservation{RunID: "r", Attempt: 1, GrantID: g.ID, AccountID: g.AccountID, Amount: 5})
		})
		if n := <-second; n != 5 {
			t.Errorf("the rival saw %d reserved", n)
		}
	})
}
