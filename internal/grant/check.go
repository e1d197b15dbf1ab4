package grant

import (
	"context"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/grantstore"
)

// Check tells whether a grant allows a graph to run now. It looks in this
// order, so that one grant always gives the same answer: expired, revoked,
// scope (C-71). That it exists was found out by whoever loaded it.
func Check(g Grant, graphID string, now time.Time) error {
	switch {
	case !g.ExpiresAt.IsZero() && !now.Before(g.ExpiresAt):
		return refuse(contract.GrantExpired, fmt.Sprintf("the grant expired at %s", pawl.FormatTime(g.ExpiresAt)), "Create a new grant.")
	case !g.RevokedAt.IsZero():
		return refuse(contract.GrantRevoked, fmt.Sprintf("the grant was revoked at %s", pawl.FormatTime(g.RevokedAt)), "Create a new grant.")
	case !covers(g, graphID):
		return refuse(contract.GrantScope, fmt.Sprintf("the grant does not cover the graph %q", graphID), "Create a grant for this graph.")
	}
	return nil
}

func refuse(code contract.ErrorCode, msg, hint string) error {
	return &pawl.Error{Code: pawl.CodeForbidden, Reason: string(code), Op: "check grant", Msg: msg, Hint: hint}
}

// RefusalCode tells which grant code an error carries. ok is false for every
// other error, such as a database that does not answer: it says nothing about
// the grant.
func RefusalCode(err error) (code contract.ErrorCode, ok bool) {
	e, ok := errors.AsType[*pawl.Error](err)
	if !ok || !contract.ErrorCode(e.Reason).IsGrant() {
		return "", false
	}
	return contract.ErrorCode(e.Reason), true
}

// Authorize loads a grant and checks it for a graph, at the instant of the
// transaction.
func Authorize(ctx context.Context, tx *store.Tx, grantID, graphID string) (Grant, error) {
	row, err := grantstore.In(tx).GrantByID(ctx, grantID)
	if errors.Is(err, pawl.ErrNotFound) {
		return Grant{}, refuse(contract.GrantNotFound, "there is no such grant", "Create a grant, and use its id.")
	}
	if err != nil {
		return Grant{}, err
	}
	g := fromStore(row)
	return g, Check(g, graphID, tx.Now)
}

// Funded is a grant with the account that pays for what runs under it.
type Funded struct {
	Grant
	Account grantstore.Account
	Charged bool // something was charged under it; only told of one with a cap of a day
}

// Load reads grants with their accounts, by their ids. It checks nothing.
func Load(ctx context.Context, tx *store.Tx, ids []string) (map[string]Funded, error) {
	rows, err := grantstore.In(tx).GrantsByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	out := make(map[string]Funded, len(rows))
	for _, row := range rows {
		out[row.ID] = Funded{fromStore(row.Grant), row.Account, row.Charged}
	}
	return out, nil
}
