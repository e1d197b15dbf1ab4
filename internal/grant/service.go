package grant

import (
	"context"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/grantstore"
)

// Service is the side of people: whoever owns grants makes, reads and revokes
// them. What belongs to somebody else looks as if it were not there.
type Service struct {
	Automatic Caps // of the grants that are made for schedules
}

// Spec asks for a grant.
type Spec struct {
	BillingAccountID string // empty: the default account of the owner
	Scopes           []string
	Caps             Caps
	WildcardConsent  bool // the owner said that every graph, of now and later, may run
	ExpiresAt        time.Time
	Automatic        bool
}

// Create makes a grant for its owner. A wildcard needs consent, whose instant
// is kept; automatic grants are exact.
func (Service) Create(ctx context.Context, tx *store.Tx, ownerID string, spec Spec) (Grant, error) {
	if err := spec.check(tx.Now); err != nil {
		return Grant{}, err
	}
	account, err := accountOf(ctx, tx, ownerID, spec.BillingAccountID)
	if err != nil {
		return Grant{}, err
	}
	row := grantstore.Grant{
		UserID: ownerID, AccountID: account.ID, Scopes: slices.Compact(slices.Sorted(slices.Values(spec.Scopes))),
		USDPerDay: (*int64)(spec.Caps.USDPerDay), USDPerRun: (*int64)(spec.Caps.USDPerRun), RunsPerDay: spec.Caps.RunsPerDay,
		Automatic: spec.Automatic, ExpiresAt: spec.ExpiresAt,
	}
	if slices.Contains(spec.Scopes, wildcard) {
		row.WildcardConsentAt = tx.Now
	}
	row, err = grantstore.In(tx).InsertGrant(ctx, row)
	return fromStore(row), err
}

// CreateForGraph makes the grant of a schedule that was created without one:
// for this graph alone, with the caps that the server gives to such grants.
func (s Service) CreateForGraph(ctx context.Context, tx *store.Tx, ownerID, graphID string) (Grant, error) {
	if _, _, err := contract.ParseGraphID(graphID); err != nil {
		return Grant{}, err
	}
	return s.Create(ctx, tx, ownerID, Spec{Scopes: []string{ScopeFor(graphID)}, Automatic: true, Caps: s.Automatic})
}

func (spec Spec) check(now time.Time) error {
	if err := ValidScopes(spec.Scopes); err != nil {
		return err
	}
	var faults []pawl.Field
	add := func(pointer, message string) { faults = append(faults, pawl.Field{Pointer: pointer, Message: message}) }
	if all := slices.Contains(spec.Scopes, wildcard); all && spec.Automatic {
		add("/scopes", "an automatic grant names its graph")
	} else if all && !spec.WildcardConsent {
		add("/scopes", "a grant for every graph needs the consent of its owner")
	}
	if !spec.ExpiresAt.IsZero() && !spec.ExpiresAt.After(now) {
		add("/expiresAt", "must be in the future")
	}
	if spec.Caps.USDPerDay != nil && *spec.Caps.USDPerDay < 0 {
		add("/caps/usdPerDay", "must not be negative")
	}
	if spec.Caps.USDPerRun != nil && *spec.Caps.USDPerRun < 0 {
		add("/caps/usdPerRun", "must not be negative")
	}
	if spec.Caps.RunsPerDay != nil && *spec.Caps.RunsPerDay < 0 {
		add("/caps/runsPerDay", "must not be negative")
	}
	if len(faults) == 0 {
		return nil
	}
	return &pawl.Error{
		Code: pawl.CodeInvalid, Op: "create grant", Msg: "the grant is not valid", Fields: faults,
		Hint: "Name the graphs that may run, or give wildcardConsent for all of them.",
	}
}

func accountOf(ctx context.Context, tx *store.Tx, ownerID, accountID string) (grantstore.Account, error) {
	if accountID == "" {
		return grantstore.In(tx).EnsureAccount(ctx, ownerID)
	}
	account, err := grantstore.In(tx).AccountByID(ctx, accountID)
	if err == nil && account.OwnerID != ownerID {
		return grantstore.Account{}, &pawl.Error{Code: pawl.CodeNotFound, Op: "find billing account", Msg: "there is no such billing account"}
	}
	return account, err
}

// Get reads a grant of its owner, or fails with pawl.ErrNotFound. An empty
// owner is everybody.
func (Service) Get(ctx context.Context, tx *store.Tx, ownerID, id string) (Grant, error) {
	row, err := grantstore.In(tx).GrantByID(ctx, id)
	if err != nil {
		return Grant{}, err
	}
	if ownerID != "" && row.UserID != ownerID {
		return Grant{}, &pawl.Error{Code: pawl.CodeNotFound, Op: "find grant", Msg: "there is no such grant"}
	}
	return fromStore(row), nil
}

// List reads up to limit grants of an owner, the newest first. before is the
// id of the last one that was read already, or empty. An empty owner is
// everybody.
func (Service) List(ctx context.Context, tx *store.Tx, ownerID, before string, limit int) ([]Grant, error) {
	rows, err := grantstore.In(tx).ListGrants(ctx, ownerID, before, limit)
	if err != nil {
		return nil, err
	}
	out := make([]Grant, len(rows))
	for i, row := range rows {
		out[i] = fromStore(row)
	}
	return out, nil
}

// Revoke ends a grant of its owner for good and returns it as it is now. A
// grant that was revoked keeps the instant of the first time.
func (s Service) Revoke(ctx context.Context, tx *store.Tx, ownerID, id string) (Grant, error) {
	if _, err := s.Get(ctx, tx, ownerID, id); err != nil {
		return Grant{}, err
	}
	if _, err := grantstore.In(tx).RevokeGrant(ctx, id); err != nil {
		return Grant{}, err
	}
	return s.Get(ctx, tx, ownerID, id)
}

// Delete removes a grant of its owner that no schedule refers to; it is for
// cleaning up after something that was not made after all (C-62). A grant that
// is in use is refused with pawl.ErrConflict: revoke it.
func (s Service) Delete(ctx context.Context, tx *store.Tx, ownerID, id string) error {
	if _, err := s.Get(ctx, tx, ownerID, id); err != nil {
		return err
	}
	deleted, err := grantstore.In(tx).DeleteGrant(ctx, id)
	if err == nil && !deleted {
		return &pawl.Error{Code: pawl.CodeConflict, Op: "delete grant", Msg: "a schedule refers to the grant", Hint: "Revoke it instead."}
	}
	return err
}
