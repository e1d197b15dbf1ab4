package grantstore

import (
	"context"

	"github.com/pawlrun/pawl/internal/store"
)

// Funded is a grant with the account that pays.
type Funded struct {
	Grant
	Account Account
	Charged bool // something was charged under it; only looked up for one with a cap of a day
}

// GrantsByID reads grants with their accounts; those that are not there are left
// out.
func (tx Tx) GrantsByID(ctx context.Context, ids []string) ([]Funded, error) {
	list := make([][]any, len(ids))
	for i, id := range ids {
		list[i] = []any{id}
	}
	table, args := tx.Rowset(nil, "id text", list)
	rows, err := tx.Query(ctx, `select `+store.Prefixed("g", grantColumns)+`, `+store.Prefixed("a", accountColumns)+`,
		case when g.usd_per_day is not null and exists (select 1 from charge_days d where d.subject = g.id and d.amount > 0) then 1 else 0 end
		from `+table+` cross join execution_grants g cross join billing_accounts a where g.id = v.id and a.id = g.billing_account_id`, args...)
	return store.ScanAll(rows, err, "find grants", func(row store.Scanner) (f Funded, err error) {
		var charged int
		f.Account, err = scanAccount(store.ScanFunc(func(dest ...any) (err error) {
			f.Grant, err = scanGrant(store.Also(row, append(dest, &charged)...))
			return err
		}))
		f.Charged = charged != 0
		return f, err
	})
}
