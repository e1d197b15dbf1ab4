package store

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
)

// Rivals that ensure an account make one.
func TestEnsureAccountMakesOne(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ada := ensureUser(t, db, "ada", RoleOperator)
		ids := make([]string, 8)
		var all sync.WaitGroup
		for i := range ids {
			all.Go(func() {
				err := db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
					a, err := tx.EnsureAccount(ctx, ada.ID)
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
		if n := count(t, db, `select count(*) from billing_accounts`); n != 1 {
			t.Errorf("%d accounts", n)
		}
	})
}

// C-30: an account names its key, or has none; so do those that were written
// before accounts could have one.
func TestKeyReferenceOfAnAccount(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ada := ensureUser(t, db, "ada", RoleOperator)
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			a, err := tx.EnsureAccount(ctx, ada.ID)
			if err != nil || a.KeyRef != "" {
				t.Errorf("a new one: %+v %v", a, err)
			}
			for _, ref := range []string{"${A}", ""} {
				if err := tx.SetKeyRef(ctx, a.ID, ref); err != nil {
					return err
				}
				if a, err = tx.AccountByID(ctx, a.ID); a.KeyRef != ref || err != nil {
					t.Errorf("%+v %v, want %q", a, err, ref)
				}
			}
			if _, err := tx.Exec(ctx, `update billing_accounts set key_ref = 'default'`); err != nil {
				return err
			}
			if a, err = tx.EnsureAccount(ctx, ada.ID); a.KeyRef != "" || err != nil {
				t.Errorf("an old one: %+v %v", a, err)
			}
			return nil
		})
	})
}

func receipt(g Grant, run string, attempt int, unit string, amount int64) Receipt {
	return Receipt{
		AccountID: g.AccountID, GrantID: g.ID, RunID: run, Attempt: attempt, System: "pawl",
		Reference: fmt.Sprintf("%s/%d/%s", run, attempt, unit), Executor: "x", Amount: amount,
	}
}

// C-55, context 3.19.2: a reference has one receipt, whoever comes again.
func TestReceiptIsAddedOncePerReference(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		g := grantOf(t, db, ensureUser(t, db, "ada", RoleOperator), nil)
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			for i, want := range []bool{true, false} {
				if added, err := tx.InsertReceipt(ctx, receipt(g, "r", 1, "u\x00", int64(i))); added != want || err != nil {
					t.Errorf("time %d: %v %v", i, added, err)
				}
			}
			n, err := tx.CostOfRun(ctx, "r")
			if n != 0 {
				t.Errorf("the repetition changed the amount: %d", n)
			}
			return err
		})
	})
}

func TestReceiptsAreListedByOwnerWithCursor(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		ada := ensureUser(t, db, "ada", RoleOperator)
		g, other := grantOf(t, db, ada, nil), grantOf(t, db, ensureUser(t, db, "bob", RoleOperator), nil)
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			for i := range 5 {
				tx.Now = at(i / 2)
				if _, err := tx.InsertReceipt(ctx, receipt(g, fmt.Sprint("r", i), 1, "u", int64(i))); err != nil {
					return err
				}
			}
			_, err := tx.InsertReceipt(ctx, receipt(other, "bobs", 1, "u", 1))
			return err
		})
		var seen []int64
		cursor := ReceiptCursor{}
		for range 4 {
			page := mustRead(t, db, func(ctx context.Context, tx *Tx) ([]Receipt, error) {
				page, _, err := tx.ListReceipts(ctx, ReceiptFilter{OwnerID: ada.ID}, cursor, 2)
				return page, err
			})
			for _, r := range page {
				seen = append(seen, r.Amount)
				cursor = ReceiptCursor{r.CreatedAt, r.ID}
			}
		}
		if fmt.Sprint(seen) != "[4 3 2 1 0]" {
			t.Errorf("pages hold %v", seen)
		}
		foreign := mustRead(t, db, func(ctx context.Context, tx *Tx) ([]Receipt, error) {
			page, _, err := tx.ListReceipts(ctx, ReceiptFilter{OwnerID: ada.ID, AccountID: other.AccountID}, ReceiptCursor{}, 9)
			return page, err
		})
		if len(foreign) != 0 {
			t.Errorf("foreign receipts %v", foreign)
		}
	})
}

func TestSpendIsSummedByUTCDay(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		g := grantOf(t, db, ensureUser(t, db, "ada", RoleOperator), nil)
		midnight := time.Date(2030, 3, 31, 0, 0, 0, 0, time.UTC)
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			for i, when := range []time.Time{midnight.Add(-time.Millisecond), midnight, midnight.Add(time.Hour), midnight.Add(-72 * time.Hour)} {
				tx.Now = when
				if _, err := tx.InsertReceipt(ctx, receipt(g, "r", i, "u", 1<<i)); err != nil {
					return err
				}
			}
			return nil
		})
		days := mustRead(t, db, func(ctx context.Context, tx *Tx) ([]DaySpend, error) {
			return tx.SpendByDay(ctx, g.AccountID, midnight.AddDate(0, 0, -1))
		})
		if len(days) != 2 || !days[0].Day.Equal(midnight) || days[0].Amount != 6 || days[0].Receipts != 2 || days[1].Amount != 1 {
			t.Errorf("%+v", days)
		}
		spent := mustRead(t, db, func(ctx context.Context, tx *Tx) (int64, error) { return tx.SpentByGrant(ctx, g.ID, midnight) })
		if spent != 6 {
			t.Errorf("spent %d since midnight", spent)
		}
	})
}

func TestRecentCostsLookAtOneGraphAndTheNewestRuns(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		g := grantOf(t, db, ensureUser(t, db, "ada", RoleOperator), nil)
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			for i, graph := range []string{"a:x", "a:x", "a:y", "a:x"} {
				run := fmt.Sprint("r", i)
				if _, err := tx.ClaimExecution(ctx, Execution{Key: run, RunID: run, Attempt: 1, GraphID: graph, GrantID: g.ID, Owner: "o", LeaseUntil: at(0)}); err != nil {
					return err
				}
				tx.Now = at(i)
				for unit := range 2 {
					if _, err := tx.InsertReceipt(ctx, receipt(g, run, 1, fmt.Sprint(unit), int64(1+i))); err != nil {
						return err
					}
				}
			}
			n, total, err := tx.RecentCosts(ctx, g.ID, "a:x", 2)
			if n != 2 || total != 2*2+4*2 {
				t.Errorf("%d attempts cost %d", n, total)
			}
			return err
		})
	})
}

func TestBalanceIsLoweredOnlyIfPrepaid(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		g := grantOf(t, db, ensureUser(t, db, "ada", RoleOperator), nil)
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			if err := tx.LowerBalance(ctx, g.AccountID, 5); err != nil {
				return err
			}
			if a, err := tx.HoldAccount(ctx, g.AccountID); err != nil || a.Balance != nil {
				t.Errorf("not prepaid: %+v %v", a, err)
			}
			three := int64(3)
			if err := tx.SetBalance(ctx, g.AccountID, &three); err != nil {
				return err
			}
			if err := tx.LowerBalance(ctx, g.AccountID, 5); err != nil {
				return err
			}
			a, err := tx.AccountByID(ctx, g.AccountID)
			if *a.Balance != -2 {
				t.Errorf("balance %d", *a.Balance)
			}
			if _, err := tx.AccountByID(ctx, "nobody's"); pawl.ErrorCode(err) != pawl.CodeNotFound {
				t.Errorf("unknown: %v", err)
			}
			return err
		})
	})
}
