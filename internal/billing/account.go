package billing

import (
	"cmp"
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/grantstore"
)

// Account is who pays, with what was spent lately.
type Account struct {
	ID        string
	OwnerID   string
	Name      string
	KeyRef    string    // names the default key, such as ${TEAM_KEY}; never the key; empty: it has none
	Timezone  string    // whose days caps count
	Balance   *pawl.USD // nil: not prepaid
	Reserved  pawl.USD  // what open runs may still cost
	Days      []Spend   // the newest first; days without receipts are left out
	CreatedAt time.Time
}

// Spend is what was spent on one UTC day.
type Spend struct {
	Day      time.Time // its beginning
	Amount   pawl.USD
	Receipts int64
}

// EnsureAccount returns the default account of a user, which is made if there
// is none yet.
func EnsureAccount(ctx context.Context, tx *store.Tx, userID string) (Account, error) {
	row, err := grantstore.In(tx).EnsureAccount(ctx, userID)
	return fromStore(row), err
}

func fromStore(a grantstore.Account) Account {
	return Account{ID: a.ID, OwnerID: a.OwnerID, Name: a.Name, KeyRef: a.KeyRef, Timezone: cmp.Or(a.Timezone, "UTC"), Balance: (*pawl.USD)(a.Balance), CreatedAt: a.CreatedAt}
}

// Accounts reads up to limit accounts of a user, the oldest first, with what was
// spent in the last days, today included, and the cursor to go on with; its ID
// is empty at the end. An empty owner is everybody.
func Accounts(ctx context.Context, tx *store.Tx, ownerID string, after grantstore.AccountCursor, days, limit int) (page []Account, next grantstore.AccountCursor, err error) {
	rows, err := grantstore.In(tx).ListAccounts(ctx, ownerID, after, limit+1)
	if err != nil {
		return nil, next, err
	}
	if len(rows) > limit {
		rows = rows[:limit]
		last := rows[limit-1]
		next = grantstore.AccountCursor{CreatedAt: last.CreatedAt, ID: last.ID}
	}
	page = make([]Account, len(rows))
	for i, row := range rows {
		if page[i], err = withSpend(ctx, tx, row, days); err != nil {
			return nil, next, err
		}
	}
	return page, next, nil
}

// withSpend adds what was spent in the last days, and what is set aside.
func withSpend(ctx context.Context, tx *store.Tx, row grantstore.Account, days int) (Account, error) {
	out := fromStore(row)
	reserved, err := grantstore.In(tx).ReservedByAccount(ctx, row.ID)
	if err != nil {
		return out, err
	}
	spent, err := grantstore.In(tx).SpendByDay(ctx, row.ID, Day(tx.Now).AddDate(0, 0, 1-max(days, 1)))
	if err != nil {
		return out, err
	}
	out.Reserved = pawl.USD(reserved)
	for _, s := range spent {
		out.Days = append(out.Days, Spend{Day: s.Day, Amount: pawl.USD(s.Amount), Receipts: s.Receipts})
	}
	return out, nil
}

// Update changes what is given of an account and tells what it was, and what it
// is with what was spent in the last days. One of another owner is not found; an
// empty owner is everybody.
func Update(ctx context.Context, tx *store.Tx, ownerID, id string, in client.AccountPatch, days int) (was, now Account, err error) {
	row, err := grantstore.In(tx).HoldAccount(ctx, id)
	if err != nil {
		return was, now, err
	}
	if ownerID != "" && row.OwnerID != ownerID {
		return was, now, &pawl.Error{Code: pawl.CodeNotFound, Op: "find billing account", Msg: "there is no such billing account"}
	}
	was = fromStore(row)
	if in.KeyRef.Set {
		row.KeyRef = ""
		if in.KeyRef.Value != nil {
			row.KeyRef = *in.KeyRef.Value
		}
		if err := grantstore.In(tx).SetKeyRef(ctx, id, row.KeyRef); err != nil {
			return was, now, err
		}
	}
	if in.Timezone != nil && *in.Timezone != was.Timezone {
		row.Timezone = *in.Timezone
		if err := grantstore.In(tx).SetTimezone(ctx, id, row.Timezone); err != nil {
			return was, now, err
		}
	}
	if in.BalanceUSD.Set {
		row.Balance = (*int64)(in.BalanceUSD.Value)
		if err := grantstore.In(tx).SetBalance(ctx, id, row.Balance); err != nil {
			return was, now, err
		}
	}
	now, err = withSpend(ctx, tx, row, days)
	return was, now, err
}

// Receipts reads up to limit receipts, the newest first, and the cursor to go on with; its ID is empty at the end.
func Receipts(ctx context.Context, tx *store.Tx, f grantstore.ReceiptFilter, after grantstore.ReceiptCursor, limit int) (page []grantstore.Receipt, next grantstore.ReceiptCursor, err error) {
	return grantstore.In(tx).ListReceipts(ctx, f, after, limit)
}
