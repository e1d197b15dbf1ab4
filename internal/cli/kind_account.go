package cli

import (
	"encoding/json"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// accountKind are who pays for runs of graphs.
func accountKind() kind {
	return kind{
		plural: "accounts", singular: "account", path: client.AccountsPath, owned: true,
		instead: "Accounts are in lists only: pawl get accounts",
		watch:   watchRules{events: []string{"schedule"}},
		columns: []column{
			{title: "id"}, {title: "name"}, {title: "owner", wide: true, everybody: true}, {title: "balance"}, {title: "reserved"}, {title: "spent today"}, {title: "key", flex: true, least: 10}, {title: "created", wide: true},
		},
		row: func(raw json.RawMessage, now time.Time) ([]string, error) {
			var a client.Account
			if err := json.Unmarshal(raw, &a); err != nil {
				return nil, err
			}
			return []string{
				a.ID, orDash(a.Name), orDash(a.OwnerUserID), balanceWords(a), usd(a.ReservedUSD), usd(spentOn(a, now)), orDash(string(a.KeyRef)), relative(a.CreatedAt.Time, now),
			}, nil
		},
	}
}

// balanceWords tell what is left on an account.
func balanceWords(a client.Account) string {
	if a.BalanceUSD == nil {
		return "not prepaid"
	}
	return usd(*a.BalanceUSD)
}

// spentOn is what was spent on the UTC day of an instant.
func spentOn(a client.Account, now time.Time) pawl.USD {
	today := now.UTC().Format(time.DateOnly)
	for _, d := range a.Days {
		if d.Day == today {
			return d.AmountUSD
		}
	}
	return 0
}
