package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/store"
)

const grantsResource = "grants"

func grantOf(g grant.Grant) client.Grant {
	return client.Grant{
		ID: g.ID, UserID: g.UserID, BillingAccountID: g.BillingAccountID, Scopes: orEmpty(g.Scopes), Caps: client.Caps(g.Caps),
		WildcardConsentAt: client.At(g.WildcardConsentAt), Automatic: g.Automatic,
		ExpiresAt: client.At(g.ExpiresAt), RevokedAt: client.At(g.RevokedAt), CreatedAt: client.At(g.CreatedAt),
	}
}

type createGrantInput struct {
	OnceHeader
	Body client.GrantRequest
}

type createGrantOutput struct {
	Replayed replayed `header:"Idempotency-Replayed"`
	Location string   `header:"Location"`
	Body     client.Grant
}

func (a *API) createGrant(ctx context.Context, in *createGrantInput) (*createGrantOutput, error) {
	spec, err := grantSpec(&in.Body)
	if err != nil {
		return nil, err
	}
	caller := callOf(ctx).token
	body, was, err := once(ctx, a, http.StatusCreated, &in.Body, whole, func(ctx context.Context, tx *store.Tx) (client.Grant, error) {
		g, err := grant.Service{}.Create(ctx, tx, caller.User.ID, spec)
		if errors.Is(err, pawl.ErrNotFound) {
			return client.Grant{}, invalid("Leave it out to use your default account.", client.Fault{Pointer: "/billingAccountId", Message: "there is no such billing account"})
		}
		if err != nil {
			return client.Grant{}, err
		}
		return grantOf(g), tx.Audit(ctx, actor(caller), "grant.create", "grant:"+g.ID, map[string]any{"scopes": g.Scopes})
	})
	if err != nil {
		return nil, err
	}
	return &createGrantOutput{was, "/api/v1/grants/" + body.ID, body}, nil
}

// grantSpec turns the graphs of a request into scopes, of which only package
// grant knows what they look like.
func grantSpec(in *client.GrantRequest) (grant.Spec, error) {
	var f faults
	if len(in.Scopes)+len(in.Graphs) == 0 {
		f.add("/graphs", "must name at least one graph", "Name the graphs that may run, such as langgraph:poet.")
	}
	for i, id := range in.Graphs {
		if id == "*" {
			continue
		}
		if _, _, err := contract.ParseGraphID(id); err != nil {
			e, _ := errors.AsType[*pawl.Error](err)
			f.add(fmt.Sprintf("/graphs/%d", i), e.Msg, e.Hint)
		}
	}
	return grant.Spec{
		BillingAccountID: in.BillingAccountID, Scopes: append(grant.ScopesFor(in.Graphs), in.Scopes...), Caps: grant.Caps(in.Caps),
		WildcardConsent: in.WildcardConsent, ExpiresAt: in.ExpiresAt.Time,
	}, f.problem()
}

type listGrantsInput struct {
	PageInput
	AllInput
}

const grantCursor = "grant"

func (a *API) listGrants(ctx context.Context, in *listGrantsInput) (*pageOutput[client.Grant], error) {
	before, err := in.place(grantCursor)
	if err != nil {
		return nil, err
	}
	if before != "" && uuid.Validate(before) != nil {
		return nil, badCursor()
	}
	owner, err := in.owner(callOf(ctx).token, grantsResource)
	if err != nil {
		return nil, err
	}
	var list []grant.Grant
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		list, err = grant.Service{}.List(ctx, tx, owner, before, in.Limit+1)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &pageOutput[client.Grant]{cutPage(list, in.Limit, grantCursor, func(g grant.Grant) string { return g.ID }, grantOf)}, nil
}

// GrantPath is the input of requests about one grant.
type GrantPath struct {
	ID string `path:"id" example:"0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e" doc:"The grant's id."`
}

func (p GrantPath) check() error {
	if uuid.Validate(p.ID) != nil {
		return &pawl.Error{Code: pawl.CodeNotFound, Op: "find grant", Msg: "there is no such grant", Hint: "pawl grant list shows yours."}
	}
	return nil
}

func (a *API) getGrant(ctx context.Context, in *GrantPath) (*output[client.Grant], error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	owner, out := access.Reach(callOf(ctx).token, grantsResource), &output[client.Grant]{}
	err := a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		g, err := grant.Service{}.Get(ctx, tx, owner, in.ID)
		out.Body = grantOf(g)
		return err
	})
	return out, err
}

type revokeGrantInput struct {
	OnceHeader
	GrantPath
}

type revokeGrantOutput struct {
	Replayed replayed `header:"Idempotency-Replayed"`
	Body     client.Grant
}

// revokeGrant ends a grant for good. Doing it again changes nothing.
func (a *API) revokeGrant(ctx context.Context, in *revokeGrantInput) (*revokeGrantOutput, error) {
	if err := in.GrantPath.check(); err != nil {
		return nil, err
	}
	caller := callOf(ctx).token
	owner := access.Reach(caller, grantsResource)
	out, was, err := once(ctx, a, http.StatusOK, nil, whole, func(ctx context.Context, tx *store.Tx) (client.Grant, error) {
		before, err := grant.Service{}.Get(ctx, tx, owner, in.ID)
		if err != nil {
			return client.Grant{}, err
		}
		g, err := grant.Service{}.Revoke(ctx, tx, owner, in.ID)
		if err != nil || !before.RevokedAt.IsZero() {
			return grantOf(g), err
		}
		return grantOf(g), tx.Audit(ctx, actor(caller), "grant.revoke", "grant:"+g.ID, map[string]any{"scopes": g.Scopes})
	})
	return &revokeGrantOutput{was, out}, err
}
