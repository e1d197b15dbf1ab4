package grantstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// Amounts here are whole 10^-7 USD.

// Account is who pays for the runs of graphs.
type Account struct {
	ID        string
	OwnerID   string
	Name      string
	KeyRef    string // names the default key, such as ${TEAM_KEY}, which the execution service resolves; never the key; empty: it has none
	Timezone  string // whose days caps count; empty is UTC
	Balance   *int64 // nil: not prepaid; may be negative
	CreatedAt time.Time
}

// noKey is what accounts without a key were written with before they could have
// one.
const noKey = "default"

const accountColumns = `id, owner_id, name, key_ref, timezone, balance, created_at`

func scanAccount(row store.Scanner) (Account, error) {
	var a Account
	var key, zone *string
	var created int64
	if err := row.Scan(&a.ID, &a.OwnerID, &a.Name, &key, &zone, &a.Balance, &created); err != nil {
		return Account{}, err
	}
	a.KeyRef, a.Timezone, a.CreatedAt = store.FromNullText(key), store.FromNullText(zone), store.FromMillis(created)
	if a.KeyRef == noKey {
		a.KeyRef = ""
	}
	return a, nil
}

func oneAccount(row store.Row) (Account, error) {
	a, err := scanAccount(row)
	if errors.Is(err, store.ErrNoRow) {
		return Account{}, &pawl.Error{Code: pawl.CodeNotFound, Op: "find billing account", Msg: "there is no such billing account"}
	}
	if err != nil {
		return Account{}, fmt.Errorf("find billing account: %w", err)
	}
	return a, nil
}

// EnsureAccount returns the default account of a user, which is added if there
// is none yet. Its id follows from the user's, so that rivals add one.
func (tx Tx) EnsureAccount(ctx context.Context, userID string) (Account, error) {
	id := uuid.NewSHA1(uuid.NameSpaceOID, []byte("billing account of "+userID)).String()
	_, err := tx.Exec(ctx, `insert into billing_accounts (id, owner_id, name, key_ref, balance, created_at)
		values ($1, $2, 'default', null, null, $3) on conflict (id) do nothing`, id, userID, store.Millis(tx.Now))
	if err != nil {
		return Account{}, fmt.Errorf("add billing account: %w", err)
	}
	return tx.AccountByID(ctx, id)
}

// AccountByID reads an account, or fails with pawl.ErrNotFound.
func (tx Tx) AccountByID(ctx context.Context, id string) (Account, error) {
	return oneAccount(tx.QueryRow(ctx, `select `+accountColumns+` from billing_accounts where id = $1`, id))
}

// HoldAccount reads an account like AccountByID and keeps others from holding
// or charging it until the transaction ends.
func (tx Tx) HoldAccount(ctx context.Context, id string) (Account, error) {
	return oneAccount(tx.QueryRow(ctx, `select `+accountColumns+` from billing_accounts where id = $1`+tx.ForUpdate(), id))
}

// AccountCursor is the place of an account in a list. The zero value is before
// the first.
type AccountCursor struct {
	CreatedAt time.Time
	ID        string
}

// ListAccounts reads up to limit accounts of a user, the oldest first, that come
// after the cursor; an empty user is everybody.
func (tx Tx) ListAccounts(ctx context.Context, ownerID string, after AccountCursor, limit int) ([]Account, error) {
	c := store.Where{Texts: []string{"true"}}
	if ownerID != "" {
		c.Add("owner_id = ?", ownerID)
	}
	if after.ID != "" {
		c.Add("(created_at, id) > (?, ?)", store.Millis(after.CreatedAt), after.ID)
	}
	c.Args = append(c.Args, limit)
	rows, err := tx.Query(ctx, fmt.Sprintf(`select %s from billing_accounts where %s order by created_at, id limit $%d`, accountColumns, c.String(), len(c.Args)), c.Args...)
	return store.ScanAll(rows, err, "list billing accounts", scanAccount)
}

// SetKeyRef names the default key of an account; empty is none.
func (tx Tx) SetKeyRef(ctx context.Context, accountID, ref string) error {
	_, err := tx.Exec(ctx, `update billing_accounts set key_ref = $2 where id = $1`, accountID, store.NullText(ref))
	if err != nil {
		return fmt.Errorf("set key reference: %w", err)
	}
	return nil
}

// SetTimezone says whose days caps count.
func (tx Tx) SetTimezone(ctx context.Context, accountID, zone string) error {
	_, err := tx.Exec(ctx, `update billing_accounts set timezone = $2 where id = $1`, accountID, store.NullText(zone))
	if err != nil {
		return fmt.Errorf("set time zone: %w", err)
	}
	return nil
}

// SetBalance makes an account prepaid with this balance, or not prepaid if it
// is nil.
func (tx Tx) SetBalance(ctx context.Context, accountID string, balance *int64) error {
	_, err := tx.Exec(ctx, `update billing_accounts set balance = $2 where id = $1`, accountID, balance)
	if err != nil {
		return fmt.Errorf("set balance: %w", err)
	}
	return nil
}

// LowerBalance takes an amount from a prepaid account; others have no balance
// to lower.
func (tx Tx) LowerBalance(ctx context.Context, accountID string, amount int64) error {
	_, err := tx.Exec(ctx, `update billing_accounts set balance = balance - $2 where id = $1 and balance is not null`, accountID, amount)
	if err != nil {
		return fmt.Errorf("lower balance: %w", err)
	}
	return nil
}

// Receipt is the charge for one unit of usage.
type Receipt struct {
	ID           string
	AccountID    string
	GrantID      string
	ScheduleID   string
	RunID        string
	Attempt      int
	System       string // who counts the usage
	Reference    string // runId/attempt/unit, unique within the system
	Executor     string
	Model        string
	InputTokens  int64
	OutputTokens int64
	Amount       int64
	Price        string // what it was reckoned by; empty: the amount was told
	CreatedAt    time.Time
}

const receiptColumns = `id, billing_account_id, grant_id, schedule_id, run_id, attempt, source_system, source_reference,
	executor, model, input_tokens, output_tokens, amount, price, created_at`

func scanReceipt(row store.Scanner) (Receipt, error) {
	var r Receipt
	var grant, schedule, model, price *string
	var created int64
	err := row.Scan(&r.ID, &r.AccountID, &grant, &schedule, &r.RunID, &r.Attempt, &r.System, &r.Reference,
		&r.Executor, &model, &r.InputTokens, &r.OutputTokens, &r.Amount, &price, &created)
	if err != nil {
		return Receipt{}, err
	}
	r.GrantID, r.ScheduleID, r.Model, r.CreatedAt = store.FromNullText(grant), store.FromNullText(schedule), store.FromNullText(model), store.FromMillis(created)
	r.Price = store.FromNullText(price)
	return r, nil
}

// InsertReceipt adds a receipt, unless one with its system and reference is
// there: a unit is charged once.
func (tx Tx) InsertReceipt(ctx context.Context, r Receipt) (added bool, err error) {
	n, err := tx.Exec(ctx, `insert into charge_receipts (`+receiptColumns+`)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) on conflict (source_system, source_reference) do nothing`,
		store.NewID(), r.AccountID, store.NullText(r.GrantID), store.NullText(r.ScheduleID), r.RunID, r.Attempt, r.System, r.Reference,
		r.Executor, store.NullText(r.Model), r.InputTokens, r.OutputTokens, r.Amount, store.NullText(r.Price), store.Millis(tx.Now))
	if err != nil {
		return false, fmt.Errorf("add receipt: %w", err)
	}
	if n == 0 {
		return false, nil
	}
	return true, tx.addToDay(ctx, r)
}
