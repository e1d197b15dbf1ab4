package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// maxTokenName is the length of the longest name of a token or user, in
// characters.
const maxTokenName = 128

func tokenOf(t *userstore.Token) client.Token {
	return client.Token{
		ID: t.ID, Name: t.Name, User: t.User.Name, Scopes: t.Scopes, CreatedAt: client.At(t.CreatedAt),
		ExpiresAt: client.At(t.ExpiresAt), RevokedAt: client.At(t.RevokedAt), LastUsedAt: client.At(t.LastUsedAt),
	}
}

type createTokenInput struct {
	OnceHeader
	Body client.TokenRequest
}

type createTokenOutput struct {
	Location string   `header:"Location"`
	Replayed replayed `header:"Idempotency-Replayed"`
	Body     client.NewToken
}

func (a *API) createToken(ctx context.Context, in *createTokenInput) (*createTokenOutput, error) {
	caller := callOf(ctx).token
	expires, err := a.checkToken(&in.Body, caller, time.Now())
	if err != nil {
		return nil, err
	}
	t, was, err := once(ctx, a, http.StatusCreated, &in.Body, withoutText, func(ctx context.Context, tx *store.Tx) (client.NewToken, error) {
		return makeToken(ctx, tx, &in.Body, caller, expires)
	})
	if err != nil {
		return nil, err
	}
	return &createTokenOutput{Location: "/api/v1/tokens/" + t.ID, Replayed: was, Body: t}, nil
}

// withoutText is what is kept of the answer under an idempotency key: the text
// of a token is never stored.
func withoutText(t client.NewToken) client.NewToken {
	t.Text = ""
	t.Note = "This request was answered before, and the token was shown then. It is not stored; if it was lost, revoke this one and create another."
	return t
}

func makeToken(ctx context.Context, tx *store.Tx, r *client.TokenRequest, caller *userstore.Token, expires time.Time) (client.NewToken, error) {
	user := caller.User
	if r.User != "" {
		var err error
		if user, err = userstore.In(tx).EnsureUser(ctx, r.User, access.RoleFor(r.Scopes)); err != nil {
			return client.NewToken{}, err
		}
	}
	if need := access.RoleFor(r.Scopes); !access.RoleAllows(user.Role, need) {
		return client.NewToken{}, invalid(fmt.Sprintf("The scopes need the role %s.", need),
			client.Fault{Pointer: "/scopes", Message: fmt.Sprintf("go beyond the role of %s, who is a %s", user.Name, user.Role)})
	}
	t, text, err := userstore.In(tx).CreateToken(ctx, userstore.TokenSpec{User: user, Name: r.Name, Scopes: r.Scopes, ExpiresAt: expires})
	if err != nil {
		return client.NewToken{}, err
	}
	detail := map[string]any{"name": t.Name, "user": user.Name, "scopes": t.Scopes, "expiresAt": client.At(t.ExpiresAt)}
	if err := tx.Audit(ctx, actor(caller), "token.create", "token:"+t.ID, detail); err != nil {
		return client.NewToken{}, err
	}
	return client.NewToken{Token: tokenOf(&t), Text: client.NullString(text)}, nil
}

// checkToken finds every fault of a request that the schema cannot, and returns
// when the token expires.
func (a *API) checkToken(r *client.TokenRequest, caller *userstore.Token, now time.Time) (expires time.Time, err error) {
	var f faults
	f.add("/name", textFault(r.Name, maxTokenName), "")
	if r.User != "" {
		f.add("/user", textFault(r.User, maxTokenName), "")
	}
	words := access.AllScopes(sortedKeys(a.surface.resources))
	for i, s := range r.Scopes {
		if !slices.Contains(words, s) {
			f.add(fmt.Sprintf("/scopes/%d", i), "is not a scope", choicesHint(s, "scopes", words))
		}
	}
	expires = f.expiry(r, now)
	if err := f.problem(); err != nil {
		return expires, err
	}
	var beyond []client.Fault
	for i, s := range r.Scopes {
		if !access.Allowed(caller, s) {
			beyond = append(beyond, client.Fault{Pointer: fmt.Sprintf("/scopes/%d", i), Message: fmt.Sprintf("%s is more than your own token may do", s)})
		}
	}
	if len(beyond) > 0 {
		return expires, newProblem(http.StatusForbidden, string(pawl.CodeForbidden), "a token cannot give what it does not have", "Ask for fewer scopes, or use a token that has them.", beyond...)
	}
	return expires, nil
}

func (f *faults) expiry(r *client.TokenRequest, now time.Time) time.Time {
	switch {
	case r.ExpiresAt != "" && r.ExpiresIn != "":
		f.add("/expiresIn", "excludes expiresAt", "Send either expiresAt or expiresIn.")
	case r.ExpiresIn != "":
		return f.after(r.ExpiresIn, "/expiresIn", now)
	case r.ExpiresAt != "":
		t, err := time.Parse(time.RFC3339, r.ExpiresAt)
		if err != nil || !t.After(now) {
			f.add("/expiresAt", "must be in the future", "Leave it out for a token that does not expire.")
		}
		f.inReason("/expiresAt", t, now)
		return t
	}
	return time.Time{}
}

const tokenCursor = "token"

func (a *API) listTokens(ctx context.Context, in *PageInput) (*pageOutput[client.Token], error) {
	before, err := in.place(tokenCursor)
	if err != nil {
		return nil, err
	}
	if before != "" && uuid.Validate(before) != nil {
		return nil, badCursor()
	}
	tokens, err := userstore.On(a.db).ListTokens(ctx, ownerFilter(callOf(ctx).token), before, in.Limit+1)
	if err != nil {
		return nil, err
	}
	next := ""
	if len(tokens) > in.Limit {
		tokens = tokens[:in.Limit]
		next = tokens[in.Limit-1].ID
	}
	var out []client.Token
	for i := range tokens {
		out = append(out, tokenOf(&tokens[i]))
	}
	return &pageOutput[client.Token]{pageOf(out, tokenCursor, next)}, nil
}

// ownerFilter is the user whose tokens the caller may see, empty for all.
func ownerFilter(caller *userstore.Token) string {
	return access.Reach(caller, "tokens")
}

// TokenPath is the input of requests about one token.
type TokenPath struct {
	ID string `path:"id" doc:"The token's id."`
}

func (a *API) getToken(ctx context.Context, in *TokenPath) (*output[client.Token], error) {
	caller := callOf(ctx).token
	var t userstore.Token
	err := a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		t, err = visibleToken(ctx, tx, in.ID, caller)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &output[client.Token]{tokenOf(&t)}, nil
}

// getCurrentToken tells a program what it may do before it tries.
func (a *API) getCurrentToken(ctx context.Context, _ *struct{}) (*output[client.CurrentToken], error) {
	t := callOf(ctx).token
	out := client.CurrentToken{Token: tokenOf(t), Role: string(t.User.Role), Routes: []string{}}
	for _, r := range a.surface.rules {
		if r.allowed(t) {
			out.Routes = append(out.Routes, r.route)
		}
	}
	return &output[client.CurrentToken]{out}, nil
}

// visibleToken finds a token that the caller may know of. A foreign one looks
// as if it were not there.
func visibleToken(ctx context.Context, tx *store.Tx, id string, caller *userstore.Token) (userstore.Token, error) {
	gone := &pawl.Error{Code: pawl.CodeNotFound, Msg: "there is no such token", Hint: "GET /api/v1/tokens lists the tokens that you may see."}
	if uuid.Validate(id) != nil {
		return userstore.Token{}, gone
	}
	t, err := userstore.In(tx).TokenByID(ctx, id)
	if errors.Is(err, pawl.ErrNotFound) {
		return t, gone
	}
	if owner := ownerFilter(caller); err == nil && owner != "" && owner != t.User.ID {
		return userstore.Token{}, gone
	}
	return t, err
}

type revokeTokenInput struct {
	OnceHeader
	TokenPath
}

type revokeTokenOutput struct {
	Replayed replayed `header:"Idempotency-Replayed"`
}

// revokeToken ends a token. Doing it again changes nothing.
func (a *API) revokeToken(ctx context.Context, in *revokeTokenInput) (*revokeTokenOutput, error) {
	caller := callOf(ctx).token
	_, was, err := once(ctx, a, http.StatusNoContent, nil, whole, func(ctx context.Context, tx *store.Tx) (struct{}, error) {
		t, err := visibleToken(ctx, tx, in.ID, caller)
		if err != nil {
			return struct{}{}, err
		}
		changed, err := userstore.In(tx).RevokeToken(ctx, t.ID)
		if err != nil || !changed {
			return struct{}{}, err
		}
		tx.AfterCommit(a.keeper.Forget)
		return struct{}{}, tx.Audit(ctx, actor(caller), "token.revoke", "token:"+t.ID, map[string]string{"name": t.Name, "user": t.User.Name})
	})
	return &revokeTokenOutput{was}, err
}
