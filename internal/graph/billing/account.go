package billing

import (
	"context"
	"time"

	"github.com/pawlrun/pawl/internal/graph/contract"
	"github.com/pawlrun/pawl/internal/store"
)

// Account is who pays, with what was spent lately.
type Account struct {
	ID        string
	OwnerID   string
	Name      string
	KeyRef    string          // names a key; never the key
	Balance   *contract.Micro // nil: not prepaid
	Reserved  contract.Micro  // what open runs may still cost
	Days      []Spend         // the newest first; days without receipts are left out
	CreatedAt time.Time
}

// Spend is what was spent on one UTC day.
type Spend struct {
	Day      time.Time // its beginning
	Amount   contract.Micro
	Receipts int64
}

// EnsureAccount returns the default account of a user, which is made if there
// is none yet.
func EnsureAccount(ctx context.Context, tx *store.Tx, userID string) (Account, error) {
	row, err := tx.EnsureAccount(ctx, userID)
	return fromStore(row), err
}

func fromStore(a store.Account) Account {
	return Account{ID: a.ID, OwnerID: a.OwnerID, Name: a.Name, KeyRef: a.KeyRef, Balance: (*contract.Micro)(a.Balance), CreatedAt: a.CreatedAt}
}

// Accounts reads the accounts of a user with what was spent in the last days,
// today included. An empty owner is everybody.
func Accounts(ctx context.Context, tx *store.Tx, ownerID string, days int) ([]Account, error) {
	rows, err := tx.ListAccounts(ctx, ownerID)
	if err != nil {
		return nil, err
	}
	since := Day(tx.Now).AddDate(0, 0, 1-max(days, 1))
	out := make([]Account, len(rows))
	for i, row := range rows {
		out[i] = fromStore(row)
		reserved, err := tx.ReservedByAccount(ctx, row.ID)
		if err != nil {
			return nil, err
		}
		spent, err := tx.SpendByDay(ctx, row.ID, since)
		if err != nil {
			return nil, err
		}
		out[i].Reserved = contract.Micro(reserved)
		for _, s := range spent {
			out[i].Days = append(out[i].Days, Spend{Day: s.Day, Amount: contract.Micro(s.Amount), Receipts: s.Receipts})
		}
	}
	return out, nil
}

// Receipts reads up to limit receipts, the newest first, and the cursor to go on with; its ID is empty at the end.
func Receipts(ctx context.Context, tx *store.Tx, f store.ReceiptFilter, after store.ReceiptCursor, limit int) (page []store.Receipt, next store.ReceiptCursor, err error) {
	page, err = tx.ListReceipts(ctx, f, after, limit+1)
	if err != nil {
		return nil, next, err
	}
	if len(page) > limit {
		page = page[:limit]
		last := page[limit-1]
		next = store.ReceiptCursor{CreatedAt: last.CreatedAt, ID: last.ID}
	}
	return page, next, nil
}
