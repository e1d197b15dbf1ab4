package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/billing"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
	"github.com/pawlrun/pawl/internal/when"
)

// accountDays is for how many days the answer to a change tells what was spent.
const accountDays = 30

// maxKeyRef is the length of the longest key reference, in characters.
const maxKeyRef = 200

// defaultAccount stands for the id of the caller's own account.
const defaultAccount = "default"

type updateAccountInput struct {
	ID string `path:"id" example:"0192f0c1-5b7e-5c3a-9d2e-3f1a2b4c5d6e" doc:"The account's id; default is your own one, which is made if you have none yet."`
	OnceHeader
	Body client.AccountPatch
}

func (in *updateAccountInput) check() error {
	if in.ID != defaultAccount && uuid.Validate(in.ID) != nil {
		return &pawl.Error{Code: pawl.CodeNotFound, Op: "find billing account", Msg: "there is no such billing account", Hint: "pawl get accounts shows yours."}
	}
	if zone := in.Body.Timezone; zone != nil {
		if _, err := when.LoadZone(*zone); err != nil || *zone == "" {
			return invalid("Use a name of the IANA database, such as Europe/Berlin or UTC.", client.Fault{Pointer: "/timezone", Message: "is not a known time zone"})
		}
	}
	return checkKeyRef(in.Body.KeyRef)
}

// checkKeyRef refuses whatever is not one reference, and does not say it again:
// it may be a key that somebody sent by mistake.
func checkKeyRef(ref client.Optional[string]) error {
	if ref.Value == nil {
		return nil
	}
	if _, ok := definition.Reference(*ref.Value); !ok || len(*ref.Value) > maxKeyRef {
		return invalid("Put the key into an environment variable of the server that runs graphs, and send its name, such as ${TEAM_KEY}. If you sent the key itself, it was not stored.",
			client.Fault{Pointer: "/keyRef", Message: "must be exactly one reference such as ${TEAM_KEY}, never a key"})
	}
	return nil
}

type updateAccountOutput struct {
	Replayed replayed `header:"Idempotency-Replayed"`
	Body     client.Account
}

// updateAccount changes the key, the time zone and the balance of an account. A key reference
// names a secret of the server and a balance is money, so that only admins may,
// on accounts of their own, too.
func (a *API) updateAccount(ctx context.Context, in *updateAccountInput) (*updateAccountOutput, error) {
	caller := callOf(ctx).token
	if !access.IsAdmin(caller) {
		return nil, newProblem(http.StatusForbidden, string(pawl.CodeForbidden),
			fmt.Sprintf("only admins change billing accounts, and the role of %s is %s", caller.User.Name, caller.User.Role), "Ask an admin of this server.")
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	body, was, err := once(ctx, a, http.StatusOK, &in.Body, whole, func(ctx context.Context, tx *store.Tx) (client.Account, error) {
		id := in.ID
		if id == defaultAccount {
			own, err := billing.EnsureAccount(ctx, tx, caller.User.ID)
			if err != nil {
				return client.Account{}, err
			}
			id = own.ID
		}
		before, now, err := billing.Update(ctx, tx, access.Reach(caller, billingResource), id, in.Body, accountDays)
		if err != nil {
			return client.Account{}, err
		}
		return accountOf(&now), auditAccount(ctx, tx, caller, before, now)
	})
	if err != nil {
		return nil, err
	}
	return &updateAccountOutput{was, body}, nil
}

// auditAccount notes what is different from before; nothing is no change.
func auditAccount(ctx context.Context, tx *store.Tx, caller *userstore.Token, before, now billing.Account) error {
	detail := map[string]any{}
	if before.KeyRef != now.KeyRef {
		detail["keyRef"] = client.NullString(now.KeyRef)
	}
	if (before.Balance == nil) != (now.Balance == nil) || before.Balance != nil && *before.Balance != *now.Balance {
		detail["balanceUsd"], detail["balanceUsdBefore"] = now.Balance, before.Balance
	}
	if before.Timezone != now.Timezone {
		detail["timezone"], detail["timezoneBefore"] = now.Timezone, before.Timezone
	}
	if len(detail) == 0 {
		return nil
	}
	return tx.Audit(ctx, actor(caller), "account.update", "account:"+now.ID, detail)
}
