package execution

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/grantstore"
)

// errNoKeys is why a service that was given no Keys resolves none.
var errNoKeys = errors.New("this server has no keys")

// callerFault is a key that an account names and that cannot be had.
type callerFault struct {
	account, ref, what string
	err                error // names the variable, never what is in it
}

func (e *callerFault) Error() string {
	return fmt.Sprintf("the key %s of billing account %s %s on this server: %s; set it where graphs run, or have an admin change it with pawl account set %s", e.ref, e.account, e.what, e.err, e.account)
}

func (e *callerFault) Unwrap() error { return e.err }

// identify finds out in whose name the run goes: the account of its grant, and
// the key that the account names at this moment. It is asked for every attempt
// and every take-over, so that no key is kept anywhere and none is ever old.
func (f *flight) identify(ctx context.Context) error {
	if work.Is(f.run.GraphID) {
		return nil // in nobody's
	}
	caller, account := runner.Caller{AccountID: f.bill.AccountID}, f.account
	var err error
	if account.ID == "" {
		err = f.s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			account, err = grantstore.In(tx).AccountByID(ctx, f.bill.AccountID)
			return err
		})
	}
	if err == nil && account.KeyRef != "" {
		caller.Key, err = f.s.keyOf(account)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.run.Caller = caller
	return err
}

// keyOf resolves the key that an account names.
func (s *Service) keyOf(account grantstore.Account) (runner.Key, error) {
	value, err := s.keys(account.KeyRef)
	if err != nil {
		return runner.Key{}, &callerFault{account.ID, account.KeyRef, "is not set", err}
	}
	key, err := runner.NewKey(strings.Trim(account.KeyRef, "${}"), value)
	if err != nil {
		return runner.Key{}, &callerFault{account.ID, account.KeyRef, "cannot be used", err}
	}
	return key, nil
}

// redact leaves secrets out of what the executor says, and the key of the caller.
func (f *flight) redact(text string) string {
	return f.s.redact(f.run.Caller.Key.CleanText(text))
}
