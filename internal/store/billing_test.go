package store_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/executionstore"
	"github.com/pawlrun/pawl/internal/store/grantstore"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// Rivals that ensure an account make one.
func TestEnsureAccountMakesOne(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		ada := ensureUser(t, db, "ada", userstore.RoleOperator)
		ids := make([]string, 8)
		var all sync.WaitGroup
		for i := range ids {
			all.Go(func() {
				err := db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
					a, err := grantstore.In(tx).EnsureAccount(ctx, ada.ID)
					ids[i] = a.ID
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for _, id := range ids {
			if id == "" || id != ids[0] {
				t.Errorf("ids %v", ids)
			}
		}
		if n := store.CountForTest(t, db, `select count(*) from billing_accounts`); n != 1 {
			t.Errorf("%d accounts", n)
		}
	})
}

// C-30: an account names its key, or has none; so do those that were written
// before accounts could have one.
func TestKeyReferenceOfAnAccount(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		ada := ensureUser(t, db, "ada", userstore.RoleOperator)
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			a, err := grantstore.In(tx).EnsureAccount(ctx, ada.ID)
			if err != nil || a.KeyRef != "" {
				t.Errorf("a new one: %+v %v", a, err)
			}
			for _, ref := range []string{"${A}", ""} {
				if err := grantstore.In(tx).SetKeyRef(ctx, a.ID, ref); err != nil {
					return err
				}
				if a, err = grantstore.In(tx).AccountByID(ctx, a.ID); a.KeyRef != ref || err != nil {
					t.Errorf("%+v %v, want %q", a, err, ref)
				}
			}
			if _, err := tx.Exec(ctx, `update billing_accounts set key_ref = 'default'`); err != nil {
				return err
			}
			if a, err = grantstore.In(tx).EnsureAccount(ctx, ada.ID); a.KeyRef != "" || err != nil {
				t.Errorf("an old one: %+v %v", a, err)
			}
			return nil
		})
	})
}

func receipt(g grantstore.Grant, run string, attempt int, unit string, amount int64) grantstore.Receipt {
	return grantstore.Receipt{
		AccountID: g.AccountID, GrantID: g.ID, RunID: run, Attempt: attempt, System: "pawl",
		Reference: fmt.Sprintf("%s/%d/%s", run, attempt, unit), Executor: "x", Amount: amount,
	}
}

// C-55, context 3.19.2: a reference has one receipt, whoever comes again.
func TestReceiptIsAddedOncePerReference(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		g := grantOf(t, db, ensureUser(t, db, "ada", userstore.RoleOperator), nil)
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			for i, want := range []bool{true, false} {
				if added, err := grantstore.In(tx).InsertReceipt(ctx, receipt(g, "r", 1, "u\x00", int64(i))); added != want || err != nil {
					t.Errorf("time %d: %v %v", i, added, err)
				}
			}
			n, err := grantstore.In(tx).CostOfRun(ctx, "r")
			if n != 0 {
				t.Errorf("the repetition changed the amount: %d", n)
			}
			return err
		})
	})
}

func TestReceiptsAreListedByOwnerWithCursor(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		ada := ensureUser(t, db, "ada", userstore.RoleOperator)
		g, other := grantOf(t, db, ada, nil), grantOf(t, db, ensureUser(t, db, "bob", userstore.RoleOperator), nil)
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			for i := range 5 {
				tx.Now = store.AtForTest(i / 2)
				if _, err := grantstore.In(tx).InsertReceipt(ctx, receipt(g, fmt.Sprint("r", i), 1, "u", int64(i))); err != nil {
					return err
				}
			}
			_, err := grantstore.In(tx).InsertReceipt(ctx, receipt(other, "bobs", 1, "u", 1))
			return err
		})
		var seen []int64
		cursor := grantstore.ReceiptCursor{}
		for range 4 {
			page := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]grantstore.Receipt, error) {
				page, _, err := grantstore.In(tx).ListReceipts(ctx, grantstore.ReceiptFilter{OwnerID: ada.ID}, cursor, 2)
				return page, err
			})
			for _, r := range page {
				seen = append(seen, r.Amount)
				cursor = grantstore.ReceiptCursor{CreatedAt: r.CreatedAt, ID: r.ID}
			}
		}
		if fmt.Sprint(seen) != "[4 3 2 1 0]" {
			t.Errorf("pages hold %v", seen)
		}
		foreign := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]grantstore.Receipt, error) {
			page, _, err := grantstore.In(tx).ListReceipts(ctx, grantstore.ReceiptFilter{OwnerID: ada.ID, AccountID: other.AccountID}, grantstore.ReceiptCursor{}, 9)
			return page, err
		})
		if len(foreign) != 0 {
			t.Errorf("foreign receipts %v", foreign)
		}
	})
}

func TestSpendIsSummedByUTCDay(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		g := grantOf(t, db, ensureUser(t, db, "ada", userstore.RoleOperator), nil)
		midnight := time.Date(2030, 3, 31, 0, 0, 0, 0, time.UTC)
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			for i, when := range []time.Time{midnight.Add(-time.Millisecond), midnight, midnight.Add(time.Hour), midnight.Add(-72 * time.Hour)} {
				tx.Now = when
				if _, err := grantstore.In(tx).InsertReceipt(ctx, receipt(g, "r", i, "u", 1<<i)); err != nil {
					return err
				}
			}
			return nil
		})
		days := mustRead(t, db, func(ctx context.Context, tx *store.Tx) ([]grantstore.DaySpend, error) {
			return grantstore.In(tx).SpendByDay(ctx, g.AccountID, midnight.AddDate(0, 0, -1))
		})
		if len(days) != 2 || !days[0].Day.Equal(midnight) || days[0].Amount != 6 || days[0].Receipts != 2 || days[1].Amount != 1 {
			t.Errorf("%+v", days)
		}
		spent := mustRead(t, db, func(ctx context.Context, tx *store.Tx) (int64, error) {
			return grantstore.In(tx).SpentByGrant(ctx, g.ID, midnight)
		})
		if spent != 6 {
			t.Errorf("spent %d since midnight", spent)
		}
	})
}

func TestRecentCostsLookAtOneGraphAndTheNewestRuns(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		g := grantOf(t, db, ensureUser(t, db, "ada", userstore.RoleOperator), nil)
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			for i, graph := range []string{"a:x", "a:x", "a:y", "a:x"} {
				run := fmt.Sprint("r", i)
				if _, err := executionstore.In(tx).ClaimExecution(ctx, executionstore.Execution{Key: run, RunID: run, Attempt: 1, GraphID: graph, GrantID: g.ID, Owner: "o", LeaseUntil: store.AtForTest(0)}); err != nil {
					return err
				}
				tx.Now = store.AtForTest(i)
				for unit := range 2 {
					if _, err := grantstore.In(tx).InsertReceipt(ctx, receipt(g, run, 1, fmt.Sprint(unit), int64(1+i))); err != nil {
						return err
					}
				}
			}
			n, total, err := grantstore.In(tx).RecentCosts(ctx, g.ID, "a:x", 2)
			if n != 2 || total != 2*2+4*2 {
				t.Errorf("%d attempts cost %d", n, total)
			}
			return err
		})
	})
}

func TestBalanceIsLoweredOnlyIfPrepaid(t *testing.T) {
	store.BothForTest(t, func(t *testing.T, db *store.DB) {
		g := grantOf(t, db, ensureUser(t, db, "ada", userstore.RoleOperator), nil)
		store.MustWriteForTest(t, db, func(ctx context.Context, tx *store.Tx) error {
			if err := grantstore.In(tx).LowerBalance(ctx, g.AccountID, 5); err != nil {
				return err
			}
			if a, err := grantstore.In(tx).HoldAccount(ctx, g.AccountID); err != nil || a.Balance != nil {
				t.Errorf("not prepaid: %+v %v", a, err)
			}
			three := int64(3)
			if err := grantstore.In(tx).SetBalance(ctx, g.AccountID, &three); err != nil {
				return err
			}
			if err := grantstore.In(tx).LowerBalance(ctx, g.AccountID, 5); err != nil {
				return err
			}
			a, err := grantstore.In(tx).AccountByID(ctx, g.AccountID)
			if *a.Balance != -2 {
				t.Errorf("balance %d", *a.Balance)
			}
			if _, err := grantstore.In(tx).AccountByID(ctx, "nobody's"); pawl.ErrorCode(err) != pawl.CodeNotFound {
				t.Errorf("unknown: %v", err)
			}
			return err
		})
	})
}
