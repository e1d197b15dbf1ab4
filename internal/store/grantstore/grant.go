package grantstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// Grant is the right to run graphs in the name of a user. What its scopes mean
// is not known here.
type Grant struct {
	ID                string
	UserID            string
	AccountID         string // who pays
	Scopes            []string
	USDPerDay         *int64 // caps in 10^-7 USD; nil: none
	USDPerRun         *int64
	RunsPerDay        *int64
	WildcardConsentAt time.Time // zero: no consent was given
	Automatic         bool      // made for one schedule, and revoked with it
	ExpiresAt         time.Time // zero is never
	RevokedAt         time.Time // zero unless revoked
	CreatedAt         time.Time
}

const grantColumns = `id, user_id, billing_account_id, scopes, usd_per_day, usd_per_run, runs_per_day,
	wildcard_consent_at, automatic, expires_at, revoked_at, created_at`

func scanGrant(row store.Scanner) (Grant, error) {
	var g Grant
	var scopes string
	var automatic, created int64
	var consent, expires, revoked *int64
	err := row.Scan(&g.ID, &g.UserID, &g.AccountID, &scopes, &g.USDPerDay, &g.USDPerRun, &g.RunsPerDay,
		&consent, &automatic, &expires, &revoked, &created)
	if err != nil {
		return Grant{}, err
	}
	if err := json.Unmarshal([]byte(scopes), &g.Scopes); err != nil {
		return Grant{}, fmt.Errorf("read scopes of grant %s: %w", g.ID, err)
	}
	g.Automatic, g.WildcardConsentAt = automatic == 1, store.FromNullMillis(consent)
	g.ExpiresAt, g.RevokedAt, g.CreatedAt = store.FromNullMillis(expires), store.FromNullMillis(revoked), store.FromMillis(created)
	return g, nil
}

// InsertGrant adds a grant. Its id and instant of creation are made here.
func (tx Tx) InsertGrant(ctx context.Context, g Grant) (Grant, error) {
	scopes, err := json.Marshal(g.Scopes)
	if err != nil {
		return Grant{}, fmt.Errorf("add grant: %w", err)
	}
	automatic := 0
	if g.Automatic {
		automatic = 1
	}
	g, err = scanGrant(tx.QueryRow(ctx, `insert into execution_grants (`+grantColumns+`)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, null, $11) returning `+grantColumns,
		store.NewID(), g.UserID, g.AccountID, string(scopes), g.USDPerDay, g.USDPerRun, g.RunsPerDay,
		store.NullMillis(g.WildcardConsentAt), automatic, store.NullMillis(g.ExpiresAt), store.Millis(tx.Now)))
	if err != nil {
		return Grant{}, fmt.Errorf("add grant: %w", err)
	}
	return g, nil
}

// GrantByID reads a grant, or fails with pawl.ErrNotFound. Whose it is and
// whether it is still good is for the caller to judge.
func (tx Tx) GrantByID(ctx context.Context, id string) (Grant, error) {
	return oneGrant(tx.QueryRow(ctx, `select `+grantColumns+` from execution_grants where id = $1`, id))
}

// HoldGrant reads a grant like GrantByID and keeps others from holding it until
// the transaction ends, so that what is counted for its caps stays true.
func (tx Tx) HoldGrant(ctx context.Context, id string) (Grant, error) {
	return oneGrant(tx.QueryRow(ctx, `select `+grantColumns+` from execution_grants where id = $1`+tx.ForUpdate(), id))
}

func oneGrant(row store.Row) (Grant, error) {
	g, err := scanGrant(row)
	if errors.Is(err, store.ErrNoRow) {
		return Grant{}, &pawl.Error{Code: pawl.CodeNotFound, Op: "find grant", Msg: "there is no such grant"}
	}
	if err != nil {
		return Grant{}, fmt.Errorf("find grant: %w", err)
	}
	return g, nil
}

// ListGrants reads up to limit grants of a user, the newest first; an empty user
// is everybody. before is the id of the last one that was read already, or
// empty.
func (tx Tx) ListGrants(ctx context.Context, userID, before string, limit int) ([]Grant, error) {
	c := store.BelowID("id", before)
	c.Add("(? = '' or user_id = ?)", userID, userID)
	rows, err := tx.Query(ctx, `select `+grantColumns+` from execution_grants where `+c.String()+` order by id desc`+c.Limit(limit), c.Args...)
	return store.ScanAll(rows, err, "list grants", scanGrant)
}

// RevokeGrant ends a grant for good; the row stays (C-45). It reports whether
// the grant was unrevoked until now.
func (tx Tx) RevokeGrant(ctx context.Context, id string) (changed bool, err error) {
	n, err := tx.Exec(ctx, `update execution_grants set revoked_at = $2 where id = $1 and revoked_at is null`, id, store.Millis(tx.Now))
	if err != nil {
		return false, fmt.Errorf("revoke grant: %w", err)
	}
	return n == 1, nil
}

// DeleteGrant removes a grant that no schedule refers to; of the others it
// removes nothing.
func (tx Tx) DeleteGrant(ctx context.Context, id string) (deleted bool, err error) {
	n, err := tx.Exec(ctx, `delete from execution_grants where id = $1
		and not exists (select 1 from schedules where execution_grant_id = $1)`, id)
	if err != nil {
		return false, fmt.Errorf("delete grant: %w", err)
	}
	return n == 1, nil
}
